//! Who scales an object.

use serde_json::Value;

use common::manifest::key::{Gvk, ObjectKey};

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::listing;

/// The HorizontalPodAutoscaler that scales an object: whoever wrote the replicas last, it will write them next. Asked only
/// about a conflict at them, so that an autoscaler that is gone holds nothing. Who may not look believes the manager.
pub(super) async fn autoscaler(
    cluster: &Cluster,
    key: &ObjectKey,
    manager: &str,
) -> Result<Option<String>, EngineError> {
    let collection = Collection::known(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        key.namespace.as_deref(),
    );
    let found: Vec<Value> = match listing::all(cluster, &collection, None).await {
        Ok(found) => found,
        Err(EngineError::Forbidden { .. }) => {
            let is_scaled = manager == "kube-controller-manager/scale";
            return Ok(is_scaled.then(|| key.name.clone()));
        }
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let scales = |autoscaler: &Value| {
        let target = autoscaler.pointer("/spec/scaleTargetRef")?;
        let text = |name| target.get(name).and_then(Value::as_str).unwrap_or_default();
        let group = Gvk::new(text("apiVersion"), text("kind")).group;
        let is_it = (group.as_str(), text("kind"), text("name"))
            == (key.group.as_str(), key.kind.as_str(), key.name.as_str());
        let name = autoscaler.pointer("/metadata/name")?.as_str()?;
        is_it.then(|| name.to_owned())
    };
    Ok(found.iter().find_map(scales))
}
