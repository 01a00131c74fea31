//! What else a loop does while an installation takes its time.

use std::collections::BTreeSet;
use std::time::Duration;

use addons_tests::proxy::{Action, Fault, Proxy};
use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::{until, within};
use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;

/// The path of the list of all records.
const RECORDS: &str = "/v1alpha1/addoninstallations";

/// Two add-ons: `slow` is never ready, and `quick` at once.
fn index(stage: &Stage) -> Result<String> {
    let slow = deployment("slow", 1, Some("nowhere"));
    let quick = config_map("quick", "1");
    let entries = [("slow", "1.0.0", &*slow), ("quick", "1.0.0", &*quick)];
    stage.index("index.yaml", &entries)
}

/// Writes a record, as a person does.
async fn record(stage: &Stage, index: &str, name: &str) -> Result<()> {
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation", "metadata": {"name": name},
        "spec": {"addonRef": {"name": name, "index": index}, "targetNamespace": stage.namespace},
    });
    stage.apply(&record.to_string()).await
}

async fn is_there(stage: &Stage, kind: &str, name: &str) -> Result<()> {
    until(&format!("{kind} {name} is there"), async || {
        let is_there = stage.has(kind, name).await?;
        Ok(is_there.then_some(()).ok_or_else(String::new))
    })
    .await
}

/// A process that gets its Lease back goes on, although what it began before has not ended.
#[tokio::test]
async fn a_lease_that_comes_back_is_noticed() -> Result<()> {
    let stage = super::stage("regained").await?;
    let index = index(&stage)?;
    let process = Running::reconcile(&stage, &[])?;
    process.says("leads").await?;
    record(&stage, &index, "slow").await?;
    is_there(&stage, "deployment", "slow").await?;
    let taken = json!({"spec": {"holderIdentity": "other", "leaseDurationSeconds": 2}});
    stage.patch("lease", "addons-reconciler", &taken).await?;
    until("it leads again", async || {
        let lease = stage.must("lease", "addons-reconciler").await?;
        let is_back = lease["spec"]["holderIdentity"] != "other";
        Ok(is_back.then_some(()).ok_or_else(|| lease.to_string()))
    })
    .await?;
    record(&stage, &index, "quick").await?;
    is_there(&stage, "configmap", "quick").await
}

/// Semantics 13: the locks of what is under way are renewed while the list of all records takes its time.
#[tokio::test]
async fn a_list_without_an_answer_delays_no_renewal() -> Result<()> {
    let stage = super::stage("renewing").await?;
    let index = index(&stage)?;
    let proxy = Proxy::start(&stage.cluster)?;
    let args = ["reconcile", "--watch", "--interval", "3s"];
    let process = Running::with(&stage, proxy.kubeconfig(), &args)?;
    process.says("leads").await?;
    record(&stage, &index, "slow").await?;
    is_there(&stage, "deployment", "slow").await?;
    unanswered(&proxy).await?;
    // One renewal may have been under way. An answer is waited for for 30 seconds.
    let mut seen = BTreeSet::new();
    within(Duration::from_secs(20), "two renewals", async || {
        let record = stage.record("slow").await?;
        seen.insert(record["status"]["operation"]["renewedAt"].to_string());
        let is_renewed = seen.len() > 2;
        Ok(is_renewed.then_some(()).ok_or_else(|| format!("{seen:?}")))
    })
    .await
}

/// Who asks it to end waits for nothing that was only to be read.
#[tokio::test]
async fn the_end_waits_for_no_plan() -> Result<()> {
    let stage = super::stage("ending").await?;
    let index = index(&stage)?;
    let proxy = Proxy::start(&stage.cluster)?;
    let mut process = Running::with(&stage, proxy.kubeconfig(), &["reconcile", "--watch"])?;
    process.says("leads").await?;
    record(&stage, &index, "quick").await?;
    process.says("quick 1.0.0 installed").await?;
    // What it is planned from is not answered.
    let ensures = json!({"spec": {"reconcile": "Ensure"}});
    let patching = stage.patch("addoninstallation", "quick", &ensures);
    tokio::try_join!(unanswered(&proxy), patching)?;
    let asked = Instant::now();
    process.ends(0)?;
    let took = asked.elapsed();
    ensure!(took < Duration::from_secs(10), "{took:?}");
    Ok(())
}

/// From now on the list of all records is not answered; returns once it was asked for.
async fn unanswered(proxy: &Proxy) -> Result<()> {
    let hang = Action::Hang { delivered: false };
    proxy.fault(Fault::always(hang).path(RECORDS));
    until("the list of all records is asked for", async || {
        let is_asked = proxy.hits() > 0;
        Ok(is_asked.then_some(()).ok_or_else(String::new))
    })
    .await
}
