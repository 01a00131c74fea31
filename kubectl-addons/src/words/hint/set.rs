//! The way out where a set is not applied.

use addons_operation::declared::MemberError;
use common::api::names::LABEL_SET;

/// For members that are gone, or that are those of another set.
pub(super) fn of_member(error: &MemberError) -> Vec<String> {
    match error {
        MemberError::MostlyGone { set, .. } => vec![
            format!("look:   kubectl get addoninstallations -A -l {LABEL_SET}={set}"),
            "accept: --allow-prune 100%".to_owned(),
        ],
        MemberError::OfOtherSet {
            installation,
            other,
            ..
        } => {
            let (name, namespace) = (&installation.name, &installation.namespace);
            vec![
                format!(
                    "look:   kubectl get addoninstallations -n {namespace} -l {LABEL_SET}={other}"
                ),
                format!(
                    "accept: kubectl label addoninstallation {name} -n {namespace} {LABEL_SET}-, which takes it out of set {other}"
                ),
            ]
        }
    }
}
