//! Waits until definitions are served: established, and in the discovery document of their group and version.
//!
//! Discovery lists a custom resource only after its definition is established, so the document answers both questions. It
//! cannot be watched; but it is small, whereas a watch on definitions with their status carries a megabyte. So it is
//! asked, after growing pauses; the definitions themselves are read only where the answer stays out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::manifest::key::ObjectKey;
use crate::readiness::{Readiness, Status, assess};

use super::address::{Collection, group_version_path};
use super::cluster::Cluster;
use super::discovery;
use super::error::EngineError;
use super::request::{Call, JSON};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// When the definitions themselves are read for a reason.
const LOOK_CLOSER: Duration = Duration::from_secs(2);

/// A definition that shall be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) key: ObjectKey,
    group: String,
    plural: String,
    /// Served versions; empty = not known here, one is enough.
    versions: Vec<String>,
}

impl Definition {
    /// Of the definition as it was applied; `None` where it is none.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let mut definition = Self::named(&ObjectKey::of(object)?)?;
        let versions = object.pointer("/spec/versions")?.as_array()?.iter();
        definition.versions = versions
            .filter(|version| version.get("served").and_then(Value::as_bool) == Some(true))
            .filter_map(|version| Some(version.get("name")?.as_str()?.to_owned()))
            .collect();
        Some(definition)
    }

    /// Of its name alone, which is `PLURAL.GROUP`.
    pub(super) fn named(key: &ObjectKey) -> Option<Self> {
        if !is_definition(key) {
            return None;
        }
        let (plural, group) = key.name.split_once('.')?;
        Some(Self {
            key: key.clone(),
            group: group.to_owned(),
            plural: plural.to_owned(),
            versions: Vec::new(),
        })
    }
}

/// Whether an object is a CustomResourceDefinition.
pub(super) fn is_definition(key: &ObjectKey) -> bool {
    key.group == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition"
}

/// Waits until every definition is served; returns those that are not at the deadline, or never will be.
pub(super) async fn wait(
    cluster: &Cluster,
    mut pending: Vec<Definition>,
    deadline: Instant,
    tell: &(dyn Fn(&ObjectKey, &Readiness) + Send + Sync),
) -> Vec<(ObjectKey, Readiness)> {
    let begun = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut failed = Vec::new();
    while !pending.is_empty() {
        match unserved(cluster, &pending).await {
            Ok(missing) => pending.retain(|definition| {
                let is_missing = missing.contains(&definition.key);
                if !is_missing {
                    tell(&definition.key, &readiness(Status::Current, "served"));
                }
                is_missing
            }),
            // A server that does not answer now is asked again.
            Err(error) if error.is_uncertain() => {}
            Err(error) => {
                let reason = readiness(Status::Failed, &error.to_string());
                failed.extend(
                    pending
                        .drain(..)
                        .map(|definition| (definition.key, reason.clone())),
                );
            }
        }
        if pending.is_empty() {
            break;
        }
        if begun.elapsed() > LOOK_CLOSER {
            let mut still = Vec::new();
            for definition in pending {
                let reason = reason(cluster, &definition).await;
                tell(&definition.key, &reason);
                match reason.status {
                    Status::Failed => failed.push((definition.key, reason)),
                    _ => still.push(definition),
                }
            }
            pending = still;
        }
        if Instant::now() + pause > deadline {
            let reason = readiness(Status::InProgress, "not served yet");
            failed.extend(
                pending
                    .drain(..)
                    .map(|definition| (definition.key, reason.clone())),
            );
            break;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    failed
}

/// Which definitions are not served; one request a group and version.
async fn unserved(
    cluster: &Cluster,
    definitions: &[Definition],
) -> Result<BTreeSet<ObjectKey>, EngineError> {
    let mut documents: BTreeMap<(&str, String), Vec<&Definition>> = BTreeMap::new();
    let mut missing = BTreeSet::new();
    for definition in definitions {
        let versions = if definition.versions.is_empty() {
            preferred_version(cluster, &definition.group).await?
        } else {
            definition.versions.clone()
        };
        if versions.is_empty() {
            missing.insert(definition.key.clone());
        }
        for version in versions {
            let document = (definition.group.as_str(), version);
            documents.entry(document).or_default().push(definition);
        }
    }
    let answers = documents
        .iter()
        .map(async |((group, version), definitions)| {
            let served = discovery::served(cluster, group, version).await?;
            let missing = definitions.iter();
            let missing = missing.filter(|definition| !served.contains(&definition.plural));
            Ok::<_, EngineError>(
                missing
                    .map(|definition| definition.key.clone())
                    .collect::<Vec<_>>(),
            )
        });
    for keys in futures::future::try_join_all(answers).await? {
        missing.extend(keys);
    }
    Ok(missing)
}

/// The version that a group prefers, as a list of one; none where the group is not served.
async fn preferred_version(cluster: &Cluster, group: &str) -> Result<Vec<String>, EngineError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Group {
        preferred_version: Preferred,
    }
    #[derive(Deserialize)]
    struct Preferred {
        version: String,
    }
    let call = Call::path(group_version_path(group, ""), JSON);
    match cluster.send::<Group>(call).await {
        Ok(answer) => Ok(vec![answer.object.preferred_version.version]),
        Err(error) if error.code() == Some(404) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// What the definition itself says.
async fn reason(cluster: &Cluster, definition: &Definition) -> Readiness {
    let collection = Collection::known(
        "apiextensions.k8s.io/v1",
        &definition.key.kind,
        "customresourcedefinitions",
        None,
    );
    let call = Call::get(&collection, &definition.key.name, JSON);
    match cluster.send::<Value>(call).await {
        Ok(answer) => match assess(&answer.object) {
            Readiness {
                status: Status::Current,
                ..
            } => readiness(Status::InProgress, "established, not served yet"),
            other => other,
        },
        Err(error) if error.is_not_found() => readiness(Status::Failed, "it is gone"),
        Err(error) => readiness(Status::InProgress, &error.to_string()),
    }
}

fn readiness(status: Status, message: &str) -> Readiness {
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
    fn a_definition_is_served_in_its_served_versions() {
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "issuers.cert-manager.io"},
            "spec": {"versions": [{"name": "v1", "served": true}, {"name": "v1alpha2", "served": false}]},
        });
        let definition = Definition::of(&crd).unwrap();
        assert_eq!(
            (
                definition.plural.as_str(),
                definition.group.as_str(),
                definition.versions.len()
            ),
            ("issuers", "cert-manager.io", 1)
        );
        assert_eq!(
            Definition::of(
                &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a.b"}})
            ),
            None
        );
    }
}
