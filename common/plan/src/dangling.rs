//! References to objects that exist nowhere: neither in the cluster, nor among the objects of the command (semantics 12.22).
//!
//! A reference counts only if its absence matters, and if nothing is likely to create the object later: a reference that is optional, that
//! a custom resource or a container of the command mentions, or of a kind that a role of the command allows to create, is not reported.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::InstallationPlan;
use crate::Verb;
use crate::desired::Desired;
use crate::graph::template::{WorkloadTemplate, list_items};
use crate::references::{
    RBAC, ReferencedObject, accounts_of_binding, called_services, collect_references,
    pull_secrets_of_account, role_of_binding,
};
use crate::snapshot::Snapshot;
use common::api::names;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::is_built_in;

/// The annotation of a token Secret that names its ServiceAccount. Nothing creates an account because of it.
const TOKEN_ACCOUNT: &str = "kubernetes.io/service-account.name";
const KUBE_SYSTEM: &str = "kube-system";

/// The plan of an installation, and its desired objects.
pub type PlannedPart<'a> = (&'a InstallationPlan, &'a Desired);

/// Objects that the written objects of a command name, and that may not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DanglingCandidates {
    /// The references, by plan and by the object that they name.
    named: BTreeMap<(usize, ObjectKey), Vec<Reference>>,
    /// The objects that the command deletes.
    deleted: BTreeSet<ObjectKey>,
}

/// A field that names an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reference {
    from: ObjectKey,
    field: String,
    effect: &'static str,
}

impl DanglingCandidates {
    /// Returns the objects that the objects to write name and that the command does not contain, unless something else may create them.
    #[must_use]
    pub fn find(parts: &[PlannedPart<'_>]) -> Self {
        let written = parts.iter().enumerate().filter(|(_, (plan, _))| {
            // An adoption changes no field.
            !plan.verb.ends_installation() && plan.verb != Verb::Adopt
        });
        let deleted = parts.iter().flat_map(|(plan, _)| plan.deletions());
        let deleted: BTreeSet<ObjectKey> = deleted
            .map(|deletion| deletion.target.key.clone())
            .collect();
        let is_known = |key: &ObjectKey| {
            let mut parts = parts.iter();
            let is_of = |(plan, desired): &PlannedPart<'_>| {
                desired.objects.contains_key(key) || plan.exact.objects.contains_key(key)
            };
            is_of_every_cluster(key) || (!deleted.contains(key) && parts.any(is_of))
        };
        let mut found: BTreeMap<(usize, ObjectKey), Vec<Reference>> = BTreeMap::new();
        for (part, (plan, _)) in written {
            for step in &plan.steps {
                let from = &step.target.key;
                for named in references_of(from, &step.object, &is_known) {
                    let Some(effect) = named.absence.words() else {
                        continue;
                    };
                    let references = found.entry((part, named.key())).or_default();
                    references.push(Reference {
                        from: from.clone(),
                        field: named.field,
                        effect,
                    });
                }
            }
        }
        if !found.is_empty() {
            let makers = Makers::new(parts);
            found.retain(|(_, key), _| deleted.contains(key) || !makers.may_create(key));
        }
        Self {
            named: found,
            deleted,
        }
    }

    /// Drops the references to objects that exist according to the records of other installations.
    pub fn drop_recorded(&mut self, is_recorded: impl Fn(&ObjectKey) -> bool) {
        let deleted = &self.deleted;
        self.named
            .retain(|(_, key), _| deleted.contains(key) || !is_recorded(key));
    }

    /// Whether no object is left to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Returns the objects to look for in the cluster.
    #[must_use]
    pub fn unknown(&self) -> BTreeSet<ObjectKey> {
        let keys = self.named.keys().map(|(_, key)| key);
        let unknown = keys.filter(|key| !self.deleted.contains(*key));
        unknown.cloned().collect()
    }

    /// Returns a warning for each object that does not exist, with the index of its plan. An object that cannot be read is not judged.
    #[must_use]
    pub fn warnings(&self, snapshot: &Snapshot) -> Vec<(usize, String)> {
        let mut warnings = Vec::new();
        for ((part, key), references) in &self.named {
            let is_unserved =
                (snapshot.unserved).contains_key(&(key.group.clone(), key.kind.clone()));
            let is_deleted = self.deleted.contains(key);
            let is_missing = !is_unserved
                && !snapshot.unreadable.contains_key(key)
                && !snapshot.live.contains_key(key);
            let Some((first, more)) = references.split_first() else {
                continue;
            };
            if !is_deleted && !is_missing {
                continue;
            }
            let what = if is_deleted {
                "is deleted by this command"
            } else {
                "does not exist, and nothing in this command creates it"
            };
            let more = match more.len() {
                0 => String::new(),
                1 => " (1 more field names it)".to_owned(),
                count => format!(" ({count} more fields name it)"),
            };
            let Reference {
                from,
                field,
                effect,
            } = first;
            warnings.push((
                *part,
                format!("{from}: {field}: {key} {what}: {effect}{more}"),
            ));
        }
        warnings
    }
}

