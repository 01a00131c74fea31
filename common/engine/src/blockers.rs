//! Finds why an object does not get ready: the states of its pods, and the newest warning about them or about the object.
//!
//! It sends at most three requests per object: for its pods, the events of one pod, and its own events.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout};

use addons_plan::readiness::blocker::{Blocker, is_pending, of_pod};
use addons_plan::readiness::{Readiness, ended_by_events};
use common::manifest::key::ObjectKey;

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::listing::one_page;
use super::request::{Call, JSON};

/// Maximum number of pods and events that are read.
const LOOKED_AT: &str = "100";
/// Time limit of one search: its result is not worth a longer wait.
const BOUND: Duration = Duration::from_secs(5);
/// Pause between two searches during waits, shared by all objects.
const BETWEEN: Duration = Duration::from_secs(1);

/// Limits the rate of searches of all waits.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<Option<Instant>>);

impl Turns {
    /// Returns whether a search may begin now; if so, it is counted.
    pub(super) fn take(&self) -> bool {
        let mut last = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = Instant::now();
        let may = last.is_none_or(|last| now.duration_since(last) >= BETWEEN);
        if may {
            *last = Some(now);
        }
        may
    }
}

/// Returns what keeps an object from getting ready, if a cause is found in time. `object` is `Null` if it does not exist.
pub async fn find(cluster: &Cluster, key: &ObjectKey, object: &Value) -> Option<Blocker> {
    let search = async {
        let pods = pods(cluster, key, object).await;
        if let Some(blocker) = pods.iter().find_map(of_pod) {
            return Some(blocker);
        }
        // The events of the pods come first: they contain the messages of kubelet and scheduler.
        let pending = pods.iter().find(|pod| is_pending(pod));
        if let Some(name) = pending.and_then(|pod| pod.pointer("/metadata/name")?.as_str())
            && let Some(blocker) = newest_warning(cluster, key, "Pod", name).await
        {
            return Some(blocker);
        }
        newest_warning(cluster, key, &key.kind, &key.name).await
    };
    timeout(BOUND, search).await.ok()?
}

/// Returns the pods that a workload selects.
async fn pods(cluster: &Cluster, key: &ObjectKey, object: &Value) -> Vec<Value> {
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
    let pods = Collection::known("v1", "Pod", "pods", key.namespace.as_deref());
    let call = Call::list(&pods, JSON)
        .query("labelSelector", &query_value(&selector.join(",")))
        .query("limit", LOOKED_AT);
    items(cluster, call).await
}

/// Returns the newest warning event about an object.
async fn newest_warning(
    cluster: &Cluster,
    key: &ObjectKey,
    kind: &str,
    name: &str,
) -> Option<Blocker> {
    let found = events(cluster, key, kind, name, ",type=Warning").await;
    let newest = found.iter().max_by_key(|event| time(event))?;
    let text = |name| newest.get(name).and_then(Value::as_str).unwrap_or_default();
    let subject = if kind == "Pod" {
        format!("pod {name}")
    } else {
        format!("{kind} {name}")
    };
    Some(Blocker::new(&subject, text("reason"), text("message")))
}

/// Returns how a Job that no longer exists ended, if its events still say so.
pub(super) async fn end_of_job(cluster: &Cluster, key: &ObjectKey) -> Option<Readiness> {
    let search = events(cluster, key, &key.kind, &key.name, "");
    ended_by_events(&timeout(BOUND, search).await.ok()?)
}

/// Returns the events about an object in the namespace of `key`.
async fn events(
    cluster: &Cluster,
    key: &ObjectKey,
    kind: &str,
    name: &str,
    only: &str,
) -> Vec<Value> {
    // Events about cluster-scoped objects are in the namespace default.
    let namespace = key.namespace.as_deref().unwrap_or("default");
    let events = Collection::known("v1", "Event", "events", Some(namespace));
    let selector = format!("involvedObject.kind={kind},involvedObject.name={name}{only}");
    let call = Call::list(&events, JSON)
        .query("fieldSelector", &query_value(&selector))
        .query("limit", LOOKED_AT);
    items(cluster, call).await
}

/// Returns when an event last happened; RFC 3339 in UTC sorts by time.
fn time(event: &Value) -> &str {
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
async fn items(cluster: &Cluster, call: Call) -> Vec<Value> {
    let found = one_page::<Value>(cluster, call).await;
    found.map_or_else(|_| Vec::new(), |page| page.items)
}
