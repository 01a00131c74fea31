//! Corrects managedFields: fields of client-side apply become ours, entries of versions that are gone become readable.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use common::api::names;
use common::manifest::key::Gvk;
use common::manifest::managed_fields::path::Path;
use common::manifest::managed_fields::{self, CLIENT_SIDE};
use common::plan::found::{HELM_NAME, HELM_NAMESPACE, LAST_APPLIED};
use common::plan::{Step, Target};
use common::values::path;

use super::super::address::Collection;
use super::super::addressed;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::report::Settled;
use super::super::request::{Call, JSON_PATCH, METADATA};
use super::settle::{Attempt, managers};
use super::{Applied, Applier, Notes, Written, WrittenMetadata, body};

/// How often entries are read and written while other clients write them too.
const TRIES: usize = 3;
/// The error of an apply, and of every other write, where an entry of managedFields has a version that its
/// CustomResourceDefinition no longer has (HTTP 500, kube-apiserver 1.36.3; fluxcd/pkg#1131, kubernetes#111937).
const GONE_VERSION: &str = "request to convert CR to an invalid group/version: ";

pub(super) const FIELDS: &str = "/metadata/managedFields";

/// A manager of fields.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Manager {
    manager: String,
    operation: String,
    subresource: String,
    /// Its fields, as text: they are looked at for our own manager only.
    #[serde(rename = "fieldsV1")]
    fields: Option<Box<RawValue>>,
}

/// Digest of the fields that a manager owns.
pub(super) fn fields_of(managers: &[Manager], manager: &str) -> String {
    let ours = managers.iter().filter(|one| one.manager == manager);
    let ours: Vec<Value> = ours.map(|one| json!(one)).collect();
    managed_fields::digest_of_owned(&ours, manager)
}

/// Whether this manager alone wrote the object, but for what controllers report about it in its status.
pub(super) fn is_only(managers: &[Manager], manager: &str) -> bool {
    let mut writers = managers.iter().filter(|it| it.subresource.is_empty());
    !managers.is_empty() && writers.all(|it| it.manager == manager)
}

/// Takes over what client-side apply owns in an object that was just applied, and applies it again: fields that only it owned
/// are removed (kubernetes#99003, #107417). Sends nothing where there is no such manager, and takes nothing where the
/// policy leaves or refuses any field.
pub(super) async fn take_over(
    applier: &Applier,
    cluster: &Cluster,
    step: &Step,
    attempt: &Attempt,
    applied: Applied,
    notes: &mut Notes,
) -> Result<Applied, EngineError> {
    let managers = &applied.object.metadata.managed_fields;
    let is_client_side = |manager: &Manager| {
        CLIENT_SIDE.contains(&manager.manager.as_str())
            && manager.operation == "Update"
            && manager.subresource.is_empty()
    };
    // What is left to another manager must not become ours here: it would be reset.
    let leaves = attempt.settled.iter().any(Settled::is_left);
    if leaves || !step.policy.takes_all() || !managers.iter().any(is_client_side) {
        return Ok(applied);
    }
    let rewritten = rewrite(cluster, &step.target, &applier.manager, |live| {
        managed_fields::migrate(live, CLIENT_SIDE, &applier.manager)
    });
    match rewritten.await {
        Ok(Some(written)) => {
            notes
                .warnings
                .push("what client-side apply owned in it is ours now".to_owned());
            let again = attempt.again(&written.resource_version);
            match applier.send(cluster, step, &again).await {
                Ok(mut again) => {
                    again.created = applied.created;
                    Ok(again)
                }
                // Another client wrote meanwhile: the next operation takes over the rest.
                Err(error) if error.is_conflict() => Ok(applied),
                Err(error) => Err(error),
            }
        }
        Ok(None) => Ok(applied),
        Err(error) if error.is_conflict() => Ok(applied),
        Err(error) => Err(error),
    }
}

/// Makes the fields of the installation that an object moves from those of `manager`, so that an apply finds no conflict with it and
/// removes what only it wanted. The object after that; `None` where it owned nothing, or the object was deleted meanwhile.
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
        other => other,
    }
}

/// Makes the fields of the tool that an object is taken over from those of `manager`, in the same way. The same write notes whose they
/// were, and takes from Helm and kubectl the annotations by which they know their objects: a helm that finds no release, because its
/// history was pruned or set aside, would otherwise install it again over these objects, and delete them with it. The annotation of
/// kubectl gets another name, but for a Secret, where it holds what `kubectl describe` hides only under its own name.
///
/// The annotations are of the client and not of the installation: no apply of ours removes them.
pub(super) async fn adopt(
    cluster: &Cluster,
    target: &Target,
    manager: &str,
) -> Result<Option<WrittenMetadata>, EngineError> {
    rewrite_with(cluster, target, names::CLIENT, |live, _| {
        let entries = managers(live);
        let adopted = managed_fields::former::adopt(entries, manager);
        let marks = helm_marks(live);
        if adopted.is_none() && marks.is_empty() {
            return None;
        }
        let mut patch: Vec<Value> = adopted
            .into_iter()
            .map(|adopted| json!({"op": "replace", "path": FIELDS, "value": adopted}))
            .collect();
        patch.extend(marks);
        if let Some(former) = managed_fields::former::former(entries, manager) {
            let path = annotation(names::ANNOTATION_FORMER_MANAGER);
            patch.push(json!({"op": "add", "path": path, "value": former}));
        }
        let last_applied = annotation(LAST_APPLIED);
        if live.pointer(&last_applied).is_some() {
            let path = annotation(names::ANNOTATION_FORMER_LAST_APPLIED);
            patch.push(if target.key.is_secret() {
                json!({"op": "remove", "path": last_applied})
            } else {
                json!({"op": "move", "from": last_applied, "path": path})
            });
        }
        Some(patch)
    })
    .await
}

