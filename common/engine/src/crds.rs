//! Installs or updates our own CRDs, but never replaces newer ones (semantics 17.1), and waits until they are served.

use std::time::Duration;

use futures::future::try_join_all;
use semver::Version;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use common::api::names;
use common::manifest::key::ObjectKey;

use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::{LiveMetadata, PartialObject};
use super::request::{APPLY_PATCH, ApiCall, METADATA};
use super::served::{self, Definition};
use super::snapshot::read_one;

/// The result of installing one CRD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CrdResult {
    /// It did not exist.
    Created,
    /// It was older or had been edited.
    Updated,
    /// It was up to date.
    Unchanged,
    /// A newer version is installed and stays.
    Newer {
        /// The version in the cluster.
        version: String,
    },
}

/// Applies `definitions` (CRDs with the annotation `kubectl-addons.dev/crd-version`), and waits up to `timeout` until they are served.
/// Returns the results in the given order.
///
/// # Errors
/// Those of the requests; [`EngineError::Api`] if a CRD is not served in time or has no name.
pub async fn install(
    cluster: &Cluster,
    definitions: &[Value],
    timeout: Duration,
) -> Result<Vec<(ObjectKey, CrdResult)>, EngineError> {
    let deadline = Instant::now() + timeout.min(Duration::from_secs(3600));
    let installed = try_join_all(
        definitions
            .iter()
            .map(|object| install_one(cluster, object)),
    )
    .await?;
    if installed
        .iter()
        .all(|(_, done)| matches!(done, CrdResult::Unchanged | CrdResult::Newer { .. }))
    {
        return Ok(installed);
    }
    let pending = definitions
        .iter()
        .filter_map(Definition::from_object)
        .collect();
    let unserved = served::wait(cluster, pending, deadline, &|_, _| {}).await;
    match unserved.into_iter().next() {
        None => Ok(installed),
        Some((key, readiness)) => Err(EngineError::Api {
            what: key.to_string(),
            message: readiness.message,
            code: 0,
        }),
    }
}

async fn install_one(
    cluster: &Cluster,
    object: &Value,
) -> Result<(ObjectKey, CrdResult), EngineError> {
    let key = ObjectKey::from_object(object)
        .filter(ObjectKey::is_definition)
        .ok_or_else(|| EngineError::Api {
            what: "definition".to_owned(),
            message: "this is not a CustomResourceDefinition with a name".to_owned(),
            code: 0,
        })?;
    let collection = served::collection();
    let live = read_one(cluster, &collection, &key.name).await?;
    if let Some(version) = live.as_ref().and_then(|live| newer_version(live, object)) {
        return Ok((key, CrdResult::Newer { version }));
    }
    let call = ApiCall::patch(&collection, &key.name, APPLY_PATCH, METADATA)
        .query("fieldManager", names::CLIENT)
        .query("force", "true")
        .query("fieldValidation", "Strict")
        .body(object.to_string().into_bytes());
    let applied = cluster.send::<PartialObject>(call).await?.object.metadata;
    let done = match live {
        None => CrdResult::Created,
        Some(live) if live.resource_version == applied.resource_version => CrdResult::Unchanged,
        Some(_) => CrdResult::Updated,
    };
    Ok((key, done))
}

/// Returns the version of the live CRD if it is newer than ours. A CRD without a readable version counts as older.
fn newer_version(live: &LiveMetadata, object: &Value) -> Option<String> {
    let live = live.annotations.get(names::ANNOTATION_CRD_VERSION)?;
    let ours = object
        .get("metadata")?
        .get("annotations")?
        .get(names::ANNOTATION_CRD_VERSION)?
        .as_str()?;
    let (live_version, ours) = (Version::parse(live).ok()?, Version::parse(ours).ok()?);
    (live_version > ours).then(|| live.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_newer_definition_stays() {
        let live = |version: &str| -> LiveMetadata {
            serde_json::from_value(json!({"annotations": {names::ANNOTATION_CRD_VERSION: version}}))
                .unwrap()
        };
        let ours = json!({"metadata": {"annotations": {names::ANNOTATION_CRD_VERSION: "0.9.0"}}});
        assert_eq!(
            newer_version(&live("0.10.0"), &ours).as_deref(),
            Some("0.10.0")
        );
        assert_eq!(newer_version(&live("0.9.0"), &ours), None);
        assert_eq!(newer_version(&live("0.9.0-rc.1"), &ours), None);
        assert_eq!(newer_version(&live("new"), &ours), None);
        assert_eq!(newer_version(&LiveMetadata::default(), &ours), None);
    }
}
