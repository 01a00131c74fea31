//! Waits until another client edits or deletes an object of installations, or changes their records, with one metadata-only watch per kind.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde_json::Value;

use addons_plan::inventory::{Inventory, InventoryItem};
use addons_plan::prune::KeptKind;
use common::api::installation::{AddonInstallation, InventoryObject, ObjectState};
use common::api::names::{LABEL_OWNER, owner_hash};
use common::manifest::key::ObjectKey;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::live;
use super::record;
use super::watch::{Observation, observe_labelled};

/// An object that differs from its record, or a record that has changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drift {
    /// The object.
    pub key: ObjectKey,
    /// Its uid and resourceVersion; `None` if it was deleted.
    pub state: Option<(String, String)>,
}

/// The recorded objects of one kind.
type RecordedObjects = BTreeMap<ObjectKey, InventoryItem>;

/// Waits for the next difference between the records and the live objects; without one, it never returns. Differences that `is_known`
/// accepts are skipped: an operation has checked them and changed nothing.
///
/// # Errors
/// A kind cannot be listed or watched.
pub async fn next_drift(
    cluster: &Cluster,
    records: &[AddonInstallation],
    is_known: &(dyn Fn(&Drift) -> bool + Send + Sync),
) -> Result<Drift, EngineError> {
    let mut owners = Vec::new();
    let mut kinds: BTreeMap<(String, String), RecordedObjects> = BTreeMap::new();
    for record in records {
        let installation = record::name(record);
        owners.push(owner_hash(&installation.namespace, &installation.name));
        for (key, item) in Inventory::from_status(record.status.as_ref()).objects {
            if is_watched(&key, &item) {
                let kind = (key.group.clone(), key.kind.clone());
                kinds.entry(kind).or_default().insert(key, item);
            }
        }
    }
    let served = cluster.kinds(&kinds.keys().cloned().collect()).await?;
    let selector = format!("{LABEL_OWNER} in ({})", owners.join(","));
    let mut watched = Vec::new();
    for ((group, kind), recorded) in kinds {
        if let Some((gvk, info)) = served.preferred(&group, &kind) {
            let collection = Collection::new(gvk, info, None);
            watched.push((cluster, collection, selector.as_str(), recorded));
        }
    }
    for (namespace, recorded) in record_items(records) {
        let collection = record::collection(Some(&namespace));
        // Records have no owner label, and an empty selector matches every object.
        watched.push((cluster.home(), collection, "", recorded));
    }
    let mut watches = FuturesUnordered::new();
    for (cluster, collection, selector, recorded) in &watched {
        watches.push(async move {
            let mut found = None;
            observe_labelled(cluster, collection, selector, |seen| {
                found = find_drift(collection, recorded, &seen).filter(|one| !is_known(one));
                found.is_some()
            })
            .await?;
            Ok::<_, EngineError>(found)
        });
    }
    while let Some(ended) = watches.next().await {
        match ended {
            Ok(Some(drift)) => return Ok(drift),
            Ok(None) => {}
            Err(error) => {
                cluster.forget_unserved(&error).await;
                return Err(error);
            }
        }
    }
    std::future::pending().await
}

/// Returns the records themselves by namespace, to be watched as well. Another client of an installation uses the same field manager: it
/// changes values without changing the owned fields, and only the record shows it.
fn record_items(records: &[AddonInstallation]) -> BTreeMap<String, RecordedObjects> {
    let mut found: BTreeMap<String, RecordedObjects> = BTreeMap::new();
    for record in records {
        let installation = record::name(record);
        let object = InventoryObject {
            name: installation.name.clone(),
            uid: record.metadata.uid.clone().unwrap_or_default(),
            resource_version: record.metadata.resource_version.clone(),
            ..InventoryObject::default()
        };
        let item = InventoryItem {
            version: String::new(),
            object,
        };
        let of_namespace = found.entry(installation.namespace.clone()).or_default();
        of_namespace.insert(record::key(&installation), item);
    }
    found
}

/// Returns whether a recorded object carries our label and is still wanted.
fn is_watched(key: &ObjectKey, item: &InventoryItem) -> bool {
    match item.object.state {
        ObjectState::Owned => true,
        ObjectState::Preexisting => item.was_applied(),
        // Create-only objects are watched; objects that are kept because they hold data are no longer wanted.
        ObjectState::Retained => KeptKind::from_key(key).is_none(),
        ObjectState::Planned => false,
    }
}

/// Returns the first difference that a watch event shows.
fn find_drift(
    collection: &Collection,
    recorded: &RecordedObjects,
    seen: &Observation,
) -> Option<Drift> {
    match seen {
        Observation::Listed(objects) => {
            let found: BTreeMap<ObjectKey, &Value> = objects
                .iter()
                .filter_map(|object| Some((object_key(collection, object)?, object)))
                .collect();
            recorded
                .iter()
                .find_map(|(key, item)| match found.get(key) {
                    Some(object) => find_edit(key, item, object),
                    None => Some(Drift {
                        key: key.clone(),
                        state: None,
                    }),
                })
        }
        Observation::Changed(object) => {
            let key = object_key(collection, object)?;
            find_edit(&key, recorded.get(&key)?, object)
        }
        Observation::Deleted(object) => {
            let key = object_key(collection, object)?;
            recorded
                .contains_key(&key)
                .then_some(Drift { key, state: None })
        }
        Observation::Lost(_) => None,
    }
}

