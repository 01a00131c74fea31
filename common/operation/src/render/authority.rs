//! The certificate authority that an entry of a kops index asks for (`needsPKI`): a Secret with its certificate and key, and the
//! cert-manager Issuer that signs with it. As with kops, both are in kube-system, and existing ones stay unchanged.

use std::sync::Arc;
use std::time::Duration;

use addons_engine::authority::{self, NAMESPACE, secret_name};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::authority::Authority;
use common::api::names::{ANNOTATION_APPLY, APPLY_CREATE_ONLY};
use common::catalogue::CatalogueEntry;
use common::manifest::{FilePosition, Manifest};
use jiff::Timestamp;
use serde_json::json;

use crate::context::Context;
use crate::error::OperationError;

/// Ten years, as for the authorities of kops.
const LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Whether the authority that the entry asks for exists, or the entry asks for none.
pub(crate) async fn exists(ctx: &Context, entry: &CatalogueEntry) -> Result<bool, OperationError> {
    if !entry.version.needs_pki {
        return Ok(true);
    }
    Ok(authority::exists(ctx.cluster().await?, &entry.addon).await?)
}

/// Returns both objects, with a new key.
pub(crate) fn manifests(
    entry: &CatalogueEntry,
    now: Timestamp,
) -> Result<Vec<Manifest>, OperationError> {
    let name = &entry.addon;
    let secret = secret_name(name);
    let authority = Authority::new(name, now, LIFETIME);
    let authority = authority.map_err(|error| OperationError::Authority(Box::new(error)))?;
    let metadata = |name: &str| {
        json!({
            "name": name,
            "namespace": NAMESPACE,
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
