//! Addresses live objects in a version of their kind that the cluster serves now.
//!
//! A version is taken from the record, or from a table of kinds that may be older than a CRD. The API server answers 404 both for a version
//! that it does not serve and for an object that does not exist; only the second answer names the object ([`EngineError::Unserved`] is the
//! first). Requests about an object that may have other versions go through this module: if the version is not served, the kind is looked
//! up again. Its objects count as deleted only if no version is served and no CRD defines the kind (semantics 13.6).

use std::collections::BTreeSet;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;

use addons_plan::snapshot::UnservedKind;
use common::manifest::kinds::KindTable;
use common::manifest::kinds::traits::is_built_in;

use super::address::Collection;
use super::cluster::Cluster;
use super::definitions;
use super::error::EngineError;
use super::listing::{self, ParseItem};
use super::meta::LiveMetadata;
use super::request::{ApiCall, ServerAnswer};
use super::served;
use super::snapshot::read_selected;

/// The number of CRDs that are read at a time, because they are large.
const AT_A_TIME: usize = 4;

/// Sends a request about one object. If the version of `collection` is not served, or the conversion webhook fails, the other served
/// versions are tried; `collection` is then set to the one that answered.
///
/// # Errors
/// Those of the request. [`EngineError::is_not_found`] means that the object certainly does not exist, possibly because its kind was
/// deleted.
pub(super) async fn send<T: DeserializeOwned>(
    cluster: &Cluster,
    collection: &mut Collection,
    name: &str,
    call: impl Fn(&Collection) -> ApiCall + Send + Sync,
) -> Result<ServerAnswer<T>, EngineError> {
    let refused = match send_in_any_version(cluster, collection, &call).await {
        Err(error) if error.is_unserved() => error,
        answer => return answer,
    };
    match find_served_version(cluster, collection, refused).await? {
        Some(served) => {
            *collection = served;
            send_in_any_version(cluster, collection, &call).await
        }
        None => Err(EngineError::Api {
            what: collection.describe_object(name),
            message: format!(
                "{name} not found: the cluster no longer serves {}",
                collection.gvk.kind
            ),
            code: 404,
        }),
    }
}

/// Like [`send`], but tries only versions that are known to be served. In its storage version, an object needs no conversion.
async fn send_in_any_version<T: DeserializeOwned>(
    cluster: &Cluster,
    collection: &mut Collection,
    call: &(impl Fn(&Collection) -> ApiCall + Send + Sync),
) -> Result<ServerAnswer<T>, EngineError> {
    let refused = match cluster.send(call(collection)).await {
        Err(error) if error.is_conversion_failure() => error,
        answer => return answer,
    };
    let kinds = cluster.kinds(&BTreeSet::new()).await?;
    for other in collection.in_other_versions(&kinds) {
        if let Ok(answer) = cluster.send(call(&other)).await {
            *collection = other;
            return Ok(answer);
        }
    }
    Err(refused)
}

/// Returns the same collection in a version that is served now; `None` if the kind was deleted. `refused`: the server's error in the
/// version of `collection`.
///
/// # Errors
/// It is not known whether objects of the kind exist.
pub(super) async fn find_served_version(
    cluster: &Cluster,
    collection: &Collection,
    refused: EngineError,
) -> Result<Option<Collection>, EngineError> {
    let kinds = cluster.kinds_now().await?;
    let gvk = &collection.gvk;
    if let Some((served, info)) = kinds.preferred(&gvk.group, &gvk.kind) {
        // The version is listed but not served: discovery and the server disagree for a moment.
        if served == *gvk {
            return Err(refused);
        }
        return Ok(Some(Collection::new(
            served,
            info,
            collection.namespace.as_deref(),
        )));
    }
    match check_unserved(cluster, &kinds, &gvk.group, &gvk.kind).await? {
        UnservedKind::Gone => Ok(None),
        UnservedKind::Unknown(why) => Err(EngineError::Unserved {
            what: collection.to_string(),
            message: why,
        }),
    }
}

