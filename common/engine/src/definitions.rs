//! Checks what a plan's changes of CRDs do to their live objects.
//!
//! If the plan does not change CRDs, nothing is read. Each changed CRD is read as a whole (one GET), and its objects only if some could
//! break according to the schemas (paged LISTs, up to `MOST_OBJECTS`).

use std::collections::BTreeSet;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use addons_plan::crd_safety::{CrdComparison, ObjectScan, ScanResult};
use addons_plan::migration::{self, Migration};
use addons_plan::{Action, InstallationPlan, Step, Verb};
use common::api::names;
use common::entrance;
use common::manifest::key::Gvk;
use common::manifest::kinds::traits::is_built_in;
use common::manifest::managed_fields::CLIENT_SIDE;

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::error::EngineError;
use super::listing::{self, read_one_page};
use super::meta::PartialObject;
use super::request::{self, ApiCall, JSON, MERGE_PATCH, METADATA, METADATA_LIST};
use super::served;

/// Maximum number of objects that are checked in each version; for more objects, it is not known what breaks.
const MAX_OBJECTS: usize = 20_000;
const PAGE: &str = "500";
/// Whole CRDs and pages of whole objects are large, so only a few are held at a time.
const AT_A_TIME: usize = 4;

/// Adds to a plan what its changes of CRDs do to live objects ([`InstallationPlan::breakages`]).
///
/// # Errors
/// Those of the requests that read CRDs; objects that cannot be read are reported in the plan.
pub async fn check_definitions(
    cluster: &Cluster,
    plan: &mut InstallationPlan,
) -> Result<(), EngineError> {
    let name = &plan.installation;
    let manager = names::field_manager(&name.namespace, &name.name);
    let changed: Vec<Step> = plan
        .steps
        .iter()
        .filter(|step| step.target.key.is_definition())
        .filter(|step| step.action != Action::Create && plan.verb != Verb::Adopt)
        .cloned()
        .collect();
    let found: Vec<_> = stream::iter(&changed)
        .map(async |step| check_definition(cluster, step, &manager).await)
        .buffered(AT_A_TIME)
        .try_collect()
        .await?;
    for DefinitionEffects { found, migration } in found {
        let breakage = found.breakage;
        plan.breakages
            .extend(breakage.map(|breakage| breakage.masked(&plan.mask)));
        let harmless = found.harmless;
        plan.harmless
            .extend(harmless.map(|harmless| harmless.masked(&plan.mask)));
        plan.warnings.extend(found.warnings);
        if let Some((migration, live)) = migration {
            plan.add_migration(migration, &live);
        }
    }
    Ok(())
}

/// The effects of a changed CRD.
#[derive(Default)]
struct DefinitionEffects {
    found: ScanResult,
    /// The migration with the live CRD.
    migration: Option<(Migration, Value)>,
}

async fn check_definition(
    cluster: &Cluster,
    step: &Step,
    manager: &str,
) -> Result<DefinitionEffects, EngineError> {
    let Some(live) = read_definition(cluster, &step.target.key.name).await? else {
        return Ok(DefinitionEffects::default());
    };
    let inherited = step
        .policy
        .inherited
        .as_deref()
        .map(names::manager_of_owner);
    // Fields of a former owner and of client-side apply become ours before or with the apply.
    let is_ours = |other: &str| {
        step.policy.adopted.is_some()
            || other == manager
            || inherited.as_deref() == Some(other)
            || CLIENT_SIDE.contains(&other)
    };
    let comparison = CrdComparison::new(&live, &step.object, &is_ours);
    let versions: Vec<String> = comparison
        .versions_to_read()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let mut scan = ObjectScan::new(comparison);
    let mut unseen = None;
    for version in versions {
        let collection = collection_in_version(&live, version);
        match scan_objects(cluster, &collection, &mut scan).await {
            Ok(()) => {}
            Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. })) => {
                return Err(error);
            }
            // Reading is forbidden, or a conversion webhook does not answer.
            Err(error) => unseen = Some(error.to_string()),
        }
    }
    let mut found = scan.finish(unseen);
    let lost = migration::find_lost_versions(&live, &step.object);
    if !lost.is_empty() {
        found.warnings.push(format!(
            "{}: {} leaves status.storedVersions: the definition does not have it any more, and what is stored in it cannot be read",
            step.target.key,
            lost.join(", ")
        ));
    }
    let migration = if migration::find_dropped_versions(&live, &step.object).is_empty() {
        None
    } else {
        Migration::new(&live, &step.object, count_objects(cluster, &live).await?)
    };
    Ok(DefinitionEffects {
        found,
        migration: migration.map(|migration| (migration, live)),
    })
}

