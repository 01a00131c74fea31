//! Writes the records of core installations, as the core set requires, and their conditions (semantics 14). Only spec and metadata are
//! written here; their objects are installed like those of every other record.

use std::collections::BTreeMap;

use common::api::conditions;
use common::api::installation::AddonInstallation;
use common::api::installation::core_guard::{add_guard, freed_record, released_record};
use common::api::names::{self, ANNOTATION_CLUSTER_DELETING, LABEL_KUBECONFIG_SECRET, MARKED};
use common::target::DeletedCluster;
use serde_json::json;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::{LiveMetadata, PartialObject};
use super::request::{self, ApiCall, MERGE_PATCH, METADATA};
use super::snapshot::{namespace_collection, read_all, read_selected};
use super::{lock, record, status};

/// The API groups that have a kind `Cluster`, each with its versions, the newest first.
const CLUSTERS: [&[&str]; 2] = [
    &["cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"],
    &["kubermatic.k8c.io/v1"],
];

/// The parts of a namespace that the core set depends on.
#[derive(Clone, Debug, Default)]
pub struct HomeNamespace {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether its cluster is being deleted.
    pub is_marked: bool,
    /// Whether the namespace itself is being deleted.
    pub is_being_deleted: bool,
}

/// Reads the namespace that stands for a cluster; `None` if it does not exist.
///
/// # Errors
/// Those of the request.
pub async fn read_home(
    cluster: &Cluster,
    namespace: &str,
) -> Result<Option<HomeNamespace>, EngineError> {
    let call = ApiCall::get(&namespace_collection(), namespace, METADATA).with_own_rights();
    let found = request::if_found(cluster.home().send::<PartialObject>(call).await)?;
    Ok(found.map(|object| object.metadata.into()))
}

/// Returns the namespaces whose label names the kubeconfig Secret of another cluster, with one LIST.
///
/// # Errors
/// Those of the request.
pub async fn list_homes(cluster: &Cluster) -> Result<BTreeMap<String, HomeNamespace>, EngineError> {
    let selectors = [("labelSelector", LABEL_KUBECONFIG_SECRET)];
    let found = read_selected(cluster.home(), &namespace_collection(), &selectors).await?;
    let found = found.into_iter().flatten();
    let found = found.filter(|one| !names::is_reserved(&one.name));
    Ok(found.map(|one| (one.name.clone(), one.into())).collect())
}

impl From<LiveMetadata> for HomeNamespace {
    fn from(metadata: LiveMetadata) -> Self {
        let mark = metadata.annotations.get(ANNOTATION_CLUSTER_DELETING);
        Self {
            is_marked: mark.is_some_and(|mark| mark == MARKED),
            is_being_deleted: metadata.deletion_timestamp.is_some(),
            labels: metadata.labels,
        }
    }
}

/// Returns the clusters that are being deleted according to the Cluster API and KKP, with one LIST each. Kinds that cannot be listed are
/// skipped.
///
/// # Errors
/// The server cannot be reached.
pub async fn deleted_clusters(cluster: &Cluster) -> Result<Vec<DeletedCluster>, EngineError> {
    let mut found = Vec::new();
    for versions in CLUSTERS {
        let mut clusters = None;
        for version in versions {
            let collection = Collection::from_names(version, "Cluster", "clusters", None);
            clusters = match read_all(cluster.home(), &collection).await {
                Err(error) if error.code().is_some() => None,
                clusters => clusters?,
            };
            if clusters.is_some() {
                break;
            }
        }
        let mut clusters = clusters.unwrap_or_default();
        clusters.retain(|one| one.deletion_timestamp.is_some());
        let deleted = clusters
            .into_iter()
            .map(|one| DeletedCluster::new(&one.name, one.namespace, one.creation_timestamp));
        found.extend(deleted);
    }
    Ok(found)
}

