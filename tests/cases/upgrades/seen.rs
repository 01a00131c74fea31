//! What the API server saw and holds: the requests of its audit log and the live objects with our label.

use std::collections::{BTreeMap, BTreeSet};

use addons_tests::control_plane::audit::{Mark, Request};
use addons_tests::stage::Stage;
use anyhow::{Context as _, Result};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use serde_json::Value;

use super::chain::Keys;
use super::corpus::Document;

/// The kinds of a chain by group and plural name.
#[derive(Default)]
pub struct Kinds(BTreeMap<(String, String), ApiResource>);

/// The writes of one command, in the order in which they came.
#[derive(Debug, Default)]
pub struct Writes {
    all: Vec<Write>,
}

#[derive(Clone, Debug)]
enum Write {
    Apply(String),
    Delete(String),
}

impl Writes {
    /// Objects that were sent.
    pub fn applied(&self) -> Keys {
        let applied = self.all.iter().filter_map(|write| match write {
            Write::Apply(key) => Some(key.clone()),
            Write::Delete(_) => None,
        });
        applied.collect()
    }

    /// Objects that were deleted.
    pub fn deleted(&self) -> Keys {
        let deleted = self.all.iter().filter_map(|write| match write {
            Write::Delete(key) => Some(key.clone()),
            Write::Apply(_) => None,
        });
        deleted.collect()
    }

    /// Objects that were sent after one of these was deleted.
    pub fn applied_after(&self, pruned: &Keys) -> Keys {
        let is_pruned = |write: &Write| matches!(write, Write::Delete(key) if pruned.contains(key));
        let first = self.all.iter().position(is_pruned);
        let after = self.all.get(first.unwrap_or(self.all.len())..);
        Self {
            all: after.unwrap_or_default().to_vec(),
        }
        .applied()
    }
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
            writes.all.push(if request.verb == "delete" {
                Write::Delete(key)
            } else {
                Write::Apply(key)
            });
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

/// Our records and their revisions, our definitions, and the namespace of the records, which is made by POST. No chain has a
/// ControllerRevision of its own.
fn is_record(request: &Request) -> bool {
    let object = &request.object;
    object.api_group == "kubectl-addons.dev"
        || object.resource == "controllerrevisions"
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
