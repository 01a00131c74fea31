//! Asks the API server if a verdict depends on something that may have been created just now, because watches lag a little behind: the
//! add-on that an installation refers to (otherwise a file with a catalogue, a namespace and an installation would fail), and the core
//! installations that refer to a removed entry.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use addons_admission::AdmissionFacts;
use addons_admission::installation_facts::{self, InstallationFacts};
use addons_admission::rules::reference::UnseenDependency;
use anyhow::{Context as _, ensure};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::{AddonInstallation, AddonRef};
use http::header::{ACCEPT, HeaderValue};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, ObjectMeta};
use kube::api::ListParams;
use kube::core::{ApiResource, ObjectList, PartialObjectMeta, Request};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tracing::warn;

use crate::cache::{self, StoredObject};
use crate::follow::{self, NamespacedKey, format_chain, key};
use crate::refusal::ReviewRefusal;

/// The time limit for all requests of one lookup. The API server waits for 5 s.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The time limit if all installations are listed.
const LONG_TIMEOUT: Duration = Duration::from_secs(3);
/// The most catalogues that one lookup reads.
const CATALOGUES: usize = 4;
/// The most installations that one lookup reads. They change more often than catalogues.
const INSTALLATIONS: usize = 16;
/// The installations on one page of a table.
const PAGE: u32 = 500;
/// Asks for a list in which each object consists of its metadata and its columns.
const AS_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// The column that says whether an installation is a core add-on.
const CORE: &str = "Core";

/// A list in the form of a table.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InstallationTable {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default)]
    column_definitions: Vec<TableColumn>,
    #[serde(default)]
    rows: Option<Vec<TableRow>>,
}

#[derive(Deserialize)]
struct TableColumn {
    name: String,
}

#[derive(Deserialize)]
struct TableRow {
    cells: Vec<Box<RawValue>>,
    object: StoredObject,
}

/// Looks up individual objects at the API server.
pub struct LiveLookup(Client);

impl fmt::Debug for LiveLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Live")
    }
}

impl LiveLookup {
    /// Uses the account of the webhook.
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// Returns the facts with the missing dependency, if that exists.
    ///
    /// # Errors
    /// Whether it exists cannot be determined now.
    pub async fn complete(
        &self,
        facts: &AdmissionFacts,
        unseen: &UnseenDependency,
    ) -> Result<AdmissionFacts, ReviewRefusal> {
        let (addon, namespace, looked) = match unseen {
            UnseenDependency::Reference { addon, namespace } => {
                let looked = timeout(TIMEOUT, self.with_reference(facts, addon, namespace)).await;
                (addon.name.as_str(), namespace.as_str(), looked)
            }
            UnseenDependency::Users => (
                "",
                "",
                timeout(LONG_TIMEOUT, self.with_core_installations(facts)).await,
            ),
        };
        match looked {
            Ok(Ok(seen)) => Ok(seen),
            Ok(Err(error)) => {
                let error = format_chain(&*error);
                warn!(
                    addon,
                    namespace, error, "cannot look for what a review depends on"
                );
                Err(ReviewRefusal::Unseen)
            }
            Err(_) => Err(ReviewRefusal::Unseen),
        }
    }

    /// Returns the facts with all core installations as they are now; denials do not depend on others. A list in the form of a table
    /// shows which installations are core, without their large fields. Those that changed are then read.
    async fn with_core_installations(
        &self,
        facts: &AdmissionFacts,
    ) -> anyhow::Result<AdmissionFacts> {
        let resource = ApiResource::erase::<AddonInstallation>(&());
        let (known, mut installations): (Vec<_>, Vec<_>) = facts
            .installations
            .iter()
            .cloned()
            .partition(|one| one.is_core);
        let known: HashMap<NamespacedKey, Arc<InstallationFacts>> = known
            .into_iter()
            .map(|one| ((one.namespace.clone(), one.name.clone()), one))
            .collect();
        let mut changed = Vec::new();
        for object in self.list_core(&resource).await? {
            let key = key(&object);
            let state = installation_facts::object_state(&object.metadata);
            match known.get(&key) {
                Some(known) if state.is_some() && known.state == state => {
                    installations.push(Arc::clone(known));
                }
                _ => changed.push(key),
            }
        }
        ensure!(
            changed.len() <= INSTALLATIONS,
            "{} core installations changed at once",
            changed.len()
        );
        for (namespace, name) in changed {
            let api = Api::<StoredObject>::namespaced_with(self.0.clone(), &namespace, &resource);
            let found = api.list(&select_name(&name)).await;
            let found = found.with_context(|| format!("cannot read {namespace}/{name}"))?;
            installations.extend(
                found
                    .items
                    .into_iter()
                    .filter_map(cache::reduce_installation),
            );
        }
        Ok(AdmissionFacts {
            installations,
            ..facts.clone()
        })
    }

