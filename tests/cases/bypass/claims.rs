//! A status is a claim of whoever could write it: what it names is deleted only where the live object says the same (semantics 13).

use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// An object of another client, and a namespace of one, in the inventory of an installation with their uids.
#[tokio::test]
async fn what_a_status_names_is_not_deleted_for_that_alone() -> Result<()> {
    let stage = Stage::new("claims").await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("a", "1"))])?;
    let install = format!("install web --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let record = stage.record("web").await?;
    let target = record["spec"]["targetNamespace"].as_str();
    let target = target.context("no target namespace")?;
    let victim = format!("{}-victim", stage.namespace);
    stage
        .apply(&format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: victim, namespace: {target}}}\n---\n\
             apiVersion: v1\nkind: Namespace\nmetadata: {{name: {victim}}}\n"
        ))
        .await?;
    let live = async |args: &[&str]| -> Result<Value> {
        let args: Vec<_> = ["get"]
            .iter()
            .chain(args)
            .chain(&["-o", "json"])
            .copied()
            .collect();
        let text = stage.kubectl(&args).await?.done()?.stdout;
        Ok(serde_json::from_str(&text)?)
    };
    let object = live(&["configmap", "victim", "-n", target]).await?;
    let namespace = live(&["namespace", &victim]).await?;

    let mut inventory = record["status"]["inventory"].clone();
    let objects = inventory.pointer_mut("/0/objects");
    let objects = objects
        .and_then(Value::as_array_mut)
        .context("no objects")?;
    objects.push(json!({"name": "victim", "uid": object["metadata"]["uid"]}));
    let created = json!({"name": victim, "uid": namespace["metadata"]["uid"]});
    let status = json!({"inventory": inventory, "createdNamespace": created});
    stage
        .patch_status("addoninstallation", "web", &status)
        .await?;

    stage.run("uninstall web --yes").await?;
    for args in [
        &["configmap", "victim", "-n", target][..],
        &["namespace", &victim],
    ] {
        let live = live(args).await?;
        let going = live["metadata"].get("deletionTimestamp");
        ensure!(going.is_none(), "{live}");
    }
    Ok(())
}
