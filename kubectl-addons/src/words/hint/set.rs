//! Advice if a set is not applied.

use addons_operation::OperationError;
use addons_operation::error::MemberError;
use addons_operation::text::shell_word;
use common::api::names::LABEL_SET;

use super::typed;
use crate::set_place::{SetInstallationError, SetPlace};

/// Returns the file and the flags of a set. `place` holds the flags that choose its namespace or clusters.
fn set_flags(set: &SetPlace, place: &str) -> String {
    let mut words = shell_word(&set.path) + place;
    if let Some(name) = &set.members.set_name {
        words.push_str(&format!(" --set-name {name}"));
    }
    if set.members.prune {
        words.push_str(" --prune");
    }
    words
}

/// Returns the command that restores edited or deleted objects of a set. `namespace` is that of its records, `None` for several clusters.
pub fn repair_command(set: &SetPlace, namespace: Option<&str>) -> String {
    let place = namespace.map_or_else(typed::cluster_flags, |namespace| format!(" -n {namespace}"));
    let words = set_flags(set, &place);
    format!("kubectl addons apply -f {words} --repair")
}

/// Advice for a lower version that a set declares.
pub(super) fn set_hints(error: &SetInstallationError) -> Vec<String> {
    let place = match &error.error {
        OperationError::Downgrade { installation, .. } => format!(" -n {}", installation.namespace),
        _ => String::new(),
    };
    let words = set_flags(&error.set, &place);
    let accept = typed::with_flags(&["--allow-downgrade".to_owned()]);
    let accept = accept.filter(|_| typed::is_verb("apply"));
    let accept =
        accept.unwrap_or_else(|| format!("kubectl addons apply -f {words} --allow-downgrade"));
    vec![
        format!("look:   kubectl addons diff -f {words} --allow-downgrade"),
        format!("accept: {accept}"),
    ]
}

/// Advice for members that are deleted, or that belong to another set.
pub(super) fn member_hints(error: &MemberError) -> Vec<String> {
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
                    "accept: kubectl label addoninstallation {name} -n {namespace} {LABEL_SET}-"
                ),
            ]
        }
    }
}
