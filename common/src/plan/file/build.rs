//! From a plan and what it was made with to what a plan file holds of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    EntryFacts, Facts, KindFact, LiveFact, PlannedDeletion, PlannedInstallation, PlannedStep,
    RecordFacts, WantedRecord,
};
use crate::api::installation::AddonInstallation;
use crate::catalogue::Entry;
use crate::manifest::digest::digest;
use crate::manifest::key::ObjectKey;
use crate::manifest::kinds::KindTable;
use crate::manifest::kinds::traits::KindTraits;
use crate::plan::changes::ObjectDiff;
use crate::plan::crd_safety::Breakage;
use crate::plan::desired::digest_of;
use crate::plan::snapshot::{LiveObject, Snapshot};
use crate::plan::{Plan, Step};
use crate::values::mask::Mask;

/// What is known of one installation when its plan stands.
#[derive(Clone, Copy, Debug)]
pub struct Built<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The record as it should be.
    pub wanted: &'a AddonInstallation,
    /// The record as it is.
    pub existing: Option<&'a AddonInstallation>,
    /// The entry.
    pub entry: &'a Entry,
    /// What is there.
    pub snapshot: &'a Snapshot,
    /// What the cluster serves.
    pub kinds: &'a KindTable,
    /// What the dry run said.
    pub changes: &'a [ObjectDiff],
}

/// What a plan file holds of one installation.
#[must_use]
pub fn installation(built: &Built<'_>) -> PlannedInstallation {
    let plan = built.plan;
    let mut steps: Vec<PlannedStep> = plan.steps.iter().map(|one| step(one, &plan.mask)).collect();
    steps.sort_by(|one, other| one.key.cmp(&other.key));
    let deletions = plan.prune.iter().flatten().map(|deletion| PlannedDeletion {
        key: deletion.target.key.clone(),
        uid: deletion.uid.clone(),
    });
    let breakages = plan.breakages.iter().flat_map(Breakage::lines);
    let mut changes = built.changes.to_vec();
    changes.sort_by(|one, other| one.key.cmp(&other.key));
    PlannedInstallation {
        installation: plan.installation.clone(),
        verb: plan.verb,
        from: plan.from.clone(),
        to: plan.to.clone().unwrap_or_default(),
        entry: EntryFacts::of(built.entry),
        wanted: WantedRecord::of(built.wanted),
        record: built.existing.map(RecordFacts::of),
        steps,
        create_namespace: plan.create_namespace.clone(),
        prune: deletions.collect(),
        release: plan.release.iter().map(|t| t.key.clone()).collect(),
        retained: plan.retained.clone(),
        unchanged: plan.unchanged.len(),
        breakages: breakages.map(|line| plan.mask.text(&line)).collect(),
        warnings: plan.warnings.clone(),
        changes,
        facts: facts(built),
    }
}

fn step(step: &Step, mask: &Mask) -> PlannedStep {
    let key = &step.target.key;
    PlannedStep {
        key: key.clone(),
        version: step.target.version.clone(),
        action: step.action,
        digest: digest_of(key, &step.object, mask),
        policy: step.policy.clone(),
    }
}

fn facts(built: &Built<'_>) -> Facts {
    let live = built
        .snapshot
        .live
        .iter()
        .map(|(key, live)| fact(key, live));
    // Everything that is or was ours; what the snapshot asked for.
    let keys = built.plan.union.objects.keys();
    let kinds: BTreeSet<(&str, &str)> = keys.map(|key| (&*key.group, &*key.kind)).collect();
    let kinds = kinds.into_iter().map(|(group, kind)| KindFact {
        group: group.to_owned(),
        kind: kind.to_owned(),
        served: built
            .kinds
            .preferred(group, kind)
            .map(|(gvk, info)| format!("{}/{}", gvk.version, info.plural)),
    });
    Facts {
        live: live.collect(),
        namespaces: built.snapshot.namespaces.clone(),
        kinds: kinds.collect(),
    }
}

fn fact(key: &ObjectKey, live: &LiveObject) -> LiveFact {
    let counts = live.generation.is_none() && !KindTraits::of_key(key).status_moves_version;
    LiveFact {
        key: key.clone(),
        uid: live.uid.clone(),
        generation: live.generation,
        resource_version: counts.then(|| live.resource_version.clone()),
        owner: live.owner.clone(),
        terminating: live.terminating,
    }
}

impl EntryFacts {
    /// Of an entry.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        Self {
            addon: entry.addon.clone(),
            origin: (*entry.origin).clone(),
            place: entry.place.clone(),
            digest: digest(&json!(entry.version)),
        }
    }
}

impl WantedRecord {
    /// Of a record as it should be.
    #[must_use]
    pub fn of(record: &AddonInstallation) -> Self {
        let metadata = &record.metadata;
        let map = |map: &Option<BTreeMap<String, String>>| map.clone().unwrap_or_default();
        Self {
            labels: map(&metadata.labels),
            annotations: map(&metadata.annotations),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            spec: record.spec.clone(),
        }
    }
}

impl RecordFacts {
    /// Of a record as it is.
    #[must_use]
    pub fn of(record: &AddonInstallation) -> Self {
        let status = record.status.as_ref();
        let inventory = status.map_or(Value::Null, |status| json!(status.inventory));
        let installed = status.map_or(Value::Null, |status| json!(status.installed));
        Self {
            uid: record.metadata.uid.clone().unwrap_or_default(),
            spec: digest(&json!(WantedRecord::of(record))),
            inventory: digest(&json!([inventory, installed])),
            operation: status.is_some_and(|status| status.operation.is_some()),
        }
    }
}
