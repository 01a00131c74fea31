//! Which cluster a namespace stands for, and where the way to it is written (semantics 6).

pub mod kkp;
pub mod kubeconfig;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::api::installation::AddonInstallation;
use crate::api::names::{CLUSTER_LOCAL, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET};

/// Type of the Secrets in which Cluster API keeps kubeconfigs.
pub const TYPE_CLUSTER_API: &str = "cluster.x-k8s.io/secret";
/// How the names of those end: a cluster has other Secrets of that type, too.
const SUFFIX_CLUSTER_API: &str = "-kubeconfig";
/// Key of a kubeconfig in them.
const KEY_CLUSTER_API: &str = "value";
/// The Secret in which KKP keeps the kubeconfig of a cluster.
pub const SECRET_KKP: &str = "admin-kubeconfig";
/// Key of a kubeconfig in that.
const KEY_KKP: &str = "kubeconfig";

/// Which cluster a namespace stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// This one.
    Here,
    /// The one that this Secret leads to.
    There(Location),
    /// None.
    Nowhere,
    /// There is no such namespace.
    Absent,
}

/// Where a kubeconfig is, in the namespace that stands for its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The Secret.
    pub secret: String,
    /// Keys that may hold it; the first one there is does.
    pub keys: &'static [&'static str],
}

/// Why it cannot be told which cluster a namespace stands for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StandingError {
    /// Two labels that exclude each other.
    #[error(
        "namespace {namespace} has the labels {LABEL_CLUSTER}={CLUSTER_LOCAL} and {LABEL_KUBECONFIG_SECRET}: it stands either for \
         this cluster or for another one"
    )]
    Both {
        /// The namespace.
        namespace: String,
    },
    /// Several kubeconfigs by convention.
    #[error(
        "namespace {namespace} holds several kubeconfigs ({}): label it with {LABEL_KUBECONFIG_SECRET}=SECRET to choose one",
        secrets.join(", ")
    )]
    Several {
        /// The namespace.
        namespace: String,
        /// Names of the Secrets.
        secrets: Vec<String>,
    },
}

/// What the labels of a namespace say; `None` where they say nothing, and its Secrets tell by [`by_convention`].
///
/// # Errors
/// [`StandingError::Both`].
pub fn by_labels(
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> Result<Option<Standing>, StandingError> {
    let is_here = labels
        .get(LABEL_CLUSTER)
        .is_some_and(|value| value == CLUSTER_LOCAL);
    let secret = labels.get(LABEL_KUBECONFIG_SECRET);
    match (is_here, secret) {
        (true, None) => Ok(Some(Standing::Here)),
        (false, None) => Ok(None),
        (false, Some(secret)) => Ok(Some(Standing::There(Location {
            secret: secret.clone(),
            keys: &[KEY_CLUSTER_API, KEY_KKP],
        }))),
        (true, Some(_)) => Err(StandingError::Both {
            namespace: namespace.to_owned(),
        }),
    }
}

/// What the Secrets of a namespace without such labels say. `cluster_api`: names of all Secrets of [`TYPE_CLUSTER_API`]; `kkp`:
/// whether there is one of the name [`SECRET_KKP`].
///
/// # Errors
/// [`StandingError::Several`].
pub fn by_convention(
    namespace: &str,
    cluster_api: impl IntoIterator<Item = String>,
    kkp: bool,
) -> Result<Standing, StandingError> {
    let cluster_api = cluster_api.into_iter();
    let cluster_api = cluster_api.filter(|name| name.ends_with(SUFFIX_CLUSTER_API));
    let kkp = kkp.then(|| Location {
        secret: SECRET_KKP.to_owned(),
        keys: &[KEY_KKP],
    });
    let mut found: Vec<Location> = cluster_api
        // One that has both the type and the name is one Secret.
        .filter(|name| name != SECRET_KKP || kkp.is_none())
        .map(|secret| Location {
            secret,
            keys: &[KEY_CLUSTER_API],
        })
        .collect();
    found.extend(kkp);
    match found.as_slice() {
        [] => Ok(Standing::Nowhere),
        [one] => Ok(Standing::There(one.clone())),
        several => {
            let mut secrets: Vec<String> = several.iter().map(|it| it.secret.clone()).collect();
            secrets.sort_unstable();
            Err(StandingError::Several {
                namespace: namespace.to_owned(),
                secrets,
            })
        }
    }
}

/// A Cluster that is being deleted, of the Cluster API or of KKP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedCluster {
    /// The namespace that belongs to it.
    namespace: String,
    /// The Secret with its kubeconfig, whose name follows from that of the Cluster. A cluster of KKP has a namespace of its own.
    secret: Option<String>,
    /// When it was created.
    created: Option<Timestamp>,
}

