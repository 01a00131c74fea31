//! Finds objects of an add-on that another tool installed before there was an inventory. Those that the new version does not contain are
//! pruned with the protections of every other deletion (semantics 11.3).

use std::collections::BTreeSet;

use addons_engine::matching;
use addons_plan::desired::{Desired, DesiredObject};
use addons_plan::inventory::{Inventory, InventoryItem};
use addons_plan::snapshot::Snapshot;
use common::api::installation::ObjectState;
use common::manifest::key::ObjectKey;
use serde_json::Value;

use crate::context::Context;
use crate::error::OperationError;
use crate::resolve::resolved::{Resolved, UnrecordedSearch};

/// The objects that were found.
#[derive(Debug, Default)]
pub(super) struct UnrecordedObjects {
    /// The objects, none of which carries our label.
    pub(super) keys: BTreeSet<ObjectKey>,
    /// Rules that were not applied, and why.
    pub(super) warnings: Vec<String>,
}

/// Finds the objects, and adds them to the inventory and the live objects, because a pruned object has to be recorded first.
pub(super) async fn find(
    ctx: &Context,
    resolved: &Resolved,
    desired: &Desired,
    (inventory, snapshot): (&mut Inventory, &mut Snapshot),
) -> Result<UnrecordedObjects, OperationError> {
    let shared = resolved.shared.as_ref();
    let Some(search) = shared.and_then(|shared| shared.unrecorded.as_ref()) else {
        return Ok(UnrecordedObjects::default());
    };
    let mut found = UnrecordedObjects {
        warnings: search.warnings.clone(),
        ..UnrecordedObjects::default()
    };
    let cluster = ctx.cluster().await?;
    // The kinds that were read for the desired objects may not include those of a rule.
    let named = search.rules.iter();
    let named = named.map(|rule| (rule.group.clone(), rule.kind.clone()));
    let kinds = cluster.kinds(&named.collect()).await?;
    for rule in &search.rules {
        for (target, live) in matching::list(cluster, &kinds, rule).await? {
            let key = target.key;
            if desired.objects.contains_key(&key) || live.controlled_by.is_some() {
                continue;
            }
            let mut item = InventoryItem::planned(&key.name, &target.version);
            item.object.state = ObjectState::Owned;
            item.object.uid.clone_from(&live.uid);
            inventory.objects.entry(key.clone()).or_insert(item);
            found.keys.insert(key.clone());
            snapshot.live.insert(key, live);
        }
    }
    found.warnings.extend(warn_unlabelled(search, desired));
    Ok(found)
}

/// Warns about desired objects without the labels by which the tool finds objects of a former version.
fn warn_unlabelled(search: &UnrecordedSearch, desired: &Desired) -> Option<String> {
    let selector = &search.selector;
    // The selector need not find objects that are only created.
    let lacks = |wanted: &&DesiredObject| {
        !wanted.create_only
            && selector.iter().any(|(key, value)| {
                let label = wanted
                    .object
                    .pointer("/metadata/labels")
                    .and_then(|labels| labels.get(key));
                label.and_then(Value::as_str) != Some(value)
            })
    };
    let count = desired.objects.values().filter(lacks).count();
    let count = Some(count).filter(|count| *count > 0)?;
    let labels: Vec<String> = selector
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    Some(format!(
        "{count} of {} objects do not carry the selector {} of the entry: {} selector does not find them",
        desired.objects.len(),
        labels.join(","),
        search.whose
    ))
}
