//! Rewrites the managedFields of objects that others write as well: fields of client-side apply become ours, and entries of versions that
//! no longer exist become readable.
//!
//! Every write to an object with existing managers goes through [`with_healing`], which repeats it after correcting such entries, or through
//! [`rewrite_with`], which corrects them in the same write.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use addons_plan::found::{self, HELM_NAME, HELM_NAMESPACE, LAST_APPLIED};
use addons_plan::{Step, Target};
use common::api::names;
use common::entrance;
use common::manifest::managed_fields::path::ManagedPath;
use common::manifest::managed_fields::{self, CLIENT_SIDE};
use common::values::path;
use tokio::time::sleep;

use super::super::address::Collection;
use super::super::addressed;
use super::super::cluster::Cluster;
use super::super::definitions;
use super::super::error::EngineError;
use super::super::report::Settled;
use super::super::request::{ApiCall, JSON_PATCH, METADATA};
use super::settle::{ApplyAttempt, managed_fields_of};
use super::{Applier, ApplyResponse, FIRST_PAUSE, WrittenMetadata, WrittenObject, body};

/// Maximum number of times that an object is read and written while other clients write it, too.
pub(in super::super) const TRIES: usize = 8;
/// Part of the error of an apply if an entry of managedFields has a version that its CRD no longer defines (HTTP 500, kube-apiserver
/// 1.36.3; fluxcd/pkg#1131, kubernetes#111937). A patch or replacement succeeds instead, but makes the server forget all managers of the
/// object (`UpdateNoErrors` in apimachinery).
const GONE_VERSION: &str = "request to convert CR to an invalid group/version: ";

pub(super) const MANAGED_FIELDS: &str = "/metadata/managedFields";

/// The metadata of an object after a rewrite.
pub(in super::super) enum RewriteResult {
    /// It was written by us, or by another client who was faster.
    Written(WrittenMetadata),
    /// It needed no change.
    AsItWas(WrittenMetadata),
}

impl RewriteResult {
    /// Returns the metadata if it was written.
    pub(super) fn into_written(self) -> Option<WrittenMetadata> {
        match self {
            Self::Written(metadata) => Some(metadata),
            Self::AsItWas(_) => None,
        }
    }
}

/// An entry of managedFields.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct FieldManagerEntry {
    manager: String,
    operation: String,
    subresource: String,
    /// Its fields as raw text; they are parsed only for our own manager.
    #[serde(rename = "fieldsV1")]
    fields: Option<Box<RawValue>>,
}

/// Returns the digest of the fields that a manager owns.
pub(super) fn fields_of(managers: &[FieldManagerEntry], manager: &str) -> String {
    let ours = managers.iter().filter(|one| one.manager == manager);
    // Fields that nest too deep are not ours.
    let ours = ours.filter_map(|one| serde_json::to_value(one).ok());
    let ours: Vec<Value> = ours.collect();
    managed_fields::digest_of_owned(&ours, manager)
}

/// Returns whether this manager alone wrote the object, apart from status that controllers report.
pub(super) fn is_only(managers: &[FieldManagerEntry], manager: &str) -> bool {
    let mut writers = managers.iter().filter(|it| it.subresource.is_empty());
    !managers.is_empty() && writers.all(|it| it.manager == manager)
}

/// Takes over the fields that client-side apply owns in an object that was just applied. Returns whether there were any. The next apply
/// then removes those that only client-side apply owned (kubernetes#99003, #107417). Sends nothing if there is no such manager, and takes
/// nothing if the policy leaves or refuses any field.
pub(super) async fn take_over(
    applier: &Applier<'_>,
    cluster: &Cluster,
    step: &Step,
    attempt: &ApplyAttempt,
    applied: &ApplyResponse,
) -> Result<bool, EngineError> {
    let managers = &applied.object.metadata.managed_fields;
    let is_client_side = |manager: &FieldManagerEntry| {
        CLIENT_SIDE.contains(&manager.manager.as_str())
            && manager.operation == "Update"
            && manager.subresource.is_empty()
    };
    // A field that is left to another manager must not become ours here: the next apply would remove it.
    let leaves = attempt.settled.iter().any(Settled::is_left);
    if leaves || !step.policy.takes_all() || !managers.iter().any(is_client_side) {
        return Ok(false);
    }
    let rewritten = rewrite(cluster, &step.target, &applier.manager, |live| {
        managed_fields::migrate(live, CLIENT_SIDE, &applier.manager)
    });
    Ok(rewritten.await?.into_written().is_some())
}

