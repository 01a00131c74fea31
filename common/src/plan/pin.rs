//! Which cluster the objects of an installation are in: its record says it, and is not followed in another one (semantics 6).

use crate::api::installation::{AddonInstallationStatus, ClusterIdentity};
use crate::api::names::InstallationName;

/// The record belongs to another cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{installation} is recorded as an installation of another cluster: its kube-system has the uid {recorded}, and that of this \
     cluster {found}"
)]
pub struct OtherCluster {
    /// The installation.
    pub installation: InstallationName,
    /// uid of kube-system as it is recorded.
    pub recorded: String,
    /// uid of kube-system of this cluster.
    pub found: String,
}

/// Refuses a record of another cluster. `found`: uid of kube-system; `None` where the caller may not read it.
///
/// # Errors
/// [`OtherCluster`].
pub fn check(
    installation: &InstallationName,
    status: Option<&AddonInstallationStatus>,
    found: Option<&str>,
) -> Result<(), OtherCluster> {
    let pinned = status.and_then(|status| status.cluster.as_ref());
    match (pinned, found) {
        (Some(pinned), Some(found)) if pinned.kube_system_uid != found => Err(OtherCluster {
            installation: installation.clone(),
            recorded: pinned.kube_system_uid.clone(),
            found: found.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Notes the cluster in a status that names none, or, with `replaces`, another one.
pub fn note(status: &mut AddonInstallationStatus, found: Option<&str>, replaces: bool) {
    let Some(found) = found.filter(|_| replaces || status.cluster.is_none()) else {
        return;
    };
    let known = status.cluster.take().unwrap_or_default();
    status.cluster = Some(ClusterIdentity {
        kube_system_uid: found.to_owned(),
        ..known
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(uid: Option<&str>) -> AddonInstallationStatus {
        AddonInstallationStatus {
            cluster: uid.map(|uid| ClusterIdentity {
                kube_system_uid: uid.to_owned(),
                kubeconfig_secret: None,
            }),
            ..AddonInstallationStatus::default()
        }
    }

    #[test]
    fn a_record_of_another_cluster_is_refused() {
        let till = InstallationName {
            namespace: "shop".to_owned(),
            name: "till".to_owned(),
        };
        for (recorded, found, is_refused) in [
            (None, Some("u1"), false),
            (Some("u1"), Some("u1"), false),
            (Some("u1"), None, false),
            (Some("u1"), Some("u2"), true),
        ] {
            let checked = check(&till, Some(&status(recorded)), found);
            assert_eq!(checked.is_err(), is_refused, "{recorded:?} {found:?}");
        }
        assert_eq!(check(&till, None, Some("u1")), Ok(()));
    }

    #[test]
    fn a_pin_is_set_once_and_replaced_only_on_demand() {
        for (recorded, found, replaces, expected) in [
            (None, Some("u1"), false, Some("u1")),
            (None, None, false, None),
            (Some("u1"), Some("u2"), false, Some("u1")),
            (Some("u1"), Some("u2"), true, Some("u2")),
            (Some("u1"), None, true, Some("u1")),
        ] {
            let mut status = status(recorded);
            note(&mut status, found, replaces);
            let pinned = status.cluster.map(|cluster| cluster.kube_system_uid);
            assert_eq!(pinned.as_deref(), expected, "{recorded:?} {found:?}");
        }
    }
}
