//! Which cluster a namespace stands for, and where the way to it is written (semantics 6).

pub mod kkp;
pub mod kubeconfig;

use std::collections::BTreeMap;

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

#[cfg(test)]
mod tests {
    use super::*;

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
