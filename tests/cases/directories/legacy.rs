//! `--legacy-names`: what the addon-manager of 2015 left behind, and its defects, which are not repeated.

use anyhow::{Result, ensure};
use serde_json::json;

use super::Directory;

const SERVICE: &str = "kubernetes.io/cluster-service: \"true\"";

/// A workload without pods, as the addon-manager of 2015 made it.
fn workload(directory: &Directory, kind: &str, name: &str) -> String {
    let (version, selector) = match kind {
        "ReplicationController" => ("v1", "{app: x}"),
        _ => ("apps/v1", "{matchLabels: {app: x}}"),
    };
    format!(
        "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: {}, labels: {{{SERVICE}}}}}\n\
         spec:\n  replicas: 0\n  selector: {selector}\n  template:\n    metadata: {{labels: {{app: x}}}}\n    \
         spec: {{containers: [{{name: main, image: 'example.test/x:1'}}]}}\n---\n",
        directory.stage.namespace
    )
}

fn service(directory: &Directory, name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: {}, labels: {{{SERVICE}}}}}\nspec: {{ports: [{{port: 80}}]}}\n---\n",
        directory.stage.namespace
    )
}

/// What the addon-manager left behind.
async fn leave_behind(directory: &Directory, manifests: &[String]) -> Result<()> {
    for manifest in manifests {
        let args = ["apply", "-f", "-"];
        let plugin = &directory.stage.plugin;
        plugin.kubectl_with_input(&args, manifest).await?.done()?;
    }
    Ok(())
}

/// Semantics 21: the old version goes when the new one is ready; words are not versions, Services are whole, and what no file is
/// about stays.
#[tokio::test]
async fn an_older_version_is_replaced_by_name() -> Result<()> {
    let directory = Directory::new("legacy").await?;
    let stage = &directory.stage;
    let (rc, deployment) = ("ReplicationController", "Deployment");
    let left = [
        workload(&directory, rc, "heapster-v0"),
        workload(&directory, rc, "heapster-v1"),
        workload(&directory, rc, "heapster-v2"),
        workload(&directory, rc, "alone-v1"),
        workload(&directory, deployment, "kube-dns"),
        workload(&directory, deployment, "web-v1"),
        service(&directory, "heapster-v1"),
    ];
    leave_behind(&directory, &left).await?;
    let kept = json!({"metadata": {"annotations": {"kubectl-addons.dev/prune": "false"}}});
    stage.patch(rc, "heapster-v0", &kept).await?;
    let wanted = [
        workload(&directory, rc, "heapster-v3"),
        workload(&directory, rc, "influxdb"),
        workload(&directory, deployment, "kube-proxy"),
        workload(&directory, deployment, "web-v2"),
        service(&directory, "heapster-v3"),
    ];
    let wanted = wanted.concat();
    directory.write("x.yaml", &wanted)?;
    // Without the flag names are only names.
    stage.run(&directory.line("--yes")).await?.done()?;
    ensure!(stage.has("replicationcontroller", "heapster-v1").await?);
    let line = directory.line("--legacy-names --yes");
    let said = stage.run(&line).await?.done()?;
    for (kind, name) in [
        (rc, "heapster-v1"),
        (rc, "heapster-v2"),
        (deployment, "web-v1"),
    ] {
        let is_there = stage.has(kind, name).await?;
        ensure!(!is_there, "{kind} {name} stays: {}", said.stderr);
    }
    for (kind, name) in [
        (rc, "heapster-v0"),
        (rc, "heapster-v3"),
        (rc, "influxdb"),
        (rc, "alone-v1"),
        (deployment, "kube-dns"),
        (deployment, "kube-proxy"),
        (deployment, "web-v2"),
        ("Service", "heapster-v1"),
        ("Service", "heapster-v3"),
    ] {
        let is_there = stage.has(kind, name).await?;
        ensure!(is_there, "{kind} {name} is gone: {}", said.stderr);
    }
    // Two versions in the directory are two objects.
    let both = wanted + &workload(&directory, rc, "heapster-v4");
    directory.write("x.yaml", &both)?;
    stage.run(&line).await?.done()?;
    for name in ["heapster-v3", "heapster-v4"] {
        ensure!(stage.has(rc, name).await?, "{name}");
    }
    let mark = stage.cluster.audit().mark()?;
    stage.run(&line).await?.done()?;
    let verbs = stage.requests(mark)?;
    ensure!(verbs.writes("kubectl-addons") == 0, "{verbs:?}");
    Ok(())
}
