//! Fields of an object that other managers hold: read once, then taken, left or refused, as the policy says (semantics 12).

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::installation::Conflicts;
use crate::manifest::key::{Gvk, ObjectKey};
use crate::plan::Step;
use crate::plan::conflicts::{Conflict, path};

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::{EngineError, FieldCause};
use super::super::listing;
use super::super::report::{Settled, Settlement};
use super::super::request::{Call, JSON};
use super::explain::ways_out_of_conflict;

const REPLICAS: &str = "spec.replicas";
const MASK: &str = "***";

/// One apply: what is sent, and what was decided about it.
pub(super) struct Attempt {
    pub(super) object: Arc<Value>,
    pub(super) settled: Vec<Settled>,
    /// The resourceVersion of the object that was looked at: fields are taken from no other.
    pinned: Option<String>,
}

impl Attempt {
    /// The object as it is planned, without force.
    pub(super) fn plain(step: &Step) -> Self {
        Self {
            object: Arc::clone(&step.object),
            settled: Vec::new(),
            pinned: None,
        }
    }

    /// Whether conflicts are forced, for the one resourceVersion in which they are known.
    pub(super) fn is_pinned(&self) -> bool {
        self.pinned.is_some()
    }

    /// The same for the version that the object has now: the version after our own write.
    pub(super) fn again(&self, resource_version: &str) -> Self {
        let pinned = Some(resource_version.to_owned());
        Self {
            object: pin(&self.object, resource_version),
            settled: self.settled.clone(),
            pinned,
        }
    }
}

/// What to send next, after the server named fields that others hold.
pub(super) async fn settle(
    cluster: &Cluster,
    step: &Step,
    before: Attempt,
    causes: &[FieldCause],
) -> Result<Attempt, EngineError> {
    let collection = Collection::of(&step.target);
    let call = Call::get(&collection, &step.target.key.name, JSON);
    let live: Value = match cluster.send(call).await {
        Ok(answer) => answer.object,
        // Deleted meanwhile: it is made anew.
        Err(error) if error.is_not_found() => return Ok(Attempt::plain(step)),
        Err(error) => return Err(error),
    };
    let mut settled = before.settled;
    let mut refused = Vec::new();
    for cause in causes {
        let conflict = conflict(step, &live, cause);
        let (policy, by_manifest) = step.policy.at(&conflict.field);
        let autoscaler = if conflict.field == REPLICAS {
            autoscaler(cluster, &step.target.key, &conflict.manager).await?
        } else {
            None
        };
        let settlement = match (autoscaler, policy) {
            (Some(name), _) => Settlement::Left {
                autoscaler: Some(name),
            },
            (None, Conflicts::Yield) => Settlement::Left { autoscaler: None },
            (None, Conflicts::Take) => Settlement::Taken,
            (None, Conflicts::Fail) => {
                refused.push((conflict, by_manifest));
                continue;
            }
        };
        settled.push(Settled {
            key: step.target.key.clone(),
            conflict,
            settlement,
        });
    }
    if !refused.is_empty() {
        return Err(refusal(step, &refused));
    }
    let mut object = (*step.object).clone();
    for left in settled.iter().filter(|settled| settled.is_left()) {
        if !path::remove(&mut object, &left.conflict.field) {
            return Err(EngineError::Conflict {
                key: step.target.key.clone(),
                message: format!(
                    "{} is held by {} and cannot be left out of the manifest by itself; take it, or take it out of the manifest{}",
                    left.conflict.field,
                    left.conflict.manager,
                    ways_out_of_conflict(step)
                ),
            });
        }
    }
    let attempt = Attempt {
        object: Arc::new(object),
        settled,
        pinned: None,
    };
    if attempt.settled.iter().all(Settled::is_left) {
        return Ok(attempt);
    }
    let version = live.pointer("/metadata/resourceVersion");
    Ok(attempt.again(version.and_then(Value::as_str).unwrap_or_default()))
}

fn pin(object: &Value, resource_version: &str) -> Arc<Value> {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), json!(resource_version));
    }
    Arc::new(object)
}

