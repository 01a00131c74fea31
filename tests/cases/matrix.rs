//! Every method from every source that it goes with, installed from a catalogue in a real cluster: each source is a real
//! server that wants the credentials of a Secret beside the catalogue.

mod content;
mod rig;

use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use rig::{ADDONS, Rig};

/// Installed, as rendered; again, when nothing is due: one request to each source at most; and once more with the cache alone.
#[tokio::test]
async fn every_method_from_every_source() -> Result<()> {
    let mut tally = Tally::new("matrix");
    let rig = Rig::new().await?;
    let names: Vec<String> = ADDONS.iter().map(|addon| rig.name(addon)).collect();
    let mut install = vec!["install", "--yes", "--target-namespace", &rig.namespace];
    install.extend(names.iter().map(String::as_str));
    let said = rig.run(&install).await?.done()?;
    for addon in &ADDONS {
        let name = rig.name(addon);
        let data = rig.data(&name).await.with_context(|| said.stderr.clone())?;
        let who = if addon.method == "manifest" {
            "nobody"
        } else {
            "world"
        };
        ensure!(data["who"] == who, "{name}: {data}");
        if addon.method != "manifest" {
            ensure!(data["version"] == "1.36.3", "{name}: {data}");
        }
        let installed = installed(&rig, &name).await?;
        let resolved = installed["resolved"].as_str();
        ensure!(
            resolved.is_some() == addon.is_resolved(),
            "{name}: {installed}"
        );
        let hash = installed["manifestHash"].as_str().unwrap_or_default();
        ensure!(hash.len() == 64, "{name}: {installed}");
        tally.ran();
    }

    for addon in &ADDONS {
        let name = rig.name(addon);
        rig.requests();
        let again = rig.run(&["upgrade", &name, "--yes"]).await?.done()?;
        ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
        let requests = rig.requests();
        ensure!(requests <= 1, "{name}: {requests} requests to its source");
        let offline = rig.run(&["upgrade", &name, "--yes", "--offline"]).await?;
        let offline = offline.done()?;
        ensure!(
            offline.stderr.contains("nothing to do"),
            "{}",
            offline.stderr
        );
        ensure!(rig.requests() == 0, "{name} was fetched");
    }
    tally.note("again: one request to each source at most; offline: none");

    let mut uninstall = vec!["uninstall", "--yes"];
    uninstall.extend(names.iter().map(String::as_str));
    rig.run(&uninstall).await?.done()?;
    for name in &names {
        ensure!(rig.data(name).await.is_err(), "{name} is still there");
    }
    Ok(())
}

/// A branch that moved, a tag of an image that was pushed again, a newer chart: rolled out; and what the record then says.
#[tokio::test]
async fn what_moves_is_rolled_out() -> Result<()> {
    let mut tally = Tally::new("matrix::moved");
    let rig = Rig::new().await?;
    let moving = ADDONS
        .iter()
        .filter(|addon| addon.source != "inline")
        .collect::<Vec<_>>();
    let names: Vec<String> = moving.iter().map(|addon| rig.name(addon)).collect();
    let mut install = vec!["install", "--yes", "--target-namespace", &rig.namespace];
    install.extend(names.iter().map(String::as_str));
    rig.run(&install).await?.done()?;
    let mut before = Vec::new();
    for name in &names {
        before.push(installed(&rig, name).await?);
    }
    rig.publish("moved").await?;
    let mut upgrade = vec!["upgrade", "--yes"];
    upgrade.extend(names.iter().map(String::as_str));
    rig.run(&upgrade).await?.done()?;
    for ((addon, name), before) in moving.iter().zip(&names).zip(before) {
        let data = rig.data(name).await?;
        ensure!(data["edition"] == "moved", "{name}: {data}");
        let now = installed(&rig, name).await?;
        for field in ["manifestHash", "resolved"] {
            // A URL does not say what it stands for.
            let is_there = field == "manifestHash" || addon.is_resolved();
            let (before, now) = (&before[field], &now[field]);
            ensure!(
                now.is_string() == is_there && (now != before) == is_there,
                "{name}: {field} {before}, then {now}"
            );
        }
        tally.ran();
    }
    Ok(())
}

/// What the record says of the version that is installed.
async fn installed(rig: &Rig, name: &str) -> Result<Value> {
    Ok(rig.record(name).await?["status"]["installed"].clone())
}

/// Wrong credentials, and a Secret that may not be sent there: one sentence, nothing changed, nothing told.
#[tokio::test]
async fn wrong_credentials_change_nothing() -> Result<()> {
    let mut tally = Tally::new("matrix::credentials");
    let rig = Rig::new().await?;
    rig.secrets("wrong horse", None).await?;
    for addon in ADDONS.iter().filter(|addon| addon.source != "inline") {
        let name = rig.name(addon);
        let said = rig.run(&["install", &name, "--yes"]).await?.ended(1)?;
        ensure!(!said.stderr.contains("wrong horse"), "{}", said.stderr);
        ensure!(said.stderr.starts_with("error: "), "{}", said.stderr);
        tally.ran();
    }
    rig.secrets(rig::PASSWORD, Some("elsewhere.example"))
        .await?;
    for addon in ADDONS.iter().filter(|addon| addon.source != "inline") {
        let name = rig.name(addon);
        rig.requests();
        let said = rig.run(&["install", &name, "--yes"]).await?.ended(1)?;
        ensure!(said.stderr.contains("elsewhere.example"), "{}", said.stderr);
        ensure!(
            said.stderr.contains("accept: kubectl annotate"),
            "{}",
            said.stderr
        );
        ensure!(rig.requests() == 0, "{name} was asked");
        tally.ran();
    }
    let records = rig.records().await?;
    ensure!(records == Value::Array(Vec::new()), "{records}");
    Ok(())
}
