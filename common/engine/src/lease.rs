//! Leases of `coordination.k8s.io`: who leads a loop. Every write carries the resourceVersion that was read, so of two candidates
//! one wins.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::ResourceExt as _;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{Call, JSON};

/// A Lease; `None` where there is none.
///
/// # Errors
/// Those of the request.
pub async fn get(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<Lease>, EngineError> {
    let call = Call::get(&collection(namespace), name, JSON).urgent();
    match cluster.send::<Lease>(call).await {
        Ok(answer) => Ok(Some(answer.object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates a Lease; `None` where another client was faster.
///
/// # Errors
/// Those of the request.
pub async fn create(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    spec: LeaseSpec,
) -> Result<Option<Lease>, EngineError> {
    let mut lease = Lease::default();
    lease.metadata.name = Some(name.to_owned());
    lease.metadata.namespace = Some(namespace.to_owned());
    lease.spec = Some(spec);
    let call = Call::create(&collection(namespace), name, JSON).urgent();
    won(cluster.send::<Lease>(call.body(body(&lease)?)).await)
}

/// Writes the spec of a Lease at the resourceVersion that it was read with; `None` where another client was faster.
///
/// # Errors
/// Those of the request.
pub async fn replace(
    cluster: &Cluster,
    read: &Lease,
    spec: LeaseSpec,
) -> Result<Option<Lease>, EngineError> {
    let namespace = read.namespace().unwrap_or_default();
    let lease = Lease {
        spec: Some(spec),
        ..read.clone()
    };
    let call = Call::replace(&collection(&namespace), &read.name_any(), JSON).urgent();
    won(cluster.send::<Lease>(call.body(body(&lease)?)).await)
}

fn won(
    answer: Result<super::request::Answer<Lease>, EngineError>,
) -> Result<Option<Lease>, EngineError> {
    match answer {
        Ok(answer) => Ok(Some(answer.object)),
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn collection(namespace: &str) -> Collection {
    Collection::known("coordination.k8s.io/v1", "Lease", "leases", Some(namespace))
}

fn body(lease: &Lease) -> Result<Vec<u8>, EngineError> {
    // The types of k8s-openapi write apiVersion and kind by themselves.
    serde_json::to_vec(lease).map_err(|error| EngineError::Api {
        what: format!("Lease {}", lease.name_any()),
        message: error.to_string(),
        code: 0,
    })
}
