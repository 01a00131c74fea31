//! The certificate authority that an entry of a kops index asks for (`needsPKI`): a Secret with its certificate and key, and the
//! cert-manager Issuer that signs with it. As with kops, both are in kube-system, and existing ones stay unchanged.

use std::sync::Arc;
use std::time::Duration;

use addons_plan::kops::{AUTHORITY_NAMESPACE, authority_secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::authority::Authority;
use common::api::names::{ANNOTATION_APPLY, APPLY_CREATE_ONLY};
use common::catalogue::CatalogueEntry;
use common::manifest::{FilePosition, Manifest};
use jiff::Timestamp;
use serde_json::json;

use crate::error::OperationError;

/// Ten years, as for the authorities of kops.
const LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Returns both objects, with a new key.
pub(crate) fn manifests(
    entry: &CatalogueEntry,
    now: Timestamp,
) -> Result<Vec<Manifest>, OperationError> {
    let name = &entry.addon;
    let secret = authority_secret(name);
    let authority = Authority::new(name, now, LIFETIME);
    let authority = authority.map_err(|error| OperationError::Authority(Box::new(error)))?;
    let metadata = |name: &str| {
        json!({
            "name": name,
            "namespace": AUTHORITY_NAMESPACE,
            "annotations": {ANNOTATION_APPLY: APPLY_CREATE_ONLY},
        })
    };
    let objects = [
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata(&secret),
            "type": "kubernetes.io/tls",
            "data": {
                "tls.crt": STANDARD.encode(authority.certificate_pem()),
                "tls.key": STANDARD.encode(authority.key_pem()),
            },
        }),
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Issuer",
            "metadata": metadata(name),
            "spec": {"ca": {"secretName": secret}},
        }),
    ];
    let place = FilePosition {
        file: format!("{}, needsPKI", entry.place),
        ..FilePosition::default()
    };
    let manifests = objects.into_iter().map(|object| Manifest {
        object: Arc::new(object),
        place: place.clone(),
    });
    Ok(manifests.collect())
}
