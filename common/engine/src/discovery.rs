//! Finds the kinds that the cluster serves: two requests with aggregated discovery, otherwise one request for each group version. A group
//! whose server does not answer is left out (or stale), which is not an error.

mod cache;

pub(super) use cache::KindCache;

use std::collections::BTreeSet;

use futures::StreamExt as _;
use futures::stream;
use serde::Deserialize;

use common::entrance::or_default;
use common::manifest::key::Gvk;
use common::manifest::kinds::{KindInfo, KindTable, singular_or_default};

use super::address::group_version_path;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{ApiCall, JSON};

/// Newest format first, plain discovery last: the server answers with the first one that it supports.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                          application/json";

/// Asks the server for all served kinds.
pub(super) async fn discover(cluster: &Cluster) -> Result<KindTable, EngineError> {
    let (core, groups) = futures::try_join!(
        read_document(cluster, "/api"),
        read_document(cluster, "/apis")
    )?;
    let mut table = KindTable::default();
    insert(cluster, &mut table, core).await;
    insert(cluster, &mut table, groups).await;
    Ok(table)
}

/// Asks the server for the served kinds of all named groups, including those of CRDs.
pub(super) async fn discover_groups(cluster: &Cluster) -> Result<KindTable, EngineError> {
    let mut table = KindTable::default();
    insert(cluster, &mut table, read_document(cluster, "/apis").await?).await;
    Ok(table)
}

async fn read_document(cluster: &Cluster, path: &str) -> Result<DiscoveryDocument, EngineError> {
    Ok(cluster.send(ApiCall::path(path, AGGREGATED)).await?.object)
}

async fn insert(cluster: &Cluster, table: &mut KindTable, document: DiscoveryDocument) {
    match document {
        DiscoveryDocument::Aggregated { items } => insert_aggregated(table, items),
        DiscoveryDocument::Core { versions } => {
            let versions = versions.into_iter();
            let versions = versions.map(|version| (String::new(), version)).collect();
            insert_each(cluster, table, versions).await;
        }
        DiscoveryDocument::Groups { groups } => {
            insert_each(cluster, table, preferred_first(groups)).await
        }
    }
}

/// The response of `/api` and `/apis`.
#[derive(Deserialize)]
#[serde(tag = "kind")]
enum DiscoveryDocument {
    #[serde(rename = "APIGroupDiscoveryList")]
    Aggregated {
        #[serde(default, deserialize_with = "or_default")]
        items: Vec<GroupDiscovery>,
    },
    #[serde(rename = "APIVersions")]
    Core { versions: Vec<String> },
    #[serde(rename = "APIGroupList")]
    Groups { groups: Vec<ApiGroup> },
}

#[derive(Deserialize)]
struct GroupDiscovery {
    #[serde(default)]
    metadata: DiscoveryName,
    #[serde(default, deserialize_with = "or_default")]
    versions: Vec<VersionDiscovery>,
}

#[derive(Default, Deserialize)]
struct DiscoveryName {
    /// Missing for the core group.
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct VersionDiscovery {
    version: String,
    /// `Stale` if the server behind it does not answer.
    #[serde(default)]
    freshness: String,
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<ResourceDiscovery>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery {
    resource: String,
    #[serde(default)]
    singular_resource: String,
    /// Missing if the document of a stale group is broken.
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default, deserialize_with = "or_default")]
    verbs: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    subresources: Vec<Subresource>,
}

#[derive(Deserialize)]
struct Subresource {
    #[serde(default)]
    subresource: String,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroup {
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    versions: Vec<GroupVersion>,
    preferred_version: Option<GroupVersion>,
}

#[derive(Clone, Deserialize, PartialEq)]
struct GroupVersion {
    version: String,
}

#[derive(Deserialize)]
struct ResourceList {
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<ListedResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedResource {
    name: String,
    /// Empty for built-in kinds of old servers.
    #[serde(default)]
    singular_name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default, deserialize_with = "or_default")]
    verbs: Vec<String>,
}

