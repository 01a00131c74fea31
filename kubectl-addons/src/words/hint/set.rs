//! The way out where a set is not applied.

use addons_operation::OperationError;
use addons_operation::declared::MemberError;
use common::api::names::LABEL_SET;

use super::word;
use crate::commands::set::InSet;

/// For a lower version that a set declares.
pub(super) fn of_set(error: &InSet) -> Vec<String> {
    let mut words = word(&error.set.path);
    if let OperationError::Downgrade { installation, .. } = &error.error {
        words.push_str(&format!(" -n {}", installation.namespace));
    }
    if let Some(name) = &error.set.members.set_name {
        words.push_str(&format!(" --set-name {name}"));
    }
    if error.set.members.prune {
        words.push_str(" --prune");
    }
    vec![
        format!("look:   kubectl addons diff -f {words} --allow-downgrade"),
        format!("accept: kubectl addons apply -f {words} --allow-downgrade"),
    ]
}

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
