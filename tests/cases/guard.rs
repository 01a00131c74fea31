//! What is protected cannot be reached from the side. The number in a name is that of the kind of its rule.

mod budget;
mod core;
mod entrance;
mod facts;
mod hostile;
mod jail;
mod judged;
mod operations;
mod proofs;
mod reach;
mod rights;
mod views;

use addons_tests::running::Running;
use addons_tests::stage::Stage;
use addons_tests::until::until;
use anyhow::Result;

/// Waits until the loop has created a ConfigMap.
async fn is_there(stage: &Stage, process: &Running, name: &str) -> Result<()> {
    until(&format!("ConfigMap {name} is there"), async || {
        let is_there = stage.has("configmap", name).await?;
        Ok(is_there.then_some(()).ok_or_else(|| process.said()))
    })
    .await
}
