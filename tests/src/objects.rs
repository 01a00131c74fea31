//! Reading single objects without a program: kubectl takes more processor time for that than the API server.

use anyhow::{Context as _, Result};
use kube::Client;
use serde_json::Value;

/// What tests read: the name as for kubectl, the API, the resource, and whether it is namespaced.
const KINDS: &[(&str, &str, &str, bool)] = &[
    (
        "addoninstallation",
        "apis/kubectl-addons.dev/v1alpha1",
        "addoninstallations",
        true,
    ),
    ("clusterrole", RBAC, "clusterroles", false),
    ("configmap", CORE, "configmaps", true),
    ("crd", EXTENSIONS, DEFINITIONS, false),
    ("customresourcedefinition", EXTENSIONS, DEFINITIONS, false),
    ("deployment", "apis/apps/v1", "deployments", true),
    ("ingress", "apis/networking.k8s.io/v1", "ingresses", true),
    ("job", "apis/batch/v1", "jobs", true),
    ("lease", "apis/coordination.k8s.io/v1", "leases", true),
    ("namespace", CORE, "namespaces", false),
    ("node", CORE, "nodes", false),
    ("persistentvolumeclaim", CORE, CLAIMS, true),
    ("pod", CORE, "pods", true),
    ("pvc", CORE, CLAIMS, true),
    ("secret", CORE, "secrets", true),
    ("serviceaccount", CORE, "serviceaccounts", true),
    ("statefulset", "apis/apps/v1", "statefulsets", true),
];

const CORE: &str = "api/v1";
const EXTENSIONS: &str = "apis/apiextensions.k8s.io/v1";
const RBAC: &str = "apis/rbac.authorization.k8s.io/v1";
const DEFINITIONS: &str = "customresourcedefinitions";
const CLAIMS: &str = "persistentvolumeclaims";

/// The path of an object; `None` for a kind that only kubectl knows.
#[must_use]
pub fn path(kind: &str, namespace: &str, name: &str) -> Option<String> {
    let (_, api, resource, is_namespaced) = KINDS.iter().find(|(known, ..)| *known == kind)?;
    Some(if *is_namespaced {
        format!("/{api}/namespaces/{namespace}/{resource}/{name}")
    } else {
        format!("/{api}/{resource}/{name}")
    })
}

/// The object of a path as `kubectl get -o json` prints it, without its managers; `None` where there is none.
///
/// # Errors
/// The API server cannot be reached, or refuses.
pub async fn read(client: &Client, path: &str) -> Result<Option<Value>> {
    let asked = http::Request::get(path).body(Vec::new())?;
    match client.request::<Value>(asked).await {
        Ok(mut object) => {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            Ok(Some(object))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error).with_context(|| path.to_owned()),
    }
}
