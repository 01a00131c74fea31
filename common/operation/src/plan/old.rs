//! Finds objects of an add-on that kops' own tool installed before there was an inventory. Those that the new version does not contain are
//! pruned by the rules of the entry, as kops does, but with the protections of every other deletion (semantics 11.3).

use std::collections::BTreeSet;

use addons_engine::kops;
use addons_plan::desired::{Desired, DesiredObject};
use addons_plan::inventory::{Inventory, InventoryItem};
use addons_plan::kops::prune_rules;
use addons_plan::snapshot::Snapshot;
use common::api::installation::ObjectState;
use common::manifest::key::ObjectKey;
use serde_json::Value;

use crate::context::Context;
use crate::error::OperationError;
use crate::resolved::Resolved;

/// The objects that were found.
#[derive(Debug, Default)]
pub(super) struct KopsObjects {
    /// The objects, none of which carries our label.
    pub(super) keys: BTreeSet<ObjectKey>,
    /// Rules that were not applied, and why.
    pub(super) warnings: Vec<String>,
}

/// Finds the objects, and adds them to the inventory and the live objects, because a pruned object has to be recorded first. Nothing is
/// searched if the add-on is already installed by us, or was not installed by kops.
pub(super) async fn find(
    ctx: &Context,
    resolved: &Resolved,
    desired: &Desired,
    (inventory, snapshot): (&mut Inventory, &mut Snapshot),
) -> Result<KopsObjects, OperationError> {
    let is_of_kops = resolved
        .kops
        .as_ref()
        .is_some_and(|kops| kops.found.is_some());
    if resolved.installed().is_some() || !is_of_kops {
        return Ok(KopsObjects::default());
    }
    let version = &resolved.entry.version;
    let (rules, warnings) = prune_rules(version);
    let mut old = KopsObjects {
        warnings,
        ..KopsObjects::default()
    };
    let cluster = ctx.cluster().await?;
    // The kinds that were read for the desired objects may not include those of a rule.
    let named = rules.iter();
    let named = named.map(|rule| (rule.group.clone(), rule.kind.clone()));
    let kinds = cluster.kinds(&named.collect()).await?;
    for rule in &rules {
        for (target, live) in kops::matching(cluster, &kinds, rule).await? {
            let key = target.key;
            if desired.objects.contains_key(&key) || live.controlled_by.is_some() {
                continue;
            }
            let mut item = InventoryItem::planned(&key.name, &target.version);
            item.object.state = ObjectState::Owned;
            item.object.uid.clone_from(&live.uid);
            inventory.objects.entry(key.clone()).or_insert(item);
            old.keys.insert(key.clone());
            snapshot.live.insert(key, live);
        }
    }
    old.warnings.extend(warn_unlabelled(resolved, desired));
    Ok(old)
}

/// Warns about desired objects without the labels of the entry's selector, by which kops finds objects of a former version.
fn warn_unlabelled(resolved: &Resolved, desired: &Desired) -> Option<String> {
    let version = &resolved.entry.version;
    let selector = version
        .selector
        .as_ref()
        .filter(|_| version.prune.is_none())?;
    // kops' selector need not find objects that are only created.
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
    let count = Some(count).filter(|count| *count > 0 && !selector.is_empty())?;
    let labels: Vec<String> = selector
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    Some(format!(
        "{count} of {} objects do not carry the selector {} of the entry: kops' selector does not find them",
        desired.objects.len(),
        labels.join(",")
    ))
}
