//! Where kops' own tool runs, too.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::json;

use super::{Entry, index};

/// A warning where kops manages the cluster, and the index is that of its own add-ons.
#[tokio::test]
async fn the_original_is_warned_of() -> Result<()> {
    let stage = Stage::new("kops-runs").await?;
    let manifest = config_map("dns", "1");
    let entry = || Entry {
        name: "dns",
        fields: &[],
        manifest: &manifest,
    };
    let own = index(&stage, "bootstrap-channel.yaml", &[entry()])?;
    let other = index(&stage, "other.yaml", &[entry()])?;
    let warning = format!(
        "warning: DaemonSet kube-system/kops-controller is running: the control planes of kops apply {own} as well"
    );
    let said = async |channel: &str| -> Result<String> {
        let line = format!("channel apply {channel}");
        Ok(stage.run(&line).await?.done()?.stderr)
    };
    let before = said(&own).await?;
    ensure!(!before.contains("warning"), "{before}");
    let labels = json!({"k8s-app": "kops-controller"});
    let controller = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "kops-controller", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "example.test/kops:1"}]},
        }},
    });
    let args = ["apply", "-f", "-"];
    let controller = controller.to_string();
    let applied = stage.plugin.kubectl_with_input(&args, &controller);
    applied.await?.done()?;
    let (own, other) = (said(&own).await?, said(&other).await?);
    let args = [
        "delete",
        "daemonset",
        "kops-controller",
        "-n",
        "kube-system",
    ];
    stage.plugin.kubectl(&args).await?.done()?;
    ensure!(own.contains(&warning), "{own}");
    ensure!(!other.contains("warning"), "{other}");
    Ok(())
}
