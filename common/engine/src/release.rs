//! Whose a release of helm's is: helm keeps its labels on its own records, which are Secrets.

use common::api::names::LABEL_OWNER;

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::PartialList;
use super::request::{Call, METADATA_LIST};

/// Who installed a release, as its records say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseOwner {
    /// There is no such release.
    Missing,
    /// An installation, by the hash of its namespace and name.
    Installation(String),
    /// Helm, or another tool that uses it.
    Foreign,
}

/// Asks for the metadata of the release's records: one LIST.
///
/// # Errors
/// Those of the request.
pub async fn owner(
    cluster: &Cluster,
    namespace: &str,
    release: &str,
) -> Result<ReleaseOwner, EngineError> {
    let secrets = Collection::known("v1", "Secret", "secrets", Some(namespace));
    let selector = format!("owner=helm,name={release}");
    let call = Call::list(&secrets, METADATA_LIST).query("labelSelector", &query_value(&selector));
    let records = cluster.send::<PartialList>(call).await?.object.items;
    let mut owners = records
        .iter()
        .filter_map(|record| record.metadata.labels.get(LABEL_OWNER));
    Ok(match owners.next() {
        Some(owner) => ReleaseOwner::Installation(owner.clone()),
        None if records.is_empty() => ReleaseOwner::Missing,
        None => ReleaseOwner::Foreign,
    })
}
