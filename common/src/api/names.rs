//! All groups, labels, annotations, finalizers and field managers that this project writes or reads.
//!
//! No other file of the workspace spells out one of these names.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::text::encode_hex;

/// The API group of all our objects.
pub const GROUP: &str = "kubectl-addons.dev";
/// The only served version of our objects.
pub const VERSION: &str = "v1alpha1";
/// The plural name of installations, as RBAC uses it.
pub const INSTALLATIONS: &str = "addoninstallations";
/// The verb on [`INSTALLATIONS`] for the whole cluster that allows a user to make a namespace stand for a cluster (semantics 6.2).
pub const ENROL: &str = "enrol";
/// `GROUP/VERSION`.
pub const API_VERSION: &str = "kubectl-addons.dev/v1alpha1";

/// The namespace of source catalogues, core lists and the installations of this cluster (semantics 1.1, 5).
pub const SYSTEM_NAMESPACE: &str = "kubectl-addons";
/// The namespace in which the loop runs (`deploy/overlays/reconciler`). Its ServiceAccount counts as a member of the core group. A
/// record names accounts of its own namespace, so no record in this namespace is executed (semantics 6.2, 16.6).
pub const RECONCILER_NAMESPACE: &str = "kubectl-addons-reconciler";

/// Whether a namespace never stands for a cluster, whatever its labels: its ServiceAccounts belong to the control plane or to the
/// loop, and a record there could name them (semantics 6.2).
#[must_use]
pub fn is_reserved(namespace: &str) -> bool {
    namespace.starts_with("kube-") || namespace == RECONCILER_NAMESPACE
}

/// Label of every installed object: the hash of the owning installation ([`owner_hash`], semantics 5).
pub const LABEL_OWNER: &str = "kubectl-addons.dev/owner";
/// Label of the addon-manager with the class of an object (semantics 21.2).
pub const LABEL_MODE: &str = "addonmanager.kubernetes.io/mode";
/// Value of [`LABEL_MODE`] for an object that is created once, and kept when its manifest is deleted.
pub const MODE_ENSURE_EXISTS: &str = "EnsureExists";
/// Annotation of every installed object: `NAMESPACE/NAME` of the owning installation (semantics 5).
pub const ANNOTATION_INSTALLATION: &str = "kubectl-addons.dev/installation";
/// Label of a merged catalogue and of [`COMPATIBLE_ADDONS`]: the uid of kube-system in the cluster with the source catalogues
/// (semantics 1.6, 1.7).
pub const LABEL_DERIVED_FROM: &str = "kubectl-addons.dev/derived-from";
/// AddonCatalogue in a namespace that stands for a cluster: the versions that fit it (semantics 1.7).
pub const COMPATIBLE_ADDONS: &str = "compatible-addons";
/// Label that the API server sets on every namespace: its name.
pub const LABEL_NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// Label of a namespace with installations of this cluster (semantics 6.1).
pub const LABEL_CLUSTER: &str = "kubectl-addons.dev/cluster";
/// Value of [`LABEL_CLUSTER`].
pub const CLUSTER_LOCAL: &str = "local";
/// Label of a namespace: the Secret in it with the kubeconfig of the cluster that it stands for (semantics 6.1).
pub const LABEL_KUBECONFIG_SECRET: &str = "kubectl-addons.dev/kubeconfig-secret";
/// Label of a Secret, `true`: installations in its namespace may read values and template data from it (semantics 16.5).
pub const LABEL_VALUES: &str = "kubectl-addons.dev/values";
/// Label of a namespace with core installations or their objects: its deletion is denied (semantics 14.2).
pub const LABEL_HOLDS_CORE: &str = "kubectl-addons.dev/holds-core";
/// Annotation of an installation: a JSON object from pointers into `spec.values` to digests of the defaults there (semantics 10.1).
pub const ANNOTATION_DEFAULTED: &str = "kubectl-addons.dev/defaulted";
/// Annotation of an installation: the user who last wrote what policies judge, and their groups, one name per line (semantics 19.3).
pub const ANNOTATION_WRITTEN_BY: &str = "kubectl-addons.dev/written-by";
/// Annotation of a core installation that may be deleted (semantics 14.1).
pub const ANNOTATION_RELEASED: &str = "kubectl-addons.dev/released";
/// Annotation of a namespace whose cluster is being deleted: nothing in it is guarded (semantics 14.1).
pub const ANNOTATION_CLUSTER_DELETING: &str = "kubectl-addons.dev/cluster-deleting";
/// Annotation of a namespace that stands for a cluster: the version of KKP that manages the cluster (semantics 3).
pub const ANNOTATION_KKP_VERSION: &str = "kubectl-addons.dev/kkp-version";
/// The value of [`ANNOTATION_RELEASED`] and [`ANNOTATION_CLUSTER_DELETING`]. Other values have no effect.
pub const MARKED: &str = "true";
/// Label of an installation: the set that it is a member of (semantics 17.9).
pub const LABEL_SET: &str = "kubectl-addons.dev/set";
/// Annotation of an installation that kops' own tool records as well: `NAMESPACE/NAME` of the annotated namespace and the add-on
/// (semantics 11.3).
pub const ANNOTATION_KOPS_RECORD: &str = "kubectl-addons.dev/kops-record";
/// Annotation of a manifest object: how it is applied. The only value is [`APPLY_CREATE_ONLY`] (semantics 12.9).
pub const ANNOTATION_APPLY: &str = "kubectl-addons.dev/apply";
/// The object is created if it is missing, and never updated or pruned (semantics 12.9).
pub const APPLY_CREATE_ONLY: &str = "create-only";
/// Annotation of a manifest object: policies for conflicts over single fields, `spec.replicas=Yield,spec.template=Fail`. They take
/// precedence over `spec.conflicts` of the installation (semantics 12.9).
pub const ANNOTATION_CONFLICTS: &str = "kubectl-addons.dev/conflicts";
/// Annotation of a CRD that is being migrated: the stored versions that will be removed from it, so that the next run continues the
/// migration (semantics 12.18).
pub const ANNOTATION_MIGRATING: &str = "kubectl-addons.dev/migrating-stored-versions";
/// Annotation of a manifest object, `true`: it may be deleted and created again if a field of it cannot be changed (semantics 12.15).
pub const ANNOTATION_RECREATE: &str = "kubectl-addons.dev/recreate";

