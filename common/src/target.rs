//! The cluster that a namespace stands for, and the location of its kubeconfig (semantics 6.1).

pub mod kkp;
pub mod kubeconfig;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::api::installation::AddonInstallation;
use crate::api::names::{CLUSTER_LOCAL, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET, is_reserved};

/// The keys of a Secret that may hold a kubeconfig: that of the Cluster API and that of KKP. The first one that exists is used.
pub const KEYS: [&str; 2] = ["value", "kubeconfig"];
/// The suffix of the Secrets in which the Cluster API keeps kubeconfigs.
const SUFFIX_CLUSTER_API: &str = "-kubeconfig";

/// The cluster that a namespace stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceCluster {
    /// This cluster.
    ThisCluster,
    /// The cluster that the kubeconfig in this Secret leads to.
    OtherCluster(KubeconfigLocation),
    /// No cluster.
    NoCluster,
    /// The namespace does not exist.
    NoNamespace,
}

/// The location of a kubeconfig, in the namespace that stands for the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeconfigLocation {
    /// The name of the Secret.
    pub secret: String,
}

/// Why it is not known which cluster a namespace stands for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceClusterError {
    /// The namespace has two labels that exclude each other.
    #[error(
        "namespace {namespace} has the labels {LABEL_CLUSTER}={CLUSTER_LOCAL} and {LABEL_KUBECONFIG_SECRET}: it stands either for \
         this cluster or for another one"
    )]
    Both {
        /// The namespace.
        namespace: String,
    },
    /// The namespace is reserved, and never stands for a cluster.
    #[error(
        "namespace {namespace} never stands for a cluster: its ServiceAccounts may do more than whoever writes a record there; use \
         another namespace, and remove the labels {LABEL_CLUSTER} and {LABEL_KUBECONFIG_SECRET} from this one"
    )]
    Reserved {
        /// The namespace.
        namespace: String,
    },
}

/// Returns the cluster that a namespace stands for, from its labels alone: setting them needs the right to enrol, which a user who
/// may only write Secrets in the namespace does not have (semantics 6.2).
///
/// # Errors
/// [`NamespaceClusterError`].
pub fn cluster_from_labels(
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> Result<NamespaceCluster, NamespaceClusterError> {
    let is_here = labels
        .get(LABEL_CLUSTER)
        .is_some_and(|value| value == CLUSTER_LOCAL);
    let secret = labels.get(LABEL_KUBECONFIG_SECRET);
    match (is_here, secret) {
        (false, None) => Ok(NamespaceCluster::NoCluster),
        _ if is_reserved(namespace) => Err(NamespaceClusterError::Reserved {
            namespace: namespace.to_owned(),
        }),
        (true, None) => Ok(NamespaceCluster::ThisCluster),
        (false, Some(secret)) => Ok(NamespaceCluster::OtherCluster(KubeconfigLocation {
            secret: secret.clone(),
        })),
        (true, Some(_)) => Err(NamespaceClusterError::Both {
            namespace: namespace.to_owned(),
        }),
    }
}

/// A Cluster of the Cluster API or of KKP that is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedCluster {
    /// The namespace that belongs to the cluster.
    namespace: String,
    /// The Secret with its kubeconfig, or `None` for a cluster of KKP, which has a namespace of its own.
    secret: Option<String>,
    /// The time at which the Cluster was created.
    created: Option<Timestamp>,
}

impl DeletedCluster {
    /// Creates it from the metadata of a Cluster. With a namespace, the Cluster is one of the Cluster API; without one, it is one of
    /// KKP.
    #[must_use]
    pub fn new(name: &str, namespace: Option<String>, created: Option<Timestamp>) -> Self {
        let secret = namespace
            .as_ref()
            .map(|_| format!("{name}{SUFFIX_CLUSTER_API}"));
        Self {
            namespace: namespace.unwrap_or_else(|| format!("cluster-{name}")),
            secret,
            created,
        }
    }

