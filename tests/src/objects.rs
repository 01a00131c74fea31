//! Single objects, read and written as kubectl does, without a program: kubectl takes more processor time for that than the API
//! server.

use anyhow::{Context as _, Result, bail};
use common::manifest::yaml::{YamlOptions, documents};
use kube::Client;
use serde_json::{Value, json};

use crate::until::until;

/// What tests read and write: the name as for kubectl, the API, the resource, and whether it is namespaced.
const KINDS: &[(&str, &str, &str, bool)] = &[
    (
        "addoncatalogue",
        "apis/kubectl-addons.dev/v1alpha1",
        "addoncatalogues",
        true,
    ),
    (
        "addoninstallation",
        "apis/kubectl-addons.dev/v1alpha1",
        "addoninstallations",
        true,
    ),
    ("clusterrole", RBAC, "clusterroles", false),
    ("clusterrolebinding", RBAC, "clusterrolebindings", false),
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
    ("role", RBAC, "roles", true),
    ("rolebinding", RBAC, "rolebindings", true),
    ("secret", CORE, "secrets", true),
    ("service", CORE, "services", true),
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
    let of = collection(api, resource, *is_namespaced, namespace);
    Some(format!("{of}/{name}"))
}

fn collection(api: &str, resource: &str, is_namespaced: bool, namespace: &str) -> String {
    if is_namespaced {
        format!("/{api}/namespaces/{namespace}/{resource}")
    } else {
        format!("/{api}/{resource}")
    }
}

/// Boxed: unoptimised, a future lies on the stack of everybody who waits for it, and that of kube alone is large.
async fn send(client: &Client, asked: http::Request<Vec<u8>>) -> Result<Value, kube::Error> {
    Box::pin(client.request(asked)).await
}

/// The object of a path as `kubectl get -o json` prints it, without its managers; `None` where there is none.
///
/// # Errors
/// The API server cannot be reached, or refuses.
pub async fn read(client: &Client, path: &str) -> Result<Option<Value>> {
    let asked = http::Request::get(path).body(Vec::new())?;
    match send(client, asked).await {
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

/// Merges a patch into the object of a path, or of its subresource, as `kubectl patch --type=merge` does.
///
/// # Errors
/// The API server cannot be reached, or refuses.
pub async fn patch(client: &Client, path: &str, patch: &Value) -> Result<()> {
    let asked = http::Request::patch(format!("{path}?fieldManager=kubectl-patch"))
        .header("Content-Type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes())?;
    let patched = send(client, asked).await;
    patched.with_context(|| path.to_owned()).map(drop)
}

/// Deletes the object of a path and waits until it is gone, as `kubectl delete` does.
///
/// # Errors
/// The API server cannot be reached, or refuses; the object does not go.
pub async fn delete(client: &Client, path: &str) -> Result<()> {
    let options = json!({"propagationPolicy": "Background"}).to_string();
    let asked = http::Request::delete(path)
        .header("Content-Type", "application/json")
        .body(options.into_bytes())?;
    let deleted = send(client, asked).await;
    let uid = deleted.with_context(|| path.to_owned())?;
    // The answer is the object where finalizers hold it, and a Status with its uid where it is gone.
    let uid = [&uid["metadata"]["uid"], &uid["details"]["uid"]]
        .into_iter()
        .find(|uid| uid.is_string())
        .cloned();
    until(&format!("{path} is gone"), async || {
        let found = read(client, path).await?;
        let is_left = found.filter(|found| Some(&found["metadata"]["uid"]) == uid.as_ref());
        Ok(is_left.map_or(Ok(()), |left| Err(left.to_string())))
    })
    .await
}

/// Deletes the installations of a namespace without what they installed.
///
/// # Errors
/// The API server cannot be reached, or refuses.
pub async fn delete_records(client: &Client, namespace: &str) -> Result<()> {
    let all =
        format!("/apis/kubectl-addons.dev/v1alpha1/namespaces/{namespace}/addoninstallations");
    let found = send(client, http::Request::get(&all).body(Vec::new())?).await?;
    for record in found["items"].as_array().into_iter().flatten() {
        let path = format!(
            "{all}/{}",
            record["metadata"]["name"].as_str().unwrap_or_default()
        );
        if record["metadata"]["finalizers"].is_array() {
            patch(client, &path, &json!({"metadata": {"finalizers": null}})).await?;
        }
        let gone = send(client, http::Request::delete(&path).body(Vec::new())?).await;
        // It was being deleted already.
        gone.map(drop).or_else(|error| match error {
            kube::Error::Api(status) if status.code == 404 => Ok(()),
            error => Err(error),
        })?;
    }
    Ok(())
}

/// Creates the objects of a manifest as `kubectl apply` does; `false`, and some may be created, where that is no matter of creating
/// objects of known kinds.
///
/// # Errors
/// Not YAML; the API server cannot be reached, or refuses.
pub async fn create(client: &Client, namespace: &str, manifest: &str) -> Result<bool> {
    let read: Result<Vec<_>, _> = documents(manifest.as_bytes(), &YamlOptions::default()).collect();
    let objects = read?.into_iter().map(|document| document.value);
    for mut object in objects.filter(|object| !object.is_null()) {
        let Some(of) = collection_of(&object, namespace) else {
            return Ok(false);
        };
        remember(&mut object, namespace);
        let asked = http::Request::post(format!(
            "{of}?fieldManager=kubectl-client-side-apply&fieldValidation=Strict"
        ))
        .header("Content-Type", "application/json")
        .body(object.to_string().into_bytes())?;
        match send(client, asked).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => return Ok(false),
            Err(error) => bail!("{of}: {error}"),
        }
    }
    Ok(true)
}

/// Where objects like this one are created; `None` for kinds that only kubectl knows.
fn collection_of(object: &Value, namespace: &str) -> Option<String> {
    let version = object["apiVersion"].as_str()?;
    let kind = object["kind"].as_str()?.to_lowercase();
    let own = object["metadata"]["namespace"].as_str();
    let mut known = KINDS.iter();
    known.find_map(|(name, api, resource, is_namespaced)| {
        let is_this = *name == kind && api.split_once('/')?.1 == version;
        is_this.then(|| collection(api, resource, *is_namespaced, own.unwrap_or(namespace)))
    })
}

/// Keeps what was applied where `kubectl apply` looks for it.
fn remember(object: &mut Value, namespace: &str) {
    let is_namespaced =
        collection_of(object, namespace).is_some_and(|of| of.contains("/namespaces/"));
    let metadata = &mut object["metadata"];
    if is_namespaced && metadata["namespace"].is_null() {
        metadata["namespace"] = json!(namespace);
    }
    if metadata["annotations"].is_null() {
        metadata["annotations"] = json!({});
    }
    let applied = format!("{object}\n");
    object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
        json!(applied);
}
