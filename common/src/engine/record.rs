//! The record of an installation: lock, journal and inventory in one write (semantics 13).

use crate::api::installation::AddonInstallation;

use super::cluster::Cluster;
use super::error::EngineError;

/// One installation; `None` where there is none. [`EngineError::NotInitialised`] where our definitions are missing.
pub async fn get(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<AddonInstallation>, EngineError> {
    let _ = (cluster, namespace, name);
    todo!()
}

/// All installations of one namespace, or of all.
pub async fn list(
    cluster: &Cluster,
    namespace: Option<&str>,
) -> Result<Vec<AddonInstallation>, EngineError> {
    let _ = (cluster, namespace);
    todo!()
}