    /// Whether this is the cluster that a namespace with these labels and records stands for. The label that names the kubeconfig
    /// must match, and the Cluster must not be younger than the core add-ons: otherwise, anyone who may create a Cluster there could
    /// remove the guard from core add-ons (semantics 14.6).
    #[must_use]
    pub fn is_cluster_of(
        &self,
        namespace: &str,
        labels: &BTreeMap<String, String>,
        records: &[AddonInstallation],
    ) -> bool {
        let core = records.iter().filter(|record| record.spec.core_addon);
        let created = core.filter_map(|record| record.metadata.creation_timestamp.as_ref());
        let oldest = created.map(|created| created.0).min();
        let secret = self.secret.as_ref();
        self.namespace == namespace
            && secret.is_none_or(|secret| labels.get(LABEL_KUBECONFIG_SECRET) == Some(secret))
            && oldest.is_none_or(|oldest| self.created.is_some_and(|created| created <= oldest))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::api::installation::AddonInstallationSpec;
    use crate::api::names::RECONCILER_NAMESPACE;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn only_the_cluster_of_a_namespace_takes_the_guard_from_it() {
        let dns = |is_core: bool| {
            let spec = AddonInstallationSpec {
                core_addon: is_core,
                ..AddonInstallationSpec::default()
            };
            let mut dns = AddonInstallation::new("dns", spec);
            dns.metadata.creation_timestamp = Some(Time(at(100)));
            dns
        };
        let named = labels(&[(LABEL_KUBECONFIG_SECRET, "shop-kubeconfig")]);
        let shop = |created| DeletedCluster::new("shop", Some("team".to_owned()), created);
        let of_kkp = DeletedCluster::new("shop", None, Some(at(99)));
        for (cluster, namespace, labels, is_core, expected) in [
            (shop(Some(at(99))), "team", &named, true, true),
            (shop(Some(at(100))), "team", &named, true, true),
            (shop(Some(at(101))), "team", &named, true, false),
            (shop(Some(at(101))), "team", &named, false, true),
            (shop(None), "team", &named, true, false),
            (shop(Some(at(99))), "other", &named, true, false),
            (shop(Some(at(99))), "team", &labels(&[]), true, false),
            (
                shop(Some(at(99))),
                "team",
                &labels(&[(LABEL_KUBECONFIG_SECRET, "till-kubeconfig")]),
                true,
                false,
            ),
            (of_kkp.clone(), "cluster-shop", &labels(&[]), true, true),
            (of_kkp, "team", &named, true, false),
        ] {
            let is_of = cluster.is_cluster_of(namespace, labels, &[dns(is_core)]);
            assert_eq!(is_of, expected, "{cluster:?} {namespace} {labels:?}");
        }
    }

    fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        let all = all.iter();
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn labels_alone_tell() {
        let local = (LABEL_CLUSTER, CLUSTER_LOCAL);
        let remote = (LABEL_KUBECONFIG_SECRET, "shop");
        let there = NamespaceCluster::OtherCluster(KubeconfigLocation {
            secret: "shop".to_owned(),
        });
        for (given, expected) in [
            (labels(&[]), Ok(NamespaceCluster::NoCluster)),
            (
                labels(&[(LABEL_CLUSTER, "other")]),
                Ok(NamespaceCluster::NoCluster),
            ),
            (labels(&[local]), Ok(NamespaceCluster::ThisCluster)),
            (labels(&[remote]), Ok(there)),
            (
                labels(&[local, remote]),
                Err(NamespaceClusterError::Both {
                    namespace: "a".to_owned(),
                }),
            ),
        ] {
            assert_eq!(cluster_from_labels("a", &given), expected, "{given:?}");
        }
    }

    #[test]
    fn namespaces_of_the_control_plane_and_of_the_loop_stand_for_none() {
        for namespace in ["kube-system", "kube-public", RECONCILER_NAMESPACE] {
            for label in [
                (LABEL_CLUSTER, CLUSTER_LOCAL),
                (LABEL_KUBECONFIG_SECRET, "k"),
            ] {
                let expected = Err(NamespaceClusterError::Reserved {
                    namespace: namespace.to_owned(),
                });
                assert_eq!(cluster_from_labels(namespace, &labels(&[label])), expected);
            }
            assert_eq!(
                cluster_from_labels(namespace, &labels(&[])),
                Ok(NamespaceCluster::NoCluster)
            );
        }
    }
}
