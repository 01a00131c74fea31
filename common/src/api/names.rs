//! Every group, label, annotation, finalizer and field manager that this project writes or reads.
//!
//! Nothing else in the workspace spells one of these names out.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::hex;

/// The API group of all our objects.
pub const GROUP: &str = "kubectl-addons.dev";
/// The only served version of our objects.
pub const VERSION: &str = "v1alpha1";
/// Plural of installations, as RBAC names them.
pub const INSTALLATIONS: &str = "addoninstallations";
/// The verb on [`INSTALLATIONS`], in the whole cluster, that lets a namespace stand for a cluster (semantics 6).
pub const ENROL: &str = "enrol";
/// `GROUP/VERSION`.
pub const API_VERSION: &str = "kubectl-addons.dev/v1alpha1";

/// Where source catalogues, core lists and the installations of this cluster live (semantics 1, 5).
pub const SYSTEM_NAMESPACE: &str = "kubectl-addons";
/// Where the loop runs (`deploy/overlays/reconciler`). Its ServiceAccount counts as a member of the core group, so no record is
/// executed in its namespace: a record names accounts of its own namespace only (semantics 16).
pub const RECONCILER_NAMESPACE: &str = "kubectl-addons-reconciler";

/// Whether a namespace never stands for a cluster, whatever its labels: its ServiceAccounts belong to the control plane or to the
/// loop, and a record there could name them (semantics 6).
#[must_use]
pub fn is_reserved(namespace: &str) -> bool {
    namespace.starts_with("kube-") || namespace == RECONCILER_NAMESPACE
}

/// On every installed object: the hash of the owning installation ([`owner_hash`], semantics 5).
pub const LABEL_OWNER: &str = "kubectl-addons.dev/owner";
/// The label of the addon-manager that says what becomes of an object (semantics 21).
pub const LABEL_MODE: &str = "addonmanager.kubernetes.io/mode";
/// Its value for an object that is created once, and kept where its manifest is gone.
pub const MODE_ENSURE_EXISTS: &str = "EnsureExists";
/// On every installed object: `NAMESPACE/NAME` of the owning installation (semantics 5).
pub const ANNOTATION_INSTALLATION: &str = "kubectl-addons.dev/installation";
/// On a catalogue that was merged from source catalogues, and on [`COMPATIBLE_ADDONS`]: the uid of their cluster's kube-system
/// (semantics 1).
pub const LABEL_DERIVED_FROM: &str = "kubectl-addons.dev/derived-from";
/// ConfigMap in a namespace that stands for a cluster: the versions that fit it, by reference (semantics 1).
pub const COMPATIBLE_ADDONS: &str = "compatible-addons";
/// Label of every namespace, set by the API server: its name.
pub const LABEL_NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// `local` on a namespace: its installations are of this cluster (semantics 6).
pub const LABEL_CLUSTER: &str = "kubectl-addons.dev/cluster";
/// Value of [`LABEL_CLUSTER`] on a namespace whose installations are of this cluster.
pub const CLUSTER_LOCAL: &str = "local";
/// Label of a namespace: the Secret in it with the kubeconfig of the cluster that it stands for (semantics 6).
pub const LABEL_KUBECONFIG_SECRET: &str = "kubectl-addons.dev/kubeconfig-secret";
/// Label of a Secret, `true`: installations of its namespace may take values and template data from it (semantics 16).
pub const LABEL_VALUES: &str = "kubectl-addons.dev/values";
/// On a namespace with core installations: its deletion is denied (semantics 14).
pub const LABEL_HOLDS_CORE: &str = "kubectl-addons.dev/holds-core";
/// On an installation: JSON object, pointer into `spec.values` → digest of what was defaulted there (semantics 10).
pub const ANNOTATION_DEFAULTED: &str = "kubectl-addons.dev/defaulted";
/// On an installation: the user who wrote it last, and their groups, a name in a line (semantics 19).
pub const ANNOTATION_WRITTEN_BY: &str = "kubectl-addons.dev/written-by";
/// On a core installation that dropped out of the core set: it may be deleted (semantics 14).
pub const ANNOTATION_RELEASED: &str = "kubectl-addons.dev/released";
/// On a namespace whose cluster is being deleted: nothing in it is guarded any more (semantics 14).
pub const ANNOTATION_CLUSTER_DELETING: &str = "kubectl-addons.dev/cluster-deleting";
/// Annotation of a namespace that stands for a cluster: the version of KKP that manages the cluster (semantics 3).
pub const ANNOTATION_KKP_VERSION: &str = "kubectl-addons.dev/kkp-version";
/// The value of [`ANNOTATION_RELEASED`] and [`ANNOTATION_CLUSTER_DELETING`]; with any other one they mean nothing.
pub const MARKED: &str = "true";
/// Label of an installation: the set that it was applied as a member of (semantics 17).
pub const LABEL_SET: &str = "kubectl-addons.dev/set";
/// On an installation that kops' own tool knows, too: `NAMESPACE/NAME` of the namespace and the add-on of its annotation
/// (semantics 11).
pub const ANNOTATION_KOPS_RECORD: &str = "kubectl-addons.dev/kops-record";
/// On a manifest object: how it is applied; the only value is [`APPLY_CREATE_ONLY`] (semantics 12).
pub const ANNOTATION_APPLY: &str = "kubectl-addons.dev/apply";
/// Created once, never updated or pruned (semantics 12).
pub const APPLY_CREATE_ONLY: &str = "create-only";
/// On a manifest object: what happens to single fields that others changed, `spec.replicas=Yield,spec.template=Fail`; it
/// stands before `spec.conflicts` of the installation (semantics 12).
pub const ANNOTATION_CONFLICTS: &str = "kubectl-addons.dev/conflicts";
/// On a definition between two versions: stored versions that are about to leave it, so that a migration that was begun is
/// continued.
pub const ANNOTATION_MIGRATING: &str = "kubectl-addons.dev/migrating-stored-versions";
/// `true` on a manifest object: it may be deleted and created again where a field of it cannot change.
pub const ANNOTATION_RECREATE: &str = "kubectl-addons.dev/recreate";

