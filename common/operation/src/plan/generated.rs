//! What a chart makes at random keeps its live values: an upgrade does not rotate passwords and certificates by itself.

use std::collections::{BTreeMap, BTreeSet};

use addons_engine::{Cluster, live};
use common::api::names::owner_hash;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;
use common::plan::desired::Desired;
use common::plan::inventory::Inventory;

use crate::error::OperationError;
use crate::render::Rendered;
use crate::resolved::Resolved;

/// Objects that a line names.
const NAMED: usize = 3;

/// Puts the live values into the rendered objects, all or none, and says which of both. `desired` is what they are without that.
///
/// # Errors
/// Those of the requests.
pub(super) async fn keep(
    cluster: &Cluster,
    kinds: &KindTable,
    resolved: &Resolved,
    rendered: &mut Rendered,
    desired: &Desired,
    inventory: &Inventory,
) -> Result<Option<String>, OperationError> {
    let random = &rendered.random;
    if random.is_empty() {
        return Ok(None);
    }
    let mut wanted = BTreeMap::new();
    for field in &random.fields {
        let Some(manifest) = rendered.manifests.get(field.object) else {
            continue;
        };
        // The items of a List stand in one place.
        let same = desired.objects.iter().find(|(key, wanted)| {
            let is_named = ObjectKey::of(&manifest.object)
                .is_some_and(|it| (&it.kind, &it.name) == (&key.kind, &key.name));
            is_named && wanted.place == manifest.place
        });
        if let Some((key, _)) = same {
            wanted.insert(key.clone(), field.object);
        }
    }
    let names: Vec<String> = wanted.keys().take(NAMED).map(ToString::to_string).collect();
    let more = match wanted.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = format!("{}{more}", names.join(", "));
    if random.objects {
        let line = "the chart names objects at random: they are replaced by each upgrade";
        return Ok(Some(format!(
            "{line}, with the values it generates: {what}"
        )));
    }
    let is_installed = wanted.keys().any(|key| inventory.objects.contains_key(key));
    if !is_installed {
        let line = "the chart generates values at random, which upgrades keep";
        return Ok(Some(format!(
            "{line}: {what}; a plan file of this install cannot be applied"
        )));
    }
    let live = read(cluster, kinds, resolved, &wanted).await?;
    Ok(Some(if random.keep(&mut rendered.manifests, &live) {
        format!("generated values stay as they are: {what}")
    } else {
        format!(
            "generated values are replaced by new ones: {what}; not all of them are there, or the chart changed what is around them"
        )
    }))
}

/// The live objects of ours, by their index in the rendering.
async fn read(
    cluster: &Cluster,
    kinds: &KindTable,
    resolved: &Resolved,
    wanted: &BTreeMap<ObjectKey, usize>,
) -> Result<BTreeMap<usize, serde_json::Value>, OperationError> {
    let selections: BTreeSet<live::Selection> = wanted
        .keys()
        .map(|key| live::Selection {
            group: key.group.clone(),
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
        })
        .collect();
    let owner = owner_hash(&resolved.name.namespace, &resolved.name.name);
    let found = live::owned(cluster, kinds, &selections, Some(&owner)).await?;
    let found = found.objects.into_iter().filter_map(|object| {
        let index = wanted.get(&ObjectKey::of(&object)?)?;
        Some((*index, object))
    });
    Ok(found.collect())
}
