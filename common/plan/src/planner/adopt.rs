//! Plans `adopt`: the installation takes over those of its objects that exist, and changes nothing else. The next upgrade, which the
//! user confirms, applies what differs (semantics 12.11).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::adoption::Adoption;
use super::super::changes::{ObjectChange, ObjectDiff};
use super::super::conflicts::Policy;
use super::super::decide::{DecisionContext, ObjectDecision};
use super::super::desired::{Desired, DesiredObject};
use super::super::inventory::{Inventory, InventoryItem};
use super::super::snapshot::LiveObject;
use super::super::{Action, InstallationPlan, Step, Verb};
use super::{ObjectRefusal, PlanError, PlanInput, WantedObjects, empty, wait_targets};
use common::api::installation::{Installed, ObjectState};
use common::api::names::owner_hash;
use common::manifest::key::ObjectKey;

/// Plans to take over the desired objects that exist.
pub(super) fn adopt(
    input: &PlanInput<'_>,
    wanted: &WantedObjects<'_>,
) -> Result<InstallationPlan, PlanError> {
    let owner = owner_hash(&input.installation.namespace, &input.installation.name);
    let judge = DecisionContext {
        owner: &owner,
        claims: input.claims,
        due: true,
        restores: true,
        conflicts: wanted.conflicts,
        adopts: true,
        shared_manager: None,
    };
    let mut plan = InstallationPlan {
        verb: Verb::Adopt,
        to: Some(Installed {
            adopted: true,
            ..wanted.to.clone()
        }),
        ..empty(input)
    };
    let mut refusals = Vec::new();
    let (mut union, mut exact) = (Inventory::default(), Inventory::default());
    for (key, object) in &wanted.desired.objects {
        let Some(live) = input.snapshot.live.get(key) else {
            continue;
        };
        let recorded = input.inventory.objects.get(key);
        let decided = judge.decide(object, recorded, Some(live));
        let ObjectDecision {
            action,
            before,
            mut after,
            inherited,
            ..
        } = match decided {
            Ok(decision) => decision,
            Err(reason) => {
                let key = key.clone();
                refusals.push(ObjectRefusal { key, reason });
                continue;
            }
        };
        // Our own objects stay recorded as they are.
        if action.is_none() || recorded.is_some_and(InventoryItem::was_applied) {
            let item = recorded.unwrap_or(&before);
            plan.unchanged.push(key.clone());
            union.objects.insert(key.clone(), item.clone());
            exact.objects.insert(key.clone(), item.clone());
            continue;
        }
        let policy = Policy {
            conflicts: wanted.conflicts,
            inherited,
            ..Policy::default()
        };
        plan.steps.push(step(object, live, policy));
        // The manifest was not applied: without a digest, the next upgrade applies it (see [`record_equal`]).
        after.object.digest.clear();
        union.objects.insert(key.clone(), before);
        exact.objects.insert(key.clone(), after);
    }
    if !refusals.is_empty() {
        return Err(PlanError::Refused { objects: refusals });
    }
    let adopted = wait_targets(wanted).into_iter();
    plan.wait_for = adopted
        .filter(|target| plan.step(&target.key).is_some())
        .collect();
    plan.exact = Inventory::union(&exact, input.inventory);
    plan.union = Inventory::union(&union, input.inventory).fit_budget(&plan.exact)?;
    Ok(plan)
}

/// Records which adopted objects are already as their manifests say, by the comparison with the server: the next upgrade leaves them alone,
/// and nothing is due if that is so for every object.
///
/// # Errors
/// The inventory would be too large.
pub fn record_equal(
    plan: &mut InstallationPlan,
    desired: &Desired,
    changes: &[ObjectDiff],
) -> Result<(), PlanError> {
    let is_equal = |change: &&ObjectDiff| {
        change.change() == ObjectChange::Unchanged && change.unjudged.is_none()
    };
    let equal: BTreeSet<&ObjectKey> = changes.iter().filter(is_equal).map(|it| &it.key).collect();
    for step in plan
        .steps
        .iter()
        .filter(|step| equal.contains(&step.target.key))
    {
        if let Some(item) = plan.exact.objects.get_mut(&step.target.key) {
            item.object.digest.clone_from(&step.digest);
        }
    }
    plan.exact.check_budget()?;
    // A Namespace and what is only created stay as they are.
    let is_kept = |key: &ObjectKey| {
        let item = plan.exact.objects.get(key);
        item.is_some_and(|item| item.object.state != ObjectState::Owned)
    };
    let mut wanted = desired.objects.keys();
    let differs = !wanted.all(|key| equal.contains(key) || is_kept(key));
    if let Some(to) = &mut plan.to {
        to.adopted = differs;
    }
    Ok(())
}

fn step(object: &DesiredObject, live: &LiveObject, policy: Policy) -> Step {
    Step {
        target: object.target.clone(),
        action: Action::Adopt,
        object: Arc::clone(&object.object),
        uid: Some(live.uid.clone()),
        digest: object.digest.clone(),
        seen: Some(live.resource_version.clone()),
        policy: Policy {
            adopted: Some(Adoption {
                only_owner: true,
                ..Adoption::from_live(live)
            }),
            ..policy
        },
    }
}