/// On the pods of a Helm hook that is a Job: digest of the Job. A Job that changed in any way can then only be created again, and
/// so runs again, as with Helm.
pub const ANNOTATION_HOOK: &str = "kubectl-addons.dev/hook";

/// On an object that was taken over from another tool: `MANAGER OPERATION`, the field manager that its fields were taken from
/// (semantics 12).
pub const ANNOTATION_FORMER_MANAGER: &str = "kubectl-addons.dev/former-manager";
/// On an object that was taken over from a release of Helm: `NAMESPACE/NAME` of the release, whose own marks it has lost.
pub const ANNOTATION_FORMER_RELEASE: &str = "kubectl-addons.dev/former-release";
/// On an object that was taken over from client-side `kubectl apply`: the annotation of kubectl, where kubectl does not find it.
pub const ANNOTATION_FORMER_LAST_APPLIED: &str = "kubectl-addons.dev/former-last-applied";
/// On a record of another tool that is set aside: the value of [`LABEL_OWNER`] of the installation that its objects belong to.
pub const LABEL_SET_ASIDE: &str = "kubectl-addons.dev/set-aside-by";
/// On the same: JSON object with the labels by which its tool finds it.
pub const ANNOTATION_SET_ASIDE: &str = "kubectl-addons.dev/set-aside-labels";

/// On an installed object: whether it may be deleted; the only value with a meaning is [`PRUNE_NEVER`].
pub const ANNOTATION_PRUNE: &str = "kubectl-addons.dev/prune";
/// Never deleted, neither by an upgrade nor by an uninstallation.
pub const PRUNE_NEVER: &str = "false";

/// On a Secret with credentials of a source: the hosts that they may be sent to, `HOST[:PORT]` separated by commas; for an
/// object store its buckets, `s3://BUCKET` (semantics 16).
pub const ANNOTATION_ALLOWED_HOSTS: &str = "kubectl-addons.dev/allowed-hosts";
/// Type of a Secret with options of an object store, by the names of environment variables (semantics 16).
pub const SECRET_TYPE_OBJECT_STORE: &str = "kubectl-addons.dev/object-store";

/// ConfigMap or Secret beside an installation whose keys `data.yaml` or `data.json` overlay the facts of the cluster in the
/// data of templates.
pub const TEMPLATE_DATA: &str = "addon-template-data";

/// On a Lease: digests of what its candidates have had to lead with, separated by commas, the newest last (semantics 21).
pub const ANNOTATION_REVISIONS: &str = "kubectl-addons.dev/revisions";

/// On a Lease: who held it before and did not give it back (semantics 20).
pub const ANNOTATION_TAKEN_FROM: &str = "kubectl-addons.dev/taken-from";

/// On a ControllerRevision: the stem of its installation, see [`revision_stem`].
pub const LABEL_REVISION_OF: &str = "kubectl-addons.dev/revision-of";
/// On a ControllerRevision: whether the operation ended as planned, [`OUTCOME_DONE`] or [`OUTCOME_FAILED`].
pub const LABEL_OUTCOME: &str = "kubectl-addons.dev/outcome";
/// The revision can be gone back to without being named.
pub const OUTCOME_DONE: &str = "done";
/// It failed.
pub const OUTCOME_FAILED: &str = "failed";

/// On our CustomResourceDefinitions: the version that they came with; a newer one is never overwritten (semantics 17).
pub const ANNOTATION_CRD_VERSION: &str = "kubectl-addons.dev/crd-version";

