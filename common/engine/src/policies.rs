//! Reads the policies of administrators (semantics 19.1) with our own rights, whatever account applies the objects.

use common::api::names;
use common::api::policy::AddonPolicy;
use common::entrance;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::listing;
use super::request::{ApiCall, JSON};

/// Returns all policies, with one LIST; none if their CRD is missing.
///
/// # Errors
/// Those of the request.
pub async fn list(cluster: &Cluster) -> Result<Vec<AddonPolicy>, EngineError> {
    let collection =
        Collection::from_names(names::API_VERSION, "AddonPolicy", "addonpolicies", None);
    let list = ApiCall::list(&collection, JSON).with_own_rights();
    match listing::list_pages(cluster, list, |text| entrance::from_str(text)).await {
        Err(EngineError::NotInitialised) => Ok(Vec::new()),
        other => other,
    }
}
