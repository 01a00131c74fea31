//! Pins an installation to the cluster that its objects are in, and refuses it in any other cluster (semantics 6.5).

use crate::api::installation::{AddonInstallation, AddonInstallationStatus, ClusterIdentity};
use crate::api::names::InstallationName;

/// A record that belongs to another cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{installation} is recorded as an installation of another cluster: its kube-system has the uid {recorded}, and that of this \
     cluster {found}"
)]
pub struct OtherCluster {
    /// The name of the installation.
    pub installation: InstallationName,
    /// The recorded uid of kube-system.
    pub recorded: String,
    /// The uid of kube-system in this cluster.
    pub found: String,
}

/// Refuses a record of another cluster. `found` is the cluster of the objects, or `None` if the caller may not read its kube-system.
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

/// Detects that a namespace now leads to another cluster: some of its records are pinned to another cluster than `found`, and none to
/// `found`. If a core add-on is pinned, only core add-ons count, because the status of others is less guarded (semantics 6.5, 14.9).
#[must_use]
pub fn find_other_cluster<'a>(
    records: impl IntoIterator<Item = &'a AddonInstallation>,
    found: Option<&ClusterIdentity>,
) -> Option<OtherCluster> {
    let found = &found?.kube_system_uid;
    let pinned = records.into_iter().filter_map(|record| {
        let pinned = record.status.as_ref()?.cluster.as_ref()?;
        Some((record, &pinned.kube_system_uid))
    });
    let (core, others): (Vec<_>, Vec<_>) = pinned.partition(|(record, _)| record.spec.core_addon);
    let believed = if core.is_empty() { others } else { core };
    if believed.iter().any(|(_, recorded)| *recorded == found) {
        return None;
    }
    let (record, recorded) = believed.first()?;
    Some(OtherCluster {
        installation: InstallationName {
            namespace: record.metadata.namespace.clone().unwrap_or_default(),
            name: record.metadata.name.clone().unwrap_or_default(),
        },
        recorded: (*recorded).clone(),
        found: found.clone(),
    })
}

/// Whether, according to the record, the objects of an installation are in another cluster than the record.
#[must_use]
pub fn is_in_other_cluster(record: &AddonInstallation) -> bool {
    let cluster = record
        .status
        .as_ref()
        .and_then(|status| status.cluster.as_ref());
    cluster.is_some_and(|cluster| cluster.kubeconfig_secret.is_some())
}

/// Records the cluster in a status that names none or this one and, with `replaces`, in a status that names another one. The cluster
/// is the same if its uid is, even if another Secret leads to it.
pub fn record_cluster(
    status: &mut AddonInstallationStatus,
    found: Option<&ClusterIdentity>,
    replaces: bool,
) {
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
    use crate::api::installation::AddonInstallationSpec;

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
    fn a_namespace_that_leads_to_another_cluster_is_found_by_its_records() {
        let record = |is_core: bool, uid: Option<&str>| {
            let spec = AddonInstallationSpec {
                core_addon: is_core,
                ..AddonInstallationSpec::default()
            };
            let mut record = AddonInstallation::new("till", spec);
            record.status = Some(status(uid));
            record
        };
        let (other, new, here) = (
            record(false, Some("u1")),
            record(false, None),
            record(false, Some("u2")),
        );
        let (core, core_here) = (record(true, Some("u1")), record(true, Some("u2")));
        let rows: [(&[&AddonInstallation], bool); 7] = [
            (&[], false),
            (&[&new], false),
            (&[&new, &other], true),
            (&[&here, &other], false),
            (&[&core, &here], true),
            (&[&core_here, &other], false),
            (&[&core_here, &core], false),
        ];
        for (records, has_strayed) in rows {
            let found = identity("u2");
            let strayed = find_other_cluster(records.iter().copied(), Some(&found));
            assert_eq!(strayed.is_some(), has_strayed, "{records:?}");
            assert_eq!(
                super::find_other_cluster(records.iter().copied(), None),
                None
            );
        }
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
            record_cluster(&mut status, found.as_ref(), replaces);
            let pinned = status.cluster.map(|cluster| cluster.kube_system_uid);
            assert_eq!(pinned.as_deref(), expected, "{recorded:?} {found:?}");
        }
    }
}