/// Transfers the fields of an object's former installation to `manager`, so that an apply finds no conflict and removes fields that only
/// the former one wanted. Returns the metadata after that; `None` if the former manager owned nothing or the object was deleted meanwhile.
pub(super) async fn inherit(
    cluster: &Cluster,
    target: &Target,
    owner: &str,
    manager: &str,
) -> Result<Option<WrittenMetadata>, EngineError> {
    let from = names::manager_of_owner(owner);
    let rewritten = rewrite(cluster, target, manager, |live| {
        managed_fields::inherit(live, &from, manager)
    });
    match rewritten.await {
        Err(error) if error.is_not_found() => Ok(None),
        other => other.map(RewriteResult::into_written),
    }
}

/// Transfers the fields of the tool that created an object to `manager`. The same write records the former manager, and removes the
/// annotations by which Helm and kubectl recognise their objects: a helm that finds no release, because its history was pruned or set
/// aside, would otherwise install it again over these objects, and delete them with it. The annotation of kubectl gets another name; in a
/// Secret it is removed, because `kubectl describe` hides its content only under its own name.
///
/// The client's own field manager writes the annotations, not that of the installation, so no apply of ours removes them.
pub(super) async fn adopt(
    cluster: &Cluster,
    target: &Target,
    manager: &str,
) -> Result<Option<WrittenMetadata>, EngineError> {
    let rewritten = rewrite_with(cluster, target, names::CLIENT, |live| {
        let entries = managed_fields_of(live);
        let adopted = managed_fields::former::adopt(entries, manager);
        let marks = helm_marks(live);
        if adopted.is_none() && marks.is_empty() {
            return None;
        }
        let mut patch: Vec<Value> = adopted
            .into_iter()
            .map(|adopted| json!({"op": "replace", "path": MANAGED_FIELDS, "value": adopted}))
            .collect();
        patch.extend(marks);
        if let Some(former) = managed_fields::former::former_manager(entries, manager) {
            let path = annotation_pointer(names::ANNOTATION_FORMER_MANAGER);
            patch.push(json!({"op": "add", "path": path, "value": former}));
        }
        let last_applied = annotation_pointer(LAST_APPLIED);
        if live.pointer(&last_applied).is_some() {
            let path = annotation_pointer(names::ANNOTATION_FORMER_LAST_APPLIED);
            patch.push(if target.key.is_secret() {
                json!({"op": "remove", "path": last_applied})
            } else {
                json!({"op": "move", "from": last_applied, "path": path})
            });
        }
        Some(patch)
    });
    rewritten.await.map(RewriteResult::into_written)
}

/// Returns the changes that replace the marks of a Helm release by a note of its name.
fn helm_marks(live: &Value) -> Vec<Value> {
    let text = |name: &str| {
        live.pointer(&annotation_pointer(name))
            .and_then(Value::as_str)
    };
    let marks = [HELM_NAME, HELM_NAMESPACE].into_iter();
    let mut patch: Vec<Value> = marks
        .filter(|mark| text(mark).is_some())
        .map(|mark| json!({"op": "remove", "path": annotation_pointer(mark)}))
        .collect();
    if let Some(release) = found::read_helm_release(text) {
        let path = annotation_pointer(names::ANNOTATION_FORMER_RELEASE);
        patch.push(json!({"op": "add", "path": path, "value": release.to_string()}));
    }
    patch
}

/// Returns the JSON pointer to an annotation.
pub(in super::super) fn annotation_pointer(name: &str) -> String {
    entry_pointer("annotations", name)
}

