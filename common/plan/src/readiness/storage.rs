//! PersistentVolumeClaim and PersistentVolume: bound at once, or once a pod uses the claim.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Readiness;
use super::fields::{field, join_reason, text};

/// Annotations that mark the default class. Old clusters use the second one, which still counts.
const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// The StorageClasses of a cluster, reduced to what decides whether a claim is bound without a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageClasses {
    /// Whether claims of a class, by its name, wait for their first consumer.
    waits: BTreeMap<String, bool>,
    default: Option<String>,
}

impl StorageClasses {
    /// Reads live StorageClasses. Of several default classes, the newest counts, then the first by name, as in the API server.
    #[must_use]
    pub fn from_objects(classes: &[Value]) -> Self {
        let mode = |class: &Value| text(class, &["volumeBindingMode"]) == "WaitForFirstConsumer";
        let name = |class: &Value| text(class, &["metadata", "name"]).to_owned();
        let default = classes.iter().filter(|class| is_default(class));
        let default = default.min_by_key(|class| {
            let created = text(class, &["metadata", "creationTimestamp"]).to_owned();
            (std::cmp::Reverse(created), name(class))
        });
        Self {
            waits: classes
                .iter()
                .map(|class| (name(class), mode(class)))
                .collect(),
            default: default.map(name),
        }
    }

    /// Whether a claim is bound only when a pod uses it. A class that does not exist binds at once to volumes that name the same class, as
    /// in the volume controller.
    fn waits_for_consumer(&self, claim: &Value) -> bool {
        let named = field(claim, &["spec", "storageClassName"]).and_then(Value::as_str);
        let class = named.or(self.default.as_deref());
        class.is_some_and(|class| self.waits.get(class) == Some(&true))
    }
}

fn is_default(class: &Value) -> bool {
    DEFAULT_CLASS
        .iter()
        .any(|name| text(class, &["metadata", "annotations", name]) == "true")
}

/// kstatus expects every claim to be `Bound`, but one that waits for its first consumer would block the pods that it waits for
/// (argo-cd#29205). If the classes are unknown, a claim that no pod uses counts as waiting for its consumer.
pub(super) fn assess_claim(object: &Value, classes: Option<&StorageClasses>) -> Readiness {
    match text(object, &["status", "phase"]) {
        "Bound" => Readiness::current("bound"),
        "Lost" => Readiness::failed("lost: its volume is gone"),
        _ if has_no_pod(object)
            && classes.is_none_or(|classes| classes.waits_for_consumer(object)) =>
        {
            Readiness::current("bound when a pod uses it")
        }
        _ => Readiness::in_progress("waiting: not yet bound"),
    }
}

/// Whether a claim is pending and the scheduler has placed no pod for it. `storageClassName: ""` asks for an existing volume, which a pod
/// does not change.
pub(super) fn has_no_pod(object: &Value) -> bool {
    let placed = field(
        object,
        &[
            "metadata",
            "annotations",
            "volume.kubernetes.io/selected-node",
        ],
    );
    let is_static = field(object, &["spec", "storageClassName"]).is_some_and(|class| class == "")
        || !text(object, &["spec", "volumeName"]).is_empty();
    text(object, &["status", "phase"]) == "Pending" && placed.is_none() && !is_static
}

pub(super) fn assess_volume(object: &Value) -> Readiness {
    match text(object, &["status", "phase"]) {
        "Failed" => {
            let status = |name| text(object, &["status", name]);
            Readiness::failed(format!(
                "failed: {}",
                join_reason(status("reason"), status("message"))
            ))
        }
        "Pending" => Readiness::in_progress("waiting: not yet available"),
        "" => Readiness::current("ready"),
        phase => Readiness::current(phase.to_lowercase()),
    }
}
