//! Makes the [`InstallationPlan`] from the desired, the recorded and the live objects alone.

mod adopt;
mod refusal;
mod release;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claims::Claims;
use super::closing::ClosingStep;
use super::conflicts::{Policy, REPLICAS, path};
use super::decide::{DecisionContext, ObjectDecision, is_expiring_job};
use super::desired::Desired;
use super::facts::PlanFacts;
use super::inventory::Inventory;
use super::prune::limit::PruneLimit;
use super::prune::{KeptKind, Pruning, prune};
use super::restored::{self, RecordCoverage};
use super::snapshot::{Snapshot, SnapshotRequest};
use super::{InstallationPlan, Moving, Step, Target, Verb, Yielded, recreate, relocate, teardown};
use common::api::installation::{ConflictPolicy, Installed, ReconcilePolicy};
use common::api::names::InstallationName;
use common::api::names::owner_hash;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;
use common::manifest::kinds::traits::KindTraits;

pub use adopt::record_equal;
pub use refusal::{ObjectRefusal, PlanError, RefusalReason};

/// All inputs of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    /// The installation.
    pub installation: &'a InstallationName,
    /// The add-on.
    pub addon: &'a str,
    /// The version that is installed now.
    pub from: Option<&'a Installed>,
    /// What the operation should achieve.
    pub goal: Goal<'a>,
    /// The recorded objects, including those of an interrupted operation.
    pub inventory: &'a Inventory,
    /// The time up to which the record covers our writes.
    pub memory: RecordCoverage,
    /// The live objects that [`reads`] asks for.
    pub snapshot: &'a Snapshot,
    /// The kinds that the cluster serves.
    pub kinds: &'a KindTable,
    /// The objects that other installations of this cluster use.
    pub claims: &'a Claims,
    /// Recorded objects without our label: another tool installed them, and selectors of the entry matched them.
    pub unmarked: &'a BTreeSet<ObjectKey>,
    /// Kinds whose objects are deleted although they hold data, because the user named them.
    pub delete_kinds: &'a BTreeSet<KeptKind>,
    /// Recorded objects that are not desired but stay in the cluster and in the inventory because their manifest may still exist, with
    /// the reason.
    pub held: &'a BTreeMap<ObjectKey, String>,
    /// Recorded objects that are not desired and stay unchanged: hooks that have run.
    pub resting: &'a BTreeSet<ObjectKey>,
}

/// What an operation should achieve.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// Apply these objects, and prune all others.
    Install(WantedObjects<'a>),
    /// Take over those of these objects that exist, without any other change to them.
    Adopt(WantedObjects<'a>),
    /// Delete every object.
    Uninstall {
        /// Delete only the record, and keep the objects.
        keep: bool,
    },
    /// Give up ownership of every object, and delete none.
    Release,
}

/// The objects to apply or adopt, and how.
#[derive(Clone, Copy, Debug)]
pub struct WantedObjects<'a> {
    /// The objects.
    pub desired: &'a Desired,
    /// The version that they belong to.
    pub to: &'a Installed,
    /// The namespace for objects that do not name one.
    pub target_namespace: &'a str,
    /// Whether to create the target namespace if it does not exist.
    pub create_namespace: bool,
    /// The namespace that carries the record of kops, which must exist even if no object is in it.
    pub record_namespace: Option<&'a str>,
    /// The field manager of a tool that shares the installation with us: what it has applied since becomes ours with our next apply.
    pub shared_manager: Option<&'a str>,
    /// Namespaces that other add-ons of the command create. Objects in them wait for these add-ons.
    pub coming: &'a BTreeSet<String>,
    /// The policy for fields of our objects that others changed.
    pub conflicts: ConflictPolicy,
    /// The policy for edits between upgrades.
    pub reconcile: ReconcilePolicy,
    /// Whether the entry or the values changed, the user asked for a repair, or an operation was interrupted. Then edits are
    /// reverted and Secrets are applied even with [`ReconcilePolicy::Once`] (semantics 12.5).
    pub due: bool,
    /// The maximum share of objects to prune from a larger set.
    pub allow_prune: PruneLimit,
    /// Whether to take over existing objects that no installation owns; otherwise they are refused (semantics 12.10).
    pub adopt: bool,
    /// The revision that a rollback goes back to.
    pub revision: Option<i64>,
}

