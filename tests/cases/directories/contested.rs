//! What another manager sets back each time.

use std::time::Duration;

use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::Directory;
use super::watched::{until_value, watch};

/// Semantics 20 and 21: it is left alone and recorded, the rest of the directory goes on, and a changed file counts again.
#[tokio::test]
async fn a_watch_does_not_fight() -> Result<()> {
    let directory = Directory::new("watch-fight").await?;
    let stage = &directory.stage;
    for name in ["a", "b"] {
        directory.write(&format!("{name}.yaml"), &directory.reconciled(name, "1"))?;
    }
    let _watch = watch(&directory, "1s")?;
    for name in ["a", "b"] {
        until_value(&directory, name, Some("1")).await?;
    }
    let edit = json!({"data": {"key": "by hand"}});
    for _ in 0..3 {
        stage.patch("configmap", "a", &edit).await?;
        until_value(&directory, "a", Some("1")).await?;
    }
    let contested = stage.condition("a", "Contested").await?;
    let message = contested["message"].as_str().unwrap_or_default();
    for part in ["data.key", "kubectl-patch", "kubectl-addons."] {
        ensure!(message.contains(part), "{part}: {message}");
    }
    stage.patch("configmap", "a", &edit).await?;
    stage.patch("configmap", "b", &edit).await?;
    until_value(&directory, "b", Some("1")).await?;
    // What is tested is that nothing happens.
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        let value = directory.value("a").await?;
        ensure!(value.as_deref() == Some("by hand"), "{value:?}");
        sleep(Duration::from_millis(100)).await;
    }
    directory.write("a.yaml", &directory.reconciled("a", "2"))?;
    until_value(&directory, "a", Some("2")).await?;
    until("the condition is gone", async || {
        let record = stage.record("a").await?["status"]["conditions"].to_string();
        let is_gone = !record.contains("FieldTakenBack");
        Ok(is_gone.then_some(()).ok_or(record))
    })
    .await
}
