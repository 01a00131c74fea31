//! One look at the API server where something is missing that an installation refers to: it may have been created just
//! now, and the watches are a moment behind. Catalogue, namespace and installation of one file would fail otherwise.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::admission::Facts;
use common::admission::rules::reference::Unseen;
use common::api::catalogue::AddonCatalogue;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::core::{ApiResource, PartialObjectMeta, Request};
use kube::{Api, Client};
use tokio::time::timeout;
use tracing::warn;

use crate::cache::{self, Stored};
use crate::follow::{self, chain};
use crate::refusal::Refusal;

/// For all requests of one look; the API server waits for 5 s.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Catalogues that are read in one look.
const CATALOGUES: usize = 4;

/// Looks at the API server, now and then.
pub struct Live(Client);

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Live")
    }
}

impl Live {
    /// With the account of the webhook.
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// The facts with what was missing in them, where it exists.
    ///
    /// # Errors
    /// Whether it exists cannot be found out now.
    pub async fn complete(&self, facts: &Facts, unseen: &Unseen) -> Result<Facts, Refusal> {
        match timeout(TIMEOUT, self.look(facts, unseen)).await {
            Ok(Ok(seen)) => Ok(seen),
            Ok(Err(error)) => {
                let (addon, namespace) = (&unseen.addon.name, &unseen.namespace);
                let error = chain(&*error);
                warn!(
                    addon,
                    namespace, error, "cannot look for what a review refers to"
                );
                Err(Refusal::Unseen)
            }
            Err(_) => Err(Refusal::Unseen),
        }
    }

    async fn look(&self, facts: &Facts, unseen: &Unseen) -> anyhow::Result<Facts> {
        let mut facts = facts.clone();
        let namespace = &unseen.namespace;
        if !facts.stands_for_cluster(namespace) {
            let api = Api::<PartialObjectMeta<Namespace>>::all(self.0.clone());
            let found = api.list(&named(namespace)).await;
            let found = found.context("cannot list namespaces")?.items.pop();
            let system = &facts.settings.system_namespace;
            if let Some(marks) = found.and_then(|found| cache::marks(found, system)) {
                facts.namespaces.insert(namespace.clone(), marks);
            }
        }
        let resource = ApiResource::erase::<AddonCatalogue>(&());
        // The only ones that an installation can refer to (semantics 1).
        let system = facts.settings.system_namespace.clone();
        let api = Api::<Stored>::namespaced_with(self.0.clone(), &system, &resource);
        // As metadata of ours: managed fields may nest too deep for those of kube.
        let request = Request::new(api.resource_url()).list_metadata(&ListParams::default());
        let listed = follow::page::<Stored>(&self.0, request?).await;
        let listed = listed.context("cannot list catalogues")?;
        let listed = listed.context("the metadata of all catalogues is too large")?;
        let listed = listed.items;
        let wanted = unseen.addon.catalogue.as_ref();
        let changed: Vec<String> = listed
            .into_iter()
            .filter(|object| !is_known(&facts, object))
            .filter_map(|object| object.metadata.name)
            .filter(|name| wanted.is_none_or(|wanted| wanted == name))
            .collect();
        ensure!(
            changed.len() <= CATALOGUES,
            "{} catalogues changed at once",
            changed.len()
        );
        for name in changed {
            let found = api.list(&named(&name)).await;
            let found = found.with_context(|| format!("cannot read catalogue {name}"))?;
            let found = found.items.into_iter().next().and_then(cache::catalogue);
            facts.catalogues.retain(|known| {
                let metadata = &known.metadata;
                metadata.name.as_ref() != Some(&name)
                    || metadata.namespace.as_ref() != Some(&system)
            });
            facts.catalogues.extend(found);
        }
        Ok(facts)
    }
}

/// Whether the facts have a catalogue just as it is.
fn is_known(facts: &Facts, object: &Stored) -> bool {
    let metadata = &object.metadata;
    facts.catalogues.iter().any(|known| {
        known.metadata.uid == metadata.uid
            && known.metadata.resource_version == metadata.resource_version
    })
}

/// By its name alone: the right to list is enough.
fn named(name: &str) -> ListParams {
    ListParams::default().fields(&format!("metadata.name={name}"))
}
