//! The plan that rebuilds an inventory from the live objects: no object changes, and the next upgrade is due (semantics 13.11).

use serde::{Deserialize, Serialize};

use super::super::claims::Claims;
use super::super::inventory::{Inventory, InventoryItem, InventoryTooLarge};
use super::super::snapshot::{LiveObject, Snapshot};
use super::super::{InstallationPlan, Verb};
use common::api::installation::{CreatedNamespace, Installed, ObjectState};
use common::api::names::{InstallationName, owner_hash};
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;

/// The input for rebuilding an inventory.
#[derive(Clone, Copy, Debug)]
pub struct RebuildInput<'a> {
    /// The installation.
    pub installation: &'a InstallationName,
    /// The add-on.
    pub addon: &'a str,
    /// The installed version, according to its record.
    pub from: Option<&'a Installed>,
    /// The recorded inventory.
    pub inventory: &'a Inventory,
    /// The live recorded objects, and every object with the owner label of the installation.
    pub snapshot: &'a Snapshot,
    /// The kinds that the cluster serves.
    pub kinds: &'a KindTable,
    /// Claims of other installations.
    pub claims: &'a Claims,
    /// The namespace for objects that do not name one, if the record has it.
    pub target_namespace: Option<&'a str>,
    /// Whether the record belongs to another cluster, where its Jobs have run.
    pub is_other_cluster: bool,
}

/// The differences between the rebuilt inventory and the recorded one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RebuiltInventory {
    /// Objects that were not recorded.
    pub added: Vec<ObjectKey>,
    /// Recorded objects that no longer exist, or belong to another owner.
    pub forgotten: Vec<ObjectKey>,
    /// The target namespace, if its owner label shows that the installation created it.
    pub namespace: Option<CreatedNamespace>,
}

/// Creates the plan.
///
/// # Errors
/// The inventory does not fit into the record.
pub fn rebuild(input: &RebuildInput<'_>) -> Result<InstallationPlan, InventoryTooLarge> {
    let name = input.installation;
    let owner = owner_hash(&name.namespace, &name.name);
    let snapshot = input.snapshot;
    let mut exact = Inventory::default();
    let mut rebuilt = RebuiltInventory::default();
    for (key, recorded) in &input.inventory.objects {
        let kept = match snapshot.live.get(key) {
            Some(live) => update_recorded(recorded, live, &owner),
            None => (snapshot.unreadable.contains_key(key)
                || is_job(key) && !input.is_other_cluster)
                .then(|| recorded.clone()),
        };
        match kept {
            Some(item) => {
                exact.objects.insert(key.clone(), item);
            }
            None => rebuilt.forgotten.push(key.clone()),
        }
    }
    let unrecorded = snapshot.live.iter().chain(&snapshot.unrequested);
    let unrecorded = unrecorded.filter(|(key, _)| !input.inventory.objects.contains_key(*key));
    for (key, live) in unrecorded.filter(|(_, live)| live.owner.as_ref() == Some(&owner)) {
        let is_target = input.target_namespace == Some(key.name.as_str()) && is_namespace(key);
        if is_target && live.last_written.is_none() {
            rebuilt.namespace = Some(CreatedNamespace {
                name: key.name.clone(),
                uid: live.uid.clone(),
            });
        } else if let Some(item) = record_unrecorded(input, key, live) {
            rebuilt.added.push(key.clone());
            exact.objects.insert(key.clone(), item);
        }
    }
    let union = Inventory::union(&exact, input.inventory).fit_budget(&exact)?;
    Ok(InstallationPlan {
        verb: Verb::Adopt,
        from: input.from.cloned(),
        to: Some(Installed {
            adopted: true,
            ..input.from.cloned().unwrap_or_default()
        }),
        unchanged: exact.objects.keys().cloned().collect(),
        rebuilt: Some(rebuilt),
        union,
        exact,
        ..InstallationPlan::nothing(name.clone(), input.addon)
    })
}

/// Updates the item of a recorded object to its live state. Returns `None` if the live object is another one. The next upgrade applies what
/// was edited.
fn update_recorded(
    recorded: &InventoryItem,
    live: &LiveObject,
    owner: &str,
) -> Option<InventoryItem> {
    let is_ours = live.owner.as_deref() == Some(owner);
    let is_same = live.uid == recorded.object.uid;
    let is_left_alone = recorded.object.state == ObjectState::Preexisting;
    if !is_ours && !is_same && !is_left_alone {
        return None;
    }
    let mut item = recorded.clone();
    if item.object.state == ObjectState::Planned {
        item.object.state = live_object_state(live);
    }
    let is_applied = is_ours || recorded.was_applied();
    if is_applied && recorded.object.was_edited(&live.state()) {
        record_live_state(&mut item, live);
    }
    item.object.uid.clone_from(&live.uid);
    Some(item)
}

/// Creates the item of an unrecorded object. Only the installation's field manager proves that the installation owns it, because other
/// tools copy labels.
fn record_unrecorded(
    input: &RebuildInput<'_>,
    key: &ObjectKey,
    live: &LiveObject,
) -> Option<InventoryItem> {
    let claims = input.claims;
    let is_claimed = claims.objects.contains_key(key) || claims.retained.contains_key(key);
    if live.last_written.is_none() || live.controlled_by.is_some() || live.terminating || is_claimed
    {
        return None;
    }
    let (gvk, _) = input.kinds.preferred(&key.group, &key.kind)?;
    let mut item = InventoryItem::planned(&key.name, &gvk.version);
    item.object.state = live_object_state(live);
    item.object.uid.clone_from(&live.uid);
    record_live_state(&mut item, live);
    Some(item)
}

/// Records the live state of an object without a digest, because its applied content is unknown: any difference is due.
fn record_live_state(item: &mut InventoryItem, live: &LiveObject) {
    item.object.digest.clear();
    item.object.record_live_state(&live.state());
}

fn live_object_state(live: &LiveObject) -> ObjectState {
    if live.create_only {
        ObjectState::Retained
    } else {
        ObjectState::Owned
    }
}

/// A missing Job may have been deleted after its end (`ttlSecondsAfterFinished`): forgetting it would run it again.
fn is_job(key: &ObjectKey) -> bool {
    (key.group.as_str(), key.kind.as_str()) == ("batch", "Job")
}

fn is_namespace(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Namespace"
}

#[cfg(test)]
mod tests;
