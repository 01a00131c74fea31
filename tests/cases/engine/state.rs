//! What is in a namespace, without what differs between two namespaces: two runs that came to the same are equal.

use anyhow::Result;
use common::api::names::owner_hash;
use serde_json::{Value, json};

use crate::main_job::stage::Stage;

const KINDS: &str = "configmap,secret,service,serviceaccount,role,rolebinding";

/// The objects of the namespace with their owners field by field, and the record of `small` where there is one.
pub async fn state(stage: &Stage) -> Result<Value> {
    let args = ["get", KINDS, "-o", "json", "--show-managed-fields"];
    let listed: Value = serde_json::from_str(&stage.kubectl(&args).await?.stdout)?;
    let mut objects = Vec::new();
    for object in listed["items"].as_array().into_iter().flatten() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if name != "kube-root-ca.crt" && name != "default" {
            objects.push(bare(object));
        }
    }
    let record = stage.get("addoninstallation", "small").await?;
    let found = json!({"objects": objects, "record": record.as_ref().map(record_of)});
    let owner = owner_hash(&stage.namespace, "small");
    let text = found.to_string().replace(&owner, "OWNER");
    Ok(serde_json::from_str(
        &text.replace(&stage.namespace, "NAMESPACE"),
    )?)
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = &mut object["metadata"];
    let managed = metadata["managedFields"].as_array().cloned();
    let mut managers: Vec<Value> = managed.unwrap_or_default();
    for manager in &mut managers {
        manager["time"] = Value::Null;
    }
    managers.sort_by_key(Value::to_string);
    let marks = json!([
        metadata["name"],
        metadata["labels"],
        metadata["annotations"],
        managers
    ]);
    object["metadata"] = marks;
    // What the API server chose.
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|field, _| !field.starts_with("clusterIP"));
    }
    object
}

fn record_of(record: &Value) -> Value {
    let mut status = record["status"].clone();
    let mut objects = Vec::new();
    for group in status["inventory"].as_array_mut().into_iter().flatten() {
        for object in group["objects"].as_array().into_iter().flatten() {
            // Digests are of manifests that name their namespace.
            let has_digest = object["digest"].is_string();
            objects.push(json!([
                group["kind"],
                object["name"],
                object["state"],
                has_digest
            ]));
        }
    }
    objects.sort_by_key(Value::to_string);
    json!({
        "inventory": objects,
        "version": status["installed"]["version"],
        "phase": status["phase"],
        "operation": status["operation"],
        "createdNamespace": status["createdNamespace"],
        "conditions": status["conditions"].as_array().into_iter().flatten()
            .map(|condition| json!([condition["type"], condition["status"], condition["reason"]])).collect::<Vec<_>>(),
    })
}
