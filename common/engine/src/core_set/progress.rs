//! How far a change of the core sets has reached: a ConfigMap of the system namespace (semantics 14).

use std::collections::BTreeMap;

use common::api::names::{self, CORE_ADDON_ROLLOUT};
use common::core_set::rollout::Progress;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::address::Collection;
use crate::cluster::Cluster;
use crate::error::EngineError;
use crate::meta::Metadata;
use crate::request::{Call, JSON, METADATA};

/// Its key.
const KEY: &str = "progress.json";

/// What is stored.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// How far the change has reached; that of none where nothing is stored, or nothing that can be read.
    pub progress: Progress,
    /// The resourceVersion of the ConfigMap; `None` where there is none.
    version: Option<String>,
}

/// Reads it.
///
/// # Errors
/// Those of the request.
pub async fn read(cluster: &Cluster, system: &str) -> Result<Stored, EngineError> {
    #[derive(Deserialize)]
    struct ConfigMap {
        metadata: Metadata,
        #[serde(default)]
        data: Option<BTreeMap<String, String>>,
    }
    let call = Call::get(&collection(system), CORE_ADDON_ROLLOUT, JSON).own();
    match cluster.home().send::<ConfigMap>(call).await {
        Ok(answer) => {
            let text = answer.object.data.and_then(|mut data| data.remove(KEY));
            let progress = text.and_then(|text| serde_json::from_str(&text).ok());
            Ok(Stored {
                progress: progress.unwrap_or_default(),
                version: Some(answer.object.metadata.resource_version),
            })
        }
        Err(error) if error.is_not_found() => Ok(Stored::default()),
        Err(error) => Err(error),
    }
}

/// Writes it over what was read.
///
/// # Errors
/// Those of the request; a conflict where another client was faster.
pub async fn write(
    cluster: &Cluster,
    system: &str,
    stored: &Stored,
    progress: &Progress,
) -> Result<(), EngineError> {
    let collection = collection(system);
    let call = match &stored.version {
        Some(_) => Call::replace(&collection, CORE_ADDON_ROLLOUT, METADATA),
        None => Call::create(&collection, CORE_ADDON_ROLLOUT, METADATA),
    };
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": CORE_ADDON_ROLLOUT, "namespace": system, "resourceVersion": stored.version,
        },
        "data": {KEY: json!(progress).to_string()},
    });
    let call = call
        .own()
        .query("fieldManager", names::CLIENT)
        .body(object.to_string().into_bytes());
    cluster.home().send::<IgnoredAny>(call).await.map(drop)
}

fn collection(system: &str) -> Collection {
    Collection::known("v1", "ConfigMap", "configmaps", Some(system))
}
