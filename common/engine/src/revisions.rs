//! Stores the revisions of an installation: ControllerRevisions that its record owns.
//!
//! They are written after the last status of an operation, when the lock is free, and never decide its result: without them, only a
//! rollback is not possible. All requests are sent with the rights that write the record.

use serde::Deserialize;
use serde_json::{Value, json};

use addons_plan::history::{self, RevisionTooLarge, StoredRevision};
use common::api::installation::AddonInstallation;
use common::api::names::{
    self, InstallationName, LABEL_OUTCOME, LABEL_REVISION_OF, OUTCOME_DONE, OUTCOME_FAILED,
};
use common::entrance;
use common::manifest::key::ObjectKey;

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::error::EngineError;
use super::event::Event;
use super::listing::read_one_page;
use super::meta::{LiveMetadata, PartialObject};
use super::request::{ApiCall, JSON, METADATA, METADATA_LIST};
use super::task::Task;
use super::{delete, listing, record};

const API_VERSION: &str = "apps/v1";
const KIND: &str = "ControllerRevision";
/// Maximum number of revision numbers that are tried: one may be taken by a revision of a former installation with the same name.
const TRIES: usize = 3;

/// Why a revision is not stored.
#[derive(Debug, thiserror::Error)]
enum RevisionError {
    #[error(transparent)]
    TooLarge(#[from] RevisionTooLarge),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("every number that was tried is taken")]
    Taken,
}

/// A revision of which only metadata was read.
struct ListedRevision {
    number: i64,
    is_done: bool,
    /// Whether it belongs to this installation, and not to a former one with the same name, whose revisions are about to be deleted.
    is_ours: bool,
    metadata: LiveMetadata,
}

/// A whole revision.
#[derive(Deserialize)]
struct WholeRevision {
    metadata: LiveMetadata,
    #[serde(default)]
    revision: i64,
    #[serde(default)]
    data: Value,
}

/// Returns the revisions of an installation, newest first. Revisions in the format of another release, and unreadable ones, are left out.
///
/// # Errors
/// Those of the request.
pub async fn list(
    cluster: &Cluster,
    record: &AddonInstallation,
) -> Result<Vec<StoredRevision>, EngineError> {
    let name = record::name(record);
    let collection = collection(&name.namespace);
    let call = ApiCall::list(&collection, JSON)
        .with_own_rights()
        .query("labelSelector", &query_value(&selector(&name)));
    let read = |text: &str| Ok(entrance::from_str::<WholeRevision>(text).ok());
    let found = listing::list_pages(cluster.home(), call, read).await?;
    let found = found.into_iter().flatten();
    let ours = found.filter(|one| owns(record, &one.metadata));
    let mut revisions: Vec<StoredRevision> = ours
        .filter_map(|one| {
            let revision: StoredRevision = serde_json::from_value(one.data).ok()?;
            Some(StoredRevision {
                number: one.revision,
                ..revision
            })
        })
        .collect();
    revisions.sort_by_key(|one| std::cmp::Reverse(one.number));
    Ok(revisions)
}

/// Stores a revision for the operation that just ended, and deletes the oldest. A failure is a warning.
pub(super) async fn store_revision(
    cluster: &Cluster,
    task: &Task<'_>,
    record: &AddonInstallation,
    events: &(dyn Fn(Event) + Send + Sync),
) {
    if let Err(why) = try_store(cluster, task, record).await {
        let name = record::name(record);
        events(Event::Warning {
            key: ObjectKey {
                group: "apps".to_owned(),
                kind: KIND.to_owned(),
                name: names::revision_stem(&name),
                namespace: Some(name.namespace),
            },
            message: format!("a rollback cannot go back to this revision: {why}"),
        });
    }
}

async fn try_store(
    cluster: &Cluster,
    task: &Task<'_>,
    record: &AddonInstallation,
) -> Result<(), RevisionError> {
    let status = record.status.as_ref();
    let ended = status.and_then(|status| status.history.first());
    let (Some(entry), Some(operation), false) =
        (task.entry, ended, task.plan.verb.ends_installation())
    else {
        return Ok(());
    };
    let before = task.wanted.status.as_ref();
    let is_repeated = before.is_some_and(|before| {
        let is_same_spec = before.observed_generation == record.metadata.generation;
        let last = before.history.first();
        last.is_some_and(|last| history::is_repeated(last, operation, is_same_spec))
    });
    if is_repeated {
        return Ok(());
    }
    let rollback_to = task.plan.revision;
    let revision = StoredRevision::new(operation.clone(), task.wanted, entry, rollback_to);
    let data = revision.to_data()?;
    let is_first = before.is_none_or(|status| status.history.is_empty());
    let mut found = match is_first {
        true => Vec::new(),
        false => list_metadata(cluster, record).await?,
    };
    for _ in 0..TRIES {
        let last = found.iter().map(|one| one.number).max();
        let number = last.unwrap_or_default() + 1;
        if create(cluster, record, number, operation.is_done(), &data).await? {
            found.retain(|one| one.is_ours);
            return delete_surplus(cluster, &record::name(record), found, operation.is_done())
                .await;
        }
        found = list_metadata(cluster, record).await?;
    }
    Err(RevisionError::Taken)
}

/// Creates a revision; `false` if its name is taken.
async fn create(
    cluster: &Cluster,
    record: &AddonInstallation,
    number: i64,
    is_done: bool,
    data: &Value,
) -> Result<bool, EngineError> {
    let owner = record::name(record);
    let outcome = if is_done {
        OUTCOME_DONE
    } else {
        OUTCOME_FAILED
    };
    let name = names::revision_name(&owner, number);
    let revision = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": {LABEL_REVISION_OF: names::revision_stem(&owner), LABEL_OUTCOME: outcome},
            "ownerReferences": [{
                "apiVersion": names::API_VERSION,
                "kind": "AddonInstallation",
                "name": owner.name,
                "uid": record.metadata.uid,
                "controller": true,
                // `true` would need the right to set finalizers of the record.
                "blockOwnerDeletion": false,
            }],
        },
        "revision": number,
        "data": data,
    });
    let call = ApiCall::create(&collection(&owner.namespace), &name, METADATA)
        .with_own_rights()
        .query("fieldManager", names::CLIENT)
        .body(revision.to_string().into_bytes());
    match cluster.home().send::<PartialObject>(call).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes the oldest of the existing revisions after a new one. `is_done`: whether the new one succeeded.
