//! Waits until CRDs are served: established, and listed in discovery.
//!
//! Discovery lists a custom resource only after its CRD is established, so one document shows both for all CRDs. Discovery cannot be
//! watched, but is small, whereas a watch on CRDs with their status transfers a megabyte. So it is polled with growing pauses; the CRDs
//! themselves are read only if they take long.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use addons_plan::readiness::{Readiness, ReadinessStatus, assess};
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::KindTable;

use super::address::Collection;
use super::cluster::Cluster;
use super::discovery;
use super::request::{ApiCall, JSON};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// When the CRDs themselves are read to find the reason.
const LOOK_CLOSER: Duration = Duration::from_secs(2);
/// When they are read again, which is rare because they are large.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// A CRD that has to be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) key: ObjectKey,
    group: String,
    plural: String,
    /// The kind in its served versions; empty if unknown, and then any version is sufficient.
    kinds: Vec<Gvk>,
}

impl Definition {
    /// Reads it from an applied CRD; `None` if the object is not a CRD.
    pub(super) fn from_object(object: &Value) -> Option<Self> {
        let mut definition = Self::from_key(&ObjectKey::from_object(object)?)?;
        let kind = object.pointer("/spec/names/kind")?.as_str()?;
        let versions = object.pointer("/spec/versions")?.as_array()?.iter();
        definition.kinds = versions
            .filter(|version| version.get("served").and_then(Value::as_bool) == Some(true))
            .filter_map(|version| {
                Some(Gvk {
                    group: definition.group.clone(),
                    version: version.get("name")?.as_str()?.to_owned(),
                    kind: kind.to_owned(),
                })
            })
            .collect();
        Some(definition)
    }

    /// Derives it from the name alone, which is `PLURAL.GROUP`.
    pub(super) fn from_key(key: &ObjectKey) -> Option<Self> {
        if !key.is_definition() {
            return None;
        }
        let (plural, group) = key.name.split_once('.')?;
        Some(Self {
            key: key.clone(),
            group: group.to_owned(),
            plural: plural.to_owned(),
            kinds: Vec::new(),
        })
    }

    /// Returns whether its kind is in the table.
    fn is_in(&self, table: &KindTable) -> bool {
        if self.kinds.is_empty() {
            let mut kinds = table.iter();
            return kinds.any(|(gvk, info)| gvk.group == self.group && info.plural == self.plural);
        }
        self.kinds.iter().all(|gvk| table.get(gvk).is_some())
    }
}

/// Returns the collection of CRDs.
pub(super) fn collection() -> Collection {
    Collection::from_names(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        None,
    )
}

/// Waits until every CRD is served. Returns those that are not served at the deadline, or never will be.
pub(super) async fn wait(
    cluster: &Cluster,
    mut pending: Vec<Definition>,
    deadline: Instant,
    report: &(dyn Fn(&ObjectKey, &Readiness) + Send + Sync),
) -> Vec<(ObjectKey, Readiness)> {
    let begun = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut looked = None;
    let mut failed = Vec::new();
    while !pending.is_empty() {
        if Instant::now() + pause > deadline {
            let reason = readiness(ReadinessStatus::InProgress, "not served yet");
            let late = pending.drain(..);
            failed.extend(late.map(|definition| (definition.key, reason.clone())));
            break;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        match discovery::discover_groups(cluster).await {
            Ok(table) => pending.retain(|definition| {
                let is_served = definition.is_in(&table);
                if is_served {
                    report(
                        &definition.key,
                        &readiness(ReadinessStatus::Current, "served"),
                    );
                }
                !is_served
            }),
            // A server that does not answer is asked again.
            Err(error) if error.is_uncertain() => {}
            Err(error) => {
                let reason = readiness(ReadinessStatus::Failed, &error.to_string());
                let unseen = pending.drain(..);
                failed.extend(unseen.map(|definition| (definition.key, reason.clone())));
            }
        }
        if begun.elapsed() > LOOK_CLOSER
            && looked.is_none_or(|looked: Instant| looked.elapsed() > LOOK_AGAIN)
        {
            looked = Some(Instant::now());
            let mut still = Vec::new();
            for definition in pending {
                let reason = read_readiness(cluster, &definition).await;
                report(&definition.key, &reason);
                match reason.status {
                    ReadinessStatus::Failed => failed.push((definition.key, reason)),
                    _ => still.push(definition),
                }
            }
            pending = still;
        }
    }
    failed
}

/// Returns the readiness according to the status of the CRD.
async fn read_readiness(cluster: &Cluster, definition: &Definition) -> Readiness {
    let call = ApiCall::get(&collection(), &definition.key.name, JSON);
    match cluster.send::<Value>(call).await {
        Ok(answer) => match assess(&answer.object) {
            Readiness {
                status: ReadinessStatus::Current,
                ..
            } => readiness(ReadinessStatus::InProgress, "established, not served yet"),
            other => other,
        },
        Err(error) if error.is_not_found() => readiness(ReadinessStatus::Failed, "it is gone"),
        Err(error) => readiness(ReadinessStatus::InProgress, &error.to_string()),
    }
}

fn readiness(status: ReadinessStatus, message: &str) -> Readiness {
    Readiness {
        status,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_is_served_in_all_its_served_versions() {
        let crd = |versions: Value| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "issuers.cert-manager.io"},
                "spec": {"group": "cert-manager.io", "names": {"kind": "Issuer", "plural": "issuers"},
                    "scope": "Namespaced", "versions": versions},
            })
        };
        let wanted = Definition::from_object(&crd(json!([
            {"name": "v1", "served": true}, {"name": "v1beta1", "served": true}, {"name": "v1alpha2", "served": false},
        ])))
        .unwrap();
        let named = Definition::from_key(&wanted.key).unwrap();
        let mut table = KindTable::default();
        assert!(!wanted.is_in(&table) && !named.is_in(&table));
        table.insert_crd(&crd(json!([{"name": "v1", "served": true}])));
        assert!(!wanted.is_in(&table) && named.is_in(&table));
        table.insert_crd(&crd(json!([{"name": "v1beta1", "served": true}])));
        assert!(wanted.is_in(&table));
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a.b"}});
        assert_eq!(Definition::from_object(&pod), None);
    }
}
