//! Keeps the live values of fields that a chart generates at random: an upgrade does not rotate passwords and certificates by itself
//! (semantics 12.19).

use std::collections::{BTreeMap, BTreeSet};

use addons_engine::{Cluster, live};
use addons_plan::desired::{Desired, DesiredContext};
use addons_plan::inventory::Inventory;
use common::api::names::owner_hash;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;
use common::text::list_first;

use crate::error::OperationError;
use crate::render::Rendered;
use crate::resolve::resolved::Resolved;

/// How many objects a warning names.
const MAX_NAMED: usize = 3;

/// What happens to generated values.
#[derive(Debug, Default)]
pub(super) struct GeneratedValues {
    /// The warning for the plan.
    line: String,
    /// The objects with new values.
    pub(super) objects: BTreeSet<ObjectKey>,
}

/// Returns the desired objects. Generated fields get their live values, either all of them or none, and a warning says which. Live objects
/// are those with our label and, with `adopt`, those that may be adopted.
///
/// # Errors
/// Manifests cannot become objects; those of the requests.
pub(super) async fn build_desired(
    cluster: &Cluster,
    resolved: &Resolved,
    rendered: &mut Rendered,
    context: &DesiredContext<'_>,
    inventory: &Inventory,
    adopt: bool,
) -> Result<(Desired, GeneratedValues), OperationError> {
    let desired = |manifests| {
        let desired = Desired::new(manifests, context);
        desired.map_err(|error| OperationError::from(error).masked(context.mask))
    };
    if rendered.random.is_empty() {
        let manifests = std::mem::take(&mut rendered.manifests);
        return Ok((desired(manifests)?, GeneratedValues::default()));
    }
    let first = desired(rendered.manifests.clone())?;
    let wanted = find_generated(rendered, &first);
    let live = if adopt {
        read_adoptable(cluster, context.kinds, &wanted).await?
    } else if wanted.keys().any(|key| inventory.objects.contains_key(key)) {
        Some(read_owned(cluster, context.kinds, resolved, &wanted).await?)
    } else {
        None
    };
    let generated = keep_live_values(rendered, &wanted, live);
    rendered.warnings.push(generated.line.clone());
    let manifests = std::mem::take(&mut rendered.manifests);
    Ok((desired(manifests)?, generated))
}

/// Returns the objects with generated values, and their index in the rendering.
fn find_generated(rendered: &Rendered, desired: &Desired) -> BTreeMap<ObjectKey, usize> {
    let mut wanted = BTreeMap::new();
    for field in &rendered.random.fields {
        let Some(manifest) = rendered.manifests.get(field.object) else {
            continue;
        };
        // The items of a List share one place.
        let same = desired.objects.iter().find(|(key, wanted)| {
            let is_named = ObjectKey::from_object(&manifest.object)
                .is_some_and(|it| (&it.kind, &it.name) == (&key.kind, &key.name));
            is_named && wanted.place == manifest.place
        });
        if let Some((key, _)) = same {
            wanted.insert(key.clone(), field.object);
        }
    }
    wanted
}

/// Keeps the generated values of these live objects; `live` is `None` if nothing is installed yet.
fn keep_live_values(
    rendered: &mut Rendered,
    wanted: &BTreeMap<ObjectKey, usize>,
    live: Option<BTreeMap<usize, serde_json::Value>>,
) -> GeneratedValues {
    let what = list_first(wanted.keys(), MAX_NAMED);
    let objects = wanted.keys().cloned().collect();
    let told = |line: String, objects| GeneratedValues { line, objects };
    if rendered.random.objects {
        let line = "the chart generates names of objects: each upgrade replaces them and all generated values, \
                    and a plan file cannot be applied";
        return told(line.to_owned(), objects);
    }
    let Some(live) = live else {
        let line = format!("generated values, which upgrades keep: {what}");
        return told(line, objects);
    };
    if rendered
        .random
        .keep_live_values(&mut rendered.manifests, &live)
    {
        let line = format!("generated values stay as they are: {what}");
        return told(line, BTreeSet::new());
    }
    let why = "not all of them are there, or the chart changed what is around them";
    let line = format!("generated values are replaced by new ones: {what}; {why}");
    told(line, objects)
}

/// Returns the live objects of the installation, by their index in the rendering.
async fn read_owned(
    cluster: &Cluster,
    kinds: &KindTable,
    resolved: &Resolved,
    wanted: &BTreeMap<ObjectKey, usize>,
) -> Result<BTreeMap<usize, serde_json::Value>, OperationError> {
    let selections: BTreeSet<live::LiveSelection> = wanted
        .keys()
        .map(|key| live::LiveSelection {
            group: key.group.clone(),
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            whole: true,
        })
        .collect();
    let owner = owner_hash(&resolved.name.namespace, &resolved.name.name);
    let found = live::list_owned(cluster, kinds, &selections, Some(&owner)).await?;
    // If they cannot be read, new passwords would lock everyone out.
    if let Some((selection, why)) = found.unreadable.into_iter().next() {
        return Err(OperationError::GeneratedUnreadable {
            kind: selection.kind,
            why,
        });
    }
    let found = found.objects.into_iter().filter_map(|object| {
        let index = wanted.get(&ObjectKey::from_object(&object)?)?;
        Some((*index, object))
    });
    Ok(found.collect())
}

/// Returns the live objects by their index, whoever owns them, or `None` if there are none. An object that cannot be adopted stops the plan
/// later.
async fn read_adoptable(
    cluster: &Cluster,
    kinds: &KindTable,
    wanted: &BTreeMap<ObjectKey, usize>,
) -> Result<Option<BTreeMap<usize, serde_json::Value>>, OperationError> {
    let mut found = BTreeMap::new();
    for (key, index) in wanted {
        let Some((gvk, info)) = kinds.preferred(&key.group, &key.kind) else {
            continue;
        };
        let namespace = key.namespace.as_deref();
        let live = live::get(cluster, &gvk, info, namespace, &key.name).await?;
        found.extend(live.map(|live| (*index, live)));
    }
    Ok((!found.is_empty()).then_some(found))
}
