//! The facts for verdicts, kept current by watches.
//!
//! Reviews never wait for the watches: they use the last published [`Facts`]. Before the first complete set there are none, and while a
//! watch is silent ([`Freshness`]) they are not trusted. No review gets a verdict then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use addons_admission::listed::CatalogueFacts;
use addons_admission::recorded::InstallationFacts;
use addons_admission::rules::size::{CATALOGUES, RECORDS};
use addons_admission::{Facts, NamespaceFacts, Settings};
use common::api::catalogue::{AddonCatalogue, CatalogueClass};
use common::api::installation::AddonInstallation;
use common::api::policy::AddonPolicy;
use common::catalogue::select::ClusterFacts;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::{ApiResource, PartialObjectMeta};
use kube::{Api, Client};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;
use tracing::{info, warn};

pub use self::reduce::{catalogue, installation, marks};
pub use self::stored::Stored;
use crate::follow::{Event, Follower, Key, chain};
use crate::freshness::{Freshness, Watched};

pub mod reduce;
mod stored;

/// The most changes that are applied before the facts are published once.
const CHUNK: usize = 1024;
/// How often the version of the API server is read. It changes while the webhook is running.
const VERSION_EVERY: Duration = Duration::from_secs(300);
/// How soon the version is read again after a failure.
const VERSION_RETRY: Duration = Duration::from_secs(2);

/// A change that the API server reported.
#[derive(Debug)]
pub enum Change {
    /// A change of the catalogues.
    Catalogue(Event<Arc<CatalogueFacts>>),
    /// A change of the installations.
    Installation(Event<Arc<InstallationFacts>>),
    /// A change of the namespaces.
    Namespace(Event<NamespaceFacts>),
    /// A change of the policies.
    Policy(Event<Arc<AddonPolicy>>),
    /// The version of the API server.
    Version(semver::Version),
}

impl Change {
    /// Returns the watch that the change comes from.
    fn watched(&self) -> Option<Watched> {
        match self {
            Self::Catalogue(_) => Some(Watched::Catalogues),
            Self::Installation(_) => Some(Watched::Installations),
            Self::Namespace(_) => Some(Watched::Namespaces),
            Self::Policy(_) => Some(Watched::Policies),
            Self::Version(_) => None,
        }
    }
}

/// Watches until it is aborted, and publishes facts as soon as all watches have listed once.
pub async fn watch(
    client: Client,
    settings: Settings,
    freshness: Arc<Freshness>,
    publish: watch::Sender<Option<Arc<Facts>>>,
) {
    let (sender, changes) = channel(CHUNK);
    // This leaves time for a list before the facts count as stale.
    let quiet = freshness.limit() * 5 / 6;
    let of = |resource: &ApiResource| Api::<Stored>::all_with(client.clone(), resource);
    let system = settings.system_namespace.clone();
    let catalogue = ApiResource::erase::<AddonCatalogue>(&());
    let catalogues = Follower {
        resource: Watched::Catalogues.resource(),
        api: Api::<Stored>::namespaced_with(client.clone(), &system, &catalogue),
        name: None,
        reduce: reduce::catalogue,
        weigh: |catalogue: &Arc<CatalogueFacts>| match catalogue.class {
            CatalogueClass::Custom => catalogue.weight(),
            CatalogueClass::Core => 0,
        },
        most: CATALOGUES,
        change: Change::Catalogue,
        quiet,
        sender: sender.clone(),
    };
    let installations = Follower {
        resource: Watched::Installations.resource(),
        api: of(&ApiResource::erase::<AddonInstallation>(&())),
        name: None,
        reduce: reduce::installation,
        weigh: |one: &Arc<InstallationFacts>| usize::from(!one.is_core),
        most: RECORDS,
        change: Change::Installation,
        quiet,
        sender: sender.clone(),
    };
    let namespaces = Follower {
        resource: Watched::Namespaces.resource(),
        api: Api::<PartialObjectMeta<Namespace>>::all(client.clone()),
        name: None,
        reduce: move |namespace| reduce::marks(namespace, &system),
        weigh: |_| 0,
        most: 0,
        change: Change::Namespace,
        quiet,
        sender: sender.clone(),
    };
    let policies = Follower {
        resource: Watched::Policies.resource(),
        api: of(&ApiResource::erase::<AddonPolicy>(&())),
        name: None,
        reduce: reduce::policy,
        weigh: |_| 0,
        most: 0,
        change: Change::Policy,
        quiet,
        sender: sender.clone(),
    };
    tokio::join!(
        catalogues.run(),
        installations.run(),
        namespaces.run(),
        policies.run(),
        versions(client, sender),
        take(changes, &settings, &freshness, &publish),
    );
}

