//! Plans `adopt --release`: it deletes nothing, and removes only our marks and field manager from the objects (semantics 12.13).

use std::collections::BTreeMap;

use super::super::closing::ClosingStep;
use super::super::{Deletion, InstallationPlan, Target, Verb};
use super::{PlanInput, empty};
use common::api::names::{LABEL_OWNER, owner_hash};
use common::manifest::key::ObjectKey;

/// Plans to give the objects back. An object without our label is only dropped from the record.
pub(super) fn release(input: &PlanInput<'_>) -> InstallationPlan {
    let owner = owner_hash(&input.installation.namespace, &input.installation.name);
    let mut plan = InstallationPlan {
        verb: Verb::Release,
        union: input.inventory.clone(),
        ..empty(input)
    };
    for key in input.inventory.objects.keys() {
        if input.snapshot.unreadable.contains_key(key) {
            plan.unreachable.push(key.clone());
        }
        let live = input.snapshot.live.get(key);
        let ours = live.filter(|live| live.owner.as_ref() == Some(&owner));
        if let (Some(live), Some(target)) = (ours, target(input, key)) {
            plan.closing.push(ClosingStep::GiveBack(Deletion {
                target,
                uid: live.uid.clone(),
                resource_version: live.resource_version.clone(),
                labels: BTreeMap::from([(LABEL_OWNER.to_owned(), owner.clone())]),
            }));
        }
    }
    plan
}

fn target(input: &PlanInput<'_>, key: &ObjectKey) -> Option<Target> {
    let (gvk, info) = input.kinds.preferred(&key.group, &key.kind)?;
    Some(Target {
        key: key.clone(),
        version: gvk.version,
        plural: info.plural.clone(),
    })
}
