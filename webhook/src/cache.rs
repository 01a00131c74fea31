//! The facts for verdicts, kept current by watches.
//!
//! Reviews never wait for the API server: they use the last published [`Facts`]. Before the first complete set there
//! are none, and no review is answered.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use common::admission::{Facts, NamespaceFacts, Settings};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::{AddonInstallation, AddonInstallationSpec, AddonRef};
use common::api::names::{
    ANNOTATION_CLUSTER_DELETING, CLUSTER_LOCAL, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET, MARKED,
};
use common::catalogue::select::ClusterFacts;
use futures::stream::{self, Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::{ApiResource, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource as _};
use serde_json::Value;
use tokio::sync::watch::Sender;
use tracing::{error, info, warn};

use self::stored::Stored;

mod stored;

/// Objects of one page of a list: an installation with its inventory has up to a megabyte.
const PAGE: u32 = 50;
/// Changes that are taken in before the facts are published once.
const CHUNK: usize = 1024;
/// How often the version of the API server is read: it changes under a running webhook.
const VERSION_EVERY: Duration = Duration::from_secs(300);
/// How soon it is read again after a failure.
const VERSION_RETRY: Duration = Duration::from_secs(2);

/// An event of a watch.
#[derive(Debug)]
enum Change {
    Catalogue(Event<Stored>),
    Installation(Event<Stored>),
    Namespace(Event<PartialObjectMeta<Namespace>>),
    Version(semver::Version),
}

/// Watches until it is aborted, and publishes facts as soon as all watches have listed once.
pub async fn watch(client: Client, settings: Settings, publish: Sender<Option<Arc<Facts>>>) {
    let mut changes = changes(client).ready_chunks(CHUNK);
    let mut mirror = Mirror::default();
    let mut announced = false;
    while let Some(chunk) = changes.next().await {
        for change in chunk {
            mirror.take(change);
        }
        if let Some(facts) = mirror.facts(&settings) {
            if !announced {
                announced = true;
                info!(
                    catalogues = facts.catalogues.len(),
                    installations = facts.installations.len(),
                    "synced"
                );
            }
            publish.send_replace(Some(Arc::new(facts)));
        }
    }
    error!("the watches ended");
}

/// All watches in one stream. Errors are logged and retried with a growing delay.
fn changes(client: Client) -> Pin<Box<dyn Stream<Item = Change> + Send>> {
    let config = || watcher::Config::default().page_size(PAGE);
    let of = |resource: &ApiResource| Api::<Stored>::all_with(client.clone(), resource);
    let catalogues = of(&ApiResource::erase::<AddonCatalogue>(&()));
    let installations = of(&ApiResource::erase::<AddonInstallation>(&()));
    let namespaces: Api<PartialObjectMeta<Namespace>> = Api::all(client.clone());
    stream::select_all([
        logged(
            "addoncatalogues",
            watcher(catalogues, config()),
            Change::Catalogue,
        ),
        logged(
            "addoninstallations",
            watcher(installations, config()),
            Change::Installation,
        ),
        logged(
            "namespaces",
            watcher(namespaces, config()),
            Change::Namespace,
        ),
        versions(client),
    ])
    .boxed()
}

fn logged<K>(
    resource: &'static str,
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
    change: fn(Event<K>) -> Change,
) -> Pin<Box<dyn Stream<Item = Change> + Send>>
where
    K: Send + 'static,
{
    events
        .default_backoff()
        .filter_map(move |event| async move {
            match event {
                Ok(event) => Some(change(event)),
                Err(error) => {
                    warn!(resource, error = %chain(&error), "watch failed, trying again");
                    None
                }
            }
        })
        .boxed()
}

/// The version of the API server, read again and again.
fn versions(client: Client) -> Pin<Box<dyn Stream<Item = Change> + Send>> {
    stream::unfold((client, Duration::ZERO), |(client, delay)| async move {
        tokio::time::sleep(delay).await;
        let (version, next) = match client.apiserver_version().await {
            Ok(info) => match addons_versions::kubernetes::parse(&info.git_version) {
                Ok(version) => (Some(Change::Version(version)), VERSION_EVERY),
                Err(error) => {
                    warn!(version = info.git_version, %error, "the cluster's version cannot be read");
                    (None, VERSION_EVERY)
                }
            },
            Err(error) => {
                warn!(error = %chain(&error), "the cluster's version cannot be asked for");
                (None, VERSION_RETRY)
            }
        };
        Some((version, (client, next)))
    })
    .filter_map(|version| async move { version })
    .boxed()
}

/// An error with all its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Copies of the watched objects.
#[derive(Debug, Default)]
struct Mirror {
    catalogues: Copies<Arc<AddonCatalogue>>,
    installations: Copies<Arc<AddonInstallation>>,
    namespaces: Copies<NamespaceFacts>,
    version: Option<semver::Version>,
}

impl Mirror {
    fn take(&mut self, change: Change) {
        match change {
            Change::Catalogue(event) => self.catalogues.take(event, key, catalogue),
            Change::Installation(event) => self.installations.take(event, key, installation),
            Change::Namespace(event) => self.namespaces.take(
                event,
                |namespace| {
                    (
                        String::new(),
                        namespace.metadata.name.clone().unwrap_or_default(),
                    )
                },
                |namespace| marks(&namespace),
            ),
            Change::Version(version) => self.version = Some(version),
        }
    }

    /// The facts, once everything was listed.
    fn facts(&self, settings: &Settings) -> Option<Facts> {
        let namespaces = self.namespaces.listed()?;
        Some(Facts {
            catalogues: self.catalogues.listed()?.values().cloned().collect(),
            installations: self.installations.listed()?.values().cloned().collect(),
            namespaces: namespaces
                .iter()
                .map(|((_, name), facts)| (name.clone(), facts.clone()))
                .collect(),
            cluster: ClusterFacts {
                kubernetes: Some(self.version.clone()?),
                kkp: None,
            },
            settings: settings.clone(),
        })
    }
}

/// Namespace and name.
type Key = (String, String);

/// Copies of one kind. A new list replaces the old copies only when it is complete.
#[derive(Debug)]
struct Copies<T> {
    current: Option<BTreeMap<Key, T>>,
    listing: BTreeMap<Key, T>,
}

impl<T> Default for Copies<T> {
    fn default() -> Self {
        Self {
            current: None,
            listing: BTreeMap::new(),
        }
    }
}

impl<T> Copies<T> {
    fn listed(&self) -> Option<&BTreeMap<Key, T>> {
        self.current.as_ref()
    }

    /// Takes in an event. `copy` reduces an object to what is kept, `None` = nothing.
    fn take<K>(&mut self, event: Event<K>, key: impl Fn(&K) -> Key, copy: impl Fn(K) -> Option<T>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => {
                let key = key(&object);
                if let Some(copy) = copy(object) {
                    self.listing.insert(key, copy);
                }
            }
            Event::InitDone => self.current = Some(std::mem::take(&mut self.listing)),
            Event::Apply(object) => {
                let key = key(&object);
                let copy = copy(object);
                // Before the first list there are no copies to change.
                if let Some(current) = &mut self.current {
                    match copy {
                        Some(copy) => current.insert(key, copy),
                        None => current.remove(&key),
                    };
                }
            }
            Event::Delete(object) => {
                if let Some(current) = &mut self.current {
                    current.remove(&key(&object));
                }
            }
        }
    }
}

