//! How lists of built-in kinds are merged: by keys of their items, or as sets. `x-kubernetes-patch-merge-key` and
//! `x-kubernetes-list-map-keys` in the OpenAPI of the API server say the same, which a test on a cluster compares. Any other list is
//! replaced as a whole.

use crate::manifest::key::Gvk;

/// How a list is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListMerge {
    /// Items with equal values of these fields are merged. Every item has the first one.
    Keys(&'static [&'static str]),
    /// Items are scalars, each of which occurs once.
    Set,
}

const NAME: ListMerge = ListMerge::Keys(&["name"]);

/// Kinds with a pod template, each with the path of the template.
const TEMPLATES: [(&str, &str, &[&str]); 9] = [
    ("", "Pod", &[]),
    ("", "PodTemplate", &["template"]),
    ("", "ReplicationController", TEMPLATE),
    ("apps", "DaemonSet", TEMPLATE),
    ("apps", "Deployment", TEMPLATE),
    ("apps", "ReplicaSet", TEMPLATE),
    ("apps", "StatefulSet", TEMPLATE),
    ("batch", "Job", TEMPLATE),
    (
        "batch",
        "CronJob",
        &["spec", "jobTemplate", "spec", "template"],
    ),
];
const TEMPLATE: &[&str] = &["spec", "template"];

/// Lists in the spec of a pod.
const POD_LISTS: [(&str, ListMerge); 9] = [
    ("containers", NAME),
    ("ephemeralContainers", NAME),
    ("hostAliases", ListMerge::Keys(&["ip"])),
    ("imagePullSecrets", NAME),
    ("initContainers", NAME),
    ("resourceClaims", NAME),
    ("schedulingGates", NAME),
    (
        "topologySpreadConstraints",
        ListMerge::Keys(&["topologyKey", "whenUnsatisfiable"]),
    ),
    ("volumes", NAME),
];

/// The lists of containers in the spec of a pod.
const CONTAINERS: [&str; 3] = ["containers", "ephemeralContainers", "initContainers"];

/// Lists in a container.
const CONTAINER_LISTS: [(&str, ListMerge); 4] = [
    ("env", NAME),
    ("ports", ListMerge::Keys(&["containerPort", "protocol"])),
    ("volumeDevices", ListMerge::Keys(&["devicePath"])),
    ("volumeMounts", ListMerge::Keys(&["mountPath"])),
];

/// Lists in the metadata of every object.
const METADATA_LISTS: [(&str, ListMerge); 2] = [
    ("finalizers", ListMerge::Set),
    ("ownerReferences", ListMerge::Keys(&["uid"])),
];

const ADMISSION: &str = "admissionregistration.k8s.io";

/// Lists of kinds without a pod template.
const OTHER_LISTS: [(&str, &str, &[&str], ListMerge); 13] = [
    ("", "Node", &["spec", "podCIDRs"], ListMerge::Set),
    (
        "",
        "Service",
        &["spec", "ports"],
        ListMerge::Keys(&["port", "protocol"]),
    ),
    ("", "ServiceAccount", &["secrets"], NAME),
    (ADMISSION, "MutatingWebhookConfiguration", WEBHOOKS, NAME),
    (ADMISSION, "MutatingWebhookConfiguration", CONDITIONS, NAME),
    (ADMISSION, "ValidatingWebhookConfiguration", WEBHOOKS, NAME),
    (
        ADMISSION,
        "ValidatingWebhookConfiguration",
        CONDITIONS,
        NAME,
    ),
    (
        ADMISSION,
        "MutatingAdmissionPolicy",
        &["spec", "matchConditions"],
        NAME,
    ),
    (
        ADMISSION,
        "ValidatingAdmissionPolicy",
        &["spec", "matchConditions"],
        NAME,
    ),
    (
        ADMISSION,
        "ValidatingAdmissionPolicy",
        &["spec", "variables"],
        NAME,
    ),
    (
        "resource.k8s.io",
        "ResourceClaimTemplate",
        &["spec", "metadata", "finalizers"],
        ListMerge::Set,
    ),
    (
        "resource.k8s.io",
        "ResourceClaimTemplate",
        &["spec", "metadata", "ownerReferences"],
        ListMerge::Keys(&["uid"]),
    ),
    ("storage.k8s.io", "CSINode", &["spec", "drivers"], NAME),
];
const WEBHOOKS: &[&str] = &["webhooks"];
const CONDITIONS: &[&str] = &["webhooks", "matchConditions"];

/// Returns how the list at `path` of an object of a kind is merged; `None` if it is replaced. Items of lists add nothing to a path.
#[must_use]
pub fn find_merge(kind: &Gvk, path: &[&str]) -> Option<ListMerge> {
    if let ["metadata", field] = path {
        return find(&METADATA_LISTS, field);
    }
    let of_kind = |group: &str, name: &str| kind.group == group && kind.kind == name;
    let mut templates = TEMPLATES.iter();
    if let Some((_, _, template)) = templates.find(|(group, name, _)| of_kind(group, name)) {
        return match path {
            [.., "metadata", field] => find(&METADATA_LISTS, field),
            _ => match path.strip_prefix(*template)? {
                ["spec", field] => find(&POD_LISTS, field),
                ["spec", list, field] if CONTAINERS.contains(list) => find(&CONTAINER_LISTS, field),
                _ => None,
            },
        };
    }
    if of_kind("apiextensions.k8s.io", "CustomResourceDefinition") {
        let rules = "x-kubernetes-validations";
        return (path.last() == Some(&rules)).then_some(ListMerge::Keys(&["rule"]));
    }
    let mut others = OTHER_LISTS.iter();
    let found = others.find(|(group, name, at, _)| of_kind(group, name) && *at == path);
    found.map(|(_, _, _, merge)| *merge)
}

fn find(lists: &[(&str, ListMerge)], field: &str) -> Option<ListMerge> {
    let found = lists.iter().find(|(name, _)| *name == field);
    found.map(|(_, merge)| *merge)
}
