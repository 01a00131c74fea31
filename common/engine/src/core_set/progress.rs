//! How far a change of the core sets has reached: a ConfigMap of the system namespace (semantics 14).

use addons_clusters::core_set::rollout::Progress;
use common::api::names::CORE_ADDON_ROLLOUT;
use common::entrance;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use serde_json::json;

use crate::cluster::Cluster;
use crate::config_map;
use crate::error::EngineError;

/// Its key.
const KEY: &str = "progress.json";

/// What is stored.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// How far the change has reached; that of none where nothing is stored, or nothing that can be read.
    pub progress: Progress,
    /// The ConfigMap as it was read.
    live: Option<ConfigMap>,
}

/// Reads it.
///
/// # Errors
/// Those of the request.
pub async fn read(cluster: &Cluster, system: &str) -> Result<Stored, EngineError> {
    let live = config_map::get(cluster, system, CORE_ADDON_ROLLOUT).await?;
    let data = live.as_ref().and_then(|live| live.data.as_ref());
    let text = data.and_then(|data| data.get(KEY));
    let progress = text.and_then(|text| entrance::from_str(text).ok());
    Ok(Stored {
        progress: progress.unwrap_or_default(),
        live,
    })
}

/// Writes it over what was read.
///
/// # Errors
/// Those of the request; a conflict where another client was faster.
pub async fn write(
    cluster: &Cluster,
    system: &str,
    stored: Stored,
    progress: &Progress,
) -> Result<(), EngineError> {
    let wanted = ConfigMap {
        metadata: ObjectMeta {
            name: Some(CORE_ADDON_ROLLOUT.to_owned()),
            namespace: Some(system.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some([(KEY.to_owned(), json!(progress).to_string())].into()),
        ..ConfigMap::default()
    };
    config_map::put(cluster, stored.live, &wanted)
        .await
        .map(drop)
}
