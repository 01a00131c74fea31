//! Decides about one desired object: whether the installation owns it, and whether it is up to date (semantics 12 and 13).

mod inherit;

use serde_json::Value;

use super::adoption::{self, Adoption};
use super::claims::Claims;
use super::desired::DesiredObject;
use super::inventory::InventoryItem;
use super::planner::RefusalReason;
use super::snapshot::{FormerMark, LiveObject};
use super::{Action, recreate};
use common::api::installation::{ConflictPolicy, InventoryObject, ObjectState};
use common::api::names::{ANNOTATION_APPLY, LABEL_OWNER};
use common::manifest::digest;
use common::manifest::key::ObjectKey;

/// Inputs that all decisions of one plan share.
#[derive(Clone, Copy)]
pub(super) struct DecisionContext<'a> {
    /// Owner label of the installation.
    pub(super) owner: &'a str,
    /// Claims of other installations.
    pub(super) claims: &'a Claims,
    /// Whether anything is due. Secrets, which have no digest, are then applied.
    pub(super) due: bool,
    /// Whether edits are reverted.
    pub(super) restores: bool,
    /// Policy for fields that other managers own.
    pub(super) conflicts: ConflictPolicy,
    /// Whether to adopt objects that no installation owns.
    pub(super) adopts: bool,
    /// See [`super::planner::WantedObjects::shared_manager`].
    pub(super) shared_manager: Option<&'a str>,
}

/// What to do with one desired object, and what to record.
pub(super) struct ObjectDecision {
    /// The action to perform; `None` if nothing is sent.
    pub(super) action: Option<Action>,
    /// The inventory item to record before the first write.
    pub(super) before: InventoryItem,
    /// The inventory item to record after the last write. The server's answer to the step is added to it.
    pub(super) after: InventoryItem,
    /// A warning for the user.
    pub(super) warning: Option<String>,
    /// Owner label of the installation that the object moves from.
    pub(super) inherited: Option<String>,
    /// The former owner, if no installation owned it.
    pub(super) adopted: Option<Adoption>,
}