/// Returns the JSON pointer to a label.
pub(in super::super) fn label_pointer(name: &str) -> String {
    entry_pointer("labels", name)
}

/// Returns the JSON pointer to an entry of a map in the metadata.
fn entry_pointer(map: &str, name: &str) -> String {
    format!("/metadata/{map}/{}", path::escape_key(name))
}

/// Returns the changes that put entries into a map in the metadata, which is created if missing.
pub(super) fn put_entries(live: &Value, map: &str, entries: &[(&str, &str)]) -> Vec<Value> {
    let at = format!("/metadata/{map}");
    let is_missing = live.pointer(&at).is_none();
    let missing = is_missing.then(|| json!({"op": "add", "path": at, "value": {}}));
    let entries = entries.iter();
    let entries = entries.map(
        |(name, value)| json!({"op": "add", "path": entry_pointer(map, name), "value": value}),
    );
    missing.into_iter().chain(entries).collect()
}

/// Gives fields that were just taken back to the managers of a pre-existing object. The values stay ours, but when the object is released,
/// the fields remain with their former managers. Sends nothing if nothing was taken.
pub(super) async fn give_back(
    applier: &Applier<'_>,
    cluster: &Cluster,
    step: &Step,
    attempt: &ApplyAttempt,
    mut applied: ApplyResponse,
) -> Result<ApplyResponse, EngineError> {
    if attempt.settled.iter().all(Settled::is_left) {
        return Ok(applied);
    }
    let rewritten = rewrite(cluster, &step.target, &applier.manager, |live| {
        managed_fields::give_back(live, &attempt.before, &applier.manager)
    });
    if let Some(written) = rewritten.await?.into_written() {
        applied.object.metadata.take_version(written);
    }
    Ok(applied)
}

