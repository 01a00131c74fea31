//! What the API server saw and holds: the requests of its audit log and the live objects with our label.

use std::collections::{BTreeMap, BTreeSet};

use addons_tests::control_plane::audit::{Mark, Request};
use anyhow::{Context as _, Result};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use serde_json::Value;

use super::chain::Keys;
use super::corpus::Document;
use crate::main_job::stage::Stage;

/// The kinds of a chain by group and plural name.
#[derive(Default)]
pub struct Kinds(BTreeMap<(String, String), ApiResource>);

/// The writes of one command, by what they did.
#[derive(Debug, Default)]
pub struct Writes {
    /// Objects that were sent.
    pub applied: Keys,
    /// Objects that were deleted.
    pub deleted: Keys,
}

impl Kinds {
    /// Adds those of a manifest.
    pub fn add(&mut self, documents: &[Document]) {
        for document in documents {
            let (group, version) = match document.api_version.split_once('/') {
                Some((group, version)) => (group, version),
                None => ("", document.api_version.as_str()),
            };
            let resource = ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version: document.api_version.clone(),
                kind: document.kind.clone(),
                plural: plural(&document.kind),
            };
            self.0
                .insert((resource.group.clone(), resource.plural.clone()), resource);
        }
    }

    /// The live objects of these kinds that carry an owner label.
    pub async fn owned(&self, stage: &Stage, owner: &str) -> Result<Keys> {
        let client = stage.cluster.client().await?;
        let label = ListParams::default().labels(&format!("kubectl-addons.dev/owner={owner}"));
        let mut keys = Keys::new();
        for resource in self.0.values() {
            let api = Api::<DynamicObject>::all_with(client.clone(), resource);
            let listed = api.list_metadata(&label).await;
            for object in listed.with_context(|| resource.plural.clone())?.items {
                let (namespace, name) = (object.metadata.namespace, object.metadata.name);
                let name = name.unwrap_or_default();
                keys.insert(key(&resource.kind, namespace.as_deref(), &name));
            }
        }
        Ok(keys)
    }

    /// What the plugin wrote since a mark, but for its own records.
    pub fn writes(&self, stage: &Stage, since: Mark) -> Result<Writes> {
        let mut writes = Writes::default();
        let requests = stage.requests(since)?;
        let written = requests
            .of("kubectl-addons")
            .filter(|request| request.is_write() && !is_record(request));
        for request in written {
            let object = &request.object;
            let resource = self
                .0
                .get(&(object.api_group.clone(), object.resource.clone()));
            let kind = resource.map_or(object.resource.as_str(), |resource| resource.kind.as_str());
            let namespace = Some(object.namespace.as_str());
            // The audit log gives a Namespace the namespace of its own name.
            let namespace = namespace.filter(|name| !name.is_empty() && kind != "Namespace");
            let key = key(kind, namespace, &object.name);
            if request.verb == "delete" {
                writes.deleted.insert(key);
            } else {
                writes.applied.insert(key);
            }
        }
        Ok(writes)
    }
}

/// The inventory of a record: everything in it, and what of it is retained.
pub fn inventory(record: &Value) -> (Keys, Keys) {
    let (mut all, mut retained) = (BTreeSet::new(), BTreeSet::new());
    for group in record["status"]["inventory"]
        .as_array()
        .into_iter()
        .flatten()
    {
        for object in group["objects"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let key = key(
                &text(&group["kind"]),
                group["namespace"].as_str(),
                &text(&object["name"]),
            );
            if object["state"] == "retained" {
                retained.insert(key.clone());
            }
            all.insert(key);
        }
    }
    (all, retained)
}

fn key(kind: &str, namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}/{kind} {name}"),
        None => format!("{kind} {name}"),
    }
}

/// Our records, our definitions, and the namespace of the records, which is made by POST.
fn is_record(request: &Request) -> bool {
    let object = &request.object;
    object.api_group == "kubectl-addons.dev"
        || object.name.ends_with(".kubectl-addons.dev")
        || (object.resource == "namespaces" && request.verb == "create")
}

/// `networkpolicies` for `NetworkPolicy`: the rule that all kinds of the chains follow.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}
