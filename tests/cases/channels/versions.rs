//! The choice by the version of the cluster, as the documentation of kops describes it.

use addons_tests::plugin::Plugin;
use addons_tests::proxy::{Action, Fault, Proxy};
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::json;

use super::{Entry, index, record};

/// The pair of kube-dns: equal versions, told apart by range and id. The cluster goes from 1.5 to 1.6, back, and on again.
#[tokio::test]
async fn an_entry_follows_the_version_of_the_cluster_both_ways() -> Result<()> {
    let stage = Stage::new("kube-dns").await?;
    let proxy = Proxy::start(&stage.cluster)?;
    let user = stage.cluster.user(&stage.namespace, &["system:masters"])?;
    let kubeconfig = proxy.client("kops", &user)?;
    let plugin = Plugin::new(&stage.cluster, &kubeconfig)?.system_namespace(&stage.namespace);
    let (old, new) = (config_map("kube-dns", "old"), config_map("kube-dns", "new"));
    let entry = |fields, manifest| Entry {
        name: "kube-dns.addons.k8s.io",
        fields,
        manifest,
    };
    let channel = index(
        &stage,
        "index.yaml",
        &[
            entry(
                &[
                    "version: 1.6.0",
                    "id: pre-k8s-16",
                    r#"kubernetesVersion: "<1.6.0""#,
                ],
                &old,
            ),
            entry(
                &[
                    "version: 1.6.0",
                    "id: k8s-16",
                    r#"kubernetesVersion: ">=1.6.0""#,
                ],
                &new,
            ),
        ],
    )?;
    for (version, value, id) in [
        ("v1.5.8", "old", "pre-k8s-16"),
        ("v1.6.0-beta.1", "new", "k8s-16"),
        ("v1.5.8", "old", "pre-k8s-16"),
        ("v1.6.13", "new", "k8s-16"),
    ] {
        proxy.heal();
        let said = json!({"major": "1", "minor": "0", "gitVersion": version, "gitCommit": "", "gitTreeState": "clean",
            "buildDate": "2017-01-01T00:00:00Z", "goVersion": "go1", "compiler": "gc", "platform": "linux/amd64"});
        proxy.fault(Fault::always(Action::Say(said.to_string())).path("/version"));
        let args = ["channel", "apply", &channel, "--yes"];
        plugin.run(&args).await?.done()?;
        let live = stage.must("configmap", "kube-dns").await?;
        ensure!(live["data"]["key"] == value, "{version}: {live}");
        let text = record(&stage, "kube-dns.addons.k8s.io")
            .await?
            .unwrap_or_default();
        ensure!(
            text.contains(&format!(r#""id":"{id}""#)) && text.contains(r#""version":"1.6.0""#),
            "{text}"
        );
        let again = plugin.run(&args).await?.done()?;
        ensure!(
            again.stderr.contains("No update required"),
            "{version}: {}",
            again.stderr
        );
    }
    Ok(())
}
