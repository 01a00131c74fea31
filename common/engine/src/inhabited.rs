//! Finds what would be deleted along with a CRD or a namespace: objects of its kind, or in it (semantics 13.7).
//!
//! Live objects are searched by their owner label, because an installation that is recorded in another cluster, or where this client does
//! not look, would lose its objects all the same.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use futures::stream;
use serde_json::Value;

use addons_plan::snapshot::Inhabitants;
use common::api::names::{ANNOTATION_INSTALLATION, LABEL_OWNER};
use common::manifest::key::ObjectKey;

use super::address::{Collection, query_value};
use super::addressed;
use super::cluster::Cluster;
use super::definitions::{self, objects_collection};
use super::error::EngineError;
use super::listing::read_one_page;
use super::meta::PartialObject;
use super::request::{ApiCall, METADATA_LIST};

/// Maximum number of objects of a CRD that are read.
const PAGE: &str = "500";

/// Reads what a CRD or namespace contains; `None` if it does not exist. `leaving`: values of the owner label that do not count.
pub(super) async fn read(
    cluster: &Cluster,
    key: &ObjectKey,
    leaving: &BTreeSet<String>,
) -> Result<Option<Inhabitants>, EngineError> {
    if key.is_definition() {
        read_definition(cluster, key, leaving).await
    } else {
        read_namespace(cluster, &key.name, leaving).await.map(Some)
    }
}

async fn read_definition(
    cluster: &Cluster,
    key: &ObjectKey,
    leaving: &BTreeSet<String>,
) -> Result<Option<Inhabitants>, EngineError> {
    let Some(definition) = definitions::read_definition(cluster, &key.name).await? else {
        return Ok(None);
    };
    let text = |pointer| {
        let text = definition.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let mut found = Inhabitants {
        group: text("/spec/group"),
        kind: text("/spec/names/kind"),
        ..Inhabitants::default()
    };
    let Some(collection) = objects_collection(&definition) else {
        found.unreadable_reason = Some("no version of it is served".to_owned());
        return Ok(Some(found));
    };
    let list = ApiCall::list(&collection, METADATA_LIST).query("limit", PAGE);
    if let Some(page) = or_note_unseen(
        &mut found,
        read_one_page::<PartialObject>(cluster, list).await,
    )? {
        found.more = page.metadata.remaining_item_count;
        let items = page.items.into_iter();
        found.objects = items.map(|item| collection.key(&item.metadata)).collect();
        // Most CRDs have no objects, and need no second request.
        if !found.objects.is_empty() {
            let owned = find_owned(cluster, &collection, leaving).await;
            found.owned = or_note_unseen(&mut found, owned)?.flatten();
        }
    }
    Ok(Some(found))
}

async fn read_namespace(
    cluster: &Cluster,
    name: &str,
    leaving: &BTreeSet<String>,
) -> Result<Inhabitants, EngineError> {
    let kinds = cluster.kinds_now().await?;
    let mut found = Inhabitants::default();
    let collections = kinds
        .iter()
        .filter(|(_, info)| info.namespaced && info.writable);
    let collections = collections.map(|(gvk, info)| Collection::new(gvk, info, Some(name)));
    let collections: Vec<Collection> = collections.collect();
    let looked: Vec<_> = stream::iter(collections)
        .map(async |collection| find_owned(cluster, &collection, leaving).await)
        .buffered(cluster.concurrency())
        .collect()
        .await;
    for looked in looked {
        let owned = or_note_unseen(&mut found, looked)?.flatten();
        found.owned = found.owned.or(owned);
    }
    if let Some(group) = kinds.silent_groups().next() {
        found.unreadable_reason = Some(format!("the server of API group {group} does not answer"));
    }
    Ok(found)
}

/// Returns an object of a collection whose owner is not in `leaving`, with the installation in its annotation.
async fn find_owned(
    cluster: &Cluster,
    collection: &Collection,
    leaving: &BTreeSet<String>,
) -> Result<Option<(ObjectKey, Option<String>)>, EngineError> {
    let leaving: Vec<&str> = leaving.iter().map(String::as_str).collect();
    let mut selector = LABEL_OWNER.to_owned();
    if !leaving.is_empty() {
        selector.push_str(&format!(",{LABEL_OWNER} notin ({})", leaving.join(",")));
    }
    let list = |collection: &Collection| {
        ApiCall::list(collection, METADATA_LIST)
            .query("limit", "1")
            .query("labelSelector", &query_value(&selector))
    };
    let page = match read_one_page::<PartialObject>(cluster, list(collection)).await {
        // A version that was just discovered, or its kind, may no longer exist.
        Err(error) if error.is_unserved() => {
            let Some(served) = addressed::find_served_version(cluster, collection, error).await?
            else {
                return Ok(None);
            };
            read_one_page::<PartialObject>(cluster, list(&served)).await?
        }
        page => page?,
    };
    let first = page.items.into_iter().next();
    Ok(first.map(|PartialObject { metadata }| {
        let named = metadata.annotations.get(ANNOTATION_INSTALLATION);
        (collection.key(&metadata), named.cloned())
    }))
}

/// Returns the result of a read, or records that the server refused it.
fn or_note_unseen<T>(
    found: &mut Inhabitants,
    read: Result<T, EngineError>,
) -> Result<Option<T>, EngineError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. })) => {
            Err(error)
        }
        Err(error) => {
            found.unreadable_reason = Some(error.to_string());
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fake::{self, FakeReply};
    use super::*;

    fn served(kinds: &[&str]) -> FakeReply {
        let resources = kinds.iter().map(|kind| {
            json!({"resource": format!("{}s", kind.to_lowercase()), "scope": "Namespaced", "responseKind": {"kind": kind},
                "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"]})
        });
        let resources: Vec<Value> = resources.collect();
        let versions = json!([{"version": "v1", "freshness": "Current", "resources": resources}]);
        let items = json!([{"metadata": {"name": "example.test"}, "versions": versions}]);
        let document = json!({"kind": "APIGroupDiscoveryList", "items": items});
        Some((200, &[], document))
    }

    /// Both documents of a discovery are the same here.
    #[tokio::test]
    async fn nothing_is_in_a_kind_that_is_gone_when_its_objects_are_listed() {
        let gone = json!({"kind": "Status", "code": 404, "message": "the server could not find the requested resource"});
        let no_definition = || Some((200, &[][..], json!({"items": []})));
        for (later, unseen, requests) in [(&[][..], false, 6), (&["Widget"][..], true, 5)] {
            let (before, later) = (served(&["Widget"]), served(later));
            let unserved = Some((404, &[][..], gone.clone()));
            let replies = [
                before.clone(),
                before,
                unserved,
                later.clone(),
                later,
                no_definition(),
            ];
            let (cluster, asked) = fake::cluster(replies.into());
            let looked = read_namespace(&cluster, "shop", &BTreeSet::new()).await;
            let found = looked.unwrap();
            assert_eq!(found.owned, None);
            assert_eq!(
                found.unreadable_reason.is_some(),
                unseen,
                "{:?}",
                found.unreadable_reason
            );
            assert_eq!(asked.lines().len(), requests, "{:?}", asked.lines());
        }
    }
}
