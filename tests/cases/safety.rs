//! What never happens by accident, on a real control plane: live objects that break by a changed definition, objects that
//! somebody keeps, controllers that go before what they control (semantics 7 and 13).

mod breakage;
mod keeping;
mod teardown;

use addons_tests::stage::{Stage, config_map};
use anyhow::Result;
use serde_json::{Value, json};

/// API group of a user's own kind `Till`.
fn group(stage: &Stage) -> String {
    format!("{}.example.test", stage.namespace)
}

/// Name of its definition.
fn crd(stage: &Stage) -> String {
    format!("tills.{}", group(stage))
}

/// Its definition, with a version of this schema of `spec`.
fn definition(stage: &Stage, spec: &Value) -> Value {
    versions(stage, &[("v1", true, spec)])
}

/// Its definition, with versions `(name, whether it is stored, schema of spec)`.
fn versions(stage: &Stage, versions: &[(&str, bool, &Value)]) -> Value {
    let versions = versions.iter().map(|(name, storage, spec)| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": spec}}}})
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": crd(stage)},
        "spec": {"group": group(stage), "scope": "Namespaced", "names": {"plural": "tills", "singular": "till", "kind": "Till"},
            "versions": versions.collect::<Vec<_>>()},
    })
}

/// One custom resource.
fn till(stage: &Stage, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{}/v1", group(stage)), "kind": "Till", "metadata": {"name": name}, "spec": spec})
}

/// Objects as one manifest, with a ConfigMap that every version of an add-on has.
fn manifest(objects: &[Value]) -> String {
    let objects = objects.iter().map(|object| format!("{object}\n---\n"));
    [config_map("always", "1")]
        .into_iter()
        .chain(objects)
        .collect()
}

/// The command line that installs the add-on `some` in version 1.0.0, or upgrades it to a later one.
fn line(stage: &Stage, version: &str, manifest: &str) -> Result<String> {
    let file = format!("{version}/index.yaml");
    let index = stage.index(&file, &[("some", version, manifest)])?;
    let verb = match version {
        "1.0.0" => "install some".to_owned(),
        _ => format!("upgrade some -n {}", stage.namespace),
    };
    Ok(format!("{verb} --channel {index} --yes"))
}

/// Installs or upgrades the add-on `some`.
async fn install(stage: &Stage, version: &str, manifest: &str) -> Result<String> {
    let line = line(stage, version, manifest)?;
    Ok(stage.run(&line).await?.done()?.stderr)
}

/// The command line that uninstalls it.
fn uninstall(stage: &Stage) -> String {
    format!("uninstall some -n {} --yes", stage.namespace)
}
