//! The certificate authority that an entry asks for.

use addons_tests::control_plane::ControlPlane;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{Entry, index, rows};

/// As much of cert-manager as the Issuer needs.
const ISSUERS: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: issuers.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: Issuer, plural: issuers}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

/// Secret and Issuer are made once, also where nothing else is due, and stay as they are.
#[tokio::test]
async fn an_authority_is_made_where_it_is_missing() -> Result<()> {
    // kube-system and the definitions of cert-manager are of this test alone.
    let cluster = ControlPlane::alone().await?;
    let stage = Stage::on(cluster, "kops-pki").await?;
    stage.apply(ISSUERS).await?;
    let wait = [
        "wait",
        "--for=condition=Established",
        "crd/issuers.cert-manager.io",
        "--timeout=30s",
    ];
    stage.plugin.kubectl(&wait).await?.done()?;
    let manifest = config_map("metrics", "1");
    let entry = Entry {
        name: "test",
        fields: &["needsPKI: true"],
        manifest: &manifest,
    };
    let channel = index(&stage, "index.yaml", &[entry])?;
    let due = rows(&stage, &channel).await?;
    ensure!(due.len() == 1 && due[0]["installsPKI"] == true, "{due:?}");
    let apply = format!("channel apply {channel} --yes");
    stage.run(&apply).await?.done()?;
    let get = async |kind: &str, name: &str| {
        let args = ["get", kind, name, "-n", "kube-system", "-o", "json"];
        let output = stage.plugin.kubectl(&args).await?.done()?;
        Ok::<serde_json::Value, anyhow::Error>(serde_json::from_str(&output.stdout)?)
    };
    let secret = get("secret", "test-ca").await?;
    ensure!(secret["type"] == "kubernetes.io/tls", "{}", secret["type"]);
    let issuer = get("issuer", "test").await?;
    ensure!(
        issuer["spec"] == json!({"ca": {"secretName": "test-ca"}}),
        "{issuer}"
    );
    ensure!(rows(&stage, &channel).await?.is_empty());

    // An edit stays until the next version, also where the authority has to be made again.
    stage
        .patch("configmap", "metrics", &json!({"data": {"key": "edited"}}))
        .await?;
    stage
        .plugin
        .kubectl(&["delete", "issuer", "test", "-n", "kube-system"])
        .await?
        .done()?;
    let due = rows(&stage, &channel).await?;
    let row = due.first().context("nothing is due")?;
    ensure!(
        row.get("update").is_none() && row.get("current").is_some(),
        "{row}"
    );
    stage.run(&apply).await?.done()?;
    get("issuer", "test").await?;
    let kept = get("secret", "test-ca").await?;
    ensure!(kept["data"] == secret["data"], "another key was made");
    let edited = stage.must("configmap", "metrics").await?;
    ensure!(edited["data"]["key"] == "edited", "{edited}");
    Ok(())
}
