//! Reads and writes kops' records of installed add-ons, and marks nodes for replacement: annotations that kops' own tool reads and writes
//! too (semantics 11.3).

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use addons_plan::Target;
use addons_plan::kops::{AUTHORITY_NAMESPACE, KopsRecord, NodeRole, authority_secret};
use addons_plan::snapshot::LiveObject;
use common::api::catalogue::PruneKind;
use common::api::names;
use common::catalogue::channel::annotation;
use common::manifest::kinds::KindTable;
use common::values::path;

use super::address::Collection;
use super::addressed;
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::{LiveMetadata, PartialObject};
use super::request::{ApiCall, JSON_PATCH, MERGE_PATCH, METADATA};
use super::snapshot::{self, namespace_collection, read_all, read_one, read_selected};

/// How often to retry a namespace that other clients write meanwhile: every add-on of a command writes its own key.
const TRIES: usize = 32;
/// The annotation of nodes that kops replaces in the next rolling update.
const NEEDS_UPDATE: &str = "kops.k8s.io/needs-update";

/// An annotation in which kops records an add-on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Annotation {
    /// The namespace that carries it.
    pub namespace: String,
    /// The add-on.
    pub addon: String,
    /// The value of the annotation.
    pub text: String,
}

/// Returns the object that shows that kops manages the cluster. `None` also if it cannot be read, because it only causes a warning. The
/// service that applies kops' channels runs on control plane nodes, and no object shows it.
pub async fn controller(cluster: &Cluster) -> Option<String> {
    let (namespace, name) = ("kube-system", "kops-controller");
    let sets = Collection::from_names("apps/v1", "DaemonSet", "daemonsets", Some(namespace));
    let found = read_one(cluster, &sets, name).await.ok()?;
    found.map(|_| format!("DaemonSet {namespace}/{name}"))
}

/// Reads the annotations of one namespace; empty if it does not exist. One GET.
///
/// # Errors
/// Those of the request.
pub async fn of_namespace(
    cluster: &Cluster,
    namespace: &str,
) -> Result<Vec<Annotation>, EngineError> {
    let found = read_one(cluster, &namespace_collection(), namespace).await?;
    Ok(found.iter().flat_map(annotations).collect())
}

/// Reads the annotations of all namespaces, sorted. One LIST.
///
/// # Errors
/// Those of the request.
pub async fn of_cluster(cluster: &Cluster) -> Result<Vec<Annotation>, EngineError> {
    let found = read_all(cluster, &namespace_collection()).await?;
    let mut all: Vec<Annotation> = found.iter().flatten().flat_map(annotations).collect();
    all.sort();
    Ok(all)
}

fn annotations(namespace: &LiveMetadata) -> impl Iterator<Item = Annotation> {
    namespace.annotations.iter().filter_map(|(key, text)| {
        Some(Annotation {
            namespace: namespace.name.clone(),
            addon: annotation::parse_annotation_key(key)?.to_owned(),
            text: text.clone(),
        })
    })
}

/// Whether the Secret and the Issuer of an add-on's certificate authority exist: two GETs.
///
/// # Errors
/// Those of the requests.
pub async fn has_authority(cluster: &Cluster, addon: &str) -> Result<bool, EngineError> {
    let namespace = Some(AUTHORITY_NAMESPACE);
    let secrets = Collection::from_names("v1", "Secret", "secrets", namespace);
    let issuers = Collection::from_names("cert-manager.io/v1", "Issuer", "issuers", namespace);
    let secret = authority_secret(addon);
    if read_one(cluster, &secrets, &secret).await?.is_none() {
        return Ok(false);
    }
    match read_one(cluster, &issuers, addon).await {
        // Without cert-manager, nothing signs certificates.
        Err(error) if error.is_unserved() => Ok(false),
        found => Ok(found?.is_some()),
    }
}

/// Lists the live objects that match a prune rule of kops: one LIST, or one for each of its namespaces. A kind that is not served has none.
///
/// # Errors
/// Those of the requests.
pub async fn matching(
    cluster: &Cluster,
    kinds: &KindTable,
    rule: &PruneKind,
) -> Result<Vec<(Target, LiveObject)>, EngineError> {
    let Some((gvk, info)) = kinds.preferred(&rule.group, &rule.kind) else {
        return Ok(Vec::new());
    };
    let namespaces: Vec<Option<&str>> = match rule.namespaces.as_slice() {
        named if info.namespaced && !named.is_empty() => named
            .iter()
            .map(|namespace| Some(namespace.as_str()))
            .collect(),
        _ => vec![None],
    };
    let selectors = [
        ("labelSelector", &rule.label_selector),
        ("fieldSelector", &rule.field_selector),
    ];
    let selectors: Vec<(&str, &str)> = selectors
        .into_iter()
        .filter_map(|(name, selector)| Some((name, selector.as_deref()?)))
        .collect();
    let mut found = Vec::new();
    for namespace in namespaces {
        let collection = Collection::new(gvk.clone(), info, namespace);
        let live = addressed::list_metadata(cluster, &collection, &selectors).await?;
        for metadata in live {
            found.push((
                collection.target(&metadata),
                snapshot::to_live_object(metadata),
            ));
        }
    }
    Ok(found)
}