    /// Returns the metadata of all core installations.
    async fn list_core(&self, resource: &ApiResource) -> anyhow::Result<Vec<StoredObject>> {
        let api = Api::<StoredObject>::all_with(self.0.clone(), resource);
        let (mut core, mut limit) = (Vec::new(), PAGE);
        let mut params = ListParams::default();
        loop {
            params.limit = Some(limit);
            let mut request = Request::new(api.resource_url()).list(&params)?;
            let accept = HeaderValue::from_static(AS_TABLE);
            request.headers_mut().insert(ACCEPT, accept);
            let table = follow::page::<InstallationTable>(&self.0, request).await;
            let table = table.context("cannot list installations")?;
            let Some(table) = table else {
                limit /= 2;
                ensure!(limit > 0, "the metadata of an installation is too large");
                continue;
            };
            limit = limit.saturating_mul(2).min(PAGE);
            let mut columns = table.column_definitions.iter();
            let column = columns.position(|column| column.name == CORE);
            let column = column.with_context(|| format!("there is no column {CORE}"))?;
            let rows = table.rows.unwrap_or_default().into_iter();
            let is_core = |row: &TableRow| {
                let cell = row.cells.get(column);
                cell.is_some_and(|cell| !matches!(cell.get(), "null" | "false"))
            };
            core.extend(rows.filter(is_core).map(|row| row.object));
            match table.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(core),
            }
        }
    }

    /// Returns the facts with the namespace and the catalogues that a reference needs, as far as they exist.
    async fn with_reference(
        &self,
        facts: &AdmissionFacts,
        addon: &AddonRef,
        namespace: &str,
    ) -> anyhow::Result<AdmissionFacts> {
        let mut facts = facts.clone();
        if !facts.stands_for_cluster(namespace) {
            let api = Api::<PartialObjectMeta<Namespace>>::all(self.0.clone());
            let found = api.list(&select_name(namespace)).await;
            let found = found.context("cannot list namespaces")?.items.pop();
            let system = &facts.settings.system_namespace;
            if let Some(marks) = found.and_then(|found| cache::reduce_namespace(found, system)) {
                facts.namespaces.insert(namespace.to_owned(), marks);
            }
        }
        let resource = ApiResource::erase::<AddonCatalogue>(&());
        // An installation can only refer to these (semantics 1.1).
        let system = facts.settings.system_namespace.clone();
        let api = Api::<StoredObject>::namespaced_with(self.0.clone(), &system, &resource);
        // Parsed as our own metadata type: managed fields may nest too deep for kube's.
        let request = Request::new(api.resource_url()).list_metadata(&ListParams::default());
        let listed = follow::page::<ObjectList<StoredObject>>(&self.0, request?).await;
        let listed = listed.context("cannot list catalogues")?;
        let listed = listed.context("the metadata of all catalogues is too large")?;
        let listed = listed.items;
        let wanted = addon.catalogue.as_ref();
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
            let found = api.list(&select_name(&name)).await;
            let found = found.with_context(|| format!("cannot read catalogue {name}"))?;
            let found = found
                .items
                .into_iter()
                .next()
                .and_then(cache::reduce_catalogue);
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

/// Returns whether the facts contain this state of a catalogue.
fn is_known(facts: &AdmissionFacts, object: &StoredObject) -> bool {
    let mut catalogues = facts.catalogues.iter();
    catalogues.any(|known| is_same_state(&known.metadata, &object.metadata))
}

/// Returns whether both describe the same state of the same object.
fn is_same_state(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.uid == other.uid && one.resource_version == other.resource_version
}

/// Selects by name, so that the right to list suffices.
fn select_name(name: &str) -> ListParams {
    ListParams::default().fields(&format!("metadata.name={name}"))
}
