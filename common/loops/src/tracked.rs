//! What a loop remembers of an installation: enough to decide whether a change of its record or of an object matters.

use std::collections::{BTreeMap, BTreeSet};

use addons_engine::changes::ChangedObject;
use addons_operation::name_of;
use addons_plan::inventory::Inventory;
use common::api::installation::core_guard::{is_guarded, is_released};
use common::api::installation::{AddonInstallation, InventoryObject, ReconcilePolicy};
use common::api::names::owner_hash;

use crate::cause::ReconcileCause;
use crate::metrics::CountedState;

/// What is remembered of one installation.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackedInstallation {
    /// The owner label of its objects.
    pub(crate) owner: String,
    generation: Option<i64>,
    resource_version: String,
    is_being_deleted: bool,
    /// Whether others rely on it, so that nothing else keeps it waiting.
    pub(crate) is_guard: bool,
    /// What the metrics count.
    pub(crate) counted: CountedState,
    /// Whether it carries the guard of core add-ons.
    is_guarded: bool,
    /// Whether it was released, so that a held deletion goes on.
    is_released: bool,
    /// The recorded objects by uid; empty if the installation is suspended.
    objects: BTreeMap<String, InventoryObject>,
    /// Whether edits are repaired. Otherwise they are only counted.
    is_repaired: bool,
    /// The uids of objects whose drift was seen and is only counted: what else happens to them is no news.
    drifted: BTreeSet<String>,
    /// The groups and kinds of these objects.
    pub(crate) kinds: BTreeSet<(String, String)>,
    /// Changes of objects that were seen while it was reconciled, by uid, with the kinds of the objects.
    object_changes: BTreeMap<String, (String, ChangedObject)>,
}

/// What a change of a record means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordChange {
    /// It was created or released, its spec changed, or its deletion began.
    Spec,
    /// Another client wrote its status.
    Status,
    /// The record is as we left it.
    Nothing,
}

impl TrackedInstallation {
    /// Returns what is remembered of a record as it was last read or written.
    pub(crate) fn from_record(record: &AddonInstallation) -> Self {
        let name = name_of(record);
        let status = record.status.as_ref().filter(|_| !record.spec.suspend);
        let inventory = Inventory::from_status(status).objects;
        Self {
            owner: owner_hash(&name.namespace, &name.name),
            generation: record.metadata.generation,
            resource_version: record.metadata.resource_version.clone().unwrap_or_default(),
            is_being_deleted: record.metadata.deletion_timestamp.is_some(),
            is_guard: record.spec.is_guard(),
            counted: CountedState::from_record(record),
            is_guarded: is_guarded(record),
            is_released: is_released(record),
            objects: inventory
                .values()
                .map(|item| (item.object.uid.clone(), item.object.clone()))
                .collect(),
            is_repaired: record.spec.effective_reconcile() == ReconcilePolicy::Ensure,
            drifted: BTreeSet::new(),
            kinds: inventory
                .keys()
                .map(|key| (key.group.clone(), key.kind.clone()))
                .collect(),
            object_changes: BTreeMap::new(),
        }
    }

    /// Forgets the objects, because they are in another cluster: objects that are watched here are never those.
    pub(crate) fn forget_objects(&mut self) {
        self.owner.clear();
        self.objects.clear();
        self.kinds.clear();
    }

    /// Returns what a change of the record means.
    pub(crate) fn classify(&self, changed: &ChangedObject) -> RecordChange {
        let is_as_before = self.generation == changed.generation
            && self.is_being_deleted == changed.is_being_deleted
            && self.is_released == changed.is_released;
        if !is_as_before {
            RecordChange::Spec
        } else if self.resource_version != changed.resource_version {
            RecordChange::Status
        } else {
            RecordChange::Nothing
        }
    }

    /// Returns whether a change of the record affects the core set: its spec, its deletion, or its guard.
    pub(crate) fn affects_core_set(&self, changed: &ChangedObject) -> bool {
        let is_taken = self.is_guarded && !changed.is_guarded;
        let is_news =
            changed.is_deleted || is_taken || self.classify(changed) == RecordChange::Spec;
        (self.counted.is_core() || changed.is_guarded) && is_news
    }

    /// Remembers a change of the record before the record is reconciled.
    pub(crate) fn remember_record(&mut self, changed: &ChangedObject) {
        self.generation = changed.generation;
        self.is_being_deleted = changed.is_being_deleted;
        self.is_released = changed.is_released;
        self.is_guard |= changed.is_guarded;
        self.counted.add_guard(changed.is_guarded);
        self.is_guarded = changed.is_guarded;
        self.resource_version.clone_from(&changed.resource_version);
    }

    /// Remembers a change of an object, which may be our own.
    pub(crate) fn remember_object(&mut self, kind: String, changed: ChangedObject) {
        self.object_changes
            .insert(changed.uid.clone(), (kind, changed));
    }

