//! With whose rights `reconcile` reads what installations of another cluster need from this one.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Pair;

/// semantics 16: what is in a Secret becomes data of templates with the rights of an account of the namespace, or of a person: whoever
/// may write records and read no Secrets would have it rendered otherwise.
#[tokio::test]
async fn no_secret_is_rendered_for_whoever_writes_a_record() -> Result<()> {
    let pair = Pair::new("rights").await?;
    pair.stand().await?;
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n\
                    data: {key: \"name {{ .Cluster.Name }}\"}\n";
    let version = json!({
        "version": "1.0.0", "defaultNamespace": pair.target(),
        "template": {"method": "go-template"}, "source": {"inline": {"manifest": manifest}},
    });
    let file = pair.stage.catalogue("web", &version)?;
    let add = format!("catalogue add {}", file.display());
    pair.stage.run(&add).await?.done()?;
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "web", "namespace": pair.team},
        "spec": {"addonRef": {"name": "web"}, "targetNamespace": pair.target()},
    });
    let apply = async |object: Value| {
        let (args, text) = (["apply", "-f", "-"], object.to_string());
        let applied = pair.stage.plugin.kubectl_with_input(&args, &text).await?;
        applied.done().map(drop)
    };
    apply(record).await?;
    pair.run("reconcile web").await?.done()?;

    let mut data = pair.secret(
        "addon-template-data",
        "Opaque",
        "data.yaml",
        "Cluster: {Name: s3cret}",
    );
    data["metadata"]["labels"] = json!({"kubectl-addons.dev/values": "true"});
    apply(data).await?;
    let said = pair.run("reconcile web").await?;
    let words = "spec.serviceAccountName names no ServiceAccount";
    ensure!(
        said.code != 0 && said.stderr.contains(words),
        "{}",
        said.stderr
    );
    let key = async || {
        let live = pair.there("configmap", "web").await?.unwrap_or_default();
        Ok::<_, anyhow::Error>(live["data"]["key"].clone())
    };
    ensure!(key().await? != "name s3cret", "it was rendered");
    // A person reads it with rights of their own.
    pair.run("upgrade web --yes").await?.done()?;
    ensure!(key().await? == "name s3cret", "{}", key().await?);
    Ok(())
}
