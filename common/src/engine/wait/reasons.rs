//! Why an object is not ready, when the time is over: its pods' states and its newest warning.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::super::address::{Collection, query_value};
use super::super::cluster::Cluster;
use super::super::meta::or_default;
use super::super::request::{Call, JSON};

/// Pods and events that are read.
const LOOKED_AT: &str = "50";
/// The whole search: the operation is over its time already.
const BOUND: Duration = Duration::from_secs(5);
const LONGEST: usize = 300;

#[derive(Deserialize)]
struct List {
    #[serde(default, deserialize_with = "or_default")]
    items: Vec<Value>,
}

/// One sentence, where something was found.
pub(super) async fn reason(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
    object: &Value,
) -> Option<String> {
    let search = async {
        let pods = pods(cluster, collection, object).await;
        let mut found = pods.iter().find_map(pod_reason);
        if found.is_none() {
            // The pods' own events first (they say what the kubelet or the scheduler met), then the object's.
            let pod = pods
                .first()
                .and_then(|pod| pod.pointer("/metadata/name")?.as_str());
            if let Some(pod) = pod {
                found = newest_warning(cluster, collection, "Pod", pod).await;
            }
        }
        match found {
            Some(found) => Some(found),
            None => newest_warning(cluster, collection, &collection.gvk.kind, name).await,
        }
    };
    let mut reason = timeout(BOUND, search).await.ok()??;
    if let Some((end, _)) = reason.char_indices().nth(LONGEST) {
        reason.truncate(end);
        reason.push('…');
    }
    Some(reason)
}

/// The pods of a workload's selector, or the pod itself.
async fn pods(cluster: &Cluster, collection: &Collection, object: &Value) -> Vec<Value> {
    if collection.gvk.group.is_empty() && collection.gvk.kind == "Pod" {
        return vec![object.clone()];
    }
    let labels = object.pointer("/spec/selector/matchLabels");
    let Some(labels) = labels.and_then(Value::as_object) else {
        return Vec::new();
    };
    let selector: Vec<String> = labels
        .iter()
        .filter_map(|(label, value)| Some(format!("{label}={}", value.as_str()?)))
        .collect();
    if selector.is_empty() {
        return Vec::new();
    }
    let pods = Collection::known("v1", "Pod", "pods", collection.namespace.as_deref());
    let call = Call::list(&pods, JSON)
        .query("labelSelector", &query_value(&selector.join(",")))
        .query("limit", LOOKED_AT);
    let found = cluster.send::<List>(call).await;
    found.map_or_else(|_| Vec::new(), |answer| answer.object.items)
}

/// What keeps a pod from running: a waiting or crashed container, or why it was not scheduled.
fn pod_reason(pod: &Value) -> Option<String> {
    let name = pod.pointer("/metadata/name")?.as_str()?;
    let status = pod.get("status")?;
    let containers = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .filter_map(|field| status.get(field)?.as_array())
        .flatten();
    for container in containers {
        let text = |path: &str| container.pointer(path).and_then(Value::as_str);
        let waiting = text("/state/waiting/reason");
        let stopped = text("/state/terminated/reason").filter(|reason| *reason != "Completed");
        let Some(reason) = waiting.or(stopped) else {
            continue;
        };
        if matches!(reason, "ContainerCreating" | "PodInitializing") {
            continue;
        }
        let message = text("/state/waiting/message").or_else(|| text("/state/terminated/message"));
        let container = text("/name").unwrap_or("?");
        return Some(match message {
            Some(message) => format!("pod {name}, container {container}: {reason}: {message}"),
            None => format!("pod {name}, container {container}: {reason}"),
        });
    }
    let conditions = status.get("conditions")?.as_array()?.iter();
    conditions
        .filter(|condition| condition.get("type").and_then(Value::as_str) == Some("PodScheduled"))
        .find(|condition| condition.get("status").and_then(Value::as_str) == Some("False"))
        .and_then(|condition| condition.get("message")?.as_str())
        .map(|message| format!("pod {name}: {message}"))
}

/// The newest warning event about an object.
async fn newest_warning(
    cluster: &Cluster,
    collection: &Collection,
    kind: &str,
    name: &str,
) -> Option<String> {
    // Events about cluster-scoped objects stand in the namespace default.
    let namespace = collection.namespace.as_deref().unwrap_or("default");
    let events = Collection::known("v1", "Event", "events", Some(namespace));
    let selector = format!("involvedObject.kind={kind},involvedObject.name={name},type=Warning");
    let call = Call::list(&events, JSON)
        .query("fieldSelector", &query_value(&selector))
        .query("limit", LOOKED_AT);
    let found = cluster.send::<List>(call).await.ok()?.object.items;
    let newest = found.iter().max_by_key(|event| {
        let time = ["lastTimestamp", "eventTime", "firstTimestamp"];
        let time = time
            .into_iter()
            .find_map(|field| event.get(field)?.as_str());
        time.unwrap_or_default().to_owned()
    })?;
    let reason = newest.get("reason")?.as_str()?;
    let message = newest
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some(format!("{kind} {name}: {reason}: {message}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_says_what_keeps_it() {
        let pod = |status| json!({"metadata": {"name": "web-1"}, "status": status});
        for (status, reason) in [
            (
                json!({"containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"x\""}}}]}),
                Some("pod web-1, container web: ImagePullBackOff: Back-off pulling image \"x\""),
            ),
            (
                json!({"initContainerStatuses": [{"name": "init", "state": {"terminated": {"reason": "Completed"}}}],
                       "containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "PodInitializing"}}}]}),
                None,
            ),
            (
                json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}]}),
                Some("pod web-1: 0/1 nodes are available"),
            ),
        ] {
            assert_eq!(pod_reason(&pod(status)).as_deref(), reason);
        }
    }
}
