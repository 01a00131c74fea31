//! Recorded objects whose group the cluster no longer serves, and that now belong to another one: Ingress moved from extensions to
//! networking.k8s.io. The uid shows that it is the same object (semantics 13.6).

use std::collections::BTreeMap;

use super::inventory::{Inventory, InventoryItem};
use super::snapshot::Snapshot;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;

/// Returns the keys that a recorded object may have now; none if its kind is served as recorded.
pub(super) fn possible_keys<'a>(
    key: &'a ObjectKey,
    kinds: &'a KindTable,
) -> impl Iterator<Item = ObjectKey> + 'a {
    let is_served = kinds.preferred(&key.group, &key.kind).is_some();
    let groups = kinds
        .groups_with_kind(&key.kind)
        .filter(move |_| !is_served);
    groups.map(|group| ObjectKey {
        group: group.to_owned(),
        ..key.clone()
    })
}

/// Returns the inventory with the current key of every object; `None` if no object moved.
pub(super) fn relocate(
    inventory: &Inventory,
    snapshot: &Snapshot,
    kinds: &KindTable,
) -> Option<Inventory> {
    let moved: BTreeMap<&ObjectKey, (ObjectKey, InventoryItem)> = inventory
        .objects
        .iter()
        .filter(|(_, item)| !item.object.uid.is_empty())
        .filter_map(|(key, item)| {
            let mut places = possible_keys(key, kinds);
            let place = places.find(|place| {
                let live = snapshot.live.get(place);
                live.is_some_and(|live| live.uid == item.object.uid)
            })?;
            let (gvk, _) = kinds.preferred(&place.group, &place.kind)?;
            let item = InventoryItem {
                version: gvk.version,
                ..item.clone()
            };
            Some((key, (place, item)))
        })
        .collect();
    if moved.is_empty() {
        return None;
    }
    let mut relocated = inventory.clone();
    for (key, (place, item)) in moved {
        relocated.remove(key);
        relocated.objects.entry(place).or_insert(item);
    }
    Some(relocated)
}
