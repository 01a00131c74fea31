//! `adopt` of what kops installed, and the work of both tools after that.

use addons_tests::stage::Stage;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{Entry, applied_by_kops, index, record, recorded_by_kops};

const ADDON: &str = "coredns.addons.k8s.io";

/// Two ConfigMaps with these data.
fn manifest(dns: &str, other: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: dns}}\ndata: {{{dns}}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: other}}\ndata: {{{other}}}\n"
    )
}

fn entry(manifest: &str) -> Entry<'_> {
    Entry {
        name: ADDON,
        fields: &["id: k8s-1.12", "version: 9.99.0"],
        manifest,
    }
}

/// Applies and records an add-on as kops 1.23 and later do.
async fn installed_by_kops(stage: &Stage, channel: &str, manifest: &str) -> Result<()> {
    applied_by_kops(stage, manifest).await?;
    let text = format!(
        r#"{{"channel":"{channel}","id":"k8s-1.12","manifestHash":"{}","systemGeneration":1}}"#,
        entry(manifest).hash()
    );
    recorded_by_kops(stage, ADDON, &text).await
}

/// Semantics 11 and 12: after an adoption nothing is due that kops has installed from the same entry, and the next entry changes only
/// what differs.
#[tokio::test]
async fn after_an_adoption_only_what_differs_is_due() -> Result<()> {
    let stage = Stage::new("kops-adopted").await?;
    let (one, two) = (manifest("a: '1'", "a: '1'"), manifest("a: '2'", "a: '1'"));
    let channel = index(&stage, "index.yaml", &[entry(&one)])?;
    installed_by_kops(&stage, &channel, &one).await?;
    let adopt = format!("adopt {ADDON} --channel {channel} --yes");
    let said = stage.run(&adopt).await?.done()?;
    ensure!(!said.stderr.contains("not on offer"), "{}", said.stderr);
    let hash = entry(&one).hash();
    for line in [
        format!("channel apply {channel}"),
        format!("channel apply {channel} --yes"),
    ] {
        let said = stage.run(&line).await?.done()?;
        ensure!(
            said.stderr.contains("No update required"),
            "{line}: {} {}",
            said.stdout,
            said.stderr
        );
    }
    let text = record(&stage, ADDON).await?.context("no record")?;
    ensure!(text.contains(&hash), "{text}");
    let said = stage
        .run(&format!("upgrade {ADDON} --dry-run"))
        .await?
        .done()?;
    ensure!(
        said.stderr.contains("nothing to do"),
        "{} {}",
        said.stdout,
        said.stderr
    );

    index(&stage, "index.yaml", &[entry(&two)])?;
    let said = stage
        .run(&format!("channel apply {channel}"))
        .await?
        .done()?;
    let next = entry(&two).hash();
    let row: Vec<&str> = said
        .stdout
        .lines()
        .nth(1)
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    ensure!(row == [ADDON, &hash, &next, "no"], "{}", said.stdout);
    ensure!(
        said.stderr.contains("update    1 object"),
        "{}",
        said.stderr
    );
    let said = stage
        .run(&format!("channel apply {channel} --yes"))
        .await?
        .done()?;
    ensure!(said.stderr.contains("1 changed"), "{}", said.stderr);
    let live = stage.must("configmap", "dns").await?;
    ensure!(live["data"] == json!({"a": "2"}), "{live}");
    Ok(())
}

/// What kops has applied since is ours again with the next entry: a field that both tools set, and that the entry drops, is gone.
#[tokio::test]
async fn a_field_that_both_tools_set_is_dropped() -> Result<()> {
    let stage = Stage::new("kops-both").await?;
    let of = |data: &str| manifest(data, "a: '1'");
    let versions = [
        "a: '1', b: '1'",
        "a: '2', b: '1'",
        "a: '3', b: '1'",
        "a: '4'",
    ]
    .map(of);
    let [one, two, three, four] = &versions;
    let channel = index(&stage, "index.yaml", &[entry(one)])?;
    installed_by_kops(&stage, &channel, one).await?;
    let apply = format!("channel apply {channel} --yes");
    index(&stage, "index.yaml", &[entry(two)])?;
    stage.run(&apply).await?.done()?;
    installed_by_kops(&stage, &channel, three).await?;
    index(&stage, "index.yaml", &[entry(four)])?;
    stage.run(&apply).await?.done()?;
    let live = stage.must("configmap", "dns").await?;
    ensure!(live["data"] == json!({"a": "4"}), "{live}");
    Ok(())
}
