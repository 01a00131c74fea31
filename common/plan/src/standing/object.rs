//! The state of one recorded object: whether it exists, who owns it, whether it was edited, and whether it is ready.

use serde::Serialize;
use serde_json::Value;

use crate::found;
use crate::inventory::InventoryItem;
use crate::readiness::blocker::Blocker;
use crate::readiness::health_check::HealthChecks;
use crate::readiness::{Readiness, ReadinessStatus};
use common::api::installation::{LiveState, ObjectState};
use common::api::names::{ANNOTATION_INSTALLATION, LABEL_OWNER};
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::{KeptKind, KindTraits, WaitScope};

/// One object of an installation, and its readiness.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectHealth {
    /// The object.
    #[serde(flatten)]
    pub key: ObjectKey,
    /// Its readiness; `None` if it does not exist.
    pub readiness: Option<Readiness>,
    /// Whether it was planned and never created, as far as is known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub planned: bool,
    /// Why it does not get ready, if a reason was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocker: Option<Blocker>,
    /// Whether it was edited since the last apply.
    pub edited: bool,
    /// Whether an operation waits for it, so that its readiness affects how the installation stands.
    #[serde(skip)]
    pub waited: bool,
    /// The Helm release whose marks it has, `shop/web`: Helm can change and delete it, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Fields that were left to other managers: the object differs from its manifest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub yielded: Vec<String>,
}

/// The live object with the name of a recorded one.
#[derive(Clone, Debug)]
pub enum ObservedObject<'a> {
    /// It exists.
    Exists {
        /// The live object; its metadata is enough.
        live: &'a Value,
        /// The state that shows whether it was edited.
        state: LiveState<'a>,
        /// Its readiness.
        readiness: Readiness,
    },
    /// It does not exist.
    Missing,
    /// It cannot be read. Holds the reason.
    Unreadable(&'a str),
}

impl ObjectHealth {
    /// Assesses an object by its inventory item and the live object with its name. `owner` is the owner label of its installation, `checks`
    /// are its health checks.
    ///
    /// An object that was only recorded (a preexisting Namespace, a create-only object) carries no owner label, and exists as long as its
    /// name does. An applied object belongs to the installation by its label or its uid. If another client removed the label or recreated
    /// the object, it counts as edited; if another installation has it, it no longer belongs to this one.
    #[must_use]
    pub fn assess(
        key: &ObjectKey,
        item: &InventoryItem,
        owner: &str,
        checks: &HealthChecks,
        sight: &ObservedObject<'_>,
    ) -> Self {
        let object = &item.object;
        let is_retained = object.state == ObjectState::Retained;
        let health = Self {
            key: key.clone(),
            readiness: None,
            planned: object.state == ObjectState::Planned,
            blocker: None,
            edited: false,
            waited: affects_standing(key, checks),
            release: None,
            yielded: Vec::new(),
        };
        let (live, state, readiness) = match sight {
            _ if is_retained && KeptKind::from_key(key).is_some() => {
                return health.ready(describe_retained(item, owner, sight));
            }
            ObservedObject::Exists {
                live,
                state,
                readiness,
            } => (live, state, readiness),
            ObservedObject::Unreadable(why) => {
                let message = format!("cannot be read: {why}");
                return health.with(ReadinessStatus::Unknown, message);
            }
            // A Job that was deleted after its end (ttlSecondsAfterFinished) looks like one that a user deleted. Both are fine: the Job did
            // its work when it was installed.
            ObservedObject::Missing if is_job(key) && !health.planned => {
                return health.ready("gone, as a Job may be after its end");
            }
            ObservedObject::Missing => return health,
        };
        let metadata = &live["metadata"];
        let label = metadata["labels"][LABEL_OWNER].as_str();
        let is_ours = label == Some(owner);
        if health.planned && !is_ours {
            return health;
        }
        let is_applied = item.was_applied() && !is_retained;
        if is_applied && !is_ours && label.is_some() {
            let other = metadata["annotations"][ANNOTATION_INSTALLATION].as_str();
            let other = other.unwrap_or("another installation");
            return health.with(ReadinessStatus::Failed, format!("belongs to {other}"));
        }
        let annotation = |name: &str| metadata["annotations"][name].as_str();
        Self {
            readiness: Some(readiness.clone()),
            planned: false,
            edited: is_applied && (!is_ours || object.is_versioned() && object.was_edited(state)),
            release: found::read_helm_release(annotation).map(|release| release.to_string()),
            yielded: object.yielded.clone(),
            ..health
        }
    }

