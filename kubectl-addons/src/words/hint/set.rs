//! The way out where a set is not applied.

use addons_operation::OperationError;
use addons_operation::declared::MemberError;
use addons_operation::shell::word;
use common::api::names::LABEL_SET;

use super::typed;
use crate::commands::set::{InSet, SetPlace};

/// The file and the flags of a set. `place`: the flags that say of which namespace or clusters.
fn flags(set: &SetPlace, place: &str) -> String {
    let mut words = word(&set.path) + place;
    if let Some(name) = &set.members.set_name {
        words.push_str(&format!(" --set-name {name}"));
    }
    if set.members.prune {
        words.push_str(" --prune");
    }
    words
}

/// The command that restores what other clients edited or deleted of a set. `namespace`: of its records; `None` for several clusters.
pub fn repair(set: &SetPlace, namespace: Option<&str>) -> String {
    let place = namespace.map_or_else(typed::clusters, |namespace| format!(" -n {namespace}"));
    let words = flags(set, &place);
    format!("kubectl addons apply -f {words} --repair")
}

/// For a lower version that a set declares.
pub(super) fn of_set(error: &InSet) -> Vec<String> {
    let place = match &error.error {
        OperationError::Downgrade { installation, .. } => format!(" -n {}", installation.namespace),
        _ => String::new(),
    };
    let words = flags(&error.set, &place);
    let accept = typed::with(&["--allow-downgrade".to_owned()]);
    let accept = accept.filter(|_| typed::is_verb("apply"));
    let accept =
        accept.unwrap_or_else(|| format!("kubectl addons apply -f {words} --allow-downgrade"));
    vec![
        format!("look:   kubectl addons diff -f {words} --allow-downgrade"),
        format!("accept: {accept}"),
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
                    "accept: kubectl label addoninstallation {name} -n {namespace} {LABEL_SET}-"
                ),
            ]
        }
    }
}
