//! The facts for verdicts, kept current by watches.
//!
//! Reviews never wait for the watches: they use the last published [`AdmissionFacts`]. Before the first complete set there are none, and while a
//! watch is silent ([`Freshness`]) they are not trusted. No review gets a verdict then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use addons_admission::catalogue_facts::CatalogueFacts;
use addons_admission::installation_facts::InstallationFacts;
use addons_admission::rules::size::{CATALOGUES, RECORDS};
use addons_admission::{AdmissionFacts, AdmissionSettings, NamespaceFacts};
use addons_telemetry::metrics::WatchFailures;
use common::api::catalogue::{AddonCatalogue, CatalogueClass};
use common::api::installation::AddonInstallation;
use common::api::policy::AddonPolicy;
use common::catalogue::select::ClusterVersions;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::{ApiResource, PartialObjectMeta};
use kube::{Api, Client};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;
use tracing::{info, warn};

pub use self::reduce::{reduce_catalogue, reduce_installation, reduce_namespace};
pub use self::stored::StoredObject;
use crate::follow::{FollowedEvent, Follower, NamespacedKey, format_chain};
use crate::freshness::{Freshness, WatchedKind};

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
pub enum CacheChange {
    /// A change of the catalogues.
    Catalogue(FollowedEvent<Arc<CatalogueFacts>>),
    /// A change of the installations.
    Installation(FollowedEvent<Arc<InstallationFacts>>),
    /// A change of the namespaces.
    Namespace(FollowedEvent<NamespaceFacts>),
    /// A change of the policies.
    Policy(FollowedEvent<Arc<AddonPolicy>>),
    /// The version of the API server.
    Version(semver::Version),
}

impl CacheChange {
    /// Returns the watch that the change comes from.
    fn watched(&self) -> Option<WatchedKind> {
        match self {
            Self::Catalogue(_) => Some(WatchedKind::Catalogues),
            Self::Installation(_) => Some(WatchedKind::Installations),
            Self::Namespace(_) => Some(WatchedKind::Namespaces),
            Self::Policy(_) => Some(WatchedKind::Policies),
            Self::Version(_) => None,
        }
    }
}

/// Watches until it is aborted, and publishes facts as soon as all watches have listed once.
pub async fn watch(
    client: Client,
    settings: AdmissionSettings,
    freshness: Arc<Freshness>,
    failures: WatchFailures,
    publish: watch::Sender<Option<Arc<AdmissionFacts>>>,
) {
    let (sender, changes) = channel(CHUNK);
    // This leaves time for a list before the facts count as stale.
    let quiet = freshness.limit() * 5 / 6;
    let of = |resource: &ApiResource| Api::<StoredObject>::all_with(client.clone(), resource);
    let system = settings.system_namespace.clone();
    let catalogue = ApiResource::erase::<AddonCatalogue>(&());
    let catalogues = Follower {
        resource: WatchedKind::Catalogues.resource(),
        api: Api::<StoredObject>::namespaced_with(client.clone(), &system, &catalogue),
        name: None,
        reduce: reduce::reduce_catalogue,
        weigh: |catalogue: &Arc<CatalogueFacts>| match catalogue.class {
            CatalogueClass::Custom => catalogue.weight(),
            CatalogueClass::Core => 0,
        },
        max_weight: CATALOGUES,
        to_message: CacheChange::Catalogue,
        max_silence: quiet,
        failures: failures.clone(),
        sender: sender.clone(),
    };
    let installations = Follower {
        resource: WatchedKind::Installations.resource(),
        api: of(&ApiResource::erase::<AddonInstallation>(&())),
        name: None,
        reduce: reduce::reduce_installation,
        weigh: |one: &Arc<InstallationFacts>| usize::from(!one.is_core),
        max_weight: RECORDS,
        to_message: CacheChange::Installation,
        max_silence: quiet,
        failures: failures.clone(),
        sender: sender.clone(),
    };
    let namespaces = Follower {
        resource: WatchedKind::Namespaces.resource(),
        api: Api::<PartialObjectMeta<Namespace>>::all(client.clone()),
        name: None,
        reduce: move |namespace| reduce::reduce_namespace(namespace, &system),
        weigh: |_| 0,
        max_weight: 0,
        to_message: CacheChange::Namespace,
        max_silence: quiet,
        failures: failures.clone(),
        sender: sender.clone(),
    };
    let policies = Follower {
        resource: WatchedKind::Policies.resource(),
        api: of(&ApiResource::erase::<AddonPolicy>(&())),
        name: None,
        reduce: reduce::reduce_policy,
        weigh: |_| 0,
        max_weight: 0,
        to_message: CacheChange::Policy,
        max_silence: quiet,
        failures: failures.clone(),
        sender: sender.clone(),
    };
    tokio::join!(
        catalogues.run(),
        installations.run(),
        namespaces.run(),
        policies.run(),
        send_versions(client, sender),
        apply_changes(changes, &settings, &freshness, &publish),
    );
}

