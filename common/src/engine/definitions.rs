//! Live definitions and the objects of their kinds, as far as a plan changes or deletes the definitions.
//!
//! Nothing is asked where the plan leaves them alone. Of a changed definition the whole live one is read (one GET), and
//! objects only where the schemas say that some could break (paged LISTs, [`MOST_OBJECTS`] at most). Of one that is to be
//! deleted one page of metadata is read, for its objects go with it.

use std::collections::BTreeSet;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};
use serde::Deserialize;
use serde_json::Value;

use crate::manifest::key::{Gvk, ObjectKey};
use crate::manifest::kinds::KindTable;
use crate::plan::crd_safety::{Breakage, Comparison, Scan};
use crate::plan::teardown::{self, Inhabited};
use crate::plan::{Action, Plan, Step};

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::{ListMetadata, PartialList, or_default};
use super::request::{Call, JSON, METADATA_LIST};
use super::served::{self, is_definition};

/// Objects that are judged, in each version.
const MOST_OBJECTS: usize = 5_000;
const PAGE: &str = "500";
/// Whole definitions and pages of whole objects are large: few are held at a time.
const AT_A_TIME: usize = 4;

/// Adds to a plan what its changes of definitions do to live objects ([`Plan::breakages`]), and what goes with the definitions
/// that it deletes; those are put where their objects' controllers still run.
///
/// # Errors
/// Those of the requests that read definitions; objects that cannot be read are told in the plan.
pub async fn check(
    cluster: &Cluster,
    kinds: &KindTable,
    plan: &mut Plan,
) -> Result<(), EngineError> {
    let changed: Vec<Step> = plan
        .steps
        .iter()
        .filter(|step| is_definition(&step.target.key))
        .filter(|step| matches!(step.action, Action::Update | Action::Restore))
        .cloned()
        .collect();
    let found: Vec<_> = stream::iter(&changed)
        .map(async |step| changed_definition(cluster, step).await)
        .buffered(AT_A_TIME)
        .try_collect()
        .await?;
    for (breakage, warnings) in found {
        plan.breakages.extend(breakage);
        plan.warnings.extend(warnings);
    }

    let deleted: BTreeSet<ObjectKey> = plan
        .prune
        .iter()
        .flatten()
        .map(|deletion| deletion.target.key.clone())
        .collect();
    let definitions = deleted.iter().filter(|key| is_definition(key));
    let inhabited: Vec<Option<Inhabited>> = stream::iter(definitions)
        .map(async |key| inhabited(cluster, kinds, key, &deleted).await)
        .buffered(AT_A_TIME)
        .try_collect()
        .await?;
    teardown::keep_controllers(plan, inhabited.into_iter().flatten().collect());
    Ok(())
}

async fn changed_definition(
    cluster: &Cluster,
    step: &Step,
) -> Result<(Option<Breakage>, Vec<String>), EngineError> {
    let call = Call::get(&Collection::of(&step.target), &step.target.key.name, JSON);
    let live = match cluster.send::<Value>(call).await {
        Ok(answer) => answer.object,
        Err(error) if error.is_not_found() => return Ok((None, Vec::new())),
        Err(error) => return Err(error),
    };
    let comparison = Comparison::of(&live, &step.object);
    let versions: Vec<String> = comparison
        .versions_to_read()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let text = |pointer| {
        let text = live.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let mut scan = Scan::new(comparison);
    let mut unseen = None;
    for version in versions {
        let collection = Collection {
            gvk: Gvk {
                group: text("/spec/group"),
                version,
                kind: text("/spec/names/kind"),
            },
            plural: text("/spec/names/plural"),
            namespace: None,
        };
        match judge(cluster, &collection, &mut scan).await {
            Ok(()) => {}
            Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. })) => {
                return Err(error);
            }
            // Forbidden, or a conversion webhook that does not answer.
            Err(error) => unseen = Some(error.to_string()),
        }
    }
    Ok(scan.finish(unseen))
}