fn conflict(step: &Step, live: &Value, cause: &FieldCause) -> Conflict {
    let key = &step.target.key;
    let is_secret = key.group.is_empty() && key.kind == "Secret";
    let is_masked =
        is_secret && (cause.field.starts_with("data") || cause.field.starts_with("stringData"));
    let value = |object: &Value| {
        let value = path::get(object, &cause.field)?;
        Some(if is_masked {
            json!(MASK)
        } else {
            value.clone()
        })
    };
    let holder = Holder::of(&cause.message);
    Conflict {
        field: cause.field.clone(),
        time: holder.time(live),
        live: value(live),
        ours: value(&step.object),
        manager: holder.to_string(),
    }
}

fn refusal(step: &Step, refused: &[(Conflict, bool)]) -> EngineError {
    let mut message = match refused {
        [_] => "a field belongs to another manager".to_owned(),
        many => format!("{} fields belong to other managers", many.len()),
    };
    for (conflict, by_manifest) in refused {
        let since = conflict.time.as_ref();
        let since = since
            .map(|time| format!(" since {time}"))
            .unwrap_or_default();
        let live = Conflict::value(conflict.live.as_ref());
        let ours = Conflict::value(conflict.ours.as_ref());
        message.push_str(&format!(
            "\n    {}: {live}, {}{since}; wanted {ours}",
            conflict.field, conflict.manager
        ));
        if *by_manifest {
            message.push_str(" (the manifest's annotation kubectl-addons.dev/conflicts says Fail)");
        }
    }
    if refused.iter().all(|(_, by_manifest)| *by_manifest) {
        let look = ways_out_of_conflict(step);
        let look = look.lines().take(2).collect::<Vec<_>>().join("\n");
        message.push_str(&look);
        message.push_str(
            "\n    accept: give the live field the wanted value, or change the annotation",
        );
    } else {
        message.push_str(&ways_out_of_conflict(step));
    }
    EngineError::Conflict {
        key: step.target.key.clone(),
        message,
    }
}

/// Who holds a field, as the server says it: `conflict with "kubectl" with subresource "scale" using apps/v1`.
struct Holder {
    manager: String,
    subresource: String,
}

impl Holder {
    fn of(message: &str) -> Self {
        let after = |words: &str| {
            let (_, rest) = message.split_once(words)?;
            // A string literal of Go; that of JSON is close enough.
            let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            texts.next()?.ok()
        };
        Self {
            manager: after("conflict with ").unwrap_or_else(|| message.to_owned()),
            subresource: after(" with subresource ").unwrap_or_default(),
        }
    }

    /// When this manager wrote last.
    fn time(&self, live: &Value) -> Option<String> {
        let entries = live.pointer("/metadata/managedFields")?.as_array()?;
        let text = |entry: &Value, name: &str| {
            let text = entry.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let mut times: Vec<String> = entries
            .iter()
            .filter(|entry| {
                text(entry, "manager") == self.manager
                    && text(entry, "subresource") == self.subresource
            })
            .map(|entry| text(entry, "time"))
            .filter(|time| !time.is_empty())
            .collect();
        // RFC 3339 in UTC sorts by time.
        times.sort();
        times.pop()
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.manager)?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        Ok(())
    }
}

/// The HorizontalPodAutoscaler that scales an object: whoever wrote the replicas last, it will write them next. Asked only
/// about a conflict at them, so that an autoscaler that is gone holds nothing. Who may not look believes the manager.
async fn autoscaler(
    cluster: &Cluster,
    key: &ObjectKey,
    manager: &str,
) -> Result<Option<String>, EngineError> {
    let collection = Collection::known(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        key.namespace.as_deref(),
    );
    let found: Vec<Value> = match listing::all(cluster, &collection, None).await {
        Ok(found) => found,
        Err(EngineError::Forbidden { .. }) => {
            let is_scaled = manager == "kube-controller-manager/scale";
            return Ok(is_scaled.then(|| key.name.clone()));
        }
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let scales = |autoscaler: &Value| {
        let target = autoscaler.pointer("/spec/scaleTargetRef")?;
        let text = |name| target.get(name).and_then(Value::as_str).unwrap_or_default();
        let group = Gvk::new(text("apiVersion"), text("kind")).group;
        let is_it = (group.as_str(), text("kind"), text("name"))
            == (key.group.as_str(), key.kind.as_str(), key.name.as_str());
        let name = autoscaler.pointer("/metadata/name")?.as_str()?;
        is_it.then(|| name.to_owned())
    };
    Ok(found.iter().find_map(scales))
}