/// The ownership of a live object.
enum Ownership<'a> {
    /// The object is as recorded: owned, retained, or preexisting and applied.
    Recorded(&'a InventoryItem),
    /// The installation owns it by label, but its applied content is not known, because an operation was interrupted after the apply.
    Unrecorded,
    /// It was owned, and another client deleted and recreated it: it is reconciled, but never deleted.
    Recreated(&'a InventoryItem),
    /// Another installation that was deleted or no longer contains it owned it. Holds the sentence for the plan.
    Inherited(String),
    /// Another tool or no one owned it, and the installation adopts it. Also used if an interrupted adoption has recorded it.
    Adopted,
    /// It existed before the installation and stays unchanged.
    LeftAlone,
    /// It belongs to another owner.
    Foreign,
}

impl DecisionContext<'_> {
    /// Decides what to do with the desired object `wanted`.
    pub(super) fn decide(
        &self,
        wanted: &DesiredObject,
        recorded: Option<&InventoryItem>,
        live: Option<&LiveObject>,
    ) -> Result<ObjectDecision, RefusalReason> {
        let Some(live) = live else {
            return match recorded.filter(|item| is_finished_job(wanted, item, self.due)) {
                Some(item) => Ok(no_action(item.clone())),
                None => self.decide_creation(wanted, recorded),
            };
        };
        let standing = self.classify_ownership(wanted, recorded, live);
        if let Ownership::Foreign = standing {
            let key = &wanted.target.key;
            return Err(adoption::find_obstacle(self.claims, key, live)
                .unwrap_or_else(|| RefusalReason::unowned(live)));
        }
        if live.terminating {
            return Err(RefusalReason::Terminating);
        }
        Ok(match standing {
            Ownership::Recorded(item) => {
                let decision = self.decide_recorded(wanted, item, live);
                self.take_from_release(self.take_from_shared(decision, live), live)
            }
            Ownership::Unrecorded if wanted.create_only => {
                no_action(record_unapplied(wanted, live, ObjectState::Retained))
            }
            Ownership::Unrecorded => {
                let before = record_unapplied(wanted, live, ObjectState::Owned);
                apply_decision(wanted, Action::Update, before)
            }
            Ownership::Recreated(item) => self.decide_recreated(wanted, item, live),
            Ownership::Inherited(how) => {
                let before =
                    record_unapplied(wanted, live, self.inherited_state(&wanted.target.key));
                let mut decision = apply_decision(wanted, Action::Update, before);
                decision.warning = Some(format!("{} {how}", wanted.target.key));
                decision.inherited.clone_from(&live.owner);
                decision
            }
            Ownership::Adopted => {
                let is_marked = live.owner.as_deref() == Some(self.owner);
                let action = if is_marked {
                    Action::Update
                } else {
                    Action::Adopt
                };
                let before = record_unapplied(wanted, live, ObjectState::Owned);
                let mut decision = apply_decision(wanted, action, before);
                decision.adopted = Some(Adoption::from_live(live));
                decision
            }
            Ownership::LeftAlone | Ownership::Foreign => {
                let before = record_unapplied(wanted, live, ObjectState::Preexisting);
                let mut decision = no_action(before);
                let shared = wanted.is_shared.then(|| {
                    let of = live.other_owner.as_deref().unwrap_or("someone else");
                    format!(
                        "{} is of {of}, and shared: it is neither changed nor deleted here",
                        wanted.target.key
                    )
                });
                let labels = || describe_missing_labels(wanted, live).filter(|_| self.due);
                decision.warning = shared.or_else(labels);
                decision
            }
        })
    }

    /// Decides about a recorded object that cannot be read now. It counts as recorded. A changed manifest is applied, because the change
    /// may make the object readable again.
    pub(super) fn decide_unread(
        &self,
        wanted: &DesiredObject,
        recorded: Option<&InventoryItem>,
        why: &str,
    ) -> Result<ObjectDecision, RefusalReason> {
        let Some(item) = recorded else {
            return Err(RefusalReason::Foreign { owner: None });
        };
        let secret_is_due = wanted.digest.is_empty() && self.due;
        let is_same = item.object.digest == wanted.digest && !secret_is_due;
        let mut decision = if is_same || wanted.create_only {
            no_action(item.clone())
        } else {
            apply_decision(wanted, Action::Update, item.clone())
        };
        decision.warning = Some(format!(
            "{} cannot be read, and counts as it is recorded: {why}",
            wanted.target.key
        ));
        Ok(decision)
    }

    /// Decides about an object that does not exist: create it, even if another client deleted it. Until then it is recorded as planned. If
    /// the operation is interrupted after the creation, the owner label shows that the installation owns it, whatever its uid.
    fn decide_creation(
        &self,
        wanted: &DesiredObject,
        recorded: Option<&InventoryItem>,
    ) -> Result<ObjectDecision, RefusalReason> {
        let key = &wanted.target.key;
        if recorded.is_none()
            && !wanted.is_left_to_owner()
            && let Some(other) = self.claims.objects.get(key)
        {
            return Err(RefusalReason::of_installation(other));
        }
        let before = InventoryItem::planned(&key.name, &wanted.target.version);
        let mut decision = apply_decision(wanted, Action::Create, before);
        // The state Retained keeps a create-only object from being pruned (semantics 12.9).
        decision.after.object.state = if wanted.create_only {
            ObjectState::Retained
        } else {
            ObjectState::Owned
        };
        Ok(decision)
    }

    fn classify_ownership<'a>(
        &self,
        wanted: &DesiredObject,
        recorded: Option<&'a InventoryItem>,
        live: &LiveObject,
    ) -> Ownership<'a> {
        let ours = live.owner.as_deref() == Some(self.owner);
        let theirs = live.owner.is_some() && !ours;
        // If the installation does not own them, these are only recorded and none of their fields is changed (semantics 5 and 12.9).
        let shared = wanted.create_only || is_namespace(&wanted.target.key);
        if theirs
            && !wanted.create_only
            && let Some(how) = self.describe_inheritance(wanted, recorded, live)
        {
            return Ownership::Inherited(how);
        }
        let key = &wanted.target.key;
        let foreign = if shared {
            Ownership::LeftAlone
        } else if self.adopts && adoption::find_obstacle(self.claims, key, live).is_none() {
            Ownership::Adopted
        } else if wanted.is_shared {
            Ownership::LeftAlone
        } else {
            Ownership::Foreign
        };
        let Some(item) = recorded else {
            return if ours { Ownership::Unrecorded } else { foreign };
        };
        match item.object.state {
            ObjectState::Planned if ours => Ownership::Unrecorded,
            ObjectState::Planned => foreign,
            _ if theirs => foreign,
            ObjectState::Preexisting if !item.was_applied() => foreign,
            ObjectState::Preexisting => Ownership::Recorded(item),
            ObjectState::Owned if !shared && !item.was_applied() && live.uid == item.object.uid => {
                Ownership::Adopted
            }
            ObjectState::Owned | ObjectState::Retained => {
                if ours || live.uid == item.object.uid {
                    Ownership::Recorded(item)
                } else if shared {
                    Ownership::LeftAlone
                } else {
                    Ownership::Recreated(item)
                }
            }
        }
    }

    /// Decides about a recorded object: apply it if its manifest changed, or if it was edited and edits are reverted.
    fn decide_recorded(
        &self,
        wanted: &DesiredObject,
        item: &InventoryItem,
        live: &LiveObject,
    ) -> ObjectDecision {
        let mut before = item.clone();
        if wanted.create_only {
            if before.object.state == ObjectState::Owned {
                before.object.state = ObjectState::Retained;
            }
            before.object.uid.clone_from(&live.uid);
            let mut decision = no_action(before);
            decision.warning = manifest_differs(wanted, item).then(|| {
                let key = &wanted.target.key;
                format!("{key} differs from its manifest, and stays: it is only created")
            });
            return decision;
        }
        if before.object.state == ObjectState::Retained {
            before.object.state = ObjectState::Owned;
        }
        let edited = self.is_edited(item, live);
        let action = if wanted.digest.is_empty() && self.due {
            Some(Action::Refresh)
        } else if item.object.digest != wanted.digest {
            Some(Action::Update)
        } else if edited && self.restores || self.takes_back(wanted, item) {
            Some(Action::Restore)
        } else {
            None
        };
        match action {
            Some(action) => {
                before.object.uid.clone_from(&live.uid);
                apply_decision(wanted, action, before)
            }
            None => no_action(before),
        }
    }

    /// Whether fields that were left to other managers are taken back now. Otherwise the object counts as unchanged (semantics 12.21).
    fn takes_back(&self, wanted: &DesiredObject, item: &InventoryItem) -> bool {
        !item.object.yielded.is_empty()
            && recreate::step_policy(wanted, self.conflicts, item).takes_all()
    }

    fn decide_recreated(
        &self,
        wanted: &DesiredObject,
        item: &InventoryItem,
        live: &LiveObject,
    ) -> ObjectDecision {
        let mut before = item.clone();
        if !self.restores && item.object.digest == wanted.digest {
            return no_action(before);
        }
        before.object.state = ObjectState::Preexisting;
        before.object.uid.clone_from(&live.uid);
        let mut decision = apply_decision(wanted, Action::Restore, before);
        decision.warning = Some(format!(
            "{} was deleted and created again by another client: it is reconciled, and stays when the add-on is uninstalled",
            wanted.target.key
        ));
        decision
    }

    /// Takes the fields over that a tool which shares the installation has applied since: what the manifest drops would stay with it.
    fn take_from_shared(&self, mut decision: ObjectDecision, live: &LiveObject) -> ObjectDecision {
        let tool = self.shared_manager;
        if let Some(tool) = tool.filter(|tool| live.managers.iter().any(|one| one == tool))
            && decision.action.is_some()
            && decision.after.was_applied()
        {
            decision.adopted = Some(Adoption {
                from: tool.to_owned(),
                ..Adoption::from_live(live)
            });
        }
        decision
    }

    /// Takes an owned object over from a Helm release that has installed it again, if objects of other tools are adopted.
    fn take_from_release(&self, mut decision: ObjectDecision, live: &LiveObject) -> ObjectDecision {
        if let Some(FormerMark::Helm { namespace, name }) = &live.former
            && self.adopts
            && decision.after.was_applied()
        {
            decision.action.get_or_insert(Action::Update);
            decision.adopted = Some(Adoption {
                from: format!("Helm release {namespace}/{name}"),
                ..Adoption::from_live(live)
            });
        }
        decision
    }

    /// Whether another client edited the object since the last apply. Labels do not change the generation, so the owner label is compared
    /// as well: without it, the object would never be pruned.
    fn is_edited(&self, item: &InventoryItem, live: &LiveObject) -> bool {
        let recorded = &item.object;
        recorded.was_edited(&live.state()) || live.owner.as_deref() != Some(self.owner)
    }
}