    /// Returns whether a change makes an object differ from what was applied. Objects that are not in the inventory do not count.
    pub(crate) fn is_drift(&self, changed: &ChangedObject) -> bool {
        let Some(recorded) = self.objects.get(&changed.uid) else {
            return false;
        };
        if changed.is_deleted {
            return true;
        }
        // The former state of an object that was only recorded is not known.
        recorded.is_versioned() && recorded.was_edited(&changed.state())
    }

    /// Takes in a change of an object. Returns whether it has to be checked: it is drift or, where drift is only counted, its drift began or
    /// ended.
    pub(crate) fn observe(&mut self, changed: &ChangedObject) -> bool {
        let is_drift = self.is_drift(changed);
        match (self.is_repaired, is_drift) {
            (true, _) => is_drift,
            (false, true) => self.drifted.insert(changed.uid.clone()),
            (false, false) => self.drifted.remove(&changed.uid),
        }
    }

    /// Returns the state after the installation was reconciled, and the drift of an object meanwhile. `has_drifted`: whether drift was
    /// counted. Otherwise, what was seen before is over: it was repaired, or another client applied it.
    pub(crate) fn after_reconcile(
        self,
        record: &AddonInstallation,
        has_drifted: bool,
    ) -> (Self, Option<ReconcileCause>) {
        let mut after = Self::from_record(record);
        if has_drifted {
            after.drifted = self.drifted;
        }
        after.counted.found = self.counted.found;
        let mut changes = self.object_changes.into_values();
        let drift = changes.find(|(_, changed)| after.observe(changed));
        let drift = drift.map(|(kind, changed)| drift_cause(kind, changed));
        // Changes of the record that a watch saw meanwhile are scheduled already, and may be newer than what was read before.
        after.generation = after.generation.max(self.generation);
        after.is_being_deleted |= self.is_being_deleted;
        after.is_released |= self.is_released;
        (after, drift)
    }
}

/// Returns the cause that an object was edited or deleted.
pub(crate) fn drift_cause(kind: String, changed: ChangedObject) -> ReconcileCause {
    ReconcileCause::Object {
        kind,
        namespace: changed.namespace,
        name: changed.name,
        is_deleted: changed.is_deleted,
    }
}

/// Returns whether a record shows that something has to be done: its spec is not installed, an operation was interrupted, or it is being
/// deleted.
pub(crate) fn is_due(record: &AddonInstallation) -> bool {
    let status = record.status.as_ref();
    let is_under_way = status.is_some_and(|status| status.operation.is_some());
    let is_going = record.metadata.deletion_timestamp.is_some();
    is_under_way || is_going || record.is_observed() != Some(true)
}

#[cfg(test)]
mod tests {
    use common::api::installation::{
        AddonInstallationSpec, AddonInstallationStatus, InventoryGroup, InventoryObject,
    };

    use super::*;

    fn record(reconcile: ReconcilePolicy) -> AddonInstallation {
        let spec = AddonInstallationSpec {
            reconcile,
            ..AddonInstallationSpec::default()
        };
        let object = |name: &str, generation, version: Option<&str>| InventoryObject {
            name: name.to_owned(),
            uid: name.to_owned(),
            generation,
            resource_version: version.map(str::to_owned),
            ..InventoryObject::default()
        };
        let group = |kind: &str, object| InventoryGroup {
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            objects: vec![object],
            ..InventoryGroup::default()
        };
        let mut record = AddonInstallation::new("web", spec);
        record.metadata.generation = Some(2);
        record.metadata.resource_version = Some("70".to_owned());
        record.status = Some(AddonInstallationStatus {
            inventory: vec![
                group("Deployment", object("d", Some(3), None)),
                group("ConfigMap", object("c", None, Some("50"))),
            ],
            ..AddonInstallationStatus::default()
        });
        record
    }

    fn changed(uid: &str, generation: Option<i64>, version: &str, is_gone: bool) -> ChangedObject {
        ChangedObject {
            uid: uid.to_owned(),
            generation,
            resource_version: version.to_owned(),
            is_deleted: is_gone,
            ..ChangedObject::default()
        }
    }

    #[test]
    fn what_is_installed_as_its_record_says_is_only_looked_at() {
        let mut web = record(ReconcilePolicy::Once);
        assert!(is_due(&web), "it is not installed");
        web.status.as_mut().unwrap().observed_generation = Some(2);
        assert!(!is_due(&web));
        web.metadata.generation = Some(3);
        assert!(is_due(&web), "its spec was changed");
    }