/// Returns the objects that an object names and that are not known. The ServiceAccount of a binding counts if it is the only subject: other
/// subjects may be real. One of kube-system does not count: components of the control plane create their accounts there, and many manifests
/// bind them in advance.
fn references_of<'a>(
    key: &'a ObjectKey,
    object: &'a Value,
    is_known: &impl Fn(&ObjectKey) -> bool,
) -> Vec<ReferencedObject<'a>> {
    let mut named = Vec::new();
    collect_references(key, object, &mut named);
    named.extend(role_of_binding(key, object));
    named.extend(called_services(key, object));
    named.extend(pull_secrets_of_account(key, object));
    if list_items(object, "/subjects").count() == 1 {
        let accounts = accounts_of_binding(key, object);
        named.extend(accounts.filter(|account| account.namespace != Some(KUBE_SYSTEM)));
    }
    named.retain(|named| !is_known(&named.key()));
    named
}

/// Whether every cluster has this object: the API server or a controller of Kubernetes creates it.
fn is_of_every_cluster(key: &ObjectKey) -> bool {
    let name = key.name.as_str();
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "ServiceAccount") => name == "default",
        ("", "ConfigMap") => matches!(
            name,
            "kube-root-ca.crt" | "extension-apiserver-authentication"
        ),
        ("", "Service") => name == "kubernetes",
        (RBAC, "ClusterRole") => {
            name.starts_with("system:")
                || matches!(name, "cluster-admin" | "admin" | "edit" | "view")
        }
        (RBAC, "Role") => {
            name.starts_with("system:") || name == "extension-apiserver-authentication-reader"
        }
        ("scheduling.k8s.io", "PriorityClass") => name.starts_with("system-"),
        _ => false,
    }
}

/// What the objects of a command may create while they run.
#[derive(Debug, Default)]
struct Makers<'a> {
    /// Groups and plurals that a role allows to create, with the namespace of the role.
    allowed: BTreeSet<(&'a str, &'a str, Option<&'a str>)>,
    /// Names in custom resources, in the command lines and variables of containers, and in annotations.
    mentioned: BTreeSet<&'a str>,
}

impl<'a> Makers<'a> {
    fn new(parts: &[PlannedPart<'a>]) -> Self {
        let mut makers = Self::default();
        let desired = parts.iter().flat_map(|(_, desired)| &desired.objects);
        for (key, desired) in desired {
            makers.add(key, &desired.object);
        }
        makers
    }

    fn add(&mut self, key: &'a ObjectKey, object: &'a Value) {
        let annotations = object.pointer("/metadata/annotations");
        let annotations = annotations.and_then(Value::as_object).into_iter().flatten();
        for (name, value) in annotations {
            if !name.starts_with(names::GROUP) && name != TOKEN_ACCOUNT {
                self.mention(value);
            }
        }
        if key.group == RBAC && matches!(&*key.kind, "Role" | "ClusterRole") {
            for rule in list_items(object, "/rules") {
                self.allow(rule, key.namespace.as_deref());
            }
        }
        if !is_built_in(&key.group) {
            self.mentioned.insert(&key.name);
            let fields = object.as_object().into_iter().flatten();
            for (_, value) in fields.filter(|(name, _)| *name != "metadata") {
                self.mention(value);
            }
        }
        if let Some(template) = WorkloadTemplate::from_object(key, object) {
            for containers in ["/initContainers", "/containers"] {
                for container in list_items(template.spec, containers) {
                    for field in ["command", "args"] {
                        self.mention(&container[field]);
                    }
                    for variable in list_items(container, "/env") {
                        self.mention(&variable["value"]);
                    }
                }
            }
        }
    }

    /// Adds what a rule of a role allows to create by name. A rule for all resources says nothing about any of them.
    fn allow(&mut self, rule: &'a Value, namespace: Option<&'a str>) {
        let texts = |field: &str| {
            let list = rule.get(field).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str)
        };
        if texts("verbs").any(|verb| matches!(verb, "create" | "*")) {
            for group in texts("apiGroups") {
                let allowed = texts("resources").map(|plural| (group, plural, namespace));
                self.allowed.extend(allowed);
            }
        }
    }

    /// Adds the names in the texts of a value: `--secret-name=web-tls` mentions `web-tls`.
    fn mention(&mut self, value: &'a Value) {
        match value {
            Value::String(text) => {
                let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
                self.mentioned.extend(text.split(|c| !is_of_name(c)));
            }
            Value::Array(items) => items.iter().for_each(|item| self.mention(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.mention(field)),
            _ => {}
        }
    }

    /// Whether something in the command may create an object while it runs.
    fn may_create(&self, key: &ObjectKey) -> bool {
        let plural = match key.kind.as_str() {
            "PriorityClass" => "priorityclasses".to_owned(),
            "RuntimeClass" => "runtimeclasses".to_owned(),
            kind => format!("{}s", kind.to_lowercase()),
        };
        let namespace = key.namespace.as_deref();
        let is_allowed = |of: Option<&str>| {
            self.allowed
                .contains(&(key.group.as_str(), plural.as_str(), of))
        };
        is_allowed(None) || is_allowed(namespace) || self.mentioned.contains(key.name.as_str())
    }
}

#[cfg(test)]
mod tests;
