//! Makes the [`InstallationPlan`]: what is wanted, what is recorded and what is there, and nothing else, decide it.

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

pub use refusal::{ObjectRefusal, PlanError, RefusalReason};

/// Everything that a plan follows from.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    /// The installation.
    pub installation: &'a InstallationName,
    /// The add-on.
    pub addon: &'a str,
    /// What is installed now.
    pub from: Option<&'a Installed>,
    /// What is wanted.
    pub goal: Goal<'a>,
    /// What is recorded, also by an operation that was interrupted.
    pub inventory: &'a Inventory,
    /// Until when the record knows what was written.
    pub memory: RecordCoverage,
    /// The live objects that [`reads`] asks for.
    pub snapshot: &'a Snapshot,
    /// What the cluster serves.
    pub kinds: &'a KindTable,
    /// What other installations of this cluster use.
    pub claims: &'a Claims,
    /// Recorded objects that do not carry our label because another tool installed them, as the selectors of an entry say.
    pub unmarked: &'a BTreeSet<ObjectKey>,
    /// Kinds whose objects are deleted although they hold data, because the user named them.
    pub delete_kinds: &'a BTreeSet<KeptKind>,
    /// Recorded objects that stay and stay recorded although they are not wanted, and why: it is not known whether their manifest is
    /// gone.
    pub held: &'a BTreeMap<ObjectKey, String>,
    /// Recorded objects that stay as they are without being wanted: hooks that have run.
    pub resting: &'a BTreeSet<ObjectKey>,
}

/// What is wanted of an installation.
#[derive(Clone, Copy, Debug)]
pub enum Goal<'a> {
    /// These objects, and no others.
    Install(WantedObjects<'a>),
    /// These objects, as far as they exist: they become ours, and nothing else of them changes.
    Adopt(WantedObjects<'a>),
    /// None: every object is deleted.
    Uninstall {
        /// Only the record is deleted; the objects stay.
        keep: bool,
    },
    /// None: every object stays, and is ours no longer.
    Release,
}

/// The objects that are wanted, and how they are applied.
#[derive(Clone, Copy, Debug)]
pub struct WantedObjects<'a> {
    /// The objects.
    pub desired: &'a Desired,
    /// What they are.
    pub to: &'a Installed,
    /// The namespace of objects that name none.
    pub target_namespace: &'a str,
    /// Whether a missing target namespace is created.
    pub create_namespace: bool,
    /// A namespace that something else than objects needs: it carries a record of kops.
    pub record_namespace: Option<&'a str>,
    /// Namespaces that other add-ons of the command define: objects in them wait for these.
    pub coming: &'a BTreeSet<String>,
    /// What happens to fields of our objects that others changed.
    pub conflicts: ConflictPolicy,
    /// What happens to edits between versions.
    pub reconcile: ReconcilePolicy,
    /// Whether the entry or the values changed, a repair was asked for, or an operation was interrupted: then edits are
    /// reverted and Secrets are applied, also with [`ReconcilePolicy::Once`] (semantics 12).
    pub due: bool,
    /// How much of a larger set may be pruned.
    pub allow_prune: PruneLimit,
    /// Whether objects that exist and that no installation owns become ours; otherwise they are refused (semantics 12).
    pub adopt: bool,
    /// The revision that a rollback goes back to.
    pub revision: Option<i64>,
}

/// What a snapshot has to hold for a plan of these objects.
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

/// The recorded definitions and namespaces that a plan may delete: the user named their kind, and no manifest has them.
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
/// [`PlanError`], with every object that stands in the way.
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

/// Refuses to follow a record that is older than the cluster (semantics 13). To forget it is always possible.
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
    plan.wait_for = waited(input, desired, &plan);
    plan.expiring = expiring(desired, &plan.wait_for);
    let kept = pruning.recorded();
    plan.exact = Inventory::union(&exact, &kept);
    // Decisions come before the recorded facts: where the two differ, decisions are newer (a new uid, a planned create).
    let union = Inventory::union(&Inventory::union(&union, &kept), input.inventory);
    plan.union = union.fit_budget(&plan.exact)?;
    plan.take(pruning, input.snapshot);
    plan.close(moving(input, &plan.exact));
    Ok(plan)
}

/// The recorded objects that another installation of the command takes over.
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

/// The plan that does nothing, of an uninstallation.
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

/// The namespaces that objects and kops' record stand in; a release of helm's stands in the target namespace.
fn namespaces_of<'a>(wanted: &'a WantedObjects<'_>) -> BTreeSet<&'a str> {
    let mut namespaces = wanted.desired.namespaces();
    let release = wanted.to.helm_release.as_ref();
    namespaces.extend(release.map(|release| release.namespace.as_str()));
    namespaces.extend(wanted.record_namespace);
    namespaces
}

/// The target namespace, where something stands in it, it is missing, and no object of the set is it.
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

/// What is waited for. A Job that was removed after its end is wanted and does not exist: it is not.
fn waited(input: &PlanInput<'_>, desired: &Desired, plan: &InstallationPlan) -> Vec<Target> {
    let waits = wait_targets(desired).into_iter().filter(|target| {
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

/// The wanted objects that can exist without being ready.
fn wait_targets(desired: &Desired) -> Vec<Target> {
    let waits = desired.objects.values().filter(|wanted| {
        let traits = KindTraits::for_key(&wanted.target.key);
        traits.waited.includes(&wanted.object)
    });
    waits.map(|wanted| wanted.target.clone()).collect()
}

#[cfg(test)]
mod tests;
