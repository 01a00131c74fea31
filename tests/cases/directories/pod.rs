//! The static pod of `deploy/sync`, and the rights of its user.

use addons_tests::plugin::Plugin;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Directory;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/sync");

/// The server takes the pod, the plugin its arguments, and its user may do what a manifest asks for.
#[tokio::test]
async fn the_static_pod_and_its_user() -> Result<()> {
    let directory = Directory::new("pod").await?;
    let stage = &directory.stage;
    let pod = format!("{FOLDER}/static-pod.yaml");
    let args = ["apply", "--dry-run=server", "-f", &pod];
    stage.plugin.kubectl(&args).await?.done()?;
    let rights = format!("{FOLDER}/rbac.yaml");
    stage
        .plugin
        .kubectl(&["apply", "-f", &rights])
        .await?
        .done()?;

    let pod: Value = serde_saphyr::from_str(&std::fs::read_to_string(&pod)?)?;
    let args = pod
        .pointer("/spec/containers/0/args")
        .and_then(Value::as_array);
    let args: Vec<&str> = args
        .context("no args")?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let path = directory.path.display().to_string();
    let user = stage.cluster.user("system:addon-manager", &[])?;
    let plugin = Plugin::new(&stage.cluster, &user.kubeconfig)?.system_namespace(&stage.namespace);
    directory.write("a.yaml", &directory.reconciled("a", "1"))?;
    // All of its arguments but those that name its own files, or make it go on.
    let kept = args.iter().filter(|arg| {
        !["--watch", "--kubeconfig", "--cache-dir", "--interval"]
            .iter()
            .any(|flag| arg.starts_with(flag))
    });
    let words: Vec<&str> = kept
        .map(|arg| {
            if *arg == "/etc/kubernetes/addons" {
                path.as_str()
            } else {
                *arg
            }
        })
        .collect();
    ensure!(words == ["sync", &path, "--yes"], "{words:?}");
    plugin.run(&words).await?.done()?;
    ensure!(directory.value("a").await?.as_deref() == Some("1"));
    // The whole line is one that the plugin understands.
    let all: Vec<&str> = args.iter().copied().chain(["-h"]).collect();
    plugin.run(&all).await?.done()?;
    Ok(())
}
