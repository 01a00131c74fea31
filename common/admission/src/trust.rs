//! The trust model as a table: who may do what to the objects that core add-ons and their guards consist of.
//!
//! `SECURITY.md` shows this table. Tests compare it with the policies of `deploy/policies`, with the configuration of the webhook, and
//! with requests that try to bypass the guards. RBAC alone decides about everything that no row names.

use std::fmt;

/// Someone who may do what a guard denies to everyone else. Members of the break-glass group may do all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Principal {
    /// A member of the core group.
    Core,
    /// The ServiceAccount of the loop.
    Reconciler,
    /// The ServiceAccount of the webhook.
    Webhook,
    /// The cainjector of cert-manager, which announces authorities.
    Injector,
    /// Anyone who may enrol namespaces.
    Enroller,
    /// Anyone who may update AddonPolicies.
    PolicyWriter,
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "core group",
            Self::Reconciler => "reconciler",
            Self::Webhook => "webhook",
            Self::Injector => "cainjector of cert-manager",
            Self::Enroller => "whoever may enrol namespaces",
            Self::PolicyWriter => "whoever may update AddonPolicies",
        })
    }
}

/// An operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Creates the object.
    Create,
    /// Changes the object.
    Update,
    /// Deletes the object.
    Delete,
}

/// API group and plural of a resource, with the subresource if only that is guarded.
pub type Resource = (&'static str, &'static str);

/// A row of the table: what others may not do.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// The guarded objects, for readers.
    pub object: &'static str,
    /// The guarded objects, as requests name them.
    pub resources: &'static [Resource],
    /// The guarded part of the object.
    pub part: &'static str,
    /// The denied operations.
    pub verbs: &'static [Verb],
    /// Who may do it anyway.
    pub may: &'static [Principal],
    /// Whether the webhook denies it.
    pub webhook: bool,
    /// Whether a policy denies it.
    pub policy: bool,
    /// The request in the table of bypasses that tests this guard.
    pub proof: &'static str,
}