fn key(object: &Stored) -> Key {
    let metadata = &object.metadata;
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

/// A catalogue; one that cannot be read counts as missing, so references to it are denied.
fn catalogue(object: Stored) -> Option<Arc<AddonCatalogue>> {
    match serde_json::from_value(object.spec) {
        Ok(spec) => Some(Arc::new(AddonCatalogue {
            metadata: object.metadata,
            spec,
            status: None,
        })),
        Err(_) => {
            let name = object.metadata.name.unwrap_or_default();
            error!(
                catalogue = name,
                "a stored catalogue cannot be read: its entries are unknown"
            );
            None
        }
    }
}

/// An installation without status; of one that cannot be read, what guards need.
fn installation(object: Stored) -> Option<Arc<AddonInstallation>> {
    let text = |pointer: &str| object.spec.pointer(pointer).and_then(Value::as_str);
    let guarded = AddonInstallationSpec {
        addon_ref: AddonRef {
            name: text("/addonRef/name").unwrap_or_default().to_owned(),
            catalogue: text("/addonRef/catalogue").map(str::to_owned),
            ..AddonRef::default()
        },
        core_addon: object.spec.pointer("/coreAddon") == Some(&Value::Bool(true)),
        ..AddonInstallationSpec::default()
    };
    let spec = serde_json::from_value(object.spec).unwrap_or_else(|_| {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        error!(
            installation = name,
            "a stored installation cannot be read: only its guards hold"
        );
        guarded
    });
    Some(Arc::new(AddonInstallation {
        metadata: object.metadata,
        spec,
        status: None,
    }))
}

/// The facts about a namespace; most have none.
fn marks(namespace: &PartialObjectMeta<Namespace>) -> Option<NamespaceFacts> {
    let metadata = namespace.meta();
    let facts = NamespaceFacts {
        local: metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(LABEL_CLUSTER))
            .is_some_and(|cluster| cluster == CLUSTER_LOCAL),
        remote: metadata
            .labels
            .as_ref()
            .is_some_and(|labels| labels.contains_key(LABEL_KUBECONFIG_SECRET)),
        cluster_deleting: metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(ANNOTATION_CLUSTER_DELETING))
            .is_some_and(|value| value == MARKED),
        terminating: metadata.deletion_timestamp.is_some(),
    };
    (facts != NamespaceFacts::default()).then_some(facts)
}

#[cfg(test)]
mod tests;
