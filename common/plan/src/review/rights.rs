//! Rights that an upgrade grants and takes away, as a reviewer reads them: verbs on resources, not positions in a list of rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::changes::{FieldChange, ObjectChange, ObjectDiff};
use crate::references::RBAC;
use common::manifest::key::ObjectKey;

/// The maximum number of single rights of one object that are compared. A role with more is shown by its fields.
const MAX_RIGHTS: usize = 20_000;
/// Verbs that hand rights on.
const HANDING_ON: &[&str] = &["bind", "escalate", "impersonate"];
/// Resources on which all verbs include those that hand rights on.
const IDENTITIES: &[&str] = &[
    "clusterroles",
    "groups",
    "roles",
    "serviceaccounts",
    "users",
];
/// Resources that give access to more than themselves.
const SENSITIVE: &[&str] = &[
    "*",
    "nodes/proxy",
    "pods/exec",
    "secrets",
    "serviceaccounts/token",
];
/// The role that may do everything.
const UNLIMITED_ROLE: &str = "ClusterRole cluster-admin";
const READING: &[&str] = &["get", "list", "watch"];

/// What a changed role or binding gains and loses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RightsChange {
    /// The role or binding.
    pub key: ObjectKey,
    /// Rights that it gives from now on, the most powerful first. Of a new role only the powerful ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gained: Vec<Grant>,
    /// Rights that it no longer gives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Grant>,
    /// The role that a binding gives: `ClusterRole admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_role: Option<String>,
    /// Subjects that get the role: `ServiceAccount shop/web`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<String>,
    /// Subjects that no longer get it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unbound: Vec<String>,
}

/// Verbs on resources of one API group: `get, list on secrets`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The verbs, sorted.
    pub verbs: Vec<String>,
    /// The resources with their group, `deployments.apps`, or paths such as `/metrics`.
    pub resources: Vec<String>,
    /// The names that the grant is limited to; empty if it is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// One verb on one resource, possibly only for one name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    rbac_verb: String,
    /// The API group; `None` for paths that are no resources.
    group: Option<String>,
    resource: String,
    name: Option<String>,
}

impl RightsChange {
    /// Returns what a change does to rights; `None` if nothing, or if the object is neither a role nor a binding. `object` is the wanted object.
    #[must_use]
    pub fn new(change: &ObjectDiff, object: Option<&Value>) -> Option<Self> {
        let key = &change.key;
        if key.group != RBAC {
            return None;
        }
        let mut rights = Self {
            key: key.clone(),
            gained: Vec::new(),
            lost: Vec::new(),
            bound_role: role_name(object),
            bound: Vec::new(),
            unbound: Vec::new(),
        };
        if change.change() == ObjectChange::Added {
            // Of a new role, only what needs a second look: it gains all it gives.
            let object = object?;
            let mut all = read_rights(object.get("rules"))?;
            all.retain(Right::is_powerful);
            rights.gained = group_rights(all);
            if rights.bound_role.as_deref() == Some(UNLIMITED_ROLE) {
                rights.bound = read_subjects(object.get("subjects"));
            }
        }
        for field in change.fields.iter().filter(|field| is_right(key, field)) {
            let (old, new) = (field.old.as_ref(), field.new.as_ref());
            if field.path == SUBJECTS {
                let (old, new) = (read_subjects(old), read_subjects(new));
                rights.bound = missing_in(&new, &old);
                rights.unbound = missing_in(&old, &new);
            } else {
                let (old, new) = (read_rights(old)?, read_rights(new)?);
                rights.gained = group_rights(uncovered(&new, &old));
                rights.lost = group_rights(uncovered(&old, &new));
            }
        }
        let is_empty = rights.gained.is_empty()
            && rights.lost.is_empty()
            && rights.bound.is_empty()
            && rights.unbound.is_empty();
        (!is_empty).then_some(rights)
    }
}

const RULES: &str = "rules";
const SUBJECTS: &str = "subjects";

/// Whether a field of a role or binding is compared as rights.
#[must_use]
pub fn is_right(key: &ObjectKey, field: &FieldChange) -> bool {
    key.group == RBAC && [RULES, SUBJECTS].contains(&field.path.as_str())
}

fn role_name(object: Option<&Value>) -> Option<String> {
    let role = object?.get("roleRef")?;
    let text = |field: &str| role.get(field)?.as_str();
    Some(format!("{} {}", text("kind")?, text("name")?))
}

fn missing_in(these: &[String], others: &[String]) -> Vec<String> {
    let missing = these.iter().filter(|one| !others.contains(one));
    missing.cloned().collect()
}

fn read_subjects(subjects: Option<&Value>) -> Vec<String> {
    let subjects = subjects.and_then(Value::as_array).into_iter().flatten();
    let subjects = subjects.map(|subject| {
        let text = |field: &str| subject.get(field).and_then(Value::as_str);
        let (kind, name) = (
            text("kind").unwrap_or_default(),
            text("name").unwrap_or_default(),
        );
        match text("namespace") {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        }
    });
    subjects.collect()
}

fn texts<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> + Clone {
    let values = rule.get(field).and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_str)
}

