//! Records that a loop has nothing to do with stay as they are, whatever goes wrong.

use addons_tests::proxy::{Action, Fault, Proxy};
use addons_tests::running::Running;
use addons_tests::scene::{create, stored};
use addons_tests::stage::Stage;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use common::api::names::{API_VERSION, LABEL_KUBECONFIG_SECRET};
use serde_json::{Value, json};

/// So many failures of this cluster are waited for: what they lead to is written by then.
const FAILURES: usize = 6;

/// An error of this cluster says nothing of records in a namespace that stands for none, and a cluster that cannot be reached nothing
/// of what a directory installs there: those who could take such conditions back never look at them (semantics 6, 13, 20).
#[tokio::test]
async fn records_of_others_get_no_conditions() -> Result<()> {
    let stage = Stage::alone("others").await?;
    stage.run("init").await?.done()?;
    let (nowhere, lost) = (
        format!("{}-nowhere", stage.namespace),
        format!("{}-lost", stage.namespace),
    );
    namespace(&stage, json!({"name": nowhere})).await?;
    let labels = json!({LABEL_KUBECONFIG_SECRET: "gone"});
    namespace(&stage, json!({"name": lost, "labels": labels})).await?;
    record(&stage, &nowhere, "web", json!({"name": "web"})).await?;
    record(&stage, &lost, "web", json!({"name": "web"})).await?;
    let of_directory = json!({"name": "files", "directory": "/srv/addons"});
    record(&stage, &lost, "files", of_directory).await?;

    let proxy = Proxy::start(&stage.cluster)?;
    let fails = Action::Answer {
        status: 500,
        retry_after: None,
    };
    proxy.fault(Fault::always(fails).path("/version"));
    let args = ["reconcile", "--watch", "--interval", "1s"];
    let process = Running::with(&stage, proxy.kubeconfig(), &args)?;
    until("this cluster fails", async || {
        let hits = proxy.hits();
        Ok((hits >= FAILURES)
            .then_some(())
            .ok_or_else(|| process.said()))
    })
    .await?;
    proxy.heal();

    until("the lost cluster is recorded", async || {
        let status = status(&stage, &lost, "web").await?;
        let is_said = status.to_string().contains("KubeconfigMissing");
        Ok(is_said.then_some(()).ok_or_else(|| status.to_string()))
    })
    .await?;
    for (namespace, name) in [(&nowhere, "web"), (&lost, "files")] {
        let status = status(&stage, namespace, name).await?;
        ensure!(status.is_null(), "{namespace}/{name}: {status}");
    }
    Ok(())
}

async fn namespace(stage: &Stage, metadata: Value) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    create(&stage.plugin, &namespace, &[])
        .await?
        .done()
        .map(drop)
}

async fn record(stage: &Stage, namespace: &str, name: &str, addon_ref: Value) -> Result<()> {
    let record = json!({
        "apiVersion": API_VERSION, "kind": "AddonInstallation",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"addonRef": addon_ref},
    });
    create(&stage.plugin, &record, &[]).await?.done().map(drop)
}

async fn status(stage: &Stage, namespace: &str, name: &str) -> Result<Value> {
    let record = stored(&stage.plugin, name, namespace).await?;
    Ok(record["status"].clone())
}
