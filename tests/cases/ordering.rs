//! In which order objects and add-ons are written, as a proxy between the plugin and a real API server sees it: what waits
//! for another object is sent after that one was answered, and nothing else waits.

mod annotated;
mod drawing;
mod failing;
mod implied;
mod parallel;
mod required_types;
mod requires;
mod sent;
mod together;

use addons_tests::stage::Stage;
use anyhow::Result;
use serde_json::{Value, json};

/// Objects as one manifest.
fn manifest(objects: &[Value]) -> String {
    let objects = objects.iter().map(|object| format!("{object}\n---\n"));
    objects.collect()
}

/// A ConfigMap.
fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "1"}})
}

/// A Deployment whose pod mounts these ConfigMaps.
fn deployment(name: &str, mounts: &[&str]) -> Value {
    let volumes = mounts
        .iter()
        .map(|name| json!({"name": name, "configMap": {"name": name}}));
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": {
            "containers": [{"name": "main", "image": "example.test/app:1"}],
            "volumes": volumes.collect::<Vec<_>>()}}}})
}

/// An object with an annotation.
fn annotated(mut object: Value, annotation: &str, value: &str) -> Value {
    object["metadata"]["annotations"][annotation] = json!(value);
    object
}

/// A Deployment with no node to run on until [`unlock`].
fn locked(stage: &Stage, mut deployment: Value) -> Value {
    deployment["spec"]["template"]["spec"]["nodeSelector"] = json!({key(stage): "yes"});
    deployment
}

/// Lets the locked Deployments of a stage run.
async fn unlock(stage: &Stage) -> Result<()> {
    let label = format!("{}=yes", key(stage));
    let args = ["label", "nodes", "--all", "--overwrite", &label];
    stage.kubectl(&args).await.map(drop)
}

fn key(stage: &Stage) -> String {
    format!("unlocked.example.test/{}", stage.namespace)
}
