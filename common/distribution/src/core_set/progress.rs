//! Stores the progress of a rollout of core sets in a ConfigMap of the system namespace (semantics 14.8).

use addons_clusters::core_set::rollout::RolloutProgress;
use common::api::names::CORE_ADDON_ROLLOUT;
use common::entrance;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use serde_json::json;

use addons_engine::{Cluster, EngineError, config_map};

/// Key in the ConfigMap.
const KEY: &str = "progress.json";

/// The stored progress.
#[derive(Clone, Debug, Default)]
pub struct StoredProgress {
    /// The progress of the rollout; the default if none is stored, or if it cannot be read.
    pub progress: RolloutProgress,
    /// The ConfigMap as it was read.
    live: Option<ConfigMap>,
}

/// Reads the stored progress.
///
/// # Errors
/// Those of the request.
pub async fn read(cluster: &Cluster, system: &str) -> Result<StoredProgress, EngineError> {
    let live = config_map::get(cluster, system, CORE_ADDON_ROLLOUT).await?;
    let data = live.as_ref().and_then(|live| live.data.as_ref());
    let text = data.and_then(|data| data.get(KEY));
    let progress = text.and_then(|text| entrance::from_str(text).ok());
    Ok(StoredProgress {
        progress: progress.unwrap_or_default(),
        live,
    })
}

/// Replaces the progress that was read.
///
/// # Errors
/// Those of the request; a conflict if another client was faster.
pub async fn write(
    cluster: &Cluster,
    system: &str,
    stored: StoredProgress,
    progress: &RolloutProgress,
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