/// The index of the add-ons that the plugin brings along: the webhook and the admission policies.
pub const INDEX_BUILTIN: &str = "builtin://kubectl-addons";

/// Holds a deleted installation until a reconciler has uninstalled it (semantics 15).
pub const FINALIZER_UNINSTALL: &str = "kubectl-addons.dev/uninstall";
/// Holds a deleted core installation (semantics 14).
pub const FINALIZER_CORE_GUARD: &str = "kubectl-addons.dev/core-guard";

/// ConfigMap in the system namespace with the add-ons that every cluster gets (semantics 14).
pub const CUSTOM_CORE_ADDONS: &str = "custom-core-addons";
/// ConfigMap in the system namespace with the rules that say which add-ons are core in which cluster (semantics 14).
pub const CORE_ADDON_RULES: &str = "core-addon-rules";
/// ConfigMap in the system namespace in which the loop notes how far a change of them has reached (semantics 14).
pub const CORE_ADDON_ROLLOUT: &str = "core-addon-rollout";
/// The group that may write core catalogues and core installations unless the webhook is told another one.
pub const CORE_GROUP: &str = "kubectl-addons:core";
/// Members may do what the guards deny (semantics 14); never `system:masters`.
pub const BREAK_GLASS_GROUP: &str = "kubectl-addons:break-glass";
/// The group that may write [`LABEL_DERIVED_FROM`], and the catalogues that carry it (semantics 1).
pub const DISTRIBUTOR_GROUP: &str = "kubectl-addons:distributor";
/// The user agent of the plugin, and the prefix of every field manager.
pub const CLIENT: &str = "kubectl-addons";

/// Namespace and name of an installation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InstallationName {
    /// Namespace of the record.
    pub namespace: String,
    /// Name of the record.
    pub name: String,
}

impl std::fmt::Display for InstallationName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Hash of the owning installation as it stands in [`LABEL_OWNER`]: 32 hex digits (semantics 5).
#[must_use]
pub fn owner_hash(namespace: &str, name: &str) -> String {
    hex_prefix(format!("{namespace}/{name}").as_bytes(), 32)
}

/// Field manager of an installation: two installations never undo each other (semantics 5).
#[must_use]
pub fn field_manager(namespace: &str, name: &str) -> String {
    manager_of_owner(&owner_hash(namespace, name))
}

/// Field manager of the installation with this value of [`LABEL_OWNER`].
#[must_use]
pub fn manager_of_owner(owner: &str) -> String {
    format!("{CLIENT}.{owner}")
}

/// Object name of an add-on's installation: the add-on's own name, or, where that is not an RFC 1123 subdomain
/// (`alb_ssl_ingress`), the sanitised name with 8 hex digits of its hash (semantics 5).
#[must_use]
pub fn installation_name(addon: &str) -> String {
    if is_object_name(addon) {
        return addon.to_owned();
    }
    let mut clean: String = addon
        .to_lowercase()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        })
        .collect();
    clean.truncate(200);
    let clean = clean
        .trim_matches(|c| c == '-' || c == '.')
        .replace("..", ".");
    let hash = hex_prefix(addon.as_bytes(), 8);
    if clean.is_empty() {
        format!("addon-{hash}")
    } else {
        format!("{clean}-{hash}")
    }
}

/// Name of an installation whose own name is taken by an entry of the same name for another namespace: with 8 hex digits of the
/// hash of its namespace (semantics 5).
#[must_use]
pub fn second_name(name: &str, namespace: &str) -> String {
    format!("{name}-{}", hex_prefix(namespace.as_bytes(), 8))
}

/// What names and labels of an installation's revisions begin with: its name, or a hash where that is too long for a label.
#[must_use]
pub fn revision_stem(installation: &InstallationName) -> String {
    let InstallationName { namespace, name } = installation;
    match name.len() {
        0..=63 => name.clone(),
        _ => owner_hash(namespace, name),
    }
}

/// Name of the ControllerRevision with this number: no controller of Kubernetes names its own ones like that.
#[must_use]
pub fn revision_name(installation: &InstallationName, number: i64) -> String {
    format!("{}.v{number}", revision_stem(installation))
}

/// Whether `name` can be the name of a Kubernetes object (RFC 1123 subdomain, 253 characters at most).
#[must_use]
pub fn is_object_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 253 && name.split('.').all(is_label_name)
}

/// Whether `name` is an RFC 1123 label without the length limit of 63 (a part of an object name).
fn is_label_name(part: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    edge(part.chars().next())
        && edge(part.chars().last())
        && part
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// The first `digits` hex digits of the sha256 of `bytes`.
#[must_use]
pub fn hex_prefix(bytes: &[u8], digits: usize) -> String {
    let mut prefix = hex::of(&Sha256::digest(bytes));
    prefix.truncate(digits);
    prefix
}
