//! What an installation comes to, without what differs between two namespaces: two runs that came to the same are equal.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use common::api::names::{API_VERSION, LABEL_OWNER, field_manager, owner_hash};
use common::manifest::managed_fields::digest_of_owned;
use serde_json::{Value, json};

use super::addon;
use super::rig::get;
use crate::stage::Stage;

/// Where objects of the tests' add-ons are listed, of all namespaces at once.
const LISTS: &[&str] = &[
    "/api/v1/namespaces",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/api/v1/services",
    "/api/v1/serviceaccounts",
    "/api/v1/limitranges",
    "/apis/apps/v1/deployments",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/networking.k8s.io/v1/ingresses",
    "/apis/networking.k8s.io/v1/ingressclasses",
    "/apis/networking.k8s.io/v1/networkpolicies",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
];

/// Controllers write into our objects when they like.
const CONTROLLERS: &[&str] = &["kube-controller-manager", "kube-apiserver"];
const BY_CONTROLLERS: &[&str] = &["deployment.kubernetes.io/revision"];

/// The objects of an installation with their owners field by field, and its record where there is one.
pub async fn of(stage: &Stage, name: &str) -> Result<Value> {
    let owned = owned(stage, name).await?;
    let mut objects: Vec<Value> = owned.iter().map(bare).collect();
    objects.sort_by_key(|object| json!([object["kind"], object["metadata"]]).to_string());
    let record = record(stage, name).await?;
    let found = json!({"objects": objects, "record": record.as_ref().map(record_of)});
    let owner = owner_hash(&stage.namespace, name);
    let text = found.to_string().replace(&owner, "OWNER");
    Ok(serde_json::from_str(
        &text.replace(&stage.namespace, "NAMESPACE"),
    )?)
}

/// That every object with our label stands in the inventory with its uid and as it was last applied, and that everything
/// that is recorded is there.
pub async fn nothing_leaks(stage: &Stage, name: &str) -> Result<()> {
    let Some(record) = record(stage, name).await? else {
        // What an uninstallation retains is compared with an undisturbed one.
        return Ok(());
    };
    let mut recorded = BTreeMap::new();
    for group in record["status"]["inventory"]
        .as_array()
        .into_iter()
        .flatten()
    {
        for object in group["objects"].as_array().into_iter().flatten() {
            let uid = object["uid"].as_str().unwrap_or_default();
            let seen = object["fields"].clone();
            recorded.insert(
                uid.to_owned(),
                (json!([group["kind"], object["name"]]), seen),
            );
        }
    }
    let created = &record["status"]["createdNamespace"];
    if let Some(uid) = created["uid"].as_str() {
        let namespace = json!(["Namespace", created["name"]]);
        recorded.insert(uid.to_owned(), (namespace, Value::Null));
    }
    for object in owned(stage, name).await? {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let Some((_, seen)) = recorded.remove(uid) else {
            bail!("not recorded: {object:#}");
        };
        // What is recorded as seen later passes for an edit in the next run.
        let entries = object["metadata"]["managedFields"].as_array();
        let manager = field_manager(&stage.namespace, name);
        let live = entries.map(|entries| digest_of_owned(entries, &manager));
        ensure!(
            seen.is_null() || seen.as_str() == live.as_deref(),
            "fields {seen} of {object:#}"
        );
    }
    ensure!(recorded.is_empty(), "recorded and not there: {recorded:?}");
    Ok(())
}

/// Where two states differ.
pub fn difference(found: &Value, wanted: &Value) -> String {
    match json_patch::diff(wanted, found) {
        patch if patch.0.len() <= 10 => format!("what differs from an undisturbed run: {patch}"),
        _ => format!("found:\n{found:#}\ninstead of:\n{wanted:#}"),
    }
}

/// Every object with the label of the installation that is not on its way out.
async fn owned(stage: &Stage, name: &str) -> Result<Vec<Value>> {
    let client = stage.cluster.client().await?;
    let owner = owner_hash(&stage.namespace, name);
    let widgets = format!("/apis/{}/v1/widgets", addon::group(&stage.namespace));
    let mut objects = Vec::new();
    for path in LISTS.iter().copied().chain([widgets.as_str()]) {
        let path = format!("{path}?labelSelector={LABEL_OWNER}%3D{owner}");
        let listed = get(&client, &path).await?.unwrap_or_default();
        let kind = listed["kind"].as_str().unwrap_or_default();
        let kind = kind.trim_end_matches("List");
        for object in listed["items"].as_array().into_iter().flatten() {
            let mut object = object.clone();
            object["kind"] = json!(kind);
            if object["metadata"]["deletionTimestamp"].is_null() {
                objects.push(object);
            }
        }
    }
    Ok(objects)
}

async fn record(stage: &Stage, name: &str) -> Result<Option<Value>> {
    let namespace = &stage.namespace;
    let path = format!("/apis/{API_VERSION}/namespaces/{namespace}/addoninstallations/{name}");
    get(&stage.cluster.client().await?, &path).await
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = &mut object["metadata"];
    let managed = metadata["managedFields"].as_array().cloned();
    let mut managers: Vec<Value> = managed.unwrap_or_default();
    managers.retain(|manager| {
        let name = manager["manager"].as_str().unwrap_or_default();
        !CONTROLLERS.contains(&name)
    });
    for manager in &mut managers {
        manager["time"] = Value::Null;
    }
    managers.sort_by_key(Value::to_string);
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        annotations.retain(|annotation, _| !BY_CONTROLLERS.contains(&annotation.as_str()));
    }
    let marks = json!([
        metadata["namespace"],
        metadata["name"],
        metadata["labels"],
        metadata["annotations"],
        managers
    ]);
    object["metadata"] = marks;
    object["status"] = Value::Null;
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
                group["namespace"],
                object["name"],
                object["state"],
                has_digest
            ]));
        }
    }
    objects.sort_by_key(Value::to_string);
    let created = &status["createdNamespace"];
    json!({
        "targetNamespace": record["spec"]["targetNamespace"],
        "inventory": objects,
        "version": status["installed"]["version"],
        "phase": status["phase"],
        "operation": status["operation"],
        "createdNamespace": [created["name"], created["uid"].as_str().map(str::is_empty)],
        "conditions": status["conditions"].as_array().into_iter().flatten()
            .map(|condition| json!([condition["type"], condition["status"], condition["reason"]])).collect::<Vec<_>>(),
    })
}
