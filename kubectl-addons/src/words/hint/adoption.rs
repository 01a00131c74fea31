//! Advice if nothing is adopted, and if an unfinished operation needs a decision by a person.

use addons_operation::continued;
use addons_operation::error::AdoptError;
use addons_operation::error::Unfinished;
use addons_plan::continuation::Next;

use super::{command, fix, look, typed};
use crate::words::adoption;

/// Advice for an add-on that is not adopted.
pub(super) fn of_adoption(error: &AdoptError) -> Vec<String> {
    match error {
        AdoptError::Installed(name) => {
            vec![format!("fix:    {} --adopt", command("upgrade", name))]
        }
        AdoptError::Adopted(name) | AdoptError::Unconfirmed(name) => vec![
            format!("look:   {}", command("diff", name)),
            format!("fix:    {}", command("upgrade", name)),
        ],
        AdoptError::Nothing {
            release: Some(release),
            ..
        } => {
            let mut lines = look(&format!(
                "helm get values {} --namespace {} --output yaml",
                release.name, release.namespace
            ));
            let values = ["--values".to_owned(), "FILE".to_owned()];
            let again = typed::with(&values).filter(|_| typed::is_verb("adopt"));
            lines.extend(again.iter().flat_map(|again| fix(again)));
            lines
        }
        AdoptError::Nothing {
            addon,
            elsewhere: Some(install),
            ..
        } => fix(&adoption::command(install, addon, None, &typed::source())),
        AdoptError::Nothing { addon, .. } => vec![
            format!("look:   kubectl addons show {addon}{}", typed::source()),
            format!("fix:    kubectl addons install {addon}{}", typed::source()),
        ],
        AdoptError::SameCluster(name) => look(&command("status", name)),
        AdoptError::Release(_) => Vec::new(),
    }
}

/// Advice for an unfinished operation that a person has to complete or take back.
pub(super) fn of_unfinished(begun: &Unfinished) -> Vec<String> {
    let name = &begun.installation;
    let mut lines = fix(&continued::command(&begun.next, name));
    if !matches!(begun.next.command, Next::Upgrade(_)) {
        // For the user who wants to keep it installed.
        lines.push(format!("accept: {}", command("upgrade", name)));
    }
    lines
}
