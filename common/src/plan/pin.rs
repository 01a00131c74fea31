//! Which cluster the objects of an installation are in: its record says it, and is not followed in another one (semantics 6).

use crate::api::installation::{AddonInstallation, AddonInstallationStatus, ClusterIdentity};
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

/// Refuses a record of another cluster. `found`: that of the objects; `None` where the caller may not read its kube-system.
///
/// # Errors
/// [`OtherCluster`].
pub fn check(
    installation: &InstallationName,
    status: Option<&AddonInstallationStatus>,
    found: Option<&ClusterIdentity>,
) -> Result<(), OtherCluster> {
    let pinned = status.and_then(|status| status.cluster.as_ref());
    match (pinned, found) {
        (Some(pinned), Some(found)) if pinned.kube_system_uid != found.kube_system_uid => {
            Err(OtherCluster {
                installation: installation.clone(),
                recorded: pinned.kube_system_uid.clone(),
                found: found.kube_system_uid.clone(),
            })
        }
        _ => Ok(()),
    }
}

/// Whether the objects of an installation are in another cluster than its record, as far as the record says.
#[must_use]
pub fn is_elsewhere(record: &AddonInstallation) -> bool {
    let cluster = record
        .status
        .as_ref()
        .and_then(|status| status.cluster.as_ref());
    cluster.is_some_and(|cluster| cluster.kubeconfig_secret.is_some())
}

/// Notes the cluster in a status that names none, or, with `replaces`, another one. A cluster that is known by another Secret than
/// before is the same one: its uid tells.
pub fn note(status: &mut AddonInstallationStatus, found: Option<&ClusterIdentity>, replaces: bool) {
    let Some(found) = found else {
        return;
    };
    let is_same = |known: &ClusterIdentity| known.kube_system_uid == found.kube_system_uid;
    if replaces || status.cluster.as_ref().is_none_or(is_same) {
        status.cluster = Some(found.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(uid: Option<&str>) -> AddonInstallationStatus {
        AddonInstallationStatus {
            cluster: uid.map(identity),
            ..AddonInstallationStatus::default()
        }
    }

    fn identity(uid: &str) -> ClusterIdentity {
        ClusterIdentity {
            kube_system_uid: uid.to_owned(),
            kubeconfig_secret: None,
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
            let found = found.map(identity);
            let checked = check(&till, Some(&status(recorded)), found.as_ref());
            assert_eq!(checked.is_err(), is_refused, "{recorded:?} {found:?}");
        }
        assert_eq!(check(&till, None, Some(&identity("u1"))), Ok(()));
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
            let found = found.map(identity);
            note(&mut status, found.as_ref(), replaces);
            let pinned = status.cluster.map(|cluster| cluster.kube_system_uid);
            assert_eq!(pinned.as_deref(), expected, "{recorded:?} {found:?}");
        }
    }
}