/// Returns what a snapshot must contain to plan these objects.
#[must_use]
pub fn reads(desired: &Desired, inventory: &Inventory, kinds: &KindTable) -> SnapshotRequest {
    let mut recorded: BTreeSet<ObjectKey> = inventory.objects.keys().cloned().collect();
    let keys = inventory.objects.keys();
    recorded.extend(keys.flat_map(|key| relocate::possible_keys(key, kinds)));
    let keys = desired.objects.keys().chain(&recorded);
    let namespaces = desired.namespaces().into_iter().map(str::to_owned);
    let scaled = desired
        .objects
        .iter()
        .filter(|(_, wanted)| path::get(&wanted.object, REPLICAS).is_some());
    SnapshotRequest {
        objects: keys.cloned().collect(),
        recorded,
        namespaces: namespaces.collect(),
        replicas: scaled.map(|(key, _)| key.clone()).collect(),
        ..SnapshotRequest::default()
    }
}

/// Returns the recorded CRDs and namespaces that a plan may delete: the user named their kind, and they are not desired.
#[must_use]
pub fn deletable(
    desired: &Desired,
    inventory: &Inventory,
    delete_kinds: &BTreeSet<KeptKind>,
) -> BTreeSet<ObjectKey> {
    let keys = inventory.objects.keys();
    let unwanted = keys.filter(|key| !desired.objects.contains_key(*key));
    let deletable = unwanted.filter(|key| {
        KeptKind::from_key(key).is_some_and(|kind| kind.is_shared() && delete_kinds.contains(&kind))
    });
    deletable.cloned().collect()
}

/// Makes the plan.
///
/// # Errors
/// [`PlanError`], with every object that cannot be applied.
pub fn plan(input: &PlanInput<'_>) -> Result<InstallationPlan, PlanError> {
    let relocated = relocate::relocate(input.inventory, input.snapshot, input.kinds);
    let input = &PlanInput {
        inventory: relocated.as_ref().unwrap_or(input.inventory),
        ..*input
    };
    check_memory(input)?;
    let plan = match &input.goal {
        Goal::Install(wanted) => install(input, wanted)?,
        Goal::Adopt(wanted) => adopt::adopt(input, wanted)?,
        Goal::Uninstall { keep } => uninstall(input, *keep),
        Goal::Release => release::release(input),
    };
    Ok(InstallationPlan {
        facts: PlanFacts::from_snapshot(&plan.union, input.snapshot, input.kinds),
        ..plan
    })
}

/// Refuses a record that is older than the cluster (semantics 13.10), except to delete it with `--keep`.
fn check_memory(input: &PlanInput<'_>) -> Result<(), PlanError> {
    if matches!(input.goal, Goal::Uninstall { keep: true }) {
        return Ok(());
    }
    let (installation, memory) = (input.installation, input.memory);
    match restored::find_outdated(installation, memory, input.snapshot, input.claims) {
        Some(older) => Err(PlanError::RecordOlder(Box::new(older))),
        None => Ok(()),
    }
}

