//! One look at the API server where something is missing that an installation refers to: it may have been created just
//! now, and the watches are a moment behind. Catalogue, namespace and installation of one file would fail otherwise.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use common::admission::Facts;
use common::admission::review::{Operation, Request};
use common::admission::rules::reference;
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonRef;
use common::api::names::GROUP;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::core::{ApiResource, PartialObjectMeta};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::warn;

use crate::cache::{self, Stored};
use crate::refusal::Refusal;

/// For all requests of one look; the API server waits for 5 s.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Looks at one time. Who refers to what there is not must not keep the API server busy.
const AT_ONCE: usize = 4;
/// Catalogues that are read in one look.
const CATALOGUES: usize = 4;

/// Looks at the API server, now and then.
pub struct Live {
    client: Client,
    permits: Semaphore,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Live")
    }
}

/// What an installation refers to.
struct Reference {
    addon: AddonRef,
    namespace: String,
}

impl Live {
    /// With the account of the webhook.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            permits: Semaphore::new(AT_ONCE),
        }
    }

    /// The facts for a review: as they are, or with what was missing in them.
    ///
    /// # Errors
    /// Something is missing, and whether it exists cannot be found out now.
    pub async fn complete(&self, facts: Arc<Facts>, body: &[u8]) -> Result<Arc<Facts>, Refusal> {
        let Ok(request) = Request::from_slice(body) else {
            return Ok(facts);
        };
        let Some(reference) = Reference::of(&request).filter(|it| it.is_missing(&facts)) else {
            return Ok(facts);
        };
        let Ok(_permit) = self.permits.try_acquire() else {
            return Err(Refusal::Unseen);
        };
        match timeout(TIMEOUT, self.look(&facts, &reference)).await {
            Ok(Ok(seen)) => Ok(Arc::new(seen)),
            Ok(Err(error)) => {
                let error = format!("{error:#}");
                warn!(uid = %request.uid, error, "cannot look for what a review refers to");
                Err(Refusal::Unseen)
            }
            Err(_) => Err(Refusal::Unseen),
        }
    }

    async fn look(&self, facts: &Facts, reference: &Reference) -> anyhow::Result<Facts> {
        let mut facts = facts.clone();
        let namespace = &reference.namespace;
        if !facts.stands_for_cluster(namespace) {
            let api = Api::<PartialObjectMeta<Namespace>>::all(self.client.clone());
            let found = api.list(&named(namespace)).await;
            let found = found.context("cannot list namespaces")?.items.pop();
            if let Some(marks) = found.and_then(cache::marks) {
                facts.namespaces.insert(namespace.clone(), marks);
            }
        }
        let resource = ApiResource::erase::<AddonCatalogue>(&());
        let all = Api::<Stored>::all_with(self.client.clone(), &resource);
        let listed = all.list_metadata(&ListParams::default()).await;
        let listed = listed.context("cannot list catalogues")?.items;
        let changed: Vec<(String, String)> = listed
            .into_iter()
            .filter(|object| !is_known(&facts, object))
            .filter_map(|object| Some((object.metadata.namespace?, object.metadata.name?)))
            .filter(|(at, name)| reference.can_mean(at, name, &facts))
            .collect();
        ensure!(
            changed.len() <= CATALOGUES,
            "{} catalogues changed at once",
            changed.len()
        );
        for (at, name) in changed {
            let api = Api::<Stored>::namespaced_with(self.client.clone(), &at, &resource);
            let found = api.list(&named(&name)).await;
            let found = found.with_context(|| format!("cannot read catalogue {name}"))?;
            let found = found.items.into_iter().next().and_then(cache::catalogue);
            facts.catalogues.retain(|known| {
                let metadata = &known.metadata;
                metadata.name.as_ref() != Some(&name) || metadata.namespace.as_ref() != Some(&at)
            });
            facts.catalogues.extend(found);
        }
        Ok(facts)
    }
}

impl Reference {
    /// That of an installation that is created, or refers to something else than before: others are not judged by it
    /// (semantics 4).
    fn of(request: &Request<'_>) -> Option<Self> {
        let is_ours = request.kind.group == GROUP && request.kind.kind == "AddonInstallation";
        if !is_ours || request.is_of_subresource() {
            return None;
        }
        let addon = addon_of(request.object)?;
        match request.operation {
            Operation::Create => {}
            Operation::Update if addon_of(request.old_object).as_ref() != Some(&addon) => {}
            _ => return None,
        }
        Some(Self {
            addon,
            namespace: request.namespace.clone()?,
        })
    }

    /// Whether the facts have no such namespace, catalogue, add-on or version.
    fn is_missing(&self, facts: &Facts) -> bool {
        !facts.stands_for_cluster(&self.namespace)
            || reference::resolve(&self.addon, &self.namespace, facts)
                .is_err_and(|problem| problem.rule.starts_with("unknown-"))
    }

    /// Whether it can be in this catalogue.
    fn can_mean(&self, namespace: &str, name: &str, facts: &Facts) -> bool {
        let near = namespace == self.namespace || namespace == facts.settings.system_namespace;
        near && self.addon.catalogue.as_deref().is_none_or(|it| it == name)
    }
}

/// The reference in an installation; the rest of it is not read.
fn addon_of(object: Option<&RawValue>) -> Option<AddonRef> {
    #[derive(Deserialize)]
    struct Object {
        spec: Spec,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        addon_ref: AddonRef,
    }
    let object: Object = serde_json::from_str(object?.get()).ok()?;
    Some(object.spec.addon_ref)
}

/// Whether the facts have a catalogue just as it is.
fn is_known(facts: &Facts, object: &PartialObjectMeta<Stored>) -> bool {
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