/// Applies the changes from the watches, and publishes the facts.
async fn take(
    mut changes: Receiver<Change>,
    settings: &Settings,
    freshness: &Freshness,
    publish: &watch::Sender<Option<Arc<Facts>>>,
) {
    let mut mirror = Mirror::default();
    let mut chunk = Vec::new();
    while changes.recv_many(&mut chunk, CHUNK).await > 0 {
        let heard: Vec<Watched> = chunk.iter().filter_map(Change::watched).collect();
        let mut is_changed = false;
        for change in chunk.drain(..) {
            is_changed |= mirror.take(change);
        }
        if is_changed && let Some(facts) = mirror.facts(settings) {
            if publish.borrow().is_none() {
                info!(
                    catalogues = facts.catalogues.len(),
                    installations = facts.installations.len(),
                    "synced"
                );
            }
            publish.send_replace(Some(Arc::new(facts)));
        }
        // After publishing: the facts that are said to be fresh must be those that verdicts use.
        for watched in heard {
            freshness.heard(watched, Instant::now());
        }
    }
}

/// Sends the version of the API server, again and again.
async fn versions(client: Client, sender: Sender<Change>) {
    loop {
        let delay = match client.apiserver_version().await {
            Ok(info) => {
                match addons_versions::kubernetes::parse(&info.git_version) {
                    Ok(version) => {
                        if sender.send(Change::Version(version)).await.is_err() {
                            return;
                        }
                    }
                    Err(error) => {
                        warn!(version = info.git_version, %error, "the cluster's version cannot be read");
                    }
                }
                VERSION_EVERY
            }
            Err(error) => {
                warn!(error = %chain(&error), "the cluster's version cannot be asked for");
                VERSION_RETRY
            }
        };
        tokio::time::sleep(delay).await;
    }
}

/// Copies of the watched objects; `None` until they were listed.
#[derive(Debug, Default)]
struct Mirror {
    catalogues: Option<BTreeMap<Key, Arc<CatalogueFacts>>>,
    installations: Option<BTreeMap<Key, Arc<InstallationFacts>>>,
    namespaces: Option<BTreeMap<Key, NamespaceFacts>>,
    policies: Option<BTreeMap<Key, Arc<AddonPolicy>>>,
    version: Option<semver::Version>,
}

impl Mirror {
    /// Applies a change, and returns whether the facts changed.
    fn take(&mut self, change: Change) -> bool {
        match change {
            Change::Catalogue(event) => taken(&mut self.catalogues, event),
            Change::Installation(event) => taken(&mut self.installations, event),
            Change::Namespace(event) => taken(&mut self.namespaces, event),
            Change::Policy(event) => taken(&mut self.policies, event),
            Change::Version(version) => self.version.replace(version.clone()) != Some(version),
        }
    }

    /// Returns the facts, once everything was listed.
    fn facts(&self, settings: &Settings) -> Option<Facts> {
        let namespaces = self.namespaces.as_ref()?;
        let mut marked = namespaces.iter();
        let system = marked.find(|((_, name), _)| *name == settings.system_namespace);
        let system = system.map(|(_, marks)| marks);
        let installations = self.installations.as_ref()?.values();
        let others = installations.clone().filter(|one| !one.is_core).count();
        Some(Facts {
            catalogues: self.catalogues.as_ref()?.values().cloned().collect(),
            installations: installations.cloned().collect(),
            are_incomplete: others >= RECORDS,
            namespaces: namespaces
                .iter()
                .map(|((_, name), facts)| (name.clone(), facts.clone()))
                .collect(),
            policies: self.policies.as_ref()?.values().cloned().collect(),
            cluster: ClusterFacts {
                kubernetes: Some(self.version.clone()?),
                kkp: system.and_then(|namespace| namespace.kkp.clone()),
            },
            settings: settings.clone(),
        })
    }
}

/// Applies an event, and returns whether the copies changed. Before the first list there are none to change.
fn taken<T>(copies: &mut Option<BTreeMap<Key, T>>, event: Event<T>) -> bool {
    match (event, copies.as_mut()) {
        (Event::Listed(all), _) => {
            *copies = Some(all);
            true
        }
        (Event::Changed(key, Some(copy)), Some(copies)) => {
            copies.insert(key, copy);
            true
        }
        (Event::Changed(key, None), Some(copies)) => copies.remove(&key).is_some(),
        (Event::Changed(..), None) | (Event::Bookmark, _) => false,
    }
}

#[cfg(test)]
mod tests;
