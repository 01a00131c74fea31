//! Checks what a plan's changes of CRDs do to their live objects.
//!
//! If the plan does not change CRDs, nothing is read. Each changed CRD is read as a whole (one GET), and its objects only if some could
//! break according to the schemas (paged LISTs, up to `MOST_OBJECTS`).

use std::collections::BTreeSet;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use addons_plan::crd_safety::{Breakage, Comparison, Scan};
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
use super::listing::{self, one_page};
use super::meta::Partial;
use super::request::{Call, JSON, MERGE_PATCH, METADATA, METADATA_LIST};
use super::served::{self, is_definition};

/// Maximum number of objects that are checked in each version; for more objects, it is not known what breaks.
const MOST_OBJECTS: usize = 20_000;
const PAGE: &str = "500";
/// Whole CRDs and pages of whole objects are large, so only a few are held at a time.
const AT_A_TIME: usize = 4;

/// Adds to a plan what its changes of CRDs do to live objects ([`InstallationPlan::breakages`]).
///
/// # Errors
/// Those of the requests that read CRDs; objects that cannot be read are reported in the plan.
pub async fn check(cluster: &Cluster, plan: &mut InstallationPlan) -> Result<(), EngineError> {
    let name = &plan.installation;
    let manager = names::field_manager(&name.namespace, &name.name);
    let changed: Vec<Step> = plan
        .steps
        .iter()
        .filter(|step| is_definition(&step.target.key))
        .filter(|step| step.action != Action::Create && plan.verb != Verb::Adopt)
        .cloned()
        .collect();
    let found: Vec<_> = stream::iter(&changed)
        .map(async |step| changed_definition(cluster, step, &manager).await)
        .buffered(AT_A_TIME)
        .try_collect()
        .await?;
    for Found {
        breakage,
        warnings,
        migration,
    } in found
    {
        plan.breakages
            .extend(breakage.map(|breakage| breakage.masked(&plan.mask)));
        plan.warnings.extend(warnings);
        if let Some((migration, live)) = migration {
            plan.migrate(migration, &live);
        }
    }
    Ok(())
}

/// The effects of a changed CRD.
#[derive(Default)]
struct Found {
    breakage: Option<Breakage>,
    warnings: Vec<String>,
    /// The migration with the live CRD.
    migration: Option<(Migration, Value)>,
}

async fn changed_definition(
    cluster: &Cluster,
    step: &Step,
    manager: &str,
) -> Result<Found, EngineError> {
    let Some(live) = read(cluster, &step.target.key.name).await? else {
        return Ok(Found::default());
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
    let comparison = Comparison::of(&live, &step.object, &is_ours);
    let versions: Vec<String> = comparison
        .versions_to_read()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let mut scan = Scan::new(comparison);
    let mut unseen = None;
    for version in versions {
        let collection = in_version(&live, version);
        match judge(cluster, &collection, &mut scan).await {
            Ok(()) => {}
            Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. })) => {
                return Err(error);
            }
            // Reading is forbidden, or a conversion webhook does not answer.
            Err(error) => unseen = Some(error.to_string()),
        }
    }
    let (breakage, mut warnings) = scan.finish(unseen);
    let lost = migration::lost(&live, &step.object);
    if !lost.is_empty() {
        warnings.push(format!(
            "{}: {} leaves status.storedVersions: the definition does not have it any more, and what is stored in it cannot be read",
            step.target.key,
            lost.join(", ")
        ));
    }
    let migration = if migration::dropped(&live, &step.object).is_empty() {
        None
    } else {
        Migration::of(&live, &step.object, count(cluster, &live).await?)
    };
    Ok(Found {
        breakage,
        warnings,
        migration: migration.map(|migration| (migration, live)),
    })
}

/// Returns the number of objects of a CRD; `None` if it cannot be determined.
async fn count(cluster: &Cluster, definition: &Value) -> Result<Option<usize>, EngineError> {
    let Some(collection) = objects_of(definition) else {
        return Ok(None);
    };
    let call = Call::list(&collection, METADATA_LIST).query("limit", "1");
    match one_page::<Partial>(cluster, call).await {
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
pub(super) async fn read(cluster: &Cluster, name: &str) -> Result<Option<Value>, EngineError> {
    let call = Call::get(&served::collection(), name, JSON);
    match cluster.send::<Value>(call).await {
        Ok(answer) => Ok(Some(answer.object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
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
    match read(cluster, &format!("{}.{group}", at.plural)).await {
        Ok(None) => Ok(None),
        Ok(Some(definition)) => {
            let versions = definition.pointer("/spec/versions");
            let versions = versions.and_then(Value::as_array).into_iter().flatten();
            let mut names = versions.filter_map(|version| version.get("name")?.as_str());
            Ok(Some(of(&mut names)))
        }
        // A client that may not read the CRD uses the served versions.
        Err(error) if error.is_of_reading() => {
            let kinds = cluster.kinds_now().await?;
            Ok(Some(of(&mut kinds.versions(group, kind))))
        }
        Err(error) => Err(error),
    }
}

/// Removes versions from `status.storedVersions` of a CRD, under the resourceVersion that was read.
pub(super) async fn leave(
    cluster: &Cluster,
    definition: &Value,
    versions: &[String],
) -> Result<(), EngineError> {
    let text = |pointer| definition.pointer(pointer).and_then(Value::as_str);
    let stored = migration::left(definition, versions);
    let patch = json!({
        "metadata": {"resourceVersion": text("/metadata/resourceVersion")},
        "status": {"storedVersions": stored},
    });
    let name = text("/metadata/name").unwrap_or_default();
    let call = Call::patch(&served::collection(), name, MERGE_PATCH, METADATA)
        .subresource("status")
        .body(patch.to_string().into_bytes());
    cluster.send::<Partial>(call).await.map(drop)
}

/// Returns the collection of a CRD's objects in all namespaces, in the storage version if that is served, because it needs no conversion
/// webhook, whose backend may not exist. `None` if no version is served.
pub(super) fn objects_of(definition: &Value) -> Option<Collection> {
    let is = |version: &Value, field: &str| version.get(field) == Some(&Value::Bool(true));
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    let served = versions.iter().filter(|version| is(version, "served"));
    let version = served.max_by_key(|version| is(version, "storage"))?;
    Some(in_version(
        definition,
        version.get("name")?.as_str()?.to_owned(),
    ))
}

/// Returns the collection of a CRD's objects in one version.
pub(super) fn in_version(definition: &Value, version: String) -> Collection {
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
async fn judge(
    cluster: &Cluster,
    collection: &Collection,
    scan: &mut Scan,
) -> Result<(), EngineError> {
    let read = |text: &str| entrance::from_str::<Value>(text);
    let (mut count, mut taken) = (0, 0);
    let mut next = String::new();
    loop {
        let mut call = Call::list(collection, JSON).query("limit", PAGE);
        if !next.is_empty() {
            call = call.query("continue", &query_value(&next));
        }
        let page = match listing::page(cluster, call, &mut taken, read).await {
            Ok(page) => page,
            // The continue token expired. The objects so far were checked; the rest is reported as not read.
            Err(error) if error.code() == Some(410) && count > 0 => {
                scan.there_are_more();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        count += page.items.len();
        scan.judge(&collection.gvk.version, &page.items);
        next = page.metadata.r#continue;
        if next.is_empty() {
            return Ok(());
        }
        if count >= MOST_OBJECTS {
            scan.there_are_more();
            return Ok(());
        }
    }
}