async fn delete_surplus(
    cluster: &Cluster,
    owner: &InstallationName,
    mut found: Vec<ListedRevision>,
    is_done: bool,
) -> Result<(), RevisionError> {
    found.sort_by_key(|one| std::cmp::Reverse(one.number));
    let older = found
        .into_iter()
        .map(|one| (Some(one.metadata), one.is_done));
    let all = std::iter::once((None, is_done)).chain(older).collect();
    for metadata in history::select_surplus::<Option<LiveMetadata>>(all)
        .into_iter()
        .flatten()
    {
        let unchanged = json!({"uid": metadata.uid, "resourceVersion": metadata.resource_version});
        let options = delete::delete_options(unchanged, None);
        let call = ApiCall::delete(&collection(&owner.namespace), &metadata.name)
            .with_own_rights()
            .body(options.to_string().into_bytes());
        match cluster.home().send::<PartialObject>(call).await {
            Ok(_) => {}
            // Another client deleted it.
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns the metadata of all revisions under the name of an installation.
async fn list_metadata(
    cluster: &Cluster,
    record: &AddonInstallation,
) -> Result<Vec<ListedRevision>, EngineError> {
    let name = record::name(record);
    let call = ApiCall::list(&collection(&name.namespace), METADATA_LIST)
        .with_own_rights()
        .query("labelSelector", &query_value(&selector(&name)));
    let listed = read_one_page::<PartialObject>(cluster.home(), call).await?;
    let prefix = format!("{}.v", names::revision_stem(&name));
    let found = listed
        .items
        .into_iter()
        .filter_map(|PartialObject { metadata }| {
            let outcome = metadata.labels.get(LABEL_OUTCOME).map(String::as_str);
            Some(ListedRevision {
                number: metadata.name.strip_prefix(&prefix)?.parse().ok()?,
                is_done: outcome == Some(OUTCOME_DONE),
                is_ours: owns(record, &metadata),
                metadata,
            })
        });
    Ok(found.collect())
}

/// Returns whether a record owns an object.
fn owns(record: &AddonInstallation, metadata: &LiveMetadata) -> bool {
    let uid = record.metadata.uid.as_deref();
    let mut owners = metadata.owner_references.iter();
    owners.any(|owner| uid == Some(owner.uid.as_str()))
}

fn selector(name: &InstallationName) -> String {
    format!("{LABEL_REVISION_OF}={}", names::revision_stem(name))
}

fn collection(namespace: &str) -> Collection {
    Collection::from_names(API_VERSION, KIND, "controllerrevisions", Some(namespace))
}

#[cfg(test)]
#[path = "revisions/tests.rs"]
mod tests;