/// Returns every single right of a list of rules; `None` if there are too many.
fn read_rights(rules: Option<&Value>) -> Option<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    for rule in rules.and_then(Value::as_array).into_iter().flatten() {
        let mut names: Vec<Option<&str>> = texts(rule, "resourceNames").map(Some).collect();
        if names.is_empty() {
            names.push(None);
        }
        for verb in texts(rule, "verbs") {
            let paths = texts(rule, "nonResourceURLs").map(|path| Right {
                rbac_verb: verb.to_owned(),
                group: None,
                resource: path.to_owned(),
                name: None,
            });
            rights.extend(paths);
            for group in texts(rule, "apiGroups") {
                for resource in texts(rule, "resources") {
                    rights.extend(names.iter().map(|name| Right {
                        rbac_verb: verb.to_owned(),
                        group: Some(group.to_owned()),
                        resource: resource.to_owned(),
                        name: name.map(str::to_owned),
                    }));
                }
            }
            if rights.len() > MAX_RIGHTS {
                return None;
            }
        }
    }
    Some(rights)
}

/// Returns the rights of `these` that none of `others` includes.
fn uncovered(these: &BTreeSet<Right>, others: &BTreeSet<Right>) -> BTreeSet<Right> {
    let wide: Vec<&Right> = others.iter().filter(|right| right.is_wide()).collect();
    let rest = these
        .iter()
        .filter(|right| !others.contains(right) && !wide.iter().any(|wide| wide.includes(right)));
    rest.cloned().collect()
}

impl Right {
    /// Whether it gives access to more than the resource that it names.
    fn is_powerful(&self) -> bool {
        let is_any = |known: &[&str], text: &str| known.contains(&text);
        is_any(SENSITIVE, &self.resource)
            || is_any(HANDING_ON, &self.rbac_verb)
            || self.rbac_verb == "*" && is_any(IDENTITIES, &self.resource)
    }

    /// Whether it may include other rights than itself.
    fn is_wide(&self) -> bool {
        self.rbac_verb == "*"
            || self.group.as_deref() == Some("*")
            || self.resource.contains('*')
            || self.name.is_none()
    }

    fn includes(&self, other: &Self) -> bool {
        let any_or_same = |wide: &str, one: &str| wide == "*" || wide == one;
        let in_resource = any_or_same(&self.resource, &other.resource)
            || match (
                self.resource.strip_prefix("*/"),
                self.resource.strip_suffix('*'),
            ) {
                // `*/scale` is that subresource of everything, `/metrics/*` is every path below.
                (Some(part), _) => other
                    .resource
                    .split_once('/')
                    .is_some_and(|(_, it)| it == part),
                (None, Some(path)) => self.group.is_none() && other.resource.starts_with(path),
                (None, None) => false,
            };
        let in_group = match (&self.group, &other.group) {
            (Some(wide), Some(one)) => any_or_same(wide, one),
            (None, None) => true,
            _ => false,
        };
        any_or_same(&self.rbac_verb, &other.rbac_verb)
            && in_group
            && in_resource
            && (self.name.is_none() || self.name == other.name)
    }

    fn resource_label(&self) -> String {
        match self.group.as_deref() {
            None | Some("") => self.resource.clone(),
            Some(group) => format!("{}.{group}", self.resource),
        }
    }
}

/// Joins rights with the same verbs, the most powerful first.
fn group_rights(rights: BTreeSet<Right>) -> Vec<Grant> {
    let (powerful, others): (BTreeSet<Right>, BTreeSet<Right>) =
        rights.into_iter().partition(Right::is_powerful);
    let mut grants = group_equal_verbs(powerful);
    grants.extend(group_equal_verbs(others));
    grants
}

/// Joins rights with the same verbs, those that write before those that read.
fn group_equal_verbs(rights: BTreeSet<Right>) -> Vec<Grant> {
    let mut by_resource: BTreeMap<(String, BTreeSet<String>), BTreeSet<String>> = BTreeMap::new();
    let mut names: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for right in rights {
        let resource = right.resource_label();
        match right.name {
            Some(name) => {
                names
                    .entry((resource, right.rbac_verb))
                    .or_default()
                    .insert(name);
            }
            None => {
                let verbs = by_resource.entry((resource, BTreeSet::new())).or_default();
                verbs.insert(right.rbac_verb);
            }
        }
    }
    for ((resource, verb), names) in names {
        by_resource
            .entry((resource, names))
            .or_default()
            .insert(verb);
    }
    let mut by_verbs: BTreeMap<(BTreeSet<String>, BTreeSet<String>), Vec<String>> = BTreeMap::new();
    for ((resource, names), verbs) in by_resource {
        by_verbs.entry((verbs, names)).or_default().push(resource);
    }
    let grants = by_verbs
        .into_iter()
        .map(|((verbs, names), resources)| Grant {
            verbs: verbs.into_iter().collect(),
            resources,
            names: names.into_iter().collect(),
        });
    let mut grants: Vec<Grant> = grants.collect();
    grants.sort_by_key(|grant| (grant.is_reading(), grant.clone()));
    grants
}

impl Grant {
    fn is_reading(&self) -> bool {
        let mut verbs = self.verbs.iter();
        verbs.all(|verb| READING.contains(&verb.as_str()))
    }
}

impl fmt::Display for Grant {
    /// `get, list on secrets (only web-tls)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let any = |list: &[String], all: &str| match list {
            [one] if one == "*" => all.to_owned(),
            list => list.join(", "),
        };
        let verbs = any(&self.verbs, "everything");
        write!(f, "{verbs} on {}", self.resources.join(", "))?;
        if !self.names.is_empty() {
            write!(f, " (only {})", self.names.join(", "))?;
        }
        Ok(())
    }
}