/// Annotation of the pods of a Helm hook that is a Job: the digest of the Job. It makes any change of the Job require a recreation,
/// so that the hook runs again, as with Helm.
pub const ANNOTATION_HOOK: &str = "kubectl-addons.dev/hook";

/// Annotation of an object that was adopted from another tool: `MANAGER OPERATION`, the field manager that owned its fields before
/// (semantics 12.13).
pub const ANNOTATION_FORMER_MANAGER: &str = "kubectl-addons.dev/former-manager";
/// Annotation of an object that was adopted from a release of Helm: `NAMESPACE/NAME` of the release, whose marks were removed.
pub const ANNOTATION_FORMER_RELEASE: &str = "kubectl-addons.dev/former-release";
/// Annotation of an object that was adopted from client-side `kubectl apply`: the content of kubectl's own annotation, under a name
/// that kubectl does not look for.
pub const ANNOTATION_FORMER_LAST_APPLIED: &str = "kubectl-addons.dev/former-last-applied";
/// Label of a record of another tool that is set aside: the value of [`LABEL_OWNER`] of the installation that owns its objects
/// (semantics 12.12).
pub const LABEL_SET_ASIDE: &str = "kubectl-addons.dev/set-aside-by";
/// Annotation of a record that is set aside: a JSON object with the labels by which its tool finds it.
pub const ANNOTATION_SET_ASIDE: &str = "kubectl-addons.dev/set-aside-labels";

/// Annotation of an installed object: whether it may be deleted. The only value with an effect is [`PRUNE_NEVER`].
pub const ANNOTATION_PRUNE: &str = "kubectl-addons.dev/prune";
/// The object is never deleted, neither by an upgrade nor by an uninstallation.
pub const PRUNE_NEVER: &str = "false";

/// Annotation of a Secret with credentials of a source: the hosts that may receive them, as `HOST[:PORT]` separated by commas; for an
/// object store, its buckets, as `s3://BUCKET` (semantics 16.2).
pub const ANNOTATION_ALLOWED_HOSTS: &str = "kubectl-addons.dev/allowed-hosts";
/// Type of a Secret with options of an object store, named like environment variables (semantics 16.2).
pub const SECRET_TYPE_OBJECT_STORE: &str = "kubectl-addons.dev/object-store";

/// ConfigMap or Secret beside an installation: its key `data.yaml` or `data.json` overlays the facts of the cluster in the template
/// data.
pub const TEMPLATE_DATA: &str = "addon-template-data";

/// Annotation of a Lease: the digests of the directories that candidates had, separated by commas, newest last (semantics 21.6).
pub const ANNOTATION_REVISIONS: &str = "kubectl-addons.dev/revisions";

/// Annotation of a Lease: the former holder, if it did not give the Lease back (semantics 20.6).
pub const ANNOTATION_TAKEN_FROM: &str = "kubectl-addons.dev/taken-from";

/// Label of a ControllerRevision: the stem of its installation, see [`revision_stem`].
pub const LABEL_REVISION_OF: &str = "kubectl-addons.dev/revision-of";
/// Label of a ControllerRevision: how the operation ended, [`OUTCOME_DONE`] or [`OUTCOME_FAILED`].
pub const LABEL_OUTCOME: &str = "kubectl-addons.dev/outcome";
/// The operation ended as planned, so that a rollback may choose the revision by itself.
pub const OUTCOME_DONE: &str = "done";
/// The operation failed.
pub const OUTCOME_FAILED: &str = "failed";

/// Annotation of our CRDs: the release that they came with. A newer CRD is never overwritten (semantics 17.1).
pub const ANNOTATION_CRD_VERSION: &str = "kubectl-addons.dev/crd-version";

