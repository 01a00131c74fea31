//! Add-ons that are not in the index any more.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};

use super::{Entry, index, record, recorded_by_kops};

/// They are named, and uninstalled only where that is asked for, of this channel alone, and not most of them at once.
#[tokio::test]
async fn what_left_the_index_is_uninstalled_on_request() -> Result<()> {
    let stage = Stage::new("kops-removed").await?;
    let names = ["one", "two", "three", "four"];
    let manifests = names.map(|name| config_map(name, "1"));
    let entries = |count: usize| -> Vec<Entry<'_>> {
        let both = names.iter().zip(&manifests).take(count);
        both.map(|(name, manifest)| Entry {
            name,
            fields: &[],
            manifest,
        })
        .collect()
    };
    let channel = index(&stage, "index.yaml", &entries(4))?;
    stage
        .run(&format!("channel apply {channel} --yes"))
        .await?
        .done()?;
    let foreign = r#"{"channel":"s3://other/index.yaml","id":"a"}"#;
    recorded_by_kops(&stage, "theirs", foreign).await?;
    let by_kops = format!(r#"{{"channel":"{channel}","id":"a"}}"#);
    recorded_by_kops(&stage, "old", &by_kops).await?;

    index(&stage, "index.yaml", &entries(3))?;
    let shown = stage
        .run(&format!("channel apply {channel} --yes"))
        .await?
        .done()?;
    ensure!(
        shown.stderr.contains("four (namespace ")
            && shown.stderr.contains("--prune-removed uninstalls it"),
        "{}",
        shown.stderr
    );
    ensure!(stage.has("configmap", "four").await?);

    let prune = format!("channel apply {channel} --prune-removed --yes");
    stage.run(&prune).await?.done()?;
    ensure!(!stage.has("configmap", "four").await? && stage.has("configmap", "three").await?);
    ensure!(record(&stage, "four").await?.is_none());
    ensure!(record(&stage, "theirs").await?.as_deref() == Some(foreign));
    ensure!(record(&stage, "old").await? == Some(by_kops));

    index(&stage, "index.yaml", &entries(1))?;
    let refused = stage.run(&prune).await?;
    ensure!(
        refused.code == 1
            && refused
                .stderr
                .contains("2 of 3 installations from kops indexes are no longer in them"),
        "{}: {}",
        refused.code,
        refused.stderr
    );
    ensure!(stage.has("configmap", "two").await?);
    stage
        .run(&format!("{prune} --allow-prune 100%"))
        .await?
        .done()?;
    ensure!(!stage.has("configmap", "two").await? && stage.has("configmap", "one").await?);
    Ok(())
}
