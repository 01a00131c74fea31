//! The order in which objects are deleted.
//!
//! Custom resources are deleted while their controller runs, then what the API server calls, workloads, rights, configuration,
//! definitions, and namespaces at the very end. Deleting a definition deletes every object of its kind, also those of users,
//! whose finalizers need the controller: where such objects exist, it is deleted right after the custom
//! resources.

pub mod holder;

use std::collections::{BTreeMap, BTreeSet};

use super::crd_safety::counted;
use super::order::Rank;
use super::{Deletion, InstallationPlan};
use crate::manifest::key::ObjectKey;

/// Objects that are named one by one.
const NAMED: usize = 5;

/// A definition that is deleted, and the live objects that are deleted with it although they are not ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inhabited {
    /// The definition.
    pub definition: ObjectKey,
    /// Kind of its objects.
    pub kind: String,
    /// The first of its objects.
    pub objects: Vec<ObjectKey>,
    /// How many more there are.
    pub more: usize,
    /// Why they could not be read, where they could not.
    pub unseen: Option<String>,
}

/// When an object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    CustomResources,
    InhabitedDefinitions,
    Admission,
    Workloads,
    Bindings,
    Identity,
    EmptyDefinitions,
    Namespaces,
}

impl Turn {
    fn of(key: &ObjectKey, inhabited: &BTreeSet<&ObjectKey>) -> Self {
        match Rank::of(key, None) {
            Rank::CustomResources => Self::CustomResources,
            Rank::Definitions if inhabited.contains(key) => Self::InhabitedDefinitions,
            Rank::Admission => Self::Admission,
            Rank::Workloads => Self::Workloads,
            Rank::Bindings => Self::Bindings,
            Rank::Identity => Self::Identity,
            Rank::Definitions => Self::EmptyDefinitions,
            Rank::Namespaces => Self::Namespaces,
        }
    }
}

/// Deletions in groups, each sorted by key: a group begins when the one before is gone. `inhabited` are the definitions
/// with live objects that are deleted with them.
#[must_use]
pub fn groups(deletions: Vec<Deletion>, inhabited: &BTreeSet<&ObjectKey>) -> Vec<Vec<Deletion>> {
    let mut groups: BTreeMap<Turn, Vec<Deletion>> = BTreeMap::new();
    for deletion in deletions {
        let turn = Turn::of(&deletion.target.key, inhabited);
        groups.entry(turn).or_default().push(deletion);
    }
    let groups = groups.into_values().map(|mut group| {
        group.sort_by(|a, b| a.target.cmp(&b.target));
        group
    });
    groups.collect()
}

/// Puts inhabited definitions where the controllers of their objects still run, and warns about these objects.
pub fn keep_controllers(plan: &mut InstallationPlan, inhabited: Vec<Inhabited>) {
    if inhabited.is_empty() {
        return;
    }
    let definitions = inhabited.iter().map(|found| &found.definition).collect();
    let deletions = plan.prune.drain(..).flatten().collect();
    plan.prune = groups(deletions, &definitions);
    plan.warnings.extend(inhabited.iter().map(Inhabited::words));
}

impl Inhabited {
    /// `CustomResourceDefinition x: deleting it also deletes 3 live Certificates (default/web, …)`.
    fn words(&self) -> String {
        let definition = &self.definition;
        if let Some(why) = &self.unseen {
            return format!(
                "{definition}: deleting it also deletes every live {}, which cannot be listed: {why}",
                self.kind
            );
        }
        let mut names: Vec<String> = self
            .objects
            .iter()
            .take(NAMED)
            .map(|key| match &key.namespace {
                Some(namespace) => format!("{namespace}/{}", key.name),
                None => key.name.clone(),
            })
            .collect();
        let count = self.objects.len().saturating_add(self.more);
        if count > names.len() {
            names.push("…".to_owned());
        }
        format!(
            "{definition}: deleting it also deletes {} ({})",
            counted(count, &format!("live {}", self.kind)),
            names.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Target;

    fn key(group: &str, kind: &str) -> ObjectKey {
        ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: "x".to_owned(),
        }
    }

    fn order(kinds: &[(&str, &str)], inhabited: &BTreeSet<&ObjectKey>) -> Vec<String> {
        let deletions = kinds.iter().rev().map(|(group, kind)| Deletion {
            target: Target {
                key: key(group, kind),
                version: "v1".to_owned(),
                plural: String::new(),
            },
            uid: String::new(),
        });
        let groups = groups(deletions.collect(), inhabited);
        let kinds = groups.iter().flatten();
        kinds
            .map(|deletion| deletion.target.key.kind.clone())
            .collect()
    }

    #[test]
    fn controllers_outlive_what_they_control() {
        let definition = ("apiextensions.k8s.io", "CustomResourceDefinition");
        let rest = [
            (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
            ),
            ("apps", "Deployment"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
            ("", "ServiceAccount"),
        ];
        let till = [("shop.example", "Till")];
        let namespace = [("", "Namespace")];
        let kinds = |parts: &[&[(&'static str, &'static str)]]| parts.concat();
        let names = |kinds: &[(&str, &str)]| -> Vec<String> {
            kinds.iter().map(|(_, kind)| (*kind).to_owned()).collect()
        };
        let empty = kinds(&[&till, &rest, &[definition], &namespace]);
        assert_eq!(order(&empty, &BTreeSet::new()), names(&empty));
        let inhabited = kinds(&[&till, &[definition], &rest, &namespace]);
        let key = key(definition.0, definition.1);
        assert_eq!(
            order(&inhabited, &BTreeSet::from([&key])),
            names(&inhabited)
        );
    }

    #[test]
    fn objects_that_are_deleted_with_a_definition_are_named() {
        let mut found = Inhabited {
            definition: key("apiextensions.k8s.io", "CustomResourceDefinition"),
            kind: "Policy".to_owned(),
            objects: vec![key("shop.example", "Policy")],
            ..Inhabited::default()
        };
        assert_eq!(
            found.words(),
            "CustomResourceDefinition x: deleting it also deletes 1 live Policy (x)"
        );
        found.more = 600;
        assert_eq!(
            found.words(),
            "CustomResourceDefinition x: deleting it also deletes 601 live Policies (x, …)"
        );
    }
}