/// The index of the add-ons that come with the plugin: the webhook and the admission policies.
pub const INDEX_BUILTIN: &str = "builtin://kubectl-addons";

/// Finalizer that keeps a deleted installation until its objects are uninstalled (semantics 15).
pub const FINALIZER_UNINSTALL: &str = "kubectl-addons.dev/uninstall";
/// Finalizer that keeps a deleted core installation (semantics 14.6).
pub const FINALIZER_CORE_GUARD: &str = "kubectl-addons.dev/core-guard";

/// ConfigMap in the system namespace with the add-ons that every cluster gets (semantics 14.4).
pub const CUSTOM_CORE_ADDONS: &str = "custom-core-addons";
/// ConfigMap in the system namespace with the rules for core add-ons of clusters (semantics 14.4).
pub const CORE_ADDON_RULES: &str = "core-addon-rules";
/// ConfigMap in the system namespace in which the loop stores how far a change of the core add-ons has been rolled out (semantics
/// 14.8).
pub const CORE_ADDON_ROLLOUT: &str = "core-addon-rollout";
/// The default group that may write core catalogues and core installations.
pub const CORE_GROUP: &str = "kubectl-addons:core";
/// The group whose members may do what the guards deny (semantics 14.11). It is never `system:masters`.
pub const BREAK_GLASS_GROUP: &str = "kubectl-addons:break-glass";
/// The group that may write [`LABEL_DERIVED_FROM`], and the catalogues that carry it (semantics 1.2).
pub const DISTRIBUTOR_GROUP: &str = "kubectl-addons:distributor";
/// The user agent of the plugin, and the prefix of every field manager.
pub const CLIENT: &str = "kubectl-addons";

/// The namespace and name of an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InstallationName {
    /// The namespace of the record.
    pub namespace: String,
    /// The name of the record.
    pub name: String,
}

impl std::fmt::Display for InstallationName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Returns the hash of the owning installation, the value of [`LABEL_OWNER`]: 32 hex digits (semantics 5).
#[must_use]
pub fn owner_hash(namespace: &str, name: &str) -> String {
    hex_prefix(format!("{namespace}/{name}").as_bytes(), 32)
}

/// Returns the field manager of an installation. Each has its own, so that installations never undo each other's fields (semantics
/// 5).
#[must_use]
pub fn field_manager(namespace: &str, name: &str) -> String {
    manager_of_owner(&owner_hash(namespace, name))
}

/// Returns the field manager of the installation with this value of [`LABEL_OWNER`].
#[must_use]
pub fn manager_of_owner(owner: &str) -> String {
    format!("{CLIENT}.{owner}")
}

/// Returns the object name of an add-on's installation: the name of the add-on or, if that is not an RFC 1123 subdomain
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
    let labels = clean.split('.').map(|label| label.trim_matches('-'));
    let labels: Vec<&str> = labels.filter(|label| !label.is_empty()).collect();
    let clean = labels.join(".");
    let hash = hex_prefix(addon.as_bytes(), 8);
    if clean.is_empty() {
        format!("addon-{hash}")
    } else {
        format!("{clean}-{hash}")
    }
}

/// Returns the name of an installation if an entry of the same name for another namespace already uses its own: with 8 hex digits of
/// the hash of its namespace (semantics 5).
#[must_use]
pub fn second_name(name: &str, namespace: &str) -> String {
    format!("{name}-{}", hex_prefix(namespace.as_bytes(), 8))
}

/// Returns the prefix of the names and labels of an installation's revisions: its name, or a hash if the name is too long for a
/// label.
#[must_use]
pub fn revision_stem(installation: &InstallationName) -> String {
    let InstallationName { namespace, name } = installation;
    match name.len() {
        0..=63 => name.clone(),
        _ => owner_hash(namespace, name),
    }
}

/// Returns the name of the ControllerRevision with this number. No controller of Kubernetes uses such names.
#[must_use]
pub fn revision_name(installation: &InstallationName, number: i64) -> String {
    format!("{}.v{number}", revision_stem(installation))
}

/// Whether `name` can be the name of a Kubernetes object: an RFC 1123 subdomain of at most 253 characters.
#[must_use]
pub fn is_object_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 253 && name.split('.').all(is_label_name)
}

/// Whether `part` is an RFC 1123 label, apart from the length limit of 63.
fn is_label_name(part: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    edge(part.chars().next())
        && edge(part.chars().last())
        && part
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Returns the first `digits` hex digits of the sha256 of `bytes`.
#[must_use]
pub fn hex_prefix(bytes: &[u8], digits: usize) -> String {
    let mut prefix = encode_hex(&Sha256::digest(bytes));
    prefix.truncate(digits);
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installation_of_any_name_of_an_addon_is_an_object_name() {
        for addon in [
            "alb_ssl_ingress",
            "a._b",
            "a...b",
            "a-.b",
            "-",
            "...",
            "ä",
            "A.B_",
            "_",
        ] {
            let name = installation_name(addon);
            assert!(is_object_name(&name), "{addon}: {name}");
            assert_ne!(name, addon);
        }
        assert_eq!(installation_name("a.b"), "a.b");
    }
}
