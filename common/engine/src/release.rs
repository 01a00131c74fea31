//! Reads the owner of a Helm release and the records that helm keeps of it: a Secret for each revision.

mod content;
pub mod stored;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use addons_plan::prune::PruneObstacle;
use addons_plan::release_records::ReleaseRecords;
use common::api::installation::{HelmRecord, HelmRelease};
use common::api::names::LABEL_OWNER;

use super::address::Collection;
use super::cluster::Cluster;
use super::delete::{DeletionTarget, Propagation, delete};
use super::error::EngineError;
use super::meta::LiveMetadata;
use super::request::{ApiCall, JSON};
use super::snapshot::read_selected;

/// The owner of a release, according to its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseOwner {
    /// There is no such release.
    Missing,
    /// An installation, as the hash of its namespace and name.
    Installation(String),
    /// Helm, or another tool that uses it.
    Foreign,
}

/// Reads the owner of a release from the metadata of its records: one LIST.
///
/// # Errors
/// Those of the request.
pub async fn owner(cluster: &Cluster, release: &HelmRelease) -> Result<ReleaseOwner, EngineError> {
    let records = secrets(cluster, release).await?;
    let mut owners = records
        .iter()
        .filter_map(|record| record.labels.get(LABEL_OWNER));
    Ok(match owners.next() {
        Some(owner) => ReleaseOwner::Installation(owner.clone()),
        None if records.is_empty() => ReleaseOwner::Missing,
        None => ReleaseOwner::Foreign,
    })
}

/// Reads the records of a release. Does not read the content of those whose uid and resourceVersion are in `known`.
///
/// # Errors
/// Those of the requests.
pub async fn records(
    cluster: &Cluster,
    release: &HelmRelease,
    known: &[HelmRecord],
) -> Result<Vec<HelmRecord>, EngineError> {
    #[derive(Deserialize)]
    struct ReleaseContent {
        metadata: LiveMetadata,
        #[serde(default)]
        data: BTreeMap<String, String>,
    }
    let mut records = Vec::new();
    for LiveMetadata {
        name,
        uid,
        resource_version,
        ..
    } in secrets(cluster, release).await?
    {
        let mut known = known.iter();
        let known =
            known.find(|one| (&one.uid, &one.resource_version) == (&uid, &resource_version));
        if let Some(known) = known {
            records.push(known.clone());
            continue;
        }
        let call = ApiCall::get(&collection(release), &name, JSON);
        let found = match cluster.send::<ReleaseContent>(call).await {
            Ok(answer) => answer.object,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        let text = found.data.get("release");
        let digest = text.and_then(|text| content::digest(text.as_bytes()));
        records.push(HelmRecord {
            digest: digest.unwrap_or_default(),
            uid: found.metadata.uid,
            resource_version: found.metadata.resource_version,
            name,
        });
    }
    records.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(records)
}

/// Whether the records of a release are those that a plan was made with, unchanged.
pub(super) async fn is_as_planned(
    cluster: &Cluster,
    release: &HelmRelease,
    planned: &ReleaseRecords,
) -> Result<bool, EngineError> {
    let now = secrets(cluster, release).await?;
    let now: BTreeSet<(&str, &str)> = now
        .iter()
        .map(|one| (one.uid.as_str(), one.resource_version.as_str()))
        .collect();
    let planned = planned.known.iter().chain(&planned.left);
    let planned = planned.map(|one| (one.uid.as_str(), one.resource_version.as_str()));
    Ok(now == planned.collect())
}

/// Deletes records that an interrupted operation left, so that helm does not continue from them (semantics 13.8).
pub(super) async fn forget(
    cluster: &Cluster,
    release: &HelmRelease,
    left: &[HelmRecord],
) -> Result<(), EngineError> {
    let collection = collection(release);
    for record in left {
        let doomed = DeletionTarget {
            collection: &collection,
            name: &record.name,
            uid: &record.uid,
            judged: &record.resource_version,
            propagation: Propagation::Background,
        };
        let judge = |found: &LiveMetadata| {
            let is_same = found.resource_version == record.resource_version;
            (!is_same).then_some(PruneObstacle::ANOTHER)
        };
        delete(cluster, doomed, judge).await?;
    }
    Ok(())
}

async fn secrets(
    cluster: &Cluster,
    release: &HelmRelease,
) -> Result<Vec<LiveMetadata>, EngineError> {
    let selector = format!("owner=helm,name={}", release.name);
    let selectors = [("labelSelector", selector.as_str())];
    let found = read_selected(cluster, &collection(release), &selectors).await?;
    Ok(found.unwrap_or_default())
}

fn collection(release: &HelmRelease) -> Collection {
    Collection::from_names("v1", "Secret", "secrets", Some(&release.namespace))
}