    fn with(self, status: ReadinessStatus, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            readiness: Some(Readiness { status, message }),
            planned: false,
            ..self
        }
    }

    fn ready(self, message: &str) -> Self {
        self.with(ReadinessStatus::Current, message)
    }

    /// Whether it exists and is ready.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.readiness
            .as_ref()
            .is_some_and(|readiness| readiness.status == ReadinessStatus::Current)
    }

    /// Whether it cannot be read, so that it is unknown whether it exists and is ready.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        let readiness = self.readiness.as_ref();
        readiness.is_some_and(|readiness| readiness.status == ReadinessStatus::Unknown)
    }

    /// Whether it makes the installation degraded: it does not exist, is being deleted, or is not ready and of a kind that an operation
    /// waits for.
    #[must_use]
    pub fn is_trouble(&self) -> bool {
        match self.readiness.as_ref().map(|readiness| readiness.status) {
            None | Some(ReadinessStatus::Terminating) => true,
            Some(ReadinessStatus::Current | ReadinessStatus::Unknown) => false,
            Some(ReadinessStatus::InProgress | ReadinessStatus::Failed) => self.waited,
        }
    }

    /// Whether applying the installed version would restore it: it was deleted or edited.
    #[must_use]
    pub fn is_restorable(&self) -> bool {
        self.edited || self.readiness.is_none() && !self.planned
    }

    /// Describes its readiness, for display.
    #[must_use]
    pub fn message(&self) -> &str {
        match &self.readiness {
            Some(readiness) => &readiness.message,
            None if self.planned => "does not exist yet",
            None => "is gone",
        }
    }
}

/// Whether the readiness of an object affects how its installation stands: it is of a kind that an operation waits for, or that has a health
/// check. All others are ready once they exist, or get ready for reasons outside the cluster.
#[must_use]
pub fn affects_standing(key: &ObjectKey, checks: &HealthChecks) -> bool {
    KindTraits::for_key(key).waited != WaitScope::Never || checks.find(key).is_some()
}

/// Describes an object that is retained because it holds data. No version contains it, so nothing waits for it.
fn describe_retained(
    item: &InventoryItem,
    owner: &str,
    sight: &ObservedObject<'_>,
) -> &'static str {
    match sight {
        ObservedObject::Exists { live, state, .. }
            if live["metadata"]["labels"][LABEL_OWNER] == *owner
                || state.uid == item.object.uid =>
        {
            "retained"
        }
        ObservedObject::Unreadable(_) => "retained, and cannot be read",
        ObservedObject::Exists { .. } | ObservedObject::Missing => "was retained, and is gone",
    }
}

