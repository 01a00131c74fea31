//! The order in which objects are deleted.
//!
//! Custom resources are deleted first, while their controller runs, then webhook configurations and APIServices, workloads, RBAC,
//! configuration, CRDs, and finally namespaces. Deleting a CRD deletes every object of its kind, including those of users, whose
//! finalizers need the controller: if such objects exist, the CRD is deleted right after the custom resources.

pub mod holder;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::closing::ClosingStep;
use super::crd_safety::count_kind;
use super::order::ObjectRank;
use super::snapshot::Inhabitants;
use super::{Deletion, InstallationPlan};
use common::manifest::key::ObjectKey;

/// The maximum number of objects that a warning names.
const NAMED: usize = 5;

/// When an object is deleted. A turn begins when all objects of the previous one are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TeardownTurn {
    /// Custom resources.
    CustomResources,
    /// CRDs with live objects that are deleted with them.
    InhabitedDefinitions,
    /// Webhook configurations and APIServices.
    Admission,
    /// Workloads.
    Workloads,
    /// Role bindings and service account tokens.
    Bindings,
    /// Roles, service accounts and configuration.
    Identity,
    /// All other CRDs.
    EmptyDefinitions,
    /// Namespaces.
    Namespaces,
    /// Objects that the installation replaces but has not recorded.
    Superseded,
}

impl TeardownTurn {
    fn from_key(key: &ObjectKey, inhabited: &BTreeSet<&ObjectKey>) -> Self {
        match ObjectRank::from_object(key, None) {
            ObjectRank::CustomResources => Self::CustomResources,
            ObjectRank::Definitions if inhabited.contains(key) => Self::InhabitedDefinitions,
            ObjectRank::Admission => Self::Admission,
            ObjectRank::Workloads => Self::Workloads,
            ObjectRank::Bindings => Self::Bindings,
            ObjectRank::Identity => Self::Identity,
            ObjectRank::Definitions => Self::EmptyDefinitions,
            ObjectRank::Namespaces => Self::Namespaces,
        }
    }
}

/// Returns the steps that delete objects, sorted by key. CRDs count as empty.
pub(super) fn steps(mut deletions: Vec<Deletion>) -> impl Iterator<Item = ClosingStep> {
    deletions.sort_by(|a, b| a.target.cmp(&b.target));
    deletions.into_iter().map(|deletion| ClosingStep::Delete {
        turn: TeardownTurn::from_key(&deletion.target.key, &BTreeSet::new()),
        deletion,
    })
}

/// Moves CRDs with live objects that the plan does not delete itself to a turn in which the controllers of these objects still run,
/// and warns about the objects.
pub(super) fn keep_controllers(
    plan: &mut InstallationPlan,
    inhabited: &BTreeMap<ObjectKey, Inhabitants>,
) {
    let deleted: BTreeSet<ObjectKey> = plan
        .deletions()
        .map(|deletion| deletion.target.key.clone())
        .collect();
    let mut definitions = BTreeSet::new();
    for (key, found) in inhabited {
        let objects = found.objects.iter().filter(|key| !deleted.contains(*key));
        let objects: Vec<&ObjectKey> = objects.collect();
        if deleted.contains(key) && (!objects.is_empty() || found.more > 0) {
            plan.warnings.push(words(key, found, &objects));
            definitions.insert(key);
        }
    }
    for step in &mut plan.closing {
        if let ClosingStep::Delete { turn, deletion } = step {
            *turn = TeardownTurn::from_key(&deletion.target.key, &definitions);
        }
    }
    plan.close([]);
}

/// Formats the warning `CustomResourceDefinition x: deleting it also deletes 3 live Certificates (default/web, …)`.
fn words(definition: &ObjectKey, found: &Inhabitants, objects: &[&ObjectKey]) -> String {
    let names = objects.iter().take(NAMED);
    let names = names.map(|key| match &key.namespace {
        Some(namespace) => format!("{namespace}/{}", key.name),
        None => key.name.clone(),
    });
    let mut names: Vec<String> = names.collect();
    let count = objects.len().saturating_add(found.more);
    if count > names.len() {
        names.push("…".to_owned());
    }
    format!(
        "{definition}: deleting it also deletes {} ({})",
        count_kind(count, &format!("live {}", found.kind)),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

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
            resource_version: String::new(),
            labels: BTreeMap::new(),
        });
        let mut deletions: Vec<_> = deletions.collect();
        deletions.sort_by_key(|deletion| TeardownTurn::from_key(&deletion.target.key, inhabited));
        let kinds = deletions.into_iter();
        kinds.map(|deletion| deletion.target.key.kind).collect()
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
        let definition = key("apiextensions.k8s.io", "CustomResourceDefinition");
        let policy = key("shop.example", "Policy");
        let mut found = Inhabitants {
            kind: "Policy".to_owned(),
            ..Inhabitants::default()
        };
        assert_eq!(
            words(&definition, &found, &[&policy]),
            "CustomResourceDefinition x: deleting it also deletes 1 live Policy (x)"
        );
        found.more = 600;
        assert_eq!(
            words(&definition, &found, &[&policy]),
            "CustomResourceDefinition x: deleting it also deletes 601 live Policies (x, …)"
        );
    }
}
