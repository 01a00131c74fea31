//! What a reviewer decides on: the changes of a plan, sorted by what they may cost. The confirmation, `diff`, the page and the text for a
//! pull request show the same [`Review`].

pub mod definition;
pub mod rights;
#[cfg(test)]
mod tests;
mod workload;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::changes::{FieldChange, ObjectChange, ObjectDiff};
use super::graph::template::runs_pods;
use super::references::RBAC;
use super::{InstallationPlan, Verb};
use common::api::names;
use common::manifest::key::ObjectKey;
use definition::DefinitionChange;
use rights::RightsChange;

/// The changes of one installation, in the order in which to review them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Rights that are gained and lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rights: Vec<RightsChange>,
    /// Images that are replaced, added and removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageChange>,
    /// Changed objects that run pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<ReviewedObject>,
    /// All other changed objects, except definitions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub configuration: Vec<ReviewedObject>,
    /// Changed CustomResourceDefinitions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub definitions: Vec<DefinitionChange>,
    /// Labels, annotations and checksums that name a version or a tool.
    pub marks: MarkCount,
}

/// A changed object, without its marks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewedObject {
    /// The object.
    pub key: ObjectKey,
    /// Whether its pods are replaced, because their template changes.
    pub restarts: bool,
    /// The changed fields, sorted by path. Empty if only marks of the pod template change.
    pub fields: Vec<FieldChange>,
}

/// An image that is replaced, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageChange {
    /// The live image; absent if it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The image after the apply; absent if it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// The objects that use it.
    pub objects: Vec<ObjectKey>,
}

/// The number of marks that change: labels, annotations and checksums that name a version or a tool, and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MarkCount {
    /// The fields.
    pub fields: usize,
    /// The objects that have them.
    pub objects: usize,
}

impl Review {
    /// Sorts the changes of a plan. `changes` are those of [`InstallationPlan::changes`], or of a preview.
    #[must_use]
    pub fn new(plan: &InstallationPlan, changes: &[ObjectDiff]) -> Self {
        let mut review = Self::default();
        let mut images: BTreeMap<(Option<String>, Option<String>), Vec<ObjectKey>> =
            BTreeMap::new();
        for change in changes {
            let object = plan.step(&change.key).map(|step| step.object.as_ref());
            // All images of a new installation are new.
            let found = match plan.verb {
                Verb::Install => Vec::new(),
                _ => workload::changed_images(change, object),
            };
            for pair in found {
                let objects = images.entry(pair).or_default();
                if !objects.contains(&change.key) {
                    objects.push(change.key.clone());
                }
            }
            review.rights.extend(RightsChange::new(change, object));
            if change.change() == ObjectChange::Changed {
                review.add_changed(plan, change, object);
            }
        }
        let images = images.into_iter();
        review.images = images
            .map(|((old, new), objects)| ImageChange { old, new, objects })
            .collect();
        review
    }

    fn add_changed(
        &mut self,
        plan: &InstallationPlan,
        change: &ObjectDiff,
        object: Option<&Value>,
    ) {
        let (marks, fields): (Vec<&FieldChange>, Vec<&FieldChange>) =
            change.fields.iter().partition(|field| is_mark(&field.path));
        if !marks.is_empty() {
            self.marks.fields += marks.len();
            self.marks.objects += 1;
        }
        let key = &change.key;
        if key.is_definition() {
            let found = DefinitionChange::new(key, &fields, plan.harmless_changes(key));
            return self.definitions.extend(found);
        }
        let is_workload = runs_pods(key);
        let restarts = is_workload && workload::restarts_pods(change, object);
        // Rights and images have sections of their own.
        let fields = fields.into_iter().filter(|field| {
            !(rights::is_right(key, field) || is_workload && workload::is_image(&field.path))
        });
        let reviewed = ReviewedObject {
            key: key.clone(),
            restarts,
            fields: fields.cloned().collect(),
        };
        if reviewed.fields.is_empty() && !restarts && change.unjudged.is_none() {
            return;
        }
        if is_workload {
            self.workloads.push(reviewed);
        } else {
            self.configuration.push(reviewed);
        }
    }
}

/// Returns the place of a change in a review: what is refused or recreated, then rights, workloads, configuration, definitions.
#[must_use]
pub fn rank(change: &ObjectDiff) -> (bool, bool, u8) {
    let kind = match &change.key {
        key if key.group == RBAC => 0,
        key if runs_pods(key) => 1,
        key if key.is_definition() => 3,
        _ => 2,
    };
    let change = change.change();
    (
        change != ObjectChange::Refused,
        change != ObjectChange::Recreated,
        kind,
    )
}

/// Whether only marks of an object change, none of which restarts its pods.
#[must_use]
pub fn changes_only_marks(change: &ObjectDiff) -> bool {
    change.change() == ObjectChange::Changed
        && !change.fields.is_empty()
        && change.fields.iter().all(|field| is_mark(&field.path))
        && !workload::restarts_pods(change, None)
}

/// Labels and annotations of any object that say which version of which tool or chart wrote it.
const MARKS: &[&str] = &[
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "chart",
    "controller-gen.kubebuilder.io/version",
    "helm.sh/chart",
    "heritage",
    "kubectl.kubernetes.io/last-applied-configuration",
    "rollme",
];
/// The prefixes of such labels and annotations.
const MARK_PREFIXES: &[&str] = &[
    "checksum/",
    "meta.helm.sh/",
    "kapp.k14s.io/",
    "addons.k8s.io/",
];

/// Labels that say to which application an object belongs. In a pod template they are not marks, because selectors may use them.
const APPLICATION_LABELS: &str = "app.kubernetes.io/";

/// Whether a field is a label, annotation or checksum that only names the application, version or tool behind the object.
/// Checksums of pod templates count too: a new one restarts the pods, which [`ReviewedObject::restarts`] says.
#[must_use]
pub fn is_mark(path: &str) -> bool {
    let Some((within, rest)) = path.split_once("metadata.") else {
        return false;
    };
    let Some(rest) = rest
        .strip_prefix("labels")
        .or_else(|| rest.strip_prefix("annotations"))
    else {
        return false;
    };
    let name = match rest.strip_prefix("[\"") {
        Some(quoted) => quoted.strip_suffix("\"]"),
        None => rest.strip_prefix('.'),
    };
    name.is_some_and(|name| {
        MARKS.contains(&name)
            || within.is_empty() && (name == "version" || name.starts_with(APPLICATION_LABELS))
            || MARK_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || name.starts_with(&format!("{}/", names::GROUP))
    })
}
