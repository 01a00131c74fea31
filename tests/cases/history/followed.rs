//! What becomes of an installation after a rollback or an interruption, as the pages and `list` say.

use super::*;

/// A rollback pins the version; without the pin, the newest one is followed again.
#[tokio::test]
async fn a_pin_is_removed_as_the_page_says() -> Result<()> {
    let versions = ["1.0.0", "1.1.0"].map(|version| plain(version, &config_map("web", version)));
    let shop = Shop::new("history-unpin", &versions[..1]).await?;
    shop.run("install web --yes").await?;
    shop.list(&versions).await?;
    shop.run("upgrade web --yes").await?;
    shop.run("rollback web --yes").await?;
    ensure!(shop.versions().await? == (json!("1.0.0"), json!("1.0.0")));
    let page = include_str!("../../../kubectl-addons/docs/history.md");
    let unpin = "upgrade web --unpin";
    ensure!(
        page.contains(&format!("kubectl addons {unpin}\n")),
        "the page says something else"
    );
    shop.run(&format!("{unpin} --yes")).await?;
    ensure!(shop.versions().await? == (json!("1.1.0"), Value::Null));
    Ok(())
}

/// Whoever looks sees that nothing goes on, and what continues it.
#[tokio::test]
async fn an_interrupted_operation_does_not_progress() -> Result<()> {
    let shop = Shop::new("interrupted", &[plain("1.0.0", &config_map("web", "1"))]).await?;
    shop.run("install web --yes").await?;
    shop.stage.lock("web", "alice@laptop", 5).await?;
    let lines = ["list", "status web"];
    for line in lines {
        let said = shop.stage.run(line).await?.stdout;
        ensure!(said.contains("Progressing: upgrade by alice"), "{said}");
    }
    shop.stage.lock("web", "alice@laptop", 60).await?;
    let way_on = format!("kubectl addons upgrade web -n {}", shop.stage.namespace);
    for (line, told) in [
        ("list", "Interrupted: upgrade"),
        (
            "status web",
            &format!("Interrupted: upgrade; to continue: {way_on}"),
        ),
    ] {
        let said = shop.stage.run(line).await?.stdout;
        ensure!(said.contains(told), "{line}: {said}");
    }
    let list = format!("list -n {} -o json", shop.stage.namespace);
    for line in [&*list, "status web -o json"] {
        let said: Value = serde_json::from_str(&shop.stage.run(line).await?.done()?.stdout)?;
        let one = said["items"].get(0).unwrap_or(&said);
        ensure!(one["phase"] == "Interrupted", "{line}: {said}");
        ensure!(one["message"] == "upgrade", "{line}: {said}");
        ensure!(one["wayOn"] == way_on.as_str(), "{line}: {said}");
    }
    shop.run(&format!("upgrade web -n {} --yes", shop.stage.namespace))
        .await?;
    let said = shop.stage.run("list").await?.stdout;
    ensure!(said.contains("Ready"), "{said}");
    Ok(())
}

/// The command that `status` names goes on to the revision that was asked for, and not to the one before the newest.
#[tokio::test]
async fn an_interrupted_rollback_goes_on_to_the_same_revision() -> Result<()> {
    let versions = ["1.0.0", "1.1.0", "1.2.0"];
    let versions = versions.map(|version| plain(version, &config_map("web", version)));
    let shop = Shop::new("rollback-cut", &versions[..1]).await?;
    shop.run("install web --yes").await?;
    for known in [2, 3] {
        shop.list(&versions[..known]).await?;
        shop.run("upgrade web --yes").await?;
    }
    let stage = &shop.stage;
    // As `rollback web 1` leaves it that is killed before it applies anything.
    let record = stage.record("web").await?;
    let target = &record["status"]["history"][2]["installed"];
    ensure!(target["version"] == "1.0.0", "{record}");
    let operation = json!({
        "id": "0123456789abcdef", "verb": "rollback", "holder": "alice@laptop", "leaseSeconds": 15,
        "startedAt": "2026-01-01T00:00:00Z", "renewedAt": "2026-01-01T00:00:00Z", "target": target,
    });
    let spec = json!({"spec": {"addonRef": {"version": "1.0.0"}}});
    stage.patch("addoninstallation", "web", &spec).await?;
    let status = json!({"operation": operation});
    stage
        .patch_status("addoninstallation", "web", &status)
        .await?;
    let way_on = format!("rollback web -n {}", stage.namespace);
    let told = format!("Interrupted: rollback; to continue: kubectl addons {way_on}");
    let said = stage.run("status web").await?.stdout;
    ensure!(said.contains(&told), "{said}");
    shop.run(&format!("{way_on} --yes")).await?;
    ensure!(shop.versions().await? == (json!("1.0.0"), json!("1.0.0")));
    ensure!(shop.key().await? == "1.0.0");
    Ok(())
}

/// A loop that repairs, however often, neither ends what a rollback holds nor pushes it out of the history.
#[tokio::test]
async fn repairs_end_no_rollback() -> Result<()> {
    let shop = Shop {
        stage: Stage::new("history-repairs").await?,
    };
    let stage = &shop.stage;
    let two = ("web", "1.1.0", &*config_map("web", "two"));
    let index = stage.index(
        "index.yaml",
        &[("web", "1.0.0", &config_map("web", "one")), two],
    )?;
    shop.run(&format!("install web@1.0.0 --channel {index} --yes"))
        .await?;
    shop.run("upgrade web@1.1.0 --yes").await?;
    shop.run("rollback web --yes").await?;
    let kept = shop.history().await?;
    for _ in 0..11 {
        stage.delete("configmap", "web").await?;
        shop.run("reconcile web").await?;
    }
    let all = shop.history().await?;
    ensure!(all.len() == kept.len(), "{kept:?}\n{all:?}");
    // The version is another file now, and not what was brought back.
    stage.index(
        "index.yaml",
        &[two, ("web", "1.0.0", &config_map("web", "other"))],
    )?;
    shop.run("reconcile web").await?;
    ensure!(shop.key().await? == "one", "the rollback does not hold");
    Ok(())
}