/// Reads the objects of a kind in one version, page by page.
async fn judge(
    cluster: &Cluster,
    collection: &Collection,
    scan: &mut Scan,
) -> Result<(), EngineError> {
    #[derive(Deserialize)]
    struct Page {
        #[serde(default)]
        metadata: ListMetadata,
        #[serde(default, deserialize_with = "or_default")]
        items: Vec<Value>,
    }
    let mut read = 0;
    let mut next = String::new();
    loop {
        let mut call = Call::list(collection, JSON).query("limit", PAGE);
        if !next.is_empty() {
            call = call.query("continue", &query_value(&next));
        }
        let page = match cluster.send::<Page>(call).await {
            Ok(answer) => answer.object,
            Err(error) if error.is_not_found() => return Ok(()),
            // The server forgot the place. What was read has been judged; the rest is said not to have been.
            Err(error) if error.code() == Some(410) && read > 0 => {
                scan.there_are_more();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        read += page.items.len();
        scan.judge(&collection.gvk.version, &page.items);
        next = page.metadata.r#continue;
        if next.is_empty() {
            return Ok(());
        }
        if read >= MOST_OBJECTS {
            scan.there_are_more();
            return Ok(());
        }
    }
}

/// The live objects that go with a definition and are not deleted by the plan themselves; `None` where there are none.
async fn inhabited(
    cluster: &Cluster,
    kinds: &KindTable,
    definition: &ObjectKey,
    deleted: &BTreeSet<ObjectKey>,
) -> Result<Option<Inhabited>, EngineError> {
    let known = kinds
        .iter()
        .find(|(gvk, info)| definition.name == format!("{}.{}", info.plural, gvk.group));
    let collection = match known {
        Some((gvk, info)) => Collection::new(gvk.clone(), info, None),
        // The table is as old as the last kind that was missing from it: the definition may be younger.
        None => match defined(cluster, definition).await? {
            Some(collection) => collection,
            None => return Ok(None),
        },
    };
    let gvk = collection.gvk.clone();
    let call = Call::list(&collection, METADATA_LIST).query("limit", PAGE);
    let page = match cluster.send::<PartialList>(call).await {
        Ok(answer) => answer.object,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. })) => {
            return Err(error);
        }
        Err(error) => {
            return Ok(Some(Inhabited {
                definition: definition.clone(),
                kind: gvk.kind.clone(),
                objects: Vec::new(),
                more: 0,
                unseen: Some(error.to_string()),
            }));
        }
    };
    let objects = page.items.into_iter().map(|item| ObjectKey {
        group: gvk.group.clone(),
        kind: gvk.kind.clone(),
        namespace: item.metadata.namespace,
        name: item.metadata.name,
    });
    let inhabited = Inhabited {
        definition: definition.clone(),
        kind: gvk.kind.clone(),
        objects: objects.filter(|key| !deleted.contains(key)).collect(),
        more: page.metadata.remaining_item_count,
        unseen: None,
    };
    Ok(Some(inhabited).filter(|found| !found.objects.is_empty() || found.more > 0))
}

/// Where the objects of a definition are, in the version that they are stored in; `None` where the definition is gone.
async fn defined(
    cluster: &Cluster,
    definition: &ObjectKey,
) -> Result<Option<Collection>, EngineError> {
    let call = Call::get(&served::collection(), &definition.name, JSON);
    let live = match cluster.send::<Value>(call).await {
        Ok(answer) => answer.object,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let text = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let versions = live.pointer("/spec/versions").and_then(Value::as_array);
    let stored = versions
        .into_iter()
        .flatten()
        .find(|version| version.get("storage").and_then(Value::as_bool) == Some(true));
    Ok(Some(Collection {
        gvk: Gvk {
            group: text(live.pointer("/spec/group")),
            version: text(stored.and_then(|version| version.get("name"))),
            kind: text(live.pointer("/spec/names/kind")),
        },
        plural: text(live.pointer("/spec/names/plural")),
        namespace: None,
    }))
}
