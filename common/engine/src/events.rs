//! Publishes Events about installations, as `kubectl describe` and `kubectl events` show them.

use common::api::installation::AddonInstallation;
use common::api::names;
use kube::ResourceExt as _;
use serde_json::json;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::random;
use super::request::{ApiCall, METADATA};

/// Maximum length of a note that the API server accepts, in bytes.
const MAX_NOTE_BYTES: usize = 1024;

/// The content of an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventContent {
    /// Whether it is a failure.
    pub is_warning: bool,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub note: String,
}

/// Publishes an Event about an installation. `reporter`: the reporting process.
///
/// # Errors
/// Those of the request. A namespace that is being deleted accepts no Events.
pub async fn publish(
    cluster: &Cluster,
    record: &AddonInstallation,
    happened: &EventContent,
    reporter: &str,
) -> Result<(), EngineError> {
    let regarding = EventSubject {
        api_version: names::API_VERSION,
        kind: "AddonInstallation",
        namespace: &record.namespace().unwrap_or_default(),
        name: &record.name_any(),
        uid: record.metadata.uid.as_deref(),
    };
    publish_about(cluster, &regarding, happened, reporter).await
}

/// The object of an Event.
#[derive(Clone, Copy, Debug)]
pub struct EventSubject<'a> {
    /// `GROUP/VERSION`.
    pub api_version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Namespace.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// uid; `None` if the object may not exist.
    pub uid: Option<&'a str>,
}

/// Publishes an Event about any object of a namespace.
///
/// # Errors
/// As [`publish`].
pub async fn publish_about(
    cluster: &Cluster,
    regarding: &EventSubject<'_>,
    happened: &EventContent,
    reporter: &str,
) -> Result<(), EngineError> {
    let namespace = regarding.namespace;
    let name = format!("{}.{}", regarding.name, random::hex_id());
    let mut note = happened.note.clone();
    while note.len() > MAX_NOTE_BYTES {
        note.pop();
    }
    let event = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": cluster.home().now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        "reportingController": names::GROUP,
        "reportingInstance": reporter,
        "action": "Reconcile",
        "type": if happened.is_warning { "Warning" } else { "Normal" },
        "reason": happened.reason,
        "note": note,
        "regarding": {
            "apiVersion": regarding.api_version,
            "kind": regarding.kind,
            "namespace": namespace,
            "name": regarding.name,
            "uid": regarding.uid,
        },
    });
    let collection = Collection::from_names("events.k8s.io/v1", "Event", "events", Some(namespace));
    let call = ApiCall::create(&collection, &name, METADATA).body(event.to_string().into_bytes());
    cluster
        .home()
        .send::<serde::de::IgnoredAny>(call)
        .await
        .map(drop)
}