/// Returns a warning about labels that a Namespace which is only recorded lacks. Pods may depend on them (Pod Security).
fn describe_missing_labels(wanted: &DesiredObject, live: &LiveObject) -> Option<String> {
    let key = &wanted.target.key;
    let labels = wanted.object.pointer("/metadata/labels");
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let labels = labels.filter_map(|(name, value)| Some((name, value.as_str()?)));
    let missing: Vec<(&String, &str)> = labels
        .filter(|(name, _)| is_namespace(key) && *name != LABEL_OWNER)
        .filter(|(name, value)| live.labels.get(*name).map(String::as_str) != Some(value))
        .collect();
    let words = missing
        .iter()
        .map(|(name, value)| match live.labels.get(*name) {
            Some(other) => format!("{name}={value} (it is {other})"),
            None => format!("{name}={value}"),
        });
    let words: Vec<String> = words.collect();
    let pairs = missing
        .iter()
        .map(|(name, value)| format!(" {name}={value}"));
    let pairs: String = pairs.collect();
    let replaces = missing
        .iter()
        .any(|(name, _)| live.labels.contains_key(*name));
    let flag = if replaces { " --overwrite" } else { "" };
    (!missing.is_empty()).then(|| {
        format!(
            "{key} exists and keeps its labels; missing: {}; to set them: kubectl label namespace {}{pairs}{flag}",
            words.join(", "),
            key.name
        )
    })
}

