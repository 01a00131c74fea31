//! Finds why an object does not get ready: the states of its pods, and the newest warning about them or about the object.
//!
//! It sends at most three requests per object: for its pods, the events of one pod, and its own events.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout};

use addons_plan::readiness::blocker::{Blocker, find_pod_blocker, is_pending};
use addons_plan::readiness::{Readiness, assess_ended_by_events};
use common::manifest::key::ObjectKey;

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::listing::read_one_page;
use super::request::{ApiCall, JSON};

/// Maximum number of pods and events that are read.
const READ_LIMIT: &str = "100";
/// Time limit of one search: its result is not worth a longer wait.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two searches during waits, shared by all objects.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);

/// Limits the rate of searches of all waits.
#[derive(Debug, Default)]
pub(super) struct SearchThrottle(Mutex<Option<Instant>>);

impl SearchThrottle {
    /// Returns whether a search may begin now; if so, it is counted.
    pub(super) fn try_begin(&self) -> bool {
        let mut last = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = Instant::now();
        let may = last.is_none_or(|last| now.duration_since(last) >= SEARCH_PAUSE);
        if may {
            *last = Some(now);
        }
        may
    }
}

/// Returns what keeps an object from getting ready, if a cause is found in time. `object` is `Null` if it does not exist.
pub async fn find_blocker(cluster: &Cluster, key: &ObjectKey, object: &Value) -> Option<Blocker> {
    let search = async {
        let pods = list_pods(cluster, key, object).await;
        if let Some(blocker) = pods.iter().find_map(find_pod_blocker) {
            return Some(blocker);
        }
        // The events of the pods come first: they contain the messages of kubelet and scheduler.
        let pending = pods.iter().find(|pod| is_pending(pod));
        if let Some(name) = pending.and_then(|pod| pod.pointer("/metadata/name")?.as_str())
            && let Some(blocker) = find_newest_warning(cluster, key, "Pod", name).await
        {
            return Some(blocker);
        }
        find_newest_warning(cluster, key, &key.kind, &key.name).await
    };
    timeout(SEARCH_TIMEOUT, search).await.ok()?
}

/// Returns the pods that a workload selects.
async fn list_pods(cluster: &Cluster, key: &ObjectKey, object: &Value) -> Vec<Value> {
    let labels = object.pointer("/spec/selector/matchLabels");
    let Some(labels) = labels.and_then(Value::as_object) else {
        return Vec::new();
    };
    let selector: Vec<String> = labels
        .iter()
        .filter_map(|(label, value)| Some(format!("{label}={}", value.as_str()?)))
        .collect();
    if selector.is_empty() || !matches!(key.group.as_str(), "apps" | "batch") {
        return Vec::new();
    }
    let pods = Collection::from_names("v1", "Pod", "pods", key.namespace.as_deref());
    let call = ApiCall::list(&pods, JSON)
        .query("labelSelector", &query_value(&selector.join(",")))
        .query("limit", READ_LIMIT);
    list_items(cluster, call).await
}

/// Returns the newest warning event about an object.
async fn find_newest_warning(
    cluster: &Cluster,
    key: &ObjectKey,
    kind: &str,
    name: &str,
) -> Option<Blocker> {
    let found = list_events(cluster, key, kind, name, ",type=Warning").await;
    let newest = found.iter().max_by_key(|event| last_time(event))?;
    let text = |name| newest.get(name).and_then(Value::as_str).unwrap_or_default();
    let subject = if kind == "Pod" {
        format!("pod {name}")
    } else {
        format!("{kind} {name}")
    };
    Some(Blocker::new(&subject, text("reason"), text("message")))
}

/// Returns how a Job that no longer exists ended, if its events still say so.
pub(super) async fn find_job_end(cluster: &Cluster, key: &ObjectKey) -> Option<Readiness> {
    let search = list_events(cluster, key, &key.kind, &key.name, "");
    assess_ended_by_events(&timeout(SEARCH_TIMEOUT, search).await.ok()?)
}

/// Returns the events about an object in the namespace of `key`.
async fn list_events(
    cluster: &Cluster,
    key: &ObjectKey,
    kind: &str,
    name: &str,
    only: &str,
) -> Vec<Value> {
    // Events about cluster-scoped objects are in the namespace default.
    let namespace = key.namespace.as_deref().unwrap_or("default");
    let events = Collection::from_names("v1", "Event", "events", Some(namespace));
    let selector = format!("involvedObject.kind={kind},involvedObject.name={name}{only}");
    let call = ApiCall::list(&events, JSON)
        .query("fieldSelector", &query_value(&selector))
        .query("limit", READ_LIMIT);
    list_items(cluster, call).await
}

/// Returns when an event last happened; RFC 3339 in UTC sorts by time.
fn last_time(event: &Value) -> &str {
    let times = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/eventTime",
        "/firstTimestamp",
    ];
    let mut times = times
        .into_iter()
        .filter_map(|path| event.pointer(path)?.as_str());
    times.next().unwrap_or_default()
}

/// Returns the listed objects. What cannot be read counts as empty.
async fn list_items(cluster: &Cluster, call: ApiCall) -> Vec<Value> {
    let found = read_one_page::<Value>(cluster, call).await;
    found.map_or_else(|_| Vec::new(), |page| page.items)
}
