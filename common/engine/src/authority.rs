//! The certificate authority that an entry asks for (`needsPKI`): the names of its objects, and whether they exist.

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::snapshot::read_one;

/// The namespace of the certificate authorities, for entries of any namespace.
pub const NAMESPACE: &str = "kube-system";

/// Returns the name of the Secret with the certificate authority of an add-on. Its Issuer has the name of the add-on.
#[must_use]
pub fn secret_name(addon: &str) -> String {
    format!("{addon}-ca")
}

/// Whether the Secret and the Issuer of an add-on's certificate authority exist: two GETs.
///
/// # Errors
/// Those of the requests.
pub async fn exists(cluster: &Cluster, addon: &str) -> Result<bool, EngineError> {
    let namespace = Some(NAMESPACE);
    let secrets = Collection::from_names("v1", "Secret", "secrets", namespace);
    let issuers = Collection::from_names("cert-manager.io/v1", "Issuer", "issuers", namespace);
    let secret = secret_name(addon);
    if read_one(cluster, &secrets, &secret).await?.is_none() {
        return Ok(false);
    }
    match read_one(cluster, &issuers, addon).await {
        // Without cert-manager, nothing signs certificates.
        Err(error) if error.is_unserved() => Ok(false),
        found => Ok(found?.is_some()),
    }
}