impl DeletedCluster {
    /// Name, namespace and creation of a Cluster: those of the Cluster API have a namespace, those of KKP have none.
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

    /// Whether it is the cluster that a namespace with these labels and records stands for. Whoever may create a Cluster there could
    /// otherwise take the guard from core add-ons: the label of the namespace, which is guarded, names its kubeconfig, and it is not
    /// younger than the core add-ons in it.
    #[must_use]
    pub fn is_of(
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
            let is_of = cluster.is_of(namespace, labels, &[dns(is_core)]);
            assert_eq!(is_of, expected, "{cluster:?} {namespace} {labels:?}");
        }
    }

    fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        let all = all.iter();
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn labels_tell_first() {
        let local = (LABEL_CLUSTER, CLUSTER_LOCAL);
        let remote = (LABEL_KUBECONFIG_SECRET, "shop");
        let there = Standing::There(Location {
            secret: "shop".to_owned(),
            keys: &["value", "kubeconfig"],
        });
        for (given, expected) in [
            (labels(&[]), Ok(None)),
            (labels(&[(LABEL_CLUSTER, "other")]), Ok(None)),
            (labels(&[local]), Ok(Some(Standing::Here))),
            (labels(&[remote]), Ok(Some(there))),
            (
                labels(&[local, remote]),
                Err(StandingError::Both {
                    namespace: "a".to_owned(),
                }),
            ),
        ] {
            assert_eq!(by_labels("a", &given), expected, "{given:?}");
        }
    }

    #[test]
    fn secrets_tell_by_the_conventions_of_cluster_api_and_kkp() {
        let there = |secret: &str, key| {
            Ok(Standing::There(Location {
                secret: secret.to_owned(),
                keys: key,
            }))
        };
        let several = |secrets: &[&str]| {
            Err(StandingError::Several {
                namespace: "a".to_owned(),
                secrets: secrets.iter().map(|&name| name.to_owned()).collect(),
            })
        };
        let rows: [(&[&str], bool, _); 7] = [
            (&[], false, Ok(Standing::Nowhere)),
            (&["shop-ca", "shop-etcd"], false, Ok(Standing::Nowhere)),
            (
                &["shop-ca", "shop-kubeconfig"],
                false,
                there("shop-kubeconfig", &["value"]),
            ),
            (&[], true, there("admin-kubeconfig", &["kubeconfig"])),
            (
                &["admin-kubeconfig"],
                true,
                there("admin-kubeconfig", &["kubeconfig"]),
            ),
            (
                &["b-kubeconfig", "a-kubeconfig"],
                false,
                several(&["a-kubeconfig", "b-kubeconfig"]),
            ),
            (
                &["shop-kubeconfig"],
                true,
                several(&["admin-kubeconfig", "shop-kubeconfig"]),
            ),
        ];
        for (cluster_api, kkp, expected) in rows {
            let names = cluster_api.iter().map(|&name| name.to_owned());
            assert_eq!(
                by_convention("a", names, kkp),
                expected,
                "{cluster_api:?} {kkp}"
            );
        }
    }
}