/// Applies the changes from the watches, and publishes the facts.
async fn apply_changes(
    mut changes: Receiver<CacheChange>,
    settings: &AdmissionSettings,
    freshness: &Freshness,
    publish: &watch::Sender<Option<Arc<AdmissionFacts>>>,
) {
    let mut mirror = Mirror::default();
    let mut chunk = Vec::new();
    while changes.recv_many(&mut chunk, CHUNK).await > 0 {
        let heard: Vec<WatchedKind> = chunk.iter().filter_map(CacheChange::watched).collect();
        let mut is_changed = false;
        for change in chunk.drain(..) {
            is_changed |= mirror.apply(change);
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
            freshness.record_report(watched, Instant::now());
        }
    }
}

/// Sends the version of the API server, again and again.
async fn send_versions(client: Client, sender: Sender<CacheChange>) {
    loop {
        let delay = match client.apiserver_version().await {
            Ok(info) => {
                match addons_versions::tolerant::parse_kubernetes(&info.git_version) {
                    Ok(version) => {
                        if sender.send(CacheChange::Version(version)).await.is_err() {
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
                warn!(error = %format_chain(&error), "the cluster's version cannot be asked for");
                VERSION_RETRY
            }
        };
        tokio::time::sleep(delay).await;
    }
}

/// Copies of the watched objects; `None` until they were listed.
#[derive(Debug, Default)]
struct Mirror {
    catalogues: Option<BTreeMap<NamespacedKey, Arc<CatalogueFacts>>>,
    installations: Option<BTreeMap<NamespacedKey, Arc<InstallationFacts>>>,
    namespaces: Option<BTreeMap<NamespacedKey, NamespaceFacts>>,
    policies: Option<BTreeMap<NamespacedKey, Arc<AddonPolicy>>>,
    version: Option<semver::Version>,
}

impl Mirror {
    /// Applies a change, and returns whether the facts changed.
    fn apply(&mut self, change: CacheChange) -> bool {
        match change {
            CacheChange::Catalogue(event) => apply_event(&mut self.catalogues, event),
            CacheChange::Installation(event) => apply_event(&mut self.installations, event),
            CacheChange::Namespace(event) => apply_event(&mut self.namespaces, event),
            CacheChange::Policy(event) => apply_event(&mut self.policies, event),
            CacheChange::Version(version) => self.version.replace(version.clone()) != Some(version),
        }
    }

    /// Returns the facts, once everything was listed.
    fn facts(&self, settings: &AdmissionSettings) -> Option<AdmissionFacts> {
        let namespaces = self.namespaces.as_ref()?;
        let mut marked = namespaces.iter();
        let system = marked.find(|((_, name), _)| *name == settings.system_namespace);
        let system = system.map(|(_, marks)| marks);
        let installations = self.installations.as_ref()?.values();
        let others = installations.clone().filter(|one| !one.is_core).count();
        Some(AdmissionFacts {
            catalogues: self.catalogues.as_ref()?.values().cloned().collect(),
            installations: installations.cloned().collect(),
            are_incomplete: others >= RECORDS,
            namespaces: namespaces
                .iter()
                .map(|((_, name), facts)| (name.clone(), facts.clone()))
                .collect(),
            policies: self.policies.as_ref()?.values().cloned().collect(),
            cluster: ClusterVersions {
                kubernetes: Some(self.version.clone()?),
                kkp: system.and_then(|namespace| namespace.kkp.clone()),
                // The loop and the commands read the facts of a cluster.
                profile: None,
            },
            settings: settings.clone(),
        })
    }
}

/// Applies an event, and returns whether the copies changed. Before the first list there are none to change.
fn apply_event<T>(
    copies: &mut Option<BTreeMap<NamespacedKey, T>>,
    event: FollowedEvent<T>,
) -> bool {
    match (event, copies.as_mut()) {
        (FollowedEvent::Listed(all), _) => {
            *copies = Some(all);
            true
        }
        (FollowedEvent::Changed(key, Some(copy)), Some(copies)) => {
            copies.insert(key, copy);
            true
        }
        (FollowedEvent::Changed(key, None), Some(copies)) => copies.remove(&key).is_some(),
        (FollowedEvent::Changed(..), None) | (FollowedEvent::Bookmark, _) => false,
    }
}

#[cfg(test)]
mod tests;