const RECORDS: &[Resource] = &[("kubectl-addons.dev", "addoninstallations")];
const STATUS: &[Resource] = &[("kubectl-addons.dev", "addoninstallations/status")];
const CATALOGUES: &[Resource] = &[("kubectl-addons.dev", "addoncatalogues")];
const CONFIG_MAPS: &[Resource] = &[("", "configmaps")];
const NAMESPACES: &[Resource] = &[
    ("", "namespaces"),
    ("", "namespaces/status"),
    ("", "namespaces/finalize"),
];
const DEFINITIONS: &[Resource] = &[("apiextensions.k8s.io", "customresourcedefinitions")];
const SERVICES: &[Resource] = &[("apiregistration.k8s.io", "apiservices")];
const CONFIGURATIONS: &[Resource] = &[
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
    ),
];
const WEBHOOK: &[Resource] = &[
    ("apps", "deployments"),
    ("apps", "deployments/scale"),
    ("policy", "poddisruptionbudgets"),
    ("", "services"),
    ("", "serviceaccounts"),
    ("", "secrets"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
];
const SECRET: &[Resource] = &[("", "secrets")];

const WRITE: &[Verb] = &[Verb::Create, Verb::Update];
const ANY: &[Verb] = &[Verb::Create, Verb::Update, Verb::Delete];
const CORE: &[Principal] = &[Principal::Core];
const BOTH: &[Principal] = &[Principal::Core, Principal::Reconciler];

/// Returns a guard that both the webhook and a policy enforce.
const fn guard(
    object: &'static str,
    resources: &'static [Resource],
    part: &'static str,
    verbs: &'static [Verb],
    may: &'static [Principal],
    proof: &'static str,
) -> Guard {
    Guard {
        object,
        resources,
        part,
        verbs,
        may,
        webhook: true,
        policy: true,
        proof,
    }
}

impl Guard {
    const fn of_policies(self) -> Self {
        Self {
            webhook: false,
            ..self
        }
    }

    const fn of_webhook(self) -> Self {
        Self {
            policy: false,
            ..self
        }
    }
}

/// All guards.
#[rustfmt::skip]
pub const GUARDS: &[Guard] = &[
    guard("core add-on", RECORDS, "the record, until it is released", &[Verb::Delete], &[], "delete a core record"),
    guard("core add-on", RECORDS, "the spec", &[Verb::Update], BOTH, "other values of core"),
    guard("core add-on", RECORDS, "labels and annotations", &[Verb::Update], BOTH, "an annotation on core, which takes its values away"),
    guard("core add-on", RECORDS, "more finalizers, and the removal of `core-guard`", &[Verb::Update], BOTH, "a foreign finalizer on core"),
    guard("core add-on", RECORDS, "more owners", &[Verb::Update], BOTH, "give core an owner that is deleted"),
    guard("core add-on", STATUS, "the status, until it is released", &[Verb::Update], BOTH, "the status of core").of_policies(),
    guard("any record", RECORDS, "`spec.coreAddon: true`", WRITE, BOTH, "make a record core"),
    guard("any record", RECORDS, "the annotation `released`", WRITE, BOTH, "plant the release before a record is core"),
    guard("any record", RECORDS, "a name of a core set in another namespace", &[Verb::Create], BOTH, "take the name of a core add-on in another namespace").of_webhook(),
    guard("any record", RECORDS, "the annotation `written-by`, with the name of someone else", WRITE, &[], "name another writer").of_policies(),
    guard("what core sets follow from", CONFIG_MAPS, "the ConfigMaps `core-addon-rules`, `custom-core-addons`, `core-addon-rollout`", ANY, BOTH, "write the list of core add-ons").of_policies(),
    guard("catalogue of class Core", CATALOGUES, "everything", ANY, BOTH, "create a catalogue of class Core"),
    guard("any catalogue", CATALOGUES, "removing an entry that a core add-on uses", &[Verb::Update, Verb::Delete], &[], "drop the entry of core from its catalogue").of_webhook(),
    guard("namespace with core add-ons or their objects", NAMESPACES, "the namespace", &[Verb::Delete], &[], "delete a namespace with objects of a core add-on"),
    guard("namespace with core add-ons or their objects", NAMESPACES, "the labels `holds-core`, `cluster`, `kubeconfig-secret`, the annotation `kkp-version`", &[Verb::Update], BOTH, "take the label from it"),
    guard("any namespace", NAMESPACES, "the label `holds-core`, added", WRITE, BOTH, "mark a namespace that holds nothing").of_policies(),
    guard("any namespace", NAMESPACES, "the annotation `cluster-deleting`, added", WRITE, BOTH, "mark a namespace as going with its cluster"),
    guard("any namespace", NAMESPACES, "the label `cluster=local`, added", WRITE, &[Principal::Enroller], "stand for this cluster, without the right"),
    guard("any namespace", NAMESPACES, "the label `kubeconfig-secret`, added or changed", WRITE, &[Principal::Enroller], "stand for another cluster, without the right"),
    guard("namespaces `kube-*` and that of the reconciler", NAMESPACES, "the labels `cluster=local` and `kubeconfig-secret`, added", WRITE, &[], "stand for this cluster as a namespace of the control plane"),
    guard("namespace that stands for a cluster", NAMESPACES, "labels by which an AddonPolicy with `Enforce` selects it", &[Verb::Update], &[Principal::PolicyWriter], "take a namespace from under a policy").of_policies(),
    guard("CRDs of kubectl addons", DEFINITIONS, "the CRD", &[Verb::Delete], &[], "delete a definition, and all records with it").of_policies(),
    guard("CRDs of kubectl addons", DEFINITIONS, "everything but the status", &[Verb::Update], CORE, "drop coreAddon from the schema, and with it every guard").of_policies(),
    guard("APIServices of kubectl addons", SERVICES, "which server answers for the kinds", &[Verb::Update], CORE, "another server for our kinds").of_policies(),
    guard("webhook configurations", CONFIGURATIONS, "the configuration", &[Verb::Delete], &[], "delete the configuration of the webhook").of_policies(),
    guard("webhook configurations", CONFIGURATIONS, "everything but the `caBundle`", &[Verb::Update], CORE, "failurePolicy Ignore").of_policies(),
    guard("webhook configurations", CONFIGURATIONS, "the `caBundle`", &[Verb::Update], &[Principal::Core, Principal::Webhook, Principal::Injector], "no authority").of_policies(),
    guard("objects of the webhook", WEBHOOK, "the object", &[Verb::Delete], &[], "delete the Deployment").of_policies(),
    guard("objects of the webhook", WEBHOOK, "everything but the status, the scale included", &[Verb::Update], CORE, "scale the webhook to nothing").of_policies(),
    guard("Secret `addons-webhook-ca`", SECRET, "the authority", &[Verb::Update], &[Principal::Core, Principal::Webhook], "another authority in its Secret").of_policies(),
];