/// Makes `manager` the only owner of fields, so that an apply without them removes them. No value changes.
pub(super) async fn claim(
    cluster: &Cluster,
    target: &Target,
    manager: &str,
    paths: &[ManagedPath],
) -> Result<(), EngineError> {
    let version = target.gvk().api_version();
    let rewritten = rewrite(cluster, target, manager, |live| {
        managed_fields::claim(live, paths, manager, &version)
    });
    match rewritten.await {
        // The object was deleted meanwhile: the apply creates it again.
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

/// Runs a write that does not touch managedFields. If the server refuses it because of outdated entries, these are corrected, and the write
/// is repeated.
pub(in super::super) async fn with_healing<T, F: Future<Output = Result<T, EngineError>>>(
    cluster: &Cluster,
    target: &Target,
    manager: &str,
    write: impl Fn() -> F,
) -> Result<T, EngineError> {
    let mut tries = 1;
    loop {
        let error = match write().await {
            Err(error) if tries < TRIES => error,
            written => return written,
        };
        let Some(gone) = gone_version(&error) else {
            return Err(error);
        };
        let healed = rewrite_guarded(cluster, target, manager, Some(&gone), |_| None).await?;
        // No entry has the version that the server names.
        if let RewriteResult::AsItWas(_) = healed {
            return Err(error);
        }
        tries += 1;
    }
}

/// Returns the version that the server can no longer convert to, if its message names one.
fn gone_version(error: &EngineError) -> Option<String> {
    let EngineError::Api {
        code: 500, message, ..
    } = error
    else {
        return None;
    };
    let (_, version) = message.split_once(GONE_VERSION)?;
    let version = version.split_whitespace().next()?;
    Some(version.to_owned())
}

/// Rewrites managedFields and nothing else; see [`rewrite_with`].
async fn rewrite(
    cluster: &Cluster,
    target: &Target,
    manager: &str,
    change: impl Fn(&[Value]) -> Option<Vec<Value>>,
) -> Result<RewriteResult, EngineError> {
    rewrite_with(cluster, target, manager, |live| {
        Some(vec![replace_managed_fields(&change(managed_fields_of(
            live,
        ))?)])
    })
    .await
}

/// Returns the change that replaces managedFields.
fn replace_managed_fields(entries: &[Value]) -> Value {
    json!({"op": "replace", "path": MANAGED_FIELDS, "value": entries})
}

/// Rewrites metadata of an object, guarded by the resourceVersion that was read. `change` may be called several times, because other
/// clients write the object, too, and the answer to our own write may be lost.
pub(in super::super) async fn rewrite_with(
    cluster: &Cluster,
    target: &Target,
    manager: &str,
    change: impl Fn(&Value) -> Option<Vec<Value>>,
) -> Result<RewriteResult, EngineError> {
    rewrite_guarded(cluster, target, manager, None, change).await
}

/// Like [`rewrite_with`]. `gone`: a version that the server named; its entries are corrected even if nothing else changes.
async fn rewrite_guarded(
    cluster: &Cluster,
    target: &Target,
    manager: &str,
    gone: Option<&str>,
    change: impl Fn(&Value) -> Option<Vec<Value>>,
) -> Result<RewriteResult, EngineError> {
    let mut collection = Collection::from_target(target);
    let name = &target.key.name;
    let mut pause = FIRST_PAUSE;
    let mut tries = 1;
    loop {
        let call = |at: &Collection| ApiCall::get(at, name, METADATA);
        let live = addressed::send::<Value>(cluster, &mut collection, name, call).await?;
        let mut live = live.object;
        let healed = heal_entries(cluster, &collection, managed_fields_of(&live), gone).await?;
        let is_healed = healed.is_some();
        if let Some(entries) = healed {
            live["metadata"]["managedFields"] = entries.into();
        }
        let mut patch = match change(&live) {
            Some(patch) => patch,
            None if is_healed && gone.is_some() => Vec::new(),
            // The write was refused because it had already been done: its answer was lost, or another client did the same.
            None if tries > 1 => return Ok(RewriteResult::Written(parse_metadata(target, &live)?)),
            None => return Ok(RewriteResult::AsItWas(parse_metadata(target, &live)?)),
        };
        if is_healed {
            patch.insert(0, replace_managed_fields(managed_fields_of(&live)));
        }
        // A replacement that changes nothing is a precondition: the answer is 409 if another client wrote.
        let version = live.pointer("/metadata/resourceVersion");
        patch.push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}));
        let patch = Value::Array(patch);
        let call = ApiCall::patch(&collection, name, JSON_PATCH, METADATA)
            .query("fieldManager", manager)
            .body(body(target, &patch)?);
        match cluster.send::<WrittenObject>(call).await {
            Ok(answer) => return Ok(RewriteResult::Written(answer.object.metadata)),
            Err(error) if error.is_conflict() && tries < TRIES => back_off(&mut pause).await,
            Err(error) => return Err(error),
        }
        tries += 1;
    }
}

/// Waits, each time longer.
async fn back_off(pause: &mut Duration) {
    sleep(*pause).await;
    *pause *= 2;
}

/// Parses the metadata of an object that was read.
fn parse_metadata(target: &Target, live: &Value) -> Result<WrittenMetadata, EngineError> {
    let read = WrittenObject::deserialize(live);
    let read = read.map_err(|error| EngineError::Api {
        what: target.key.to_string(),
        message: format!(
            "the server's answer is not understood: {}",
            entrance::describe_category(&error)
        ),
        code: 0,
    });
    Ok(read?.metadata)
}

/// Returns managedFields with the entries of versions that no longer exist moved to the version of `at`; `None` if there are none.
async fn heal_entries(
    cluster: &Cluster,
    at: &Collection,
    entries: &[Value],
    gone: Option<&str>,
) -> Result<Option<Vec<Value>>, EngineError> {
    let own = at.gvk.api_version();
    let mut versions = entries
        .iter()
        .filter_map(|entry| entry.get("apiVersion")?.as_str());
    if versions.all(|version| version == own) {
        return Ok(None);
    }
    let defined = definitions::api_versions(cluster, at).await?;
    let is_gone = |version: &str| {
        let is_undefined = defined.as_ref().is_some_and(|all| !all.contains(version));
        is_undefined || gone == Some(version)
    };
    Ok(managed_fields::move_versions(entries, is_gone, &own))
}