/// Returns the number of objects of a CRD; `None` if it cannot be determined.
async fn count_objects(
    cluster: &Cluster,
    definition: &Value,
) -> Result<Option<usize>, EngineError> {
    let Some(collection) = objects_collection(definition) else {
        return Ok(None);
    };
    let call = ApiCall::list(&collection, METADATA_LIST).query("limit", "1");
    match read_one_page::<PartialObject>(cluster, call).await {
        Ok(page) => {
            let more = page.metadata.remaining_item_count;
            let is_counted = page.metadata.r#continue.is_empty() || more > 0;
            Ok(is_counted.then(|| page.items.len() + more))
        }
        Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. })) => {
            Err(error)
        }
        Err(_) => Ok(None),
    }
}

/// Reads the whole live CRD with this name.
pub(super) async fn read_definition(
    cluster: &Cluster,
    name: &str,
) -> Result<Option<Value>, EngineError> {
    let call = ApiCall::get(&served::collection(), name, JSON);
    request::if_found(cluster.send::<Value>(call).await)
}

/// Returns the API versions that managedFields entries of a custom resource may have: all versions of its CRD, served or not. `None` for
/// built-in kinds, because Kubernetes itself drops entries of its own former versions.
pub(super) async fn api_versions(
    cluster: &Cluster,
    at: &Collection,
) -> Result<Option<BTreeSet<String>>, EngineError> {
    let (group, kind) = (&at.gvk.group, &at.gvk.kind);
    if is_built_in(group) {
        return Ok(None);
    }
    let of = |names: &mut dyn Iterator<Item = &str>| -> BTreeSet<String> {
        names.map(|name| format!("{group}/{name}")).collect()
    };
    match read_definition(cluster, &format!("{}.{group}", at.plural)).await {
        Ok(None) => Ok(None),
        Ok(Some(definition)) => {
            let versions = definition.pointer("/spec/versions");
            let versions = versions.and_then(Value::as_array).into_iter().flatten();
            let mut names = versions.filter_map(|version| version.get("name")?.as_str());
            Ok(Some(of(&mut names)))
        }
        // A client that may not read the CRD uses the served versions.
        Err(error) if error.is_read_refusal() => {
            let kinds = cluster.kinds_now().await?;
            Ok(Some(of(&mut kinds.versions(group, kind))))
        }
        Err(error) => Err(error),
    }
}

/// Removes versions from `status.storedVersions` of a CRD, under the resourceVersion that was read.
pub(super) async fn remove_stored_versions(
    cluster: &Cluster,
    definition: &Value,
    versions: &[String],
) -> Result<(), EngineError> {
    let text = |pointer| definition.pointer(pointer).and_then(Value::as_str);
    let stored = migration::remaining_versions(definition, versions);
    let patch = json!({
        "metadata": {"resourceVersion": text("/metadata/resourceVersion")},
        "status": {"storedVersions": stored},
    });
    let name = text("/metadata/name").unwrap_or_default();
    let call = ApiCall::patch(&served::collection(), name, MERGE_PATCH, METADATA)
        .subresource("status")
        .body(patch.to_string().into_bytes());
    cluster.send::<PartialObject>(call).await.map(drop)
}

/// Returns the collection of a CRD's objects in all namespaces, in the storage version if that is served, because it needs no conversion
/// webhook, whose backend may not exist. `None` if no version is served.
pub(super) fn objects_collection(definition: &Value) -> Option<Collection> {
    let is = |version: &Value, field: &str| version.get(field) == Some(&Value::Bool(true));
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    let served = versions.iter().filter(|version| is(version, "served"));
    let version = served.max_by_key(|version| is(version, "storage"))?;
    Some(collection_in_version(
        definition,
        version.get("name")?.as_str()?.to_owned(),
    ))
}

/// Returns the collection of a CRD's objects in one version.
pub(super) fn collection_in_version(definition: &Value, version: String) -> Collection {
    let text = |pointer| {
        let text = definition.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    Collection {
        gvk: Gvk {
            group: text("/spec/group"),
            version,
            kind: text("/spec/names/kind"),
        },
        plural: text("/spec/names/plural"),
        namespace: None,
    }
}

/// Reads and checks the objects of a kind in one version, page by page.
async fn scan_objects(
    cluster: &Cluster,
    collection: &Collection,
    scan: &mut ObjectScan,
) -> Result<(), EngineError> {
    let read = |text: &str| entrance::from_str::<Value>(text);
    let (mut count, mut taken) = (0, 0);
    let mut next = String::new();
    loop {
        let mut call = ApiCall::list(collection, JSON).query("limit", PAGE);
        if !next.is_empty() {
            call = call.query("continue", &query_value(&next));
        }
        let page = match listing::read_page(cluster, call, &mut taken, read).await {
            Ok(page) => page,
            // The continue token expired. The objects so far were checked; the rest is reported as not read.
            Err(error) if error.code() == Some(410) && count > 0 => {
                scan.mark_incomplete();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        count += page.items.len();
        scan.check_objects(&collection.gvk.version, &page.items);
        next = page.metadata.r#continue;
        if next.is_empty() {
            return Ok(());
        }
        if count >= MAX_OBJECTS {
            scan.mark_incomplete();
            return Ok(());
        }
    }
}