/// Marks that the cluster of a namespace is being deleted, which lifts the guards in it.
///
/// # Errors
/// Those of the request.
pub async fn mark_cluster_deleting(cluster: &Cluster, namespace: &str) -> Result<(), EngineError> {
    let marked = json!({"metadata": {"annotations": {ANNOTATION_CLUSTER_DELETING: MARKED}}});
    let call = ApiCall::patch(&namespace_collection(), namespace, MERGE_PATCH, METADATA)
        .with_own_rights()
        .query("fieldManager", names::CLIENT)
        .body(marked.to_string().into_bytes());
    cluster.home().send::<PartialObject>(call).await.map(drop)
}

/// Creates the record of a core installation with its guard. Returns whether it did not exist.
///
/// # Errors
/// Those of the request.
pub async fn create(cluster: &Cluster, wanted: &AddonInstallation) -> Result<bool, EngineError> {
    let mut guarded = wanted.clone();
    add_guard(&mut guarded);
    Ok(record::create(cluster, &guarded).await?.is_some())
}

/// Writes spec and metadata of a record under its resourceVersion.
///
/// # Errors
/// Those of the request; a conflict if the record was written meanwhile.
pub async fn restore(cluster: &Cluster, wanted: &AddonInstallation) -> Result<(), EngineError> {
    record::replace(cluster, wanted).await.map(drop)
}

/// Marks a record as released, and also deletes it if `deletes`. The guard holds the record until its objects are deleted.
///
/// # Errors
/// Those of the requests; a conflict if the record was written meanwhile.
pub async fn release(
    cluster: &Cluster,
    dropped: &AddonInstallation,
    deletes: bool,
) -> Result<(), EngineError> {
    let marked = match released_record(dropped) {
        Some(released) => record::put_metadata(cluster, &released).await?,
        None => dropped.clone(),
    };
    if deletes && marked.metadata.deletion_timestamp.is_none() {
        record::delete(cluster, &marked, false).await?;
    }
    Ok(())
}

/// Removes our finalizers from a record, whose objects stay; a core record is also marked as released. Returns whether it had any.
///
/// # Errors
/// Those of the request; a conflict if the record was written meanwhile.
pub async fn remove_finalizers(
    cluster: &Cluster,
    held: &AddonInstallation,
) -> Result<bool, EngineError> {
    match freed_record(held) {
        Some(free) => match record::put_metadata(cluster, &free).await {
            Err(error) if error.is_not_found() => Ok(true),
            other => other.map(|_| true),
        },
        None => Ok(false),
    }
}

/// The type of a condition with its reason and message; `None` if the condition is false.
pub type ConditionUpdate<'a> = (&'a str, Option<(&'a str, &'a str)>);

/// Raises and lowers conditions of a record in one write. Returns whether anything changed; nothing is written while an operation is in
/// progress.
///
/// # Errors
/// Those of the request.
pub async fn update_conditions(
    cluster: &Cluster,
    known: &AddonInstallation,
    said: &[ConditionUpdate<'_>],
) -> Result<bool, EngineError> {
    let now = cluster.home().now();
    let stored = known.status.as_ref();
    if lock::availability(stored, now, false) != lock::Availability::Free {
        return Ok(false);
    }
    let before = stored.map_or(&[][..], |status| &status.conditions);
    let mut all = before.to_vec();
    let generation = known.metadata.generation;
    for (r#type, raised) in said {
        match raised {
            Some((reason, message)) => {
                let message = (*message).to_owned();
                let mut raised = status::new_condition(r#type, "True", reason, message, now);
                raised.observed_generation = generation;
                conditions::set(&mut all, raised);
            }
            None => status::lower_condition(&mut all, r#type, "Known", generation, now),
        }
    }
    if all == before {
        return Ok(false);
    }
    let mut flagged = known.clone();
    flagged.status.get_or_insert_default().conditions = all;
    match record::put_status(cluster, &mut flagged).await {
        Ok(()) => Ok(true),
        // The other client's write causes another check.
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}