/// Returns the metadata of the matching objects of a collection, in whatever version is served now.
///
/// # Errors
/// Those of the requests, or it is not known whether objects of the kind exist.
pub(super) async fn list_metadata(
    cluster: &Cluster,
    collection: &Collection,
    selectors: &[(&'static str, &str)],
) -> Result<Vec<LiveMetadata>, EngineError> {
    if let Some(found) = read_selected(cluster, collection, selectors).await? {
        return Ok(found);
    }
    let Some(served) =
        find_served_version(cluster, collection, collection.unserved_error()).await?
    else {
        return Ok(Vec::new());
    };
    let found = read_selected(cluster, &served, selectors).await?;
    found.ok_or_else(|| served.unserved_error())
}

/// Returns the objects of a collection that match a label selector, in whatever version is served now, and the collection in that version.
/// `form`: whole objects or metadata only.
///
/// # Errors
/// As [`list_metadata`].
pub(super) async fn list<T>(
    cluster: &Cluster,
    collection: Collection,
    selector: Option<&str>,
    form: &'static str,
    read: ParseItem<T>,
) -> Result<(Collection, Vec<T>), EngineError> {
    let refused = match listing::list_all_as(cluster, &collection, selector, form, read).await {
        Err(error) if error.is_unserved() => error,
        found => return Ok((collection, found?)),
    };
    let Some(served) = find_served_version(cluster, &collection, refused).await? else {
        return Ok((collection, Vec::new()));
    };
    let found = listing::list_all_as(cluster, &served, selector, form, read).await?;
    Ok((served, found))
}

/// Returns what is known about objects of a kind that is not in `kinds`, which were just read. They are deleted along with their kind if
/// every API server says what it serves and no CRD defines the kind.
///
/// # Errors
/// The server cannot be reached.
pub(super) async fn check_unserved(
    cluster: &Cluster,
    kinds: &KindTable,
    group: &str,
    kind: &str,
) -> Result<UnservedKind, EngineError> {
    if kinds.is_silent(group) {
        return Ok(UnservedKind::Unknown(format!(
            "the server of API group {group} does not answer"
        )));
    }
    let by_group = || {
        if kinds.serves_group(group) {
            UnservedKind::Gone
        } else {
            UnservedKind::Unknown(format!("the cluster serves nothing of group {group}"))
        }
    };
    // Built-in kinds have no CRDs; a release of Kubernetes can drop some of a group.
    if is_built_in(group) {
        return Ok(by_group());
    }
    match find_definition_name(cluster, group, kind).await {
        Ok(None) => Ok(UnservedKind::Gone),
        Ok(Some(name)) => Ok(UnservedKind::Unknown(format!(
            "no version of CustomResourceDefinition {name} is served"
        ))),
        Err(error) if error.is_read_refusal() => Ok(by_group()),
        Err(error) => Err(error),
    }
}

/// Returns the name of the live CRD that defines a kind.
async fn find_definition_name(
    cluster: &Cluster,
    group: &str,
    kind: &str,
) -> Result<Option<String>, EngineError> {
    let all = read_selected(cluster, &served::collection(), &[]).await?;
    // A CRD is named `PLURAL.GROUP`, which does not contain the kind.
    let of_group = all.into_iter().flatten().map(|found| found.name);
    let of_group = of_group.filter(|name| name.split_once('.').is_some_and(|(_, of)| of == group));
    let found: Vec<Option<String>> = stream::iter(of_group)
        .map(async |name| {
            let definition = definitions::read_definition(cluster, &name).await?;
            let defined = definition.as_ref();
            let defined = defined.and_then(|found| found.pointer("/spec/names/kind"));
            let is_it = defined.and_then(Value::as_str) == Some(kind);
            Ok::<_, EngineError>(is_it.then_some(name))
        })
        .buffered(AT_A_TIME)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().next())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fake::{self, FakeReply};
    use super::super::meta::PartialObject;
    use super::super::request::METADATA;
    use super::*;

    const GROUP: &str = "shop.example";

    fn served(versions: &[&str]) -> Vec<FakeReply> {
        let versions = versions.iter().map(|version| {
            json!({"version": version, "resources": [{"resource": "tills", "scope": "Namespaced", "verbs": ["list"],
                "responseKind": {"group": GROUP, "version": version, "kind": "Till"}}]})
        });
        let versions: Vec<Value> = versions.collect();
        let groups = match versions.as_slice() {
            [] => json!([]),
            _ => json!([{"metadata": {"name": GROUP}, "versions": versions}]),
        };
        discovery(&groups)
    }

    fn discovery(groups: &Value) -> Vec<FakeReply> {
        let of = |items: &Value| json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items});
        [json!([]), groups.clone()]
            .map(|items| Some((200, &[][..], of(&items))))
            .into()
    }

    fn unserved_reply() -> FakeReply {
        Some((404, &[], json!("404 page not found")))
    }

    fn missing() -> FakeReply {
        Some((
            404,
            &[],
            json!({"kind": "Status", "code": 404, "message": "tills \"a\" not found", "details": {"name": "a"}}),
        ))
    }

    fn definitions(names: &[&str]) -> FakeReply {
        let items: Vec<Value> = names
            .iter()
            .map(|name| json!({"metadata": {"name": name}}))
            .collect();
        Some((200, &[], json!({"items": items})))
    }

    fn definition(kind: &str) -> FakeReply {
        Some((200, &[], json!({"spec": {"names": {"kind": kind}}})))
    }

    async fn asked(replies: Vec<FakeReply>) -> (Result<String, EngineError>, Vec<String>) {
        let (cluster, asked) = fake::cluster(replies);
        let mut collection =
            Collection::from_names("shop.example/v1beta1", "Till", "tills", Some("shop"));
        let call = |collection: &Collection| ApiCall::get(collection, "a", METADATA);
        let answer = send::<PartialObject>(&cluster, &mut collection, "a", call).await;
        (answer.map(|_| collection.gvk.version), asked.lines())
    }

    #[tokio::test]
    async fn a_version_that_is_not_served_is_not_the_end_of_an_object() {
        let object: FakeReply = Some((200, &[], json!({"metadata": {"name": "a"}})));
        let replies = [vec![unserved_reply()], served(&["v1"]), vec![object]].concat();
        let (answer, lines) = asked(replies).await;
        assert_eq!(answer.unwrap(), "v1");
        assert_eq!(
            lines.last().unwrap(),
            "GET /apis/shop.example/v1/namespaces/shop/tills/a"
        );

        // In the version that is served, it does not exist.
        let replies = [vec![unserved_reply()], served(&["v1"]), vec![missing()]].concat();
        let (answer, _) = asked(replies).await;
        assert!(answer.unwrap_err().is_not_found());
    }

    /// (discovery, definitions, whether the object is certainly gone)
    #[tokio::test]
    async fn an_object_is_gone_with_its_kind_where_nothing_defines_it() {
        let silent = json!([{"metadata": {"name": GROUP}, "versions": [{"version": "v1", "freshness": "Stale"}]}]);
        let forbidden: FakeReply = Some((
            403,
            &[],
            json!({"kind": "Status", "code": 403, "message": "User \"a\" cannot list"}),
        ));
        for (name, replies, is_gone) in [
            (
                "no definition",
                [served(&[]), vec![definitions(&["carts.other.example"])]].concat(),
                true,
            ),
            (
                "another kind",
                [
                    served(&[]),
                    vec![definitions(&["carts.shop.example"]), definition("Cart")],
                ]
                .concat(),
                true,
            ),
            (
                "unserved",
                [
                    served(&[]),
                    vec![definitions(&["tills.shop.example"]), definition("Till")],
                ]
                .concat(),
                false,
            ),
            ("silent", discovery(&silent), false),
            (
                "not readable",
                [served(&[]), vec![forbidden]].concat(),
                false,
            ),
            ("listed all the same", served(&["v1beta1"]), false),
        ] {
            let (answer, lines) = asked([vec![unserved_reply()], replies].concat()).await;
            assert_eq!(
                answer.unwrap_err().is_not_found(),
                is_gone,
                "{name}: {lines:?}"
            );
        }
    }
}
