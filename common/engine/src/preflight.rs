//! Reads what can block an upgrade of the cluster: webhooks and their backends, aggregated APIs, and CRDs without their schemas. Kinds that
//! the caller may not read are listed, and hide nothing else.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::identity::KUBE_SYSTEM;
use super::inspect;
use super::listing;
use super::live;
use super::served;
use super::snapshot::{namespace_collection, read_one};

/// Kind and plural of both kinds of webhook configurations.
const WEBHOOKS: [(&str, &str); 2] = [
    (
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ),
    (
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    ),
];

/// The backend of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Its Service does not exist.
    Missing,
    /// Its Service has this many ready endpoints.
    Ready(usize),
    /// It is not known: the Service is an external name, or may not be read.
    Unknown,
}

/// The Services that webhooks call, by `NAMESPACE/NAME`.
pub type Backends = BTreeMap<String, Backend>;

/// The objects that can block an upgrade.
#[derive(Clone, Debug, Default)]
pub struct UpgradeObstacles {
    /// Webhook configurations.
    pub webhooks: Vec<Value>,
    /// The labels of kube-system.
    pub system: BTreeMap<String, String>,
    /// The backends of the webhooks that matter.
    pub backends: Backends,
    /// APIServices.
    pub api_services: Vec<Value>,
    /// CRDs, without the schemas of their versions.
    pub definitions: Vec<Value>,
    /// Kinds that could not be read, with the reason.
    pub unread: BTreeMap<String, String>,
}

/// Reads them: one LIST for each kind, and a GET and a LIST for each Service that `called` returns for the webhook configurations and the
/// labels of kube-system.
///
/// # Errors
/// The server cannot be reached.
pub async fn read_obstacles(
    cluster: &Cluster,
    called: impl Fn(&[Value], &BTreeMap<String, String>) -> Vec<(String, String)>,
) -> Result<UpgradeObstacles, EngineError> {
    let mut found = UpgradeObstacles::default();
    for (kind, plural) in WEBHOOKS {
        let api = "admissionregistration.k8s.io/v1";
        let collection = Collection::from_names(api, kind, plural, None);
        let mut listed = found.list_kind(cluster, &collection).await?;
        for object in &mut listed {
            // Items of a list have no kind.
            object["kind"] = kind.into();
        }
        found.webhooks.append(&mut listed);
    }
    let namespace = read_one(cluster, &namespace_collection(), KUBE_SYSTEM).await;
    if let Some(Some(metadata)) = found.or_note_unread("Namespace", namespace)? {
        found.system = metadata.labels;
    }
    let asked = called(&found.webhooks, &found.system);
    let backends = asked.iter().map(async |(namespace, name)| {
        let service = format!("{namespace}/{name}");
        Ok::<_, EngineError>((service, read_backend(cluster, namespace, name).await))
    });
    for (service, backend) in try_join_all(backends).await? {
        let backend = found.or_note_unread("Service", backend)?;
        let backend = backend.unwrap_or(Backend::Unknown);
        found.backends.insert(service, backend);
    }
    let (api, kind) = ("apiregistration.k8s.io/v1", "APIService");
    let api_services = Collection::from_names(api, kind, "apiservices", None);
    found.api_services = found.list_kind(cluster, &api_services).await?;
    found.definitions = found.list_kind(cluster, &served::collection()).await?;
    Ok(found)
}

impl UpgradeObstacles {
    async fn list_kind(
        &mut self,
        cluster: &Cluster,
        collection: &Collection,
    ) -> Result<Vec<Value>, EngineError> {
        let listed = listing::list_all::<TrimmedObject>(cluster, collection, None).await;
        let listed = self.or_note_unread(&collection.gvk.kind, listed)?;
        let objects = listed.into_iter().flatten();
        Ok(objects.map(|TrimmedObject(object)| object).collect())
    }

    /// Returns the result of a read, or records that the server refused it.
    fn or_note_unread<T>(
        &mut self,
        kind: &str,
        read: Result<T, EngineError>,
    ) -> Result<Option<T>, EngineError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.is_read_refusal() => {
                self.unread.insert(kind.to_owned(), error.describe());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Reads the backend of a Service.
async fn read_backend(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Backend, EngineError> {
    let services = Collection::from_names("v1", "Service", "services", Some(namespace));
    let Some(service) = live::read(cluster, &services, name).await? else {
        return Ok(Backend::Missing);
    };
    if service["spec"]["type"] == "ExternalName" {
        return Ok(Backend::Unknown);
    }
    let ready = inspect::count_ready_endpoints(cluster, namespace, name).await?;
    Ok(Backend::Ready(ready))
}

/// An object without unused fields, which are most of a CRD. They are dropped before the next object is parsed.
struct TrimmedObject(Value);

impl<'de> Deserialize<'de> for TrimmedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        let mut remove = |parent: &str, field: &str| {
            let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
            parent.map(|parent| parent.remove(field));
        };
        remove("/metadata", "managedFields");
        let versions = object.pointer_mut("/spec/versions");
        let versions = versions.and_then(Value::as_array_mut);
        for version in versions.into_iter().flatten() {
            if let Some(version) = version.as_object_mut() {
                version.remove("schema");
            }
        }
        Ok(Self(object))
    }
}