fn is_job(key: &ObjectKey) -> bool {
    (key.group.as_str(), key.kind.as_str()) == ("batch", "Job")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use common::api::installation::InventoryObject;

    fn key(kind: &str) -> ObjectKey {
        ObjectKey {
            group: match kind {
                "Deployment" => "apps",
                "Job" => "batch",
                _ => "",
            }
            .to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: "web".to_owned(),
        }
    }

    fn item(state: ObjectState, digest: &str) -> InventoryItem {
        InventoryItem {
            version: "v1".to_owned(),
            object: InventoryObject {
                name: "web".to_owned(),
                state,
                uid: "u".to_owned(),
                digest: digest.to_owned(),
                fields: (!digest.is_empty()).then(|| "f".to_owned()),
                ..InventoryObject::default()
            },
        }
    }

    /// What is said of an object, and `!` where it was edited. `seen`: owner label, uid and digest of our fields.
    fn said(kind: &str, item: &InventoryItem, seen: Option<(Option<&str>, &str, &str)>) -> String {
        let live = seen.map(|(owner, uid, _)| {
            let annotations = json!({ANNOTATION_INSTALLATION: "shop/other"});
            json!({"metadata": {"uid": uid, "labels": {LABEL_OWNER: owner}, "annotations": annotations}})
        });
        let sight = match (&live, seen) {
            (Some(live), Some((_, uid, fields))) => ObservedObject::Exists {
                live,
                state: LiveState {
                    uid,
                    generation: None,
                    resource_version: "1",
                    fields,
                },
                readiness: Readiness {
                    status: ReadinessStatus::Current,
                    message: "ready".to_owned(),
                },
            },
            _ => ObservedObject::Missing,
        };
        let health = ObjectHealth::assess(&key(kind), item, "me", &HealthChecks::default(), &sight);
        let edited = if health.edited { "!" } else { "" };
        let trouble = if health.is_trouble() { "trouble: " } else { "" };
        format!("{trouble}{}{edited}", health.message())
    }

    #[test]
    fn an_object_is_there_and_ours_by_its_record_its_label_and_its_uid() {
        use ObjectState::{Owned, Planned, Preexisting, Retained};
        let (ours, nobodys, others) = (Some("me"), None, Some("other"));
        for (kind, state, digest, seen, expected) in [
            ("Deployment", Owned, "d", Some((ours, "u", "f")), "ready"),
            // Another value of a field of ours, or another object.
            ("Deployment", Owned, "d", Some((ours, "u", "g")), "ready!"),
            ("Deployment", Owned, "d", Some((ours, "v", "f")), "ready!"),
            // The label was taken away, or the object was created again by another client.
            (
                "Deployment",
                Owned,
                "d",
                Some((nobodys, "u", "f")),
                "ready!",
            ),
            ("Deployment", Owned, "d", Some((nobodys, "v", "")), "ready!"),
            (
                "Deployment",
                Owned,
                "d",
                Some((others, "u", "f")),
                "trouble: belongs to shop/other",
            ),
            ("Deployment", Owned, "d", None, "trouble: is gone"),
            ("ConfigMap", Owned, "d", None, "trouble: is gone"),
            (
                "Deployment",
                Planned,
                "",
                None,
                "trouble: does not exist yet",
            ),
            (
                "Deployment",
                Planned,
                "",
                Some((nobodys, "v", "")),
                "trouble: does not exist yet",
            ),
            ("Deployment", Planned, "", Some((ours, "v", "")), "ready"),
            // Only recorded: no label of ours, whoever made it, and made it again.
            (
                "Namespace",
                Preexisting,
                "",
                Some((nobodys, "u", "")),
                "ready",
            ),
            (
                "Namespace",
                Preexisting,
                "",
                Some((others, "u", "")),
                "ready",
            ),
            (
                "Namespace",
                Preexisting,
                "",
                Some((nobodys, "v", "")),
                "ready",
            ),
            ("Namespace", Preexisting, "", None, "trouble: is gone"),
            // Applied although it was there before.
            (
                "ConfigMap",
                Preexisting,
                "d",
                Some((ours, "u", "g")),
                "ready!",
            ),
            // Only created: it may be edited.
            ("ConfigMap", Retained, "d", Some((ours, "u", "g")), "ready"),
            (
                "ConfigMap",
                Retained,
                "d",
                Some((nobodys, "v", "")),
                "ready",
            ),
            ("ConfigMap", Retained, "d", None, "trouble: is gone"),
            // Kept because it holds data: nothing waits for it.
            (
                "Namespace",
                Retained,
                "d",
                Some((ours, "u", "f")),
                "retained",
            ),
            (
                "Namespace",
                Retained,
                "d",
                Some((nobodys, "u", "f")),
                "retained",
            ),
            (
                "Namespace",
                Retained,
                "d",
                Some((nobodys, "v", "f")),
                "was retained, and is gone",
            ),
            (
                "Job",
                Owned,
                "d",
                None,
                "gone, as a Job may be after its end",
            ),
            ("Job", Planned, "", None, "trouble: does not exist yet"),
        ] {
            let found = said(kind, &item(state, digest), seen);
            assert_eq!(found, expected, "{kind} {state:?} {digest:?} {seen:?}");
        }
    }

    /// (status, of a Deployment, of a ConfigMap)
    #[test]
    fn kinds_that_no_operation_waits_for_tell_only_that_they_are_there() {
        let current = |status| {
            ["Deployment", "ConfigMap"].map(|kind| {
                let health = ObjectHealth::assess(
                    &key(kind),
                    &item(ObjectState::Owned, "d"),
                    "me",
                    &HealthChecks::default(),
                    &ObservedObject::Missing,
                );
                health.with(status, "").is_trouble()
            })
        };
        for (status, expected) in [
            (ReadinessStatus::Current, [false, false]),
            (ReadinessStatus::InProgress, [true, false]),
            (ReadinessStatus::Failed, [true, false]),
            (ReadinessStatus::Terminating, [true, true]),
            (ReadinessStatus::Unknown, [false, false]),
        ] {
            assert_eq!(current(status), expected, "{status:?}");
        }
    }
}