/// Lists the nodes of a role, sorted by name.
///
/// # Errors
/// Those of the requests.
pub async fn nodes(cluster: &Cluster, role: NodeRole) -> Result<BTreeSet<String>, EngineError> {
    let mut found = BTreeSet::new();
    for selector in role.selectors() {
        let nodes = read_selected(cluster, &node_collection(), selector).await?;
        found.extend(nodes.into_iter().flatten().map(|node| node.name));
    }
    Ok(found)
}

/// Writes the record of an operation: marks its nodes for replacement, then sets the annotation.
pub(super) async fn record(cluster: &Cluster, record: &KopsRecord) -> Result<(), EngineError> {
    let marked = json!({"metadata": {"annotations": {NEEDS_UPDATE: ""}}}).to_string();
    stream::iter(&record.nodes)
        .map(async |node| {
            let call = ApiCall::patch(&node_collection(), node, MERGE_PATCH, METADATA)
                .query("fieldManager", names::CLIENT)
                .body(marked.clone().into_bytes());
            match cluster.send::<PartialObject>(call).await {
                // The node was replaced meanwhile.
                Err(error) if error.is_not_found() => Ok(()),
                other => other.map(drop),
            }
        })
        .buffer_unordered(cluster.concurrency())
        .try_collect::<()>()
        .await?;
    annotate(cluster, record).await
}

/// Writes one key, only if it still has the value that was read: kops runs on every control plane node, and the second of two writers must
/// see the first. Other keys may change meanwhile, such as those of other add-ons of the command.
async fn annotate(cluster: &Cluster, record: &KopsRecord) -> Result<(), EngineError> {
    let collection = namespace_collection();
    for _ in 0..TRIES {
        let found = read_one(cluster, &collection, &record.namespace).await?;
        let Some(live) = found else {
            // The annotation was deleted with its namespace. One that has to be set needs the namespace.
            return match record.after {
                None => Ok(()),
                Some(_) => Err(conflict(
                    record,
                    "the namespace does not exist; create it first",
                )),
            };
        };
        let now = live.annotations.get(&record.key);
        if now == record.after.as_ref() {
            return Ok(());
        }
        if now != record.before.as_ref() {
            break;
        }
        let patch = patch(record, &live).to_string();
        let call = ApiCall::patch(&collection, &record.namespace, JSON_PATCH, METADATA)
            .query("fieldManager", names::CLIENT)
            .body(patch.into_bytes());
        match cluster.send::<PartialObject>(call).await {
            Ok(_) => return Ok(()),
            // 422: the test failed.
            Err(error) if error.is_conflict() || error.code() == Some(422) => {}
            Err(error) => return Err(error),
        }
    }
    Err(conflict(
        record,
        "another tool has changed it since it was read; run the command again",
    ))
}

/// Returns the JSON patch of one key. A test guards a key that exists; the resourceVersion guards one that does not.
fn patch(record: &KopsRecord, live: &LiveMetadata) -> Value {
    let path = format!("/metadata/annotations/{}", path::escape_key(&record.key));
    let guard = match &record.before {
        Some(before) => json!({"op": "test", "path": path, "value": before}),
        None => {
            let version = &live.resource_version;
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version})
        }
    };
    let change = match &record.after {
        Some(after) if live.annotations.is_empty() => {
            json!({"op": "add", "path": "/metadata/annotations", "value": {&record.key: after}})
        }
        Some(after) => json!({"op": "add", "path": path, "value": after}),
        None => json!({"op": "remove", "path": path}),
    };
    json!([guard, change])
}

fn conflict(record: &KopsRecord, what: &str) -> EngineError {
    EngineError::conflict(
        super::namespace::key(&record.namespace),
        format!("annotation {}: {what}", record.key),
    )
}

fn node_collection() -> Collection {
    Collection::from_names("v1", "Node", "nodes", None)
}

#[cfg(test)]
mod tests;
