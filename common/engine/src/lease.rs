//! Leases of `coordination.k8s.io`, which decide who leads a loop. Every write carries the resourceVersion that was read, so only one of
//! two candidates wins.

use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{self, ApiCall, JSON};
use super::watch::{self, Observation};

/// Reads a Lease; `None` if it does not exist.
///
/// # Errors
/// Those of the request.
pub async fn get(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<Lease>, EngineError> {
    let call = ApiCall::get(&collection(namespace), name, JSON).urgent();
    request::if_found(cluster.send::<Lease>(call).await)
}

/// Reports a Lease as it is now, and then each change of it, until `see` returns `true`. Nothing is reported while it cannot be watched;
/// callers read it once more before they act.
///
/// # Errors
/// Those that a repeated request would return again, such as a missing right to watch.
pub async fn follow(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    mut see: impl FnMut(Option<Lease>) -> bool,
) -> Result<(), EngineError> {
    watch::observe(cluster, &collection(namespace), Some(name), |seen| {
        let lease = match seen {
            Observation::Listed(leases) => leases.into_iter().next(),
            Observation::Changed(lease) => Some(lease),
            Observation::Deleted(_) => None,
            Observation::Lost(_) => return false,
        };
        // An unreadable Lease is reported as an error when it is read for acting on it.
        match lease.map(serde_json::from_value).transpose() {
            Ok(lease) => see(lease),
            Err(_) => true,
        }
    })
    .await
}

/// Returns a Lease that does not exist yet.
#[must_use]
pub fn new(namespace: &str, name: &str) -> Lease {
    let mut lease = Lease::default();
    lease.metadata.name = Some(name.to_owned());
    lease.metadata.namespace = Some(namespace.to_owned());
    lease
}

/// Writes a Lease under the resourceVersion that was read, or creates it; `None` if another client was faster.
///
/// # Errors
/// Those of the request.
pub async fn write(cluster: &Cluster, lease: &Lease) -> Result<Option<Lease>, EngineError> {
    let collection = collection(&lease.namespace().unwrap_or_default());
    let name = lease.name_any();
    let is_new = lease.metadata.resource_version.is_none();
    let call = if is_new {
        ApiCall::create(&collection, &name, JSON)
    } else {
        ApiCall::replace(&collection, &name, JSON)
    };
    match cluster
        .send::<Lease>(call.urgent().body(body(lease)?))
        .await
    {
        Ok(answer) => Ok(Some(answer.object)),
        Err(error) if error.is_conflict() => Ok(None),
        // If the Lease is new, its namespace does not exist, which is an error.
        Err(error) if error.is_not_found() && !is_new => Ok(None),
        Err(error) => Err(error),
    }
}

fn collection(namespace: &str) -> Collection {
    Collection::from_names("coordination.k8s.io/v1", "Lease", "leases", Some(namespace))
}

fn body(lease: &Lease) -> Result<Vec<u8>, EngineError> {
    // The types of k8s-openapi serialize apiVersion and kind by themselves.
    serde_json::to_vec(lease).map_err(|error| EngineError::Api {
        what: format!("Lease {}", lease.name_any()),
        message: error.to_string(),
        code: 0,
    })
}