fn find_edit(key: &ObjectKey, item: &InventoryItem, object: &Value) -> Option<Drift> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let uid = text("/metadata/uid").unwrap_or_default();
    let version = text("/metadata/resourceVersion").unwrap_or_default();
    let fields = live::fields_of(object);
    // Create-only objects may be edited.
    let is_edited = item.object.state != ObjectState::Retained
        && item.object.is_versioned()
        && item.object.was_edited(&live::live_state(object, &fields));
    is_edited.then(|| Drift {
        key: key.clone(),
        state: Some((uid.to_owned(), version.to_owned())),
    })
}

/// Returns the key of a watched object. With metadata only, the object has the kind of its envelope, so the kind comes from the collection.
fn object_key(collection: &Collection, object: &Value) -> Option<ObjectKey> {
    let metadata = object.get("metadata")?;
    let text = |name: &str| metadata.get(name).and_then(Value::as_str);
    Some(ObjectKey {
        group: collection.gvk.group.clone(),
        kind: collection.gvk.kind.clone(),
        namespace: text("namespace").map(str::to_owned),
        name: text("name")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use common::api::installation::InventoryObject;

    use super::*;

    fn recorded(state: ObjectState, generation: Option<i64>) -> RecordedObjects {
        let key = ObjectKey {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        };
        let object = InventoryObject {
            name: "web".to_owned(),
            state,
            uid: "u1".to_owned(),
            generation,
            resource_version: generation.is_none().then(|| "7".to_owned()),
            ..InventoryObject::default()
        };
        let item = InventoryItem {
            version: "v1".to_owned(),
            object,
        };
        BTreeMap::from([(key, item)])
    }

    fn live(uid: &str, generation: Option<i64>, version: &str) -> Value {
        json!({"kind": "PartialObjectMetadata", "metadata": {
            "name": "web", "namespace": "shop", "uid": uid, "generation": generation, "resourceVersion": version,
        }})
    }

    #[test]
    fn a_record_that_another_client_wrote_is_drift() {
        let record = json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7"},
            "spec": {"addonRef": {"name": "web"}},
        });
        let records = record_items(&[serde_json::from_value(record).unwrap()]);
        let collection = record::collection(Some("shop"));
        let is_drift = |seen| find_drift(&collection, &records["shop"], &seen).is_some();
        assert!(!is_drift(Observation::Listed(vec![live(
            "u1",
            Some(1),
            "7"
        )])));
        assert!(is_drift(Observation::Listed(vec![live(
            "u1",
            Some(1),
            "8"
        )])));
        assert!(is_drift(Observation::Changed(live("u1", Some(1), "8"))));
        assert!(is_drift(Observation::Listed(Vec::new())));
    }

    #[test]
    fn what_others_change_is_drift_and_what_we_wrote_is_not() {
        use ObjectState::{Owned, Retained};
        let collection = Collection::from_names("apps/v1", "Deployment", "deployments", None);
        for (state, generation, seen, expected) in [
            (
                Owned,
                Some(2),
                Observation::Changed(live("u1", Some(2), "9")),
                false,
            ),
            (
                Owned,
                Some(2),
                Observation::Changed(live("u1", Some(3), "9")),
                true,
            ),
            (
                Owned,
                Some(2),
                Observation::Changed(live("u2", Some(2), "9")),
                true,
            ),
            (
                Owned,
                None,
                Observation::Changed(live("u1", None, "7")),
                false,
            ),
            (
                Owned,
                None,
                Observation::Changed(live("u1", None, "8")),
                true,
            ),
            (
                Owned,
                Some(2),
                Observation::Deleted(live("u1", Some(2), "9")),
                true,
            ),
            (
                Owned,
                Some(2),
                Observation::Listed(vec![live("u1", Some(2), "9")]),
                false,
            ),
            (Owned, Some(2), Observation::Listed(Vec::new()), true),
            (
                Owned,
                Some(2),
                Observation::Lost("timed out".to_owned()),
                false,
            ),
            (
                Retained,
                Some(2),
                Observation::Changed(live("u1", Some(3), "9")),
                false,
            ),
            (Retained, Some(2), Observation::Listed(Vec::new()), true),
        ] {
            let found = find_drift(&collection, &recorded(state, generation), &seen);
            assert_eq!(
                found.is_some(),
                expected,
                "{state:?} {generation:?} {found:?}"
            );
        }
        // Another object with our label is not recorded.
        let other = json!({"metadata": {"name": "other", "namespace": "shop"}});
        let found = find_drift(
            &collection,
            &recorded(Owned, None),
            &Observation::Changed(other),
        );
        assert_eq!(found, None);
    }
}