/// The changes that replace the marks of a release by a note of which one it was.
fn helm_marks(live: &Value) -> Vec<Value> {
    let text = |name: &str| live.pointer(&annotation(name)).and_then(Value::as_str);
    let [name, namespace] = [text(HELM_NAME), text(HELM_NAMESPACE)];
    let there = [(HELM_NAME, name), (HELM_NAMESPACE, namespace)].into_iter();
    let mut patch: Vec<Value> = there
        .filter(|(_, value)| value.is_some())
        .map(|(mark, _)| json!({"op": "remove", "path": annotation(mark)}))
        .collect();
    if let (Some(name), Some(namespace)) = (name, namespace) {
        let path = annotation(names::ANNOTATION_FORMER_RELEASE);
        patch.push(json!({"op": "add", "path": path, "value": format!("{namespace}/{name}")}));
    }
    patch
}

/// The pointer to an annotation.
pub(super) fn annotation(name: &str) -> String {
    format!("/metadata/annotations/{}", path::escaped(name))
}

/// Returns to the managers of an object that was there before us what was just taken from them: the values are ours, and when
/// the object is released, they stay with those who have set these fields. Sends nothing where nothing was taken.
pub(super) async fn give_back(
    applier: &Applier,
    cluster: &Cluster,
    step: &Step,
    attempt: &Attempt,
    mut applied: Applied,
) -> Result<Applied, EngineError> {
    if attempt.settled.iter().all(Settled::is_left) {
        return Ok(applied);
    }
    let rewritten = rewrite(cluster, &step.target, &applier.manager, |live| {
        managed_fields::give_back(live, &attempt.before, &applier.manager)
    });
    match rewritten.await {
        Ok(Some(written)) => applied.object.metadata.take_version(written),
        Ok(None) => {}
        // Another client writes all the time: its fields are its own again.
        Err(error) if error.is_conflict() => {}
        Err(error) => return Err(error),
    }
    Ok(applied)
}

/// Makes fields those of `manager` alone, whoever owns them, so that an apply without them removes them. No value changes.
pub(super) async fn claim(
    cluster: &Cluster,
    target: &Target,
    manager: &str,
    paths: &[Path],
) -> Result<(), EngineError> {
    let version = target.gvk().api_version();
    let rewritten = rewrite(cluster, target, manager, |live| {
        managed_fields::claim(live, paths, manager, &version)
    });
    match rewritten.await {
        // It was deleted meanwhile: the apply creates it again.
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

/// The version that the server can no longer convert to, where its message says so.
pub(super) fn gone_version(error: &EngineError) -> Option<String> {
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

/// Moves the entries of a removed version to the version that is applied, or that is served instead of it.
pub(super) async fn heal(
    cluster: &Cluster,
    target: &Target,
    manager: &str,
    version: String,
    error: EngineError,
) -> Result<(), EngineError> {
    let rewritten = rewrite_with(cluster, target, manager, |live, served| {
        let to = served.api_version();
        Some(replacing(&managed_fields::move_version(
            managers(live),
            &version,
            &to,
        )?))
    });
    match rewritten.await? {
        Some(_) => Ok(()),
        // No entry has the version that the server complains about.
        None => Err(error),
    }
}

/// Writes managedFields, and nothing else: see [`rewrite_with`].
async fn rewrite(
    cluster: &Cluster,
    target: &Target,
    manager: &str,
    change: impl Fn(&[Value]) -> Option<Vec<Value>>,
) -> Result<Option<WrittenMetadata>, EngineError> {
    rewrite_with(cluster, target, manager, |live, _| {
        Some(replacing(&change(managers(live))?))
    })
    .await
}

/// The patch that replaces managedFields.
fn replacing(entries: &[Value]) -> Vec<Value> {
    vec![json!({"op": "replace", "path": FIELDS, "value": entries})]
}

/// Writes managedFields and annotations, guarded by the resourceVersion that they were read with; the object after that, or `None` where
/// there is nothing to change. `change` gets the version that the object is served in.
pub(super) async fn rewrite_with(
    cluster: &Cluster,
    target: &Target,
    manager: &str,
    change: impl Fn(&Value, &Gvk) -> Option<Vec<Value>>,
) -> Result<Option<WrittenMetadata>, EngineError> {
    let mut collection = Collection::of(target);
    let name = &target.key.name;
    let mut tries = 1;
    loop {
        let call = |at: &Collection| Call::get(at, name, METADATA);
        let live = addressed::send::<Value>(cluster, &mut collection, name, call).await?;
        let live = live.object;
        let Some(mut patch) = change(&live, &collection.gvk) else {
            return Ok(None);
        };
        // A replacement that changes nothing is a precondition: 409 where another client wrote.
        let version = live.pointer("/metadata/resourceVersion");
        patch.push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}));
        let patch = Value::Array(patch);
        let call = Call::patch(&collection, name, JSON_PATCH, METADATA)
            .query("fieldManager", manager)
            .body(body(target, &patch)?);
        match cluster.send::<Written>(call).await {
            Ok(answer) => return Ok(Some(answer.object.metadata)),
            Err(error) if error.is_conflict() && tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}