fn install(
    input: &PlanInput<'_>,
    wanted: &WantedObjects<'_>,
) -> Result<InstallationPlan, PlanError> {
    let owner = owner_hash(&input.installation.namespace, &input.installation.name);
    let desired = wanted.desired;
    let judge = DecisionContext {
        owner: &owner,
        claims: input.claims,
        due: wanted.due,
        restores: wanted.due || wanted.reconcile == ReconcilePolicy::Ensure,
        conflicts: wanted.conflicts,
        adopts: wanted.adopt,
        shared_manager: wanted.shared_manager,
    };
    let mut plan = empty(input);
    plan.warnings.clone_from(&desired.warnings);
    let mut refusals = refused_namespaces(input, wanted);
    let mut steps = Vec::new();
    let (mut union, mut exact) = (Inventory::default(), Inventory::default());
    for (key, object) in &desired.objects {
        let recorded = input.inventory.objects.get(key);
        let decided = match input.snapshot.unreadable.get(key) {
            Some(why) => judge.decide_unread(object, recorded, why),
            None => judge.decide(object, recorded, input.snapshot.live.get(key)),
        };
        match decided {
            Err(reason) => refusals.push(ObjectRefusal {
                key: key.clone(),
                reason,
            }),
            Ok(ObjectDecision {
                action,
                mut before,
                after,
                warning,
                inherited,
                adopted,
            }) => {
                match action {
                    Some(action) => {
                        let live = input.snapshot.live.get(key);
                        steps.push(Step {
                            target: object.target.clone(),
                            action,
                            object: Arc::clone(&object.object),
                            uid: live.map(|it| it.uid.clone()),
                            seen: live.map(|it| it.resource_version.clone()),
                            digest: object.digest.clone(),
                            policy: Policy {
                                autoscaler: input.snapshot.autoscalers.get(key).cloned(),
                                inherited,
                                adopted,
                                ..recreate::step_policy(object, wanted.conflicts, &before)
                            },
                        });
                        before.object.clear_live_state();
                    }
                    None => {
                        plan.unchanged.push(key.clone());
                        plan.yielded.extend(Yielded::of(key, &after));
                    }
                }
                union.objects.insert(key.clone(), before);
                exact.objects.insert(key.clone(), after);
                plan.warnings.extend(warning);
            }
        }
    }
    if !refusals.is_empty() {
        refusals.sort();
        refusals.dedup();
        return Err(PlanError::Refused { objects: refusals });
    }

    let mut occupied = desired.namespaces();
    occupied.insert(&input.installation.namespace);
    let pruning = prune(input, &owner, &desired.objects.keys().collect(), &occupied);
    plan.verb = match input.from {
        _ if wanted.revision.is_some() => Verb::Rollback,
        Some(_) => Verb::Upgrade,
        None => Verb::Install,
    };
    plan.revision = wanted.revision;
    refusal::check_share(input, wanted, plan.verb, &pruning)?;

    plan.to = Some(wanted.to.clone());
    plan.create_namespace = creates_namespace(input, wanted);
    plan.steps = steps;
    plan.wait_for = waited(input, wanted, &plan);
    plan.expiring = expiring(desired, &plan.wait_for);
    let kept = pruning.recorded();
    plan.exact = Inventory::union(&exact, &kept);
    // Decisions take precedence over the inventory because they are newer (a new uid, a planned create).
    let union = Inventory::union(&Inventory::union(&union, &kept), input.inventory);
    plan.union = union.fit_budget(&plan.exact)?;
    plan.take(pruning, input.snapshot);
    plan.close(moving(input, &plan.exact));
    Ok(plan)
}

/// Returns hand-over steps for the recorded objects that another installation of the command takes over.
fn moving(input: &PlanInput<'_>, exact: &Inventory) -> Vec<ClosingStep> {
    let taken = input.claims.taken.iter().filter(|(key, _)| {
        input.inventory.objects.contains_key(*key) && !exact.objects.contains_key(*key)
    });
    let moving = taken.map(|(key, to)| {
        ClosingStep::HandOver(Moving {
            key: key.clone(),
            to: to.clone(),
        })
    });
    moving.collect()
}

fn uninstall(input: &PlanInput<'_>, keep: bool) -> InstallationPlan {
    let mut plan = empty(input);
    plan.union = input.inventory.clone();
    if keep {
        let live = |key: &&ObjectKey| input.snapshot.live.contains_key(*key);
        plan.retained = input
            .inventory
            .objects
            .keys()
            .filter(live)
            .cloned()
            .collect();
        return plan;
    }
    let owner = owner_hash(&input.installation.namespace, &input.installation.name);
    let occupied = BTreeSet::from([input.installation.namespace.as_str()]);
    let pruning = prune(input, &owner, &BTreeSet::new(), &occupied);
    plan.exact = pruning.recorded();
    plan.take(pruning, input.snapshot);
    plan.close(moving(input, &plan.exact));
    if !plan.unreachable.is_empty() {
        plan.warnings.push(
            "the installation stays recorded until these objects can be read; to forget them: --keep"
                .to_owned(),
        );
    }
    plan
}

