//! Advice if an installation cannot be rolled back to a revision.

use addons_operation::error::RollbackError;
use addons_plan::history::NoRevision;

use super::{command, fix_line, look_line};

pub(super) fn rollback_hints(error: &RollbackError) -> Vec<String> {
    match error {
        RollbackError::NoRevision {
            installation,
            why: NoRevision::Nothing,
        } => fix_line(&format!(
            "kubectl addons upgrade {}@VERSION -n {}",
            installation.name, installation.namespace
        )),
        RollbackError::NoRevision { installation, .. } => {
            look_line(&command("history", installation))
        }
        RollbackError::EntryLost {
            installation,
            origin,
            ..
        } => {
            let place = origin.as_deref().unwrap_or("a catalogue");
            let mut lines = look_line(&command("history", installation));
            lines.extend(fix_line(&format!("add the version to {place} again")));
            lines
        }
        RollbackError::Unlisted {
            installation,
            catalogue,
            ..
        } => {
            let mut lines = look_line(&command("history", installation));
            let again = format!("add the version to catalogue {catalogue} again");
            lines.extend(fix_line(&again));
            lines
        }
        RollbackError::TakesOver { .. } => fix_line("upgrade without --atomic"),
    }
}

#[cfg(test)]
mod tests {
    use common::api::names::InstallationName;

    use super::*;

    #[test]
    fn the_way_out_is_a_command_for_the_same_installation() {
        let installation = InstallationName {
            namespace: "shop".to_owned(),
            name: "till".to_owned(),
        };
        let none = |why| RollbackError::NoRevision {
            installation: installation.clone(),
            why,
        };
        let nothing = "fix:    kubectl addons upgrade till@VERSION -n shop";
        assert_eq!(rollback_hints(&none(NoRevision::Nothing)), [nothing]);
        let history = "look:   kubectl addons history till -n shop";
        assert_eq!(rollback_hints(&none(NoRevision::NoEarlier)), [history]);
        let lost = RollbackError::EntryLost {
            is_core: false,
            installation: installation.clone(),
            revision: 3,
            version: "1.2.0".to_owned(),
            origin: Some("catalogue custom".to_owned()),
        };
        assert_eq!(
            lost.to_string(),
            "shop/till: the entry of revision 3 (1.2.0) is not kept with it, and catalogue custom no longer lists it"
        );
        let fix = "fix:    add the version to catalogue custom again";
        assert_eq!(rollback_hints(&lost), [history, fix]);
        let unlisted = RollbackError::Unlisted {
            installation,
            revision: 3,
            version: "1.2.0".to_owned(),
            catalogue: "custom".to_owned(),
        };
        assert_eq!(
            unlisted.to_string(),
            "shop/till: no catalogue lists the entry of revision 3 (1.2.0), and catalogue custom requires signatures"
        );
        assert_eq!(rollback_hints(&unlisted), [history, fix]);
    }
}
