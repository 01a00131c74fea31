//! The part of kustomize that our own kustomizations use: resources, and labels of the objects themselves. Any other field is an error, so
//! that the result is the same as that of `kubectl kustomize`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::files;

/// Why a folder of `deploy/` cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuiltinError {
    /// The file is not compiled in.
    #[error("deploy/{path} is not part of this program")]
    Missing {
        /// The path below `deploy/`.
        path: String,
    },
    /// The file does not have the expected form.
    #[error("deploy/{path}")]
    Unreadable {
        /// The path below `deploy/`.
        path: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Labels in selectors are not supported: they would change what is already installed.
    #[error("deploy/{path}: labels[].includeSelectors is not supported")]
    Selectors {
        /// The path below `deploy/`.
        path: String,
    },
    /// The webhook has no container.
    #[error("deploy/base has no container with an image")]
    NoImage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Kustomization {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    resources: Vec<String>,
    #[serde(default)]
    labels: Vec<KustomizationLabels>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KustomizationLabels {
    pairs: BTreeMap<String, String>,
    #[serde(default)]
    include_selectors: bool,
}

/// Returns the objects of a folder below `deploy/`, in the order of its resources.
pub(super) fn build(folder: &str) -> Result<Vec<Value>, BuiltinError> {
    let path = format!("{folder}/kustomization.yaml");
    let text = files::get(&path).ok_or_else(|| BuiltinError::Missing { path: path.clone() })?;
    let read: Result<Kustomization, _> = serde_saphyr::from_str(text);
    let kustomization = read.map_err(|error| unreadable(&path, error))?;
    let mut objects = Vec::new();
    for resource in &kustomization.resources {
        let path = join(folder, resource);
        match files::get(&path) {
            Some(text) => {
                let read: Result<Vec<Value>, _> = serde_saphyr::from_multiple(text);
                objects.extend(read.map_err(|error| unreadable(&path, error))?);
            }
            None => objects.extend(build(&path)?),
        }
    }
    for labels in &kustomization.labels {
        if labels.include_selectors {
            return Err(BuiltinError::Selectors { path });
        }
        for object in &mut objects {
            for (name, value) in &labels.pairs {
                object["metadata"]["labels"][name] = value.clone().into();
            }
        }
    }
    Ok(objects)
}

fn unreadable(path: &str, error: impl std::error::Error + Send + Sync + 'static) -> BuiltinError {
    BuiltinError::Unreadable {
        path: path.to_owned(),
        source: Box::new(error),
    }
}

/// Returns the path of a resource: in its folder or below it, or beside it with `../`.
fn join(folder: &str, resource: &str) -> String {
    match resource.strip_prefix("../") {
        Some(beside) => match folder.rsplit_once('/') {
            Some((parent, _)) => join(parent, beside),
            None => beside.to_owned(),
        },
        None => format!("{folder}/{resource}"),
    }
}
