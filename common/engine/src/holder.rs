//! Finds out why a deleted object still exists; called only after a timeout.

use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use tokio::time::timeout;

use addons_plan::teardown::holder::{Workload, words};

use super::address::Collection;
use super::cluster::Cluster;
use super::definitions::objects_collection;
use super::delete::finalizers;
use super::error::EngineError;
use super::listing::read_one_page;
use super::request::{ApiCall, JSON};

/// The API server's finalizer on CRDs: it deletes their objects first.
const CLEANUP_OF_DEFINITIONS: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Maximum number of workloads of a kind, and of objects of a CRD, that are read.
const READ_LIMIT: &str = "500";
/// Time limit of the whole search: the operation has already timed out.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);
const WORKLOADS: [(&str, &str); 3] = [
    ("Deployment", "deployments"),
    ("StatefulSet", "statefulsets"),
    ("DaemonSet", "daemonsets"),
];

/// Describes what holds an object, which controller probably releases it, and what to do.
pub(super) async fn explain_holder(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
    finalizers: &[String],
) -> String {
    let search = search(cluster, collection, name);
    match timeout(SEARCH_TIMEOUT, search).await {
        Ok(Ok(reason)) if !reason.is_empty() => reason,
        // The object may not be read, the server does not answer, or the object was just released.
        _ => format!("held by finalizer {}", finalizers.join(", ")),
    }
}

async fn search(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
) -> Result<String, EngineError> {
    let call = ApiCall::get(collection, name, JSON);
    let object = cluster.send::<Value>(call).await?.object;
    let (held, prefix) = if finalizers(&object)
        .iter()
        .any(|f| f == CLEANUP_OF_DEFINITIONS)
    {
        match find_first_held(cluster, &object).await? {
            Some((name, held)) => (held, format!("its objects go first: {name} is ")),
            None => (object, String::new()),
        }
    } else {
        (object, String::new())
    };
    let workloads = list_workloads(cluster).await;
    let words = words(&held, &finalizers(&held), &workloads);
    Ok(format!("{prefix}{words}"))
}

/// Returns the first object of a CRD that has finalizers, with its name.
async fn find_first_held(
    cluster: &Cluster,
    definition: &Value,
) -> Result<Option<(String, Value)>, EngineError> {
    let Some(collection) = objects_collection(definition) else {
        return Ok(None);
    };
    let call = ApiCall::list(&collection, JSON).query("limit", READ_LIMIT);
    let found = read_one_page::<Value>(cluster, call).await?.items;
    let held = found
        .into_iter()
        .find(|object| !finalizers(object).is_empty());
    Ok(held.map(|object| {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name").unwrap_or_default();
        let kind = &collection.gvk.kind;
        let named = match text("/metadata/namespace") {
            Some(namespace) => format!("{namespace}/{kind} {name}"),
            None => format!("{kind} {name}"),
        };
        (named, object)
    }))
}

/// Returns the workloads that may run a controller; kinds that may not be listed are left out.
async fn list_workloads(cluster: &Cluster) -> Vec<Workload> {
    let lists = WORKLOADS.map(async |(kind, plural)| {
        let collection = Collection::from_names("apps/v1", kind, plural, None);
        let call = ApiCall::list(&collection, JSON).query("limit", READ_LIMIT);
        let found = read_one_page::<Value>(cluster, call).await;
        let items = found.map_or_else(|_| Vec::new(), |page| page.items);
        let workloads = items.iter().filter_map(|item| Workload::of(kind, item));
        workloads.collect::<Vec<_>>()
    });
    join_all(lists).await.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fake;
    use super::*;

    fn ok(body: Value) -> fake::FakeReply {
        Some((200, &[], body))
    }

    #[tokio::test]
    async fn a_definition_is_held_by_its_objects() {
        let definition = json!({
            "metadata": {"name": "tills.shop.example", "finalizers": [CLEANUP_OF_DEFINITIONS]},
            "spec": {"group": "shop.example", "names": {"kind": "Till", "plural": "tills"},
                "versions": [{"name": "v1", "served": true}]},
        });
        let till = json!({"metadata": {"name": "front", "namespace": "shop", "finalizers": ["till-controller.example/x"]}});
        let controller = json!({"metadata": {"name": "till-controller", "namespace": "shop"}, "status": {"readyReplicas": 1}});
        let (cluster, asked) = fake::cluster(vec![
            ok(definition),
            ok(json!({"items": [till]})),
            ok(json!({"items": [controller]})),
            ok(json!({"items": null})),
            ok(json!({"items": []})),
        ]);
        let collection = Collection::from_names(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            None,
        );
        let reason = explain_holder(&cluster, &collection, "tills.shop.example", &[]).await;
        assert_eq!(
            reason,
            "its objects go first: shop/Till front is held by finalizer till-controller.example/x; Deployment \
             shop/till-controller, which likely removes it, is running; see why it does not: kubectl logs -n shop \
             deployment/till-controller"
        );
        assert_eq!(asked.lines().len(), 5);
        assert_eq!(
            asked.lines()[1],
            "GET /apis/shop.example/v1/tills?limit=500"
        );
    }
}