    #[test]
    fn an_edit_is_drift_and_a_status_is_not() {
        let tracked = TrackedInstallation::from_record(&record(ReconcilePolicy::Ensure));
        for (uid, generation, version, is_gone, is_drift) in [
            ("d", Some(3), "99", false, false),
            ("d", Some(4), "99", false, true),
            ("d", Some(3), "99", true, true),
            ("c", None, "50", false, false),
            ("c", None, "51", false, true),
            ("other", Some(1), "1", true, false),
        ] {
            let changed = changed(uid, generation, version, is_gone);
            assert_eq!(tracked.is_drift(&changed), is_drift, "{changed:?}");
        }
        let mut suspended = record(ReconcilePolicy::Ensure);
        suspended.spec.suspend = true;
        let suspended = TrackedInstallation::from_record(&suspended);
        assert!(!suspended.is_drift(&changed("d", None, "1", true)) && suspended.kinds.is_empty());
    }

    #[test]
    fn drift_that_is_only_counted_is_news_when_it_begins_and_ends() {
        let mut once = TrackedInstallation::from_record(&record(ReconcilePolicy::Once));
        let mut ensured = TrackedInstallation::from_record(&record(ReconcilePolicy::Ensure));
        for (uid, generation, version, is_gone, of_once, of_ensured) in [
            ("d", Some(3), "98", false, false, false),
            ("d", Some(4), "99", false, true, true),
            ("d", Some(4), "100", false, false, true),
            ("d", Some(3), "101", false, true, false),
            ("c", None, "50", true, true, true),
            ("other", Some(1), "1", true, false, false),
        ] {
            let changed = changed(uid, generation, version, is_gone);
            assert_eq!(once.observe(&changed), of_once, "{changed:?}");
            assert_eq!(ensured.observe(&changed), of_ensured, "{changed:?}");
        }
    }

    #[test]
    fn what_we_wrote_ourselves_is_no_drift_afterwards() {
        let mut tracked = TrackedInstallation::from_record(&record(ReconcilePolicy::Ensure));
        tracked.remember_object("Deployment".to_owned(), changed("d", Some(4), "99", false));
        let mut after = record(ReconcilePolicy::Ensure);
        let (_, drift) = tracked.clone().after_reconcile(&after, false);
        assert!(drift.is_some(), "someone edited it");
        let groups = &mut after.status.as_mut().unwrap().inventory;
        groups[0].objects[0].generation = Some(4);
        assert_eq!(tracked.after_reconcile(&after, false).1, None, "we did");
    }

    #[test]
    fn a_core_record_is_looked_at_when_its_spec_or_its_guard_changes() {
        let mut core = record(ReconcilePolicy::Ensure);
        core.spec.core_addon = true;
        let mut tracked = TrackedInstallation::from_record(&core);
        let mut is_news = |generation, is_guarded, is_gone| {
            let changed = ChangedObject {
                is_guarded,
                ..changed("u", Some(generation), "71", is_gone)
            };
            let is_news = tracked.affects_core_set(&changed);
            tracked.remember_record(&changed);
            is_news
        };
        for (generation, is_guarded, is_gone, expected) in [
            (2, true, false, false),
            (2, false, false, true),
            (2, true, false, false),
            (3, true, false, true),
            (3, true, true, true),
        ] {
            let found = is_news(generation, is_guarded, is_gone);
            assert_eq!(found, expected, "{generation} {is_guarded} {is_gone}");
        }
        let other = TrackedInstallation::from_record(&record(ReconcilePolicy::Ensure));
        assert!(!other.affects_core_set(&changed("u", Some(3), "71", true)));
    }

    #[test]
    fn a_change_that_was_seen_meanwhile_is_no_news_afterwards() {
        let read = record(ReconcilePolicy::Once);
        let mut tracked = TrackedInstallation::from_record(&read);
        let newer = changed("u", Some(3), "71", false);
        assert_eq!(tracked.classify(&newer), RecordChange::Spec);
        tracked.remember_record(&newer);
        let (after, _) = tracked.after_reconcile(&read, false);
        let lock = changed("u", Some(3), "72", false);
        assert_eq!(after.classify(&lock), RecordChange::Status);
    }

    #[test]
    fn a_record_has_news_where_others_wrote_it() {
        let tracked = TrackedInstallation::from_record(&record(ReconcilePolicy::Once));
        for (generation, version, is_going, is_released, news) in [
            (Some(2), "70", false, false, RecordChange::Nothing),
            (Some(2), "71", false, false, RecordChange::Status),
            (Some(3), "71", false, false, RecordChange::Spec),
            (Some(2), "71", true, false, RecordChange::Spec),
            (Some(2), "71", false, true, RecordChange::Spec),
        ] {
            let changed = ChangedObject {
                is_being_deleted: is_going,
                is_released,
                ..changed("u", generation, version, false)
            };
            assert_eq!(tracked.classify(&changed), news, "{changed:?}");
        }
    }
}
