//! Entries whose `manifestHash` is an md5, as those of opzkit: kops compares the text, and never the content.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{record, recorded_by_kops};

const ONE: &str = "098f6bcd4621d373cade4e832627b4f6";
const TWO: &str = "ad0234829205b9033196ba818f7a872b";

/// Semantics 11: it is read as kops reads it, with a warning, whether the entry has a version or not.
#[tokio::test]
async fn an_md5_is_compared_as_text() -> Result<()> {
    for version in ["", "    version: 1.0.0\n"] {
        let stage = Stage::new("kops-md5").await?;
        let namespace = stage.namespace.clone();
        let manifest = stage.write("dns.yaml", &config_map("dns", "1"))?;
        let index = |hash: &str| -> Result<String> {
            let text = format!(
                "kind: Addons\nmetadata: {{name: test}}\nspec:\n  addons:\n  - name: dns\n    namespace: {namespace}\n    \
                 manifest: {}\n    manifestHash: {hash}\n{version}",
                manifest.display()
            );
            let path = stage.write("index.yaml", &text)?;
            Ok(format!("file://{}", path.display()))
        };
        let channel = index(ONE)?;
        let apply = format!("channel apply {channel} --yes");
        let said = stage.run(&apply).await?.done()?;
        ensure!(
            said.stderr.contains("md5 and was not verified"),
            "{}",
            said.stderr
        );
        let text = record(&stage, "dns").await?.context("no record")?;
        let recorded: Value = serde_json::from_str(&text)?;
        ensure!(recorded["manifestHash"] == ONE, "{text}");
        let said = stage.run(&apply).await?.done()?;
        ensure!(
            said.stderr.contains("No update required"),
            "{}",
            said.stderr
        );
        // Another text is due, as for kops, although the content is the same.
        index(TWO)?;
        stage.run(&apply).await?.done()?;
        let text = record(&stage, "dns").await?.context("no record")?;
        ensure!(text.contains(TWO), "{text}");
        // What kops has recorded of the same text is not due.
        recorded_by_kops(&stage, "dns", &text.replace(TWO, ONE)).await?;
        index(ONE)?;
        let said = stage.run(&apply).await?.done()?;
        ensure!(
            said.stderr.contains("No update required"),
            "{}",
            said.stderr
        );
    }
    Ok(())
}
