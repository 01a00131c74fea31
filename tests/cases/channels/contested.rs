//! A loop beside kops, when the two apply different indexes.

use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Result, ensure};

use super::{Entry, index, record, recorded_by_kops};

/// What the loop has said.
fn said(stage: &Stage) -> Result<String> {
    Ok(std::fs::read_to_string(stage.plugin.home().join("stderr"))?)
}

/// Waits until the record of kops is as this index says.
async fn until_ours(stage: &Stage, channel: &str) -> Result<()> {
    until("the record is that of the index", async || {
        let text = record(stage, "dns").await?;
        Ok(match text.is_some_and(|text| text.contains(channel)) {
            true => Ok(()),
            false => Err(said(stage)?),
        })
    })
    .await
}

/// Semantics 20: a record that another client replaces again and again is left alone, and the loop says so.
#[tokio::test]
async fn a_loop_does_not_fight_with_kops() -> Result<()> {
    let stage = Stage::new("kops-fight").await?;
    let manifest = config_map("dns", "1");
    let entry = Entry {
        name: "dns",
        fields: &["id: a"],
        manifest: &manifest,
    };
    let channel = index(&stage, "index.yaml", &[entry])?;
    let line = format!("channel apply {channel} --yes --interval 1s");
    let words: Vec<&str> = line.split_whitespace().collect();
    let _loop = stage.plugin.start(&words)?;
    let theirs =
        r#"{"channel":"s3://other/index.yaml","id":"b","manifestHash":"0","systemGeneration":1}"#;
    until_ours(&stage, &channel).await?;
    for _ in 0..3 {
        recorded_by_kops(&stage, "dns", theirs).await?;
        until_ours(&stage, &channel).await?;
    }
    until("the loop says so", async || {
        let said = said(&stage)?;
        Ok(
            match said.contains("metadata.annotations[addons.k8s.io/dns] was taken back 3 times") {
                true => Ok(()),
                false => Err(said),
            },
        )
    })
    .await?;
    let contested = stage.condition("dns", "Contested").await?;
    ensure!(contested["status"] == "True", "{contested}");
    recorded_by_kops(&stage, "dns", theirs).await?;
    // What is tested is that nothing happens.
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    let text = record(&stage, "dns").await?;
    ensure!(text.as_deref() == Some(theirs), "{text:?}");
    Ok(())
}