/// Returns an empty plan for the installation.
fn empty(input: &PlanInput<'_>) -> InstallationPlan {
    InstallationPlan {
        from: input.from.cloned(),
        ..InstallationPlan::nothing(input.installation.clone(), input.addon)
    }
}

impl InstallationPlan {
    fn take(&mut self, pruning: Pruning, snapshot: &Snapshot) {
        self.close(teardown::steps(pruning.deletions));
        self.close(pruning.release.into_iter().map(ClosingStep::Release));
        self.retained = pruning.retained.into_keys().collect();
        self.unreachable = pruning.unreachable.into_keys().collect();
        self.unchanged.extend(pruning.resting.into_keys());
        self.unchanged.sort();
        self.warnings.extend(pruning.warnings);
        teardown::keep_controllers(self, &snapshot.inhabited);
        self.warnings.sort();
        self.warnings.dedup();
    }
}

/// Returns the namespaces of the objects, of the Helm release and of kops' record.
fn namespaces_of<'a>(wanted: &'a WantedObjects<'_>) -> BTreeSet<&'a str> {
    let mut namespaces = wanted.desired.namespaces();
    let release = wanted.to.helm_release.as_ref();
    namespaces.extend(release.map(|release| release.namespace.as_str()));
    namespaces.extend(wanted.record_namespace);
    namespaces
}

/// Returns the target namespace if the plan must create it: it is used, does not exist, and no object of the command creates it.
fn creates_namespace(input: &PlanInput<'_>, wanted: &WantedObjects<'_>) -> Option<String> {
    let target = wanted.target_namespace;
    let needed = wanted.create_namespace
        && namespaces_of(wanted).contains(target)
        && !input.snapshot.namespaces.contains(target)
        && !wanted.coming.contains(target)
        && !wanted.desired.objects.contains_key(&namespace_key(target));
    needed.then(|| target.to_owned())
}

fn refused_namespaces(input: &PlanInput<'_>, wanted: &WantedObjects<'_>) -> Vec<ObjectRefusal> {
    let created = creates_namespace(input, wanted);
    let refusals = namespaces_of(wanted).into_iter().filter_map(|name| {
        let key = namespace_key(name);
        let terminating = input
            .snapshot
            .live
            .get(&key)
            .is_some_and(|live| live.terminating);
        let there = input.snapshot.namespaces.contains(name)
            || wanted.coming.contains(name)
            || wanted.desired.objects.contains_key(&key)
            || created.as_deref() == Some(name);
        let reason = if terminating {
            RefusalReason::Terminating
        } else if there {
            return None;
        } else {
            RefusalReason::NoNamespace
        };
        Some(ObjectRefusal { key, reason })
    });
    refusals.collect()
}

pub(super) fn namespace_key(name: &str) -> ObjectKey {
    ObjectKey {
        kind: "Namespace".to_owned(),
        name: name.to_owned(),
        ..ObjectKey::default()
    }
}

/// Returns the objects to wait for. A Job that was deleted after its end is desired but does not exist, so it is left out.
fn waited(
    input: &PlanInput<'_>,
    wanted: &WantedObjects<'_>,
    plan: &InstallationPlan,
) -> Vec<Target> {
    let waits = wait_targets(wanted).into_iter().filter(|target| {
        let key = &target.key;
        plan.step(key).is_some() || input.snapshot.live.contains_key(key)
    });
    waits.collect()
}

fn expiring(desired: &Desired, waited: &[Target]) -> BTreeSet<ObjectKey> {
    let keys = waited.iter().map(|target| &target.key);
    let expiring = keys.filter(|key| desired.objects.get(*key).is_some_and(is_expiring_job));
    expiring.cloned().collect()
}

/// Returns the desired objects that can exist without being ready: by their kind, or because a health check is for it.
fn wait_targets(wanted: &WantedObjects<'_>) -> Vec<Target> {
    let checks = &wanted.to.health_check_exprs;
    let waits = wanted.desired.objects.values().filter(|wanted| {
        let key = &wanted.target.key;
        let mut checks = checks.iter();
        KindTraits::for_key(key).waited.includes(&wanted.object)
            || checks.any(|check| check.is_for(&key.group, &key.kind))
    });
    waits.map(|wanted| wanted.target.clone()).collect()
}

#[cfg(test)]
mod tests;
