//! Finds what sets the replicas of an object: a HorizontalPodAutoscaler, or another controller that scales it (KEDA, the
//! cluster-proportional-autoscaler). It is read for the plan, so that a dry run and an apply agree.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use common::entrance;
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::KindTable;

use super::address::Collection;
use super::addressed;
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::FieldWriter;
use super::request::JSON;

/// The field manager of every HorizontalPodAutoscaler; it writes through the subresource `scale`.
const CONTROLLER: &str = "kube-controller-manager";
const GROUP: &str = "autoscaling";
const KIND: &str = "HorizontalPodAutoscaler";

/// Prefix of the managers of `kubectl scale` and the like: a person's edits, which an upgrade reverts.
const PERSON: &str = "kubectl";

/// An object whose replicas another manager set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScaledTarget {
    key: ObjectKey,
    /// Whether one of these managers is a HorizontalPodAutoscaler.
    by_controller: bool,
    /// Another controller that set them through the subresource `scale`.
    by_other: Option<String>,
}

impl ScaledTarget {
    /// Returns `None` if only this client set the replicas. If the installation applied the object and no manager owns its replicas, it was
    /// scaled to zero: the subresource `scale` then omits them, and its manager owns nothing.
    pub(super) fn from_writers(key: &ObjectKey, writers: &[FieldWriter]) -> Option<Self> {
        let scaling = || writers.iter().filter(|writer| writer.sets_replicas);
        let is_applied = writers.iter().any(FieldWriter::is_installation);
        let is_unowned = is_applied && scaling().next().is_none();
        let is_controller =
            |writer: &&FieldWriter| writer.manager == CONTROLLER && writer.subresource == "scale";
        let is_other = |writer: &&FieldWriter| {
            let is_person = writer.manager.is_empty() || writer.manager.starts_with(PERSON);
            writer.subresource == "scale" && !is_person && writer.manager != CONTROLLER
        };
        let is_scaled = is_unowned || scaling().any(|writer| !writer.is_installation());
        is_scaled.then(|| Self {
            key: key.clone(),
            by_controller: scaling().find(is_controller).is_some(),
            by_other: scaling()
                .find(is_other)
                .map(|writer| writer.manager.clone()),
        })
    }
}

/// Returns what sets the replicas of each object, with one LIST of autoscalers per namespace. If an autoscaler targets the object, it sets
/// the replicas next, whoever set them last; one that was deleted no longer counts, although its manager is still recorded. If autoscalers
/// may not be listed, the recorded manager decides.
///
/// # Errors
/// Those of the requests, except RBAC refusals and a cluster without autoscalers.
pub(super) async fn find_scalers(
    cluster: &Cluster,
    kinds: &KindTable,
    scaled: Vec<ScaledTarget>,
) -> Result<BTreeMap<ObjectKey, String>, EngineError> {
    // Before Kubernetes 1.23, autoscaling/v2 is not served; `scaleTargetRef` is at the same path in every version.
    let served = kinds.versions(GROUP, KIND).next();
    let api_version = format!("{GROUP}/{}", served.unwrap_or("v2"));
    let namespaces: BTreeSet<Option<String>> =
        scaled.iter().map(|one| one.key.namespace.clone()).collect();
    let mut all = BTreeMap::new();
    for namespace in namespaces {
        let collection = Collection::from_names(
            &api_version,
            KIND,
            "horizontalpodautoscalers",
            namespace.as_deref(),
        );
        let read = |text: &str| entrance::from_str::<Autoscaler>(text);
        let found = match addressed::list(cluster, collection, None, JSON, read).await {
            Ok((_, found)) => Some(found),
            // A cluster without autoscalers serves nothing of the group.
            Err(error) if error.is_unserved() => Some(Vec::new()),
            Err(EngineError::Forbidden { .. }) => None,
            Err(error) => return Err(error),
        };
        let here = scaled.iter().filter(|one| one.key.namespace == namespace);
        for scaled in here {
            let key = &scaled.key;
            let name = match &found {
                Some(found) => found
                    .iter()
                    .find(|autoscaler| autoscaler.scales(key))
                    .map(|autoscaler| autoscaler.metadata.name.clone()),
                None => scaled.by_controller.then(|| key.name.clone()),
            };
            let name = name.map(|name| format!("{KIND} {name}"));
            let name = name.or_else(|| scaled.by_other.clone());
            all.extend(name.map(|name| (key.clone(), name)));
        }
    }
    Ok(all)
}