/// Whether the manifest of a create-only object differs from the one that it was created with. The annotation `create-only` is ignored,
/// because the object may have been reconciled before it was added.
fn manifest_differs(wanted: &DesiredObject, item: &InventoryItem) -> bool {
    let created = &item.object.digest;
    if created.is_empty() || *created == wanted.digest {
        return false;
    }
    let mut unmarked = (*wanted.object).clone();
    let annotations = unmarked.pointer_mut("/metadata/annotations");
    if let Some(Value::Object(annotations)) = annotations {
        annotations.remove(ANNOTATION_APPLY);
    }
    *created != digest::digest(&unmarked)
}

/// Whether a recorded object that no longer exists is a Job that ran and was deleted after its time to live; creating it would run it
/// again. A Job that was waited for has a digest only if it was seen complete ([`super::InstallationPlan::expiring`]). Without a digest, it
/// may have changed whenever something is due.
fn is_finished_job(wanted: &DesiredObject, item: &InventoryItem, due: bool) -> bool {
    let is_same = item.object.state == ObjectState::Owned && item.object.digest == wanted.digest;
    is_expiring_job(wanted) && is_same && !(due && wanted.digest.is_empty())
}

/// Whether the object is a Job that the server deletes after its end (`ttlSecondsAfterFinished`).
pub(super) fn is_expiring_job(wanted: &DesiredObject) -> bool {
    let key = &wanted.target.key;
    let ttl = wanted.object.pointer("/spec/ttlSecondsAfterFinished");
    (key.group.as_str(), key.kind.as_str()) == ("batch", "Job")
        && ttl.is_some_and(|ttl| !ttl.is_null())
}

fn apply_decision(wanted: &DesiredObject, action: Action, before: InventoryItem) -> ObjectDecision {
    // Without a digest, it is unknown whether the manifest changed.
    let action = match action {
        Action::Update if wanted.digest.is_empty() => Action::Refresh,
        action => action,
    };
    let after = InventoryItem {
        version: wanted.target.version.clone(),
        object: InventoryObject {
            name: before.object.name.clone(),
            state: before.object.state,
            uid: before.object.uid.clone(),
            digest: wanted.digest.clone(),
            generation: None,
            resource_version: None,
            fields: None,
            yielded: Vec::new(),
        },
    };
    ObjectDecision {
        action: Some(action),
        before,
        after,
        warning: None,
        inherited: None,
        adopted: None,
    }
}

fn no_action(item: InventoryItem) -> ObjectDecision {
    ObjectDecision {
        action: None,
        before: item.clone(),
        after: item,
        warning: None,
        inherited: None,
        adopted: None,
    }
}

/// Returns the inventory item of an object that was not applied, or whose applied content is unknown.
fn record_unapplied(
    wanted: &DesiredObject,
    live: &LiveObject,
    state: ObjectState,
) -> InventoryItem {
    let mut item = InventoryItem::planned(&wanted.target.key.name, &wanted.target.version);
    item.object.state = state;
    item.object.uid.clone_from(&live.uid);
    item
}

fn is_namespace(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Namespace"
}