fn insert_aggregated(table: &mut KindTable, items: Vec<GroupDiscovery>) {
    for group in items {
        for version in group.versions {
            if version.freshness == "Stale" {
                table.mark_silent(&group.metadata.name);
            }
            for resource in version.resources {
                let Some(kind) = resource.response_kind.map(|kind| kind.kind) else {
                    continue;
                };
                let gvk = Gvk {
                    group: group.metadata.name.clone(),
                    version: version.version.clone(),
                    kind,
                };
                let info = KindInfo {
                    singular: singular_or_default(resource.singular_resource, &gvk.kind),
                    plural: resource.resource,
                    namespaced: resource.scope == "Namespaced",
                    writable: is_writable(&resource.verbs),
                    has_status: resource
                        .subresources
                        .iter()
                        .any(|part| part.subresource == "status"),
                };
                table.insert(&gvk, info);
            }
        }
    }
}

/// Returns the group versions in order of preference.
fn preferred_first(groups: Vec<ApiGroup>) -> Vec<(String, String)> {
    groups
        .into_iter()
        .flat_map(|group| {
            let preferred = group.preferred_version;
            let others: Vec<GroupVersion> = group
                .versions
                .into_iter()
                .filter(|version| Some(version) != preferred.as_ref())
                .collect();
            preferred
                .into_iter()
                .chain(others)
                .map(move |version| (group.name.clone(), version.version))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Sends one request for each group version. A group that does not answer is recorded as silent.
async fn insert_each(cluster: &Cluster, table: &mut KindTable, versions: Vec<(String, String)>) {
    let lists: Vec<_> = stream::iter(versions)
        .map(async |(group, version)| {
            let path = group_version_path(&group, &version);
            let answer = cluster
                .send::<ResourceList>(ApiCall::path(path, JSON))
                .await;
            (group, version, answer.map(|answer| answer.object))
        })
        .buffered(cluster.concurrency())
        .collect()
        .await;
    for (group, version, list) in lists {
        let Ok(list) = list else {
            table.mark_silent(&group);
            continue;
        };
        let reporting = resources_with_status(&list.resources);
        for resource in list.resources {
            // `pods/status` is a subresource and not a kind.
            if resource.name.contains('/') {
                continue;
            }
            let gvk = Gvk {
                group: group.clone(),
                version: version.clone(),
                kind: resource.kind,
            };
            let info = KindInfo {
                singular: singular_or_default(resource.singular_name, &gvk.kind),
                has_status: reporting.contains(&resource.name),
                plural: resource.name,
                namespaced: resource.namespaced,
                writable: is_writable(&resource.verbs),
            };
            table.insert(&gvk, info);
        }
    }
}

/// Returns the plural names of resources with a subresource `status`, which plain discovery lists as a resource of its own.
fn resources_with_status(resources: &[ListedResource]) -> BTreeSet<String> {
    let names = resources.iter();
    names
        .filter_map(|resource| resource.name.strip_suffix("/status"))
        .map(str::to_owned)
        .collect()
}

fn is_writable(verbs: &[String]) -> bool {
    ["list", "patch", "delete"]
        .iter()
        .all(|needed| verbs.iter().any(|verb| verb == needed))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fake;
    use super::*;

    fn aggregated(json: &str) -> KindTable {
        let mut table = KindTable::default();
        match serde_json::from_str(json).unwrap() {
            DiscoveryDocument::Aggregated { items } => insert_aggregated(&mut table, items),
            _ => panic!("no aggregated document"),
        }
        table
    }

    #[test]
    fn aggregated_discovery_keeps_the_servers_order_and_tolerates_stale_groups() {
        let table = aggregated(
            r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
              {"metadata":{"name":"autoscaling"},"versions":[
                {"version":"v2","freshness":"Current","resources":[{"resource":"horizontalpodautoscalers",
                  "responseKind":{"group":"","version":"","kind":"HorizontalPodAutoscaler"},"scope":"Namespaced",
                  "verbs":["create","delete","get","list","patch","watch"],
                  "subresources":[{"subresource":"status"}]}]},
                {"version":"v1","freshness":"Current","resources":[{"resource":"horizontalpodautoscalers",
                  "responseKind":{"kind":"HorizontalPodAutoscaler"},"scope":"Namespaced","verbs":["list"]}]}]},
              {"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale"}]},
              {"metadata":{"name":"broken.example.com"},"versions":[{"version":"v1","resources":[
                {"resource":"things","scope":"Cluster"}]}]}]}"#,
        );
        let (gvk, info) = table
            .preferred("autoscaling", "HorizontalPodAutoscaler")
            .unwrap();
        assert_eq!((gvk.version.as_str(), info.writable), ("v2", true));
        assert!(info.has_status);
        let v1 = Gvk::new("autoscaling/v1", "HorizontalPodAutoscaler");
        let v1 = table.get(&v1).unwrap();
        assert!(!v1.writable && !v1.has_status);
        assert!(table.preferred("broken.example.com", "Thing").is_none());
    }

    #[test]
    fn plain_discovery_lists_the_subresource_beside_its_resource() {
        let list: ResourceList = serde_json::from_str(
            r#"{"kind":"APIResourceList","resources":[{"name":"gadgets","kind":"Gadget"},
              {"name":"widgets","kind":"Widget"},{"name":"widgets/status","kind":"Widget"},
              {"name":"gadgets/scale","kind":"Scale"}]}"#,
        )
        .unwrap();
        assert_eq!(
            resources_with_status(&list.resources),
            BTreeSet::from(["widgets".to_owned()])
        );
    }

    /// Trust 13: of a group version that does not answer, what was known before is kept.
    #[tokio::test]
    async fn a_group_version_that_does_not_answer_is_not_gone() {
        let kinds = |kind: &str| {
            let resource = json!({"name": kind.to_lowercase() + "s", "kind": kind});
            Some((200, &[][..], json!({"resources": [resource]})))
        };
        let versions = json!([{"version": "v1"}, {"version": "v1beta1"}]);
        let groups =
            json!({"kind": "APIGroupList", "groups": [{"name": "shop", "versions": versions}]});
        let replies = |last| {
            let core = json!({"kind": "APIVersions", "versions": []});
            let documents = [core, groups.clone()].map(|body| Some((200, &[][..], body)));
            documents.into_iter().chain([kinds("Till"), last]).collect()
        };
        let (cluster, _) = fake::cluster(replies(kinds("Drawer")));
        let before = discover(&cluster).await.unwrap();
        assert!(before.serves_group("shop"));
        let failing = Some((500, &[][..], json!({"kind": "Status", "code": 500})));
        let (cluster, _) = fake::cluster(replies(failing));
        let mut table = discover(&cluster).await.unwrap();
        assert!(!table.serves_group("shop") && table.is_silent("shop"));
        assert!(table.preferred("shop", "Drawer").is_none());
        table.keep_silent_kinds(&before);
        assert!(table.preferred("shop", "Drawer").is_some());
    }

    #[test]
    fn plain_discovery_puts_the_preferred_version_first() {
        let document: DiscoveryDocument = serde_json::from_str(
            r#"{"kind":"APIGroupList","groups":[{"name":"policy","versions":[
              {"groupVersion":"policy/v1beta1","version":"v1beta1"},{"groupVersion":"policy/v1","version":"v1"}],
              "preferredVersion":{"groupVersion":"policy/v1","version":"v1"}}]}"#,
        )
        .unwrap();
        let DiscoveryDocument::Groups { groups } = document else {
            panic!("no list of groups")
        };
        let order = [("policy", "v1"), ("policy", "v1beta1")]
            .map(|(group, version)| (group.to_owned(), version.to_owned()));
        assert_eq!(preferred_first(groups), order);
    }
}