/// The parts of an autoscaler that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Autoscaler {
    metadata: AutoscalerMetadata,
    spec: AutoscalerSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AutoscalerMetadata {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AutoscalerSpec {
    scale_target_ref: ScaleTarget,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ScaleTarget {
    api_version: String,
    kind: String,
    name: String,
}

impl Autoscaler {
    /// Returns whether it scales an object.
    fn scales(&self, key: &ObjectKey) -> bool {
        let target = &self.spec.scale_target_ref;
        let group = Gvk::new(&target.api_version, &target.kind).group;
        group == key.group && target.kind == key.kind && target.name == key.name
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use addons_plan::snapshot::{Snapshot, SnapshotRequest};
    use common::manifest::kinds::KindInfo;

    use super::super::fake::{self, FakeReply};
    use super::super::snapshot;
    use super::*;

    fn key() -> ObjectKey {
        ObjectKey {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        }
    }

    /// The snapshot of a Deployment whose replicas these managers wrote, and what was asked for it.
    async fn read(
        writers: &[(&str, &str)],
        reads: SnapshotRequest,
        list: FakeReply,
    ) -> (Snapshot, Vec<String>) {
        let entries: Vec<_> = writers
            .iter()
            .map(|(manager, subresource)| {
                json!({"manager": manager, "subresource": subresource, "operation": "Update",
                    "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {}}}}})
            })
            .chain([json!({"manager": "kubectl-set", "fieldsV1": {"f:spec": {"f:paused": {}}}})])
            .chain([json!({"manager": "none", "fieldsV1": null})])
            .collect();
        let metadata = json!({"name": "web", "uid": "u", "managedFields": entries});
        let object = Some((200, &[][..], json!({"metadata": metadata})));
        let (cluster, asked) = fake::cluster(vec![object, list]);
        let mut kinds = KindTable::default();
        let info = KindInfo {
            plural: "deployments".to_owned(),
            singular: "deployment".to_owned(),
            namespaced: true,
            writable: true,
            has_status: true,
        };
        kinds.insert(&Gvk::new("apps/v1", "Deployment"), info);
        let snapshot = snapshot::read(&cluster, kinds.into(), &reads)
            .await
            .unwrap()
            .1;
        (snapshot, asked.lines())
    }

    fn reads(wants_replicas: bool) -> SnapshotRequest {
        let objects = BTreeSet::from([key()]);
        SnapshotRequest {
            replicas: wants_replicas.then(key).into_iter().collect(),
            objects,
            ..SnapshotRequest::default()
        }
    }

    fn autoscaler_of(kind: &str) -> FakeReply {
        let target = json!({"apiVersion": "apps/v1", "kind": kind, "name": "web"});
        let autoscaler = json!({"metadata": {"name": "auto"}, "spec": {"scaleTargetRef": target}});
        Some((200, &[], json!({"metadata": {}, "items": [autoscaler]})))
    }

    fn failure(code: u16, message: &str) -> FakeReply {
        let status = json!({"kind": "Status", "code": code, "message": message});
        Some((code, &[], status))
    }

    const AUTOSCALER: (&str, &str) = ("kube-controller-manager", "scale");
    const OURS: (&str, &str) = ("kubectl-addons.0123456789abcdef", "");

    /// Semantics 12: replicas under a HorizontalPodAutoscaler always yield; those of one that is gone do not.
    #[tokio::test]
    async fn the_autoscaler_of_an_object_is_found_for_its_plan() {
        let forbidden = || {
            let message = "User \"eve\" cannot list resource \"horizontalpodautoscalers\"";
            failure(403, message)
        };
        for (writers, list, expected) in [
            (
                &[OURS, AUTOSCALER][..],
                autoscaler_of("Deployment"),
                Some("auto"),
            ),
            (
                &[("kubectl", "scale")][..],
                autoscaler_of("Deployment"),
                Some("auto"),
            ),
            (&[AUTOSCALER][..], autoscaler_of("StatefulSet"), None),
            (&[AUTOSCALER][..], forbidden(), Some("web")),
            (&[("kubectl", "scale")][..], forbidden(), None),
        ] {
            let (snapshot, asked) = read(writers, reads(true), list).await;
            let found = snapshot.autoscalers.get(&key()).cloned();
            let expected = expected.map(|name| format!("HorizontalPodAutoscaler {name}"));
            assert_eq!(found, expected, "{writers:?}");
            assert_eq!(asked.len(), 2, "{asked:?}");
        }
    }

    /// A version that is not served says nothing: the autoscaler is found in another one. A cluster without any serves none.
    #[tokio::test]
    async fn an_autoscaler_is_found_in_the_version_that_is_served() {
        let discovery = |groups: Value| -> FakeReply {
            let list = json!({"kind": "APIGroupDiscoveryList", "items": groups});
            Some((200, &[], list))
        };
        let v1 = json!([{"metadata": {"name": GROUP}, "versions": [{"version": "v1", "resources": [{
            "resource": "horizontalpodautoscalers", "responseKind": {"kind": KIND}, "scope": "Namespaced", "verbs": ["list"]}]}]}]);
        let unserved = || failure(404, "404 page not found");
        for (replies, expected) in [
            (
                vec![
                    unserved(),
                    discovery(json!([])),
                    discovery(v1),
                    autoscaler_of("Deployment"),
                ],
                Some("HorizontalPodAutoscaler auto"),
            ),
            (
                vec![unserved(), discovery(json!([])), discovery(json!([]))],
                None,
            ),
        ] {
            let (cluster, asked) = fake::cluster(replies);
            let scaled = ScaledTarget {
                key: key(),
                by_controller: true,
                by_other: None,
            };
            let found = find_scalers(&cluster, &KindTable::default(), vec![scaled])
                .await
                .unwrap();
            let found = found.get(&key()).map(String::as_str);
            assert_eq!(found, expected, "{:?}", asked.lines());
        }
    }

    /// Trust 14.
    #[tokio::test]
    async fn autoscalers_of_old_clusters_are_asked_for_in_their_version() {
        for (served, asked_for) in [(Some("autoscaling/v1"), "v1"), (None, "v2")] {
            let mut kinds = KindTable::default();
            let info = KindInfo {
                plural: "horizontalpodautoscalers".to_owned(),
                singular: "horizontalpodautoscaler".to_owned(),
                namespaced: true,
                writable: true,
                has_status: true,
            };
            if let Some(api_version) = served {
                kinds.insert(&Gvk::new(api_version, KIND), info);
            }
            let (cluster, asked) = fake::cluster(vec![autoscaler_of("Deployment")]);
            let scaled = ScaledTarget {
                key: key(),
                by_controller: true,
                by_other: None,
            };
            let found = find_scalers(&cluster, &kinds, vec![scaled]).await.unwrap();
            let found = found.get(&key()).map(String::as_str);
            assert_eq!(found, Some("HorizontalPodAutoscaler auto"));
            let path = format!("GET /apis/autoscaling/{asked_for}/namespaces/shop/");
            assert!(asked.lines()[0].starts_with(&path), "{:?}", asked.lines());
        }
    }

    /// Other controllers scale through the same subresource, also to zero, which leaves no owner.
    #[tokio::test]
    async fn replicas_are_those_of_whoever_scales() {
        let none = || Some((200, &[][..], json!({"metadata": {}, "items": []})));
        for (writers, list, expected) in [
            (&[OURS, ("keda", "scale")][..], none(), Some("keda")),
            (
                &[OURS, ("keda", "scale")][..],
                autoscaler_of("Deployment"),
                Some("HorizontalPodAutoscaler auto"),
            ),
            (&[OURS, ("kubectl", "scale")][..], none(), None),
            (&[OURS, ("argocd-server", "")][..], none(), None),
        ] {
            let (snapshot, _) = read(writers, reads(true), list).await;
            let found = snapshot.autoscalers.get(&key()).map(String::as_str);
            assert_eq!(found, expected, "{writers:?}");
        }
        let writer = FieldWriter {
            manager: OURS.0.to_owned(),
            ..FieldWriter::default()
        };
        assert!(ScaledTarget::from_writers(&key(), &[writer]).is_some());
    }

    #[tokio::test]
    async fn autoscalers_are_not_read_where_none_can_matter() {
        for (writers, wants_replicas) in [
            (&[OURS][..], true),
            (&[][..], true),
            (&[AUTOSCALER][..], false),
        ] {
            let (snapshot, asked) = read(writers, reads(wants_replicas), None).await;
            assert_eq!(snapshot.autoscalers, BTreeMap::new());
            assert!(snapshot.live.contains_key(&key()));
            assert_eq!(asked.len(), 1, "{asked:?}");
        }
    }
}
