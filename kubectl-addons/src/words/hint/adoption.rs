//! Advice if nothing is adopted, and if an unfinished operation needs a decision by a person.

use addons_operation::error::{AdoptError, UnfinishedOperation};
use addons_operation::execute::continued;
use addons_plan::continuation::NextCommand;
use common::api::names::InstallationName;

use super::{command, fix_line, look_line, typed};
use crate::words::adoption;

/// Advice for an add-on that is not adopted.
pub(super) fn adoption_hints(error: &AdoptError) -> Vec<String> {
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
            let mut lines = look_line(&format!(
                "helm get values {} --namespace {} --output yaml",
                release.name, release.namespace
            ));
            let values = ["--values".to_owned(), "FILE".to_owned()];
            let again = typed::with_flags(&values).filter(|_| typed::is_verb("adopt"));
            lines.extend(again.iter().flat_map(|again| fix_line(again)));
            lines
        }
        AdoptError::Nothing {
            addon,
            elsewhere: Some(install),
            ..
        } => fix_line(&adoption::adopt_command(
            install,
            addon,
            None,
            &typed::source_flags(),
        )),
        AdoptError::Nothing { addon, .. } => vec![
            format!(
                "look:   kubectl addons show {addon}{}",
                typed::source_flags()
            ),
            format!(
                "fix:    kubectl addons install {addon}{}",
                typed::source_flags()
            ),
        ],
        AdoptError::SameCluster(name) => look_line(&command("status", name)),
        AdoptError::Release(_) => Vec::new(),
        AdoptError::UnreadableValues { .. } => {
            let reset = ["--reset-values".to_owned()];
            let mut lines = fix_with_flags(&["--values".to_owned(), "FILE".to_owned()]);
            let accepted = typed::with_flags(&reset);
            lines.extend(accepted.map(|again| {
                format!("accept: {again}    (the next upgrade applies the defaults of the chart)")
            }));
            lines
        }
        AdoptError::SecretValues {
            installation,
            namespace,
            release,
            ..
        } => {
            let InstallationName {
                namespace: at,
                name,
            } = installation;
            let from = ["--values-from".to_owned(), format!("{name}-values")];
            let values = ["--values".to_owned(), "FILE".to_owned()];
            let mut lines = fix_line(&format!(
                "helm get values {release} --namespace {namespace} --output yaml | \
                 kubectl create secret generic {name}-values -n {at} --from-file=values.yaml=/dev/stdin"
            ));
            lines.extend(fix_with_flags(&from));
            let recorded = typed::with_flags(&values);
            lines.extend(recorded.map(|again| {
                format!(
                    "accept: {again}    (records the values of the file where readers see them)"
                )
            }));
            lines
        }
    }
}

/// Returns the typed command with additional flags as a `fix:` line; nothing if the command cannot be repeated.
fn fix_with_flags(flags: &[String]) -> Vec<String> {
    typed::with_flags(flags).map_or_else(Vec::new, |again| fix_line(&again))
}

/// Advice for an unfinished operation that a person has to complete or take back.
pub(super) fn unfinished_hints(begun: &UnfinishedOperation) -> Vec<String> {
    let name = &begun.installation;
    let mut lines = fix_line(&continued::command(&begun.next, name));
    if !matches!(begun.next.command, NextCommand::Upgrade(_)) {
        // For the user who wants to keep it installed.
        lines.push(format!("accept: {}", command("upgrade", name)));
    }
    lines
}
