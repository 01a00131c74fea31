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
pub enum GuardVerb {
    /// Creates the object.
    Create,
    /// Changes the object.
    Update,
    /// Deletes the object.
    Delete,
}

/// API group and plural of a resource, with the subresource if only that is guarded.
pub type GuardedResource = (&'static str, &'static str);

/// A row of the table: what others may not do.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// The guarded objects, for readers.
    pub object: &'static str,
    /// The guarded objects, as requests name them.
    pub resources: &'static [GuardedResource],
    /// The guarded part of the object.
    pub part: &'static str,
    /// The denied operations.
    pub verbs: &'static [GuardVerb],
    /// Who may do it anyway.
    pub may: &'static [Principal],
    /// Whether the webhook denies it.
    pub webhook: bool,
    /// Whether a policy denies it.
    pub policy: bool,
    /// The request in the table of bypasses that tests this guard.
    pub proof: &'static str,
}

const RECORDS: &[GuardedResource] = &[("kubectl-addons.dev", "addoninstallations")];
const STATUS: &[GuardedResource] = &[("kubectl-addons.dev", "addoninstallations/status")];
const CATALOGUES: &[GuardedResource] = &[("kubectl-addons.dev", "addoncatalogues")];
const CONFIG_MAPS: &[GuardedResource] = &[("", "configmaps")];
const NAMESPACES: &[GuardedResource] = &[
    ("", "namespaces"),
    ("", "namespaces/status"),
    ("", "namespaces/finalize"),
];
const DEFINITIONS: &[GuardedResource] = &[("apiextensions.k8s.io", "customresourcedefinitions")];
const SERVICES: &[GuardedResource] = &[("apiregistration.k8s.io", "apiservices")];
const CONFIGURATIONS: &[GuardedResource] = &[
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
    ),
];
const WEBHOOK: &[GuardedResource] = &[
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
const SECRET: &[GuardedResource] = &[("", "secrets")];

const WRITE: &[GuardVerb] = &[GuardVerb::Create, GuardVerb::Update];
const ANY: &[GuardVerb] = &[GuardVerb::Create, GuardVerb::Update, GuardVerb::Delete];
const CORE: &[Principal] = &[Principal::Core];
const BOTH: &[Principal] = &[Principal::Core, Principal::Reconciler];

/// Returns a guard that both the webhook and a policy enforce.
const fn guard(
    object: &'static str,
    resources: &'static [GuardedResource],
    part: &'static str,
    verbs: &'static [GuardVerb],
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
    const fn only_policy(self) -> Self {
        Self {
            webhook: false,
            ..self
        }
    }

    const fn only_webhook(self) -> Self {
        Self {
            policy: false,
            ..self
        }
    }
}

/// All guards.
#[rustfmt::skip]
pub const GUARDS: &[Guard] = &[
    guard("core add-on", RECORDS, "the record, until it is released", &[GuardVerb::Delete], &[], "delete a core record"),
    guard("core add-on", RECORDS, "the spec", &[GuardVerb::Update], BOTH, "other values of core"),
    guard("core add-on", RECORDS, "labels and annotations", &[GuardVerb::Update], BOTH, "an annotation on core, which takes its values away"),
    guard("core add-on", RECORDS, "more finalizers, and the removal of `core-guard`", &[GuardVerb::Update], BOTH, "a foreign finalizer on core"),
    guard("core add-on", RECORDS, "more owners", &[GuardVerb::Update], BOTH, "give core an owner that is deleted"),
    guard("core add-on", STATUS, "the status, until it is released", &[GuardVerb::Update], BOTH, "the status of core").only_policy(),
    guard("any record", RECORDS, "`spec.coreAddon: true`", WRITE, BOTH, "make a record core"),
    guard("any record", RECORDS, "the annotation `released`", WRITE, BOTH, "plant the release before a record is core"),
    guard("any record", RECORDS, "a name of a core set in another namespace", &[GuardVerb::Create], BOTH, "take the name of a core add-on in another namespace").only_webhook(),
    guard("any record", RECORDS, "the annotation `written-by`, with the name of someone else", WRITE, &[], "name another writer").only_policy(),
    guard("what core sets follow from", CONFIG_MAPS, "the ConfigMaps `core-addon-rules`, `custom-core-addons`, `core-addon-rollout`", ANY, BOTH, "write the list of core add-ons").only_policy(),
    guard("catalogue of class Core", CATALOGUES, "everything", ANY, BOTH, "create a catalogue of class Core"),
    guard("any catalogue", CATALOGUES, "removing an entry that a core add-on uses", &[GuardVerb::Update, GuardVerb::Delete], &[], "drop the entry of core from its catalogue").only_webhook(),
    guard("namespace with core add-ons or their objects", NAMESPACES, "the namespace", &[GuardVerb::Delete], &[], "delete a namespace with objects of a core add-on"),
    guard("namespace with core add-ons or their objects", NAMESPACES, "the labels `holds-core`, `cluster`, `kubeconfig-secret`, the annotation `kkp-version`", &[GuardVerb::Update], BOTH, "take the label from it"),
    guard("any namespace", NAMESPACES, "the label `holds-core`, added", WRITE, BOTH, "mark a namespace that holds nothing").only_policy(),
    guard("any namespace", NAMESPACES, "the annotation `cluster-deleting`, added", WRITE, BOTH, "mark a namespace as going with its cluster"),
    guard("any namespace", NAMESPACES, "the label `cluster=local`, added", WRITE, &[Principal::Enroller], "stand for this cluster, without the right"),
    guard("any namespace", NAMESPACES, "the label `kubeconfig-secret`, added or changed", WRITE, &[Principal::Enroller], "stand for another cluster, without the right"),
    guard("namespaces `kube-*` and that of the reconciler", NAMESPACES, "the labels `cluster=local` and `kubeconfig-secret`, added", WRITE, &[], "stand for this cluster as a namespace of the control plane"),
    guard("namespace that stands for a cluster", NAMESPACES, "labels by which an AddonPolicy with `Enforce` selects it", &[GuardVerb::Update], &[Principal::PolicyWriter], "take a namespace from under a policy").only_policy(),
    guard("CRDs of kubectl addons", DEFINITIONS, "the CRD", &[GuardVerb::Delete], &[], "delete a definition, and all records with it").only_policy(),
    guard("CRDs of kubectl addons", DEFINITIONS, "everything but the status", &[GuardVerb::Update], CORE, "drop coreAddon from the schema, and with it every guard").only_policy(),
    guard("APIServices of kubectl addons", SERVICES, "which server answers for the kinds", &[GuardVerb::Update], CORE, "another server for our kinds").only_policy(),
    guard("webhook configurations", CONFIGURATIONS, "the configuration", &[GuardVerb::Delete], &[], "delete the configuration of the webhook").only_policy(),
    guard("webhook configurations", CONFIGURATIONS, "everything but the `caBundle`", &[GuardVerb::Update], CORE, "failurePolicy Ignore").only_policy(),
    guard("webhook configurations", CONFIGURATIONS, "the `caBundle`", &[GuardVerb::Update], &[Principal::Core, Principal::Webhook, Principal::Injector], "no authority").only_policy(),
    guard("objects of the webhook", WEBHOOK, "the object", &[GuardVerb::Delete], &[], "delete the Deployment").only_policy(),
    guard("objects of the webhook", WEBHOOK, "everything but the status, the scale included", &[GuardVerb::Update], CORE, "scale the webhook to nothing").only_policy(),
    guard("Secret `addons-webhook-ca`", SECRET, "the authority", &[GuardVerb::Update], &[Principal::Core, Principal::Webhook], "another authority in its Secret").only_policy(),
];
