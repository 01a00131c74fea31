//! Adds tips to errors of the command line: a similar name, or the counterpart of a flag or command of helm or kubectl.

use std::ffi::OsString;

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use common::nearest::nearest;

/// Prefixes of flags that lift a protection or change the user that the server sees. A typo must not lead to them.
const PROTECTED: [&str; 13] = [
    "adopt",
    "all",
    "as",
    "delete-",
    "force",
    "insecure-",
    "keep",
    "migrate-",
    "new-cluster",
    "prune",
    "recreate",
    "steal-",
    "yes",
];

/// Flags of helm and kubectl: the commands, the flag, and its counterpart.
#[rustfmt::skip]
const FLAGS: &[(&[&str], &str, &str)] = &[
    (&["diff", "plan", "adopt", "show", "render", "images", "export", "verify"], "--version",
     "write the version behind the name: NAME@VERSION"),
    (&["upgrade"], "--install", "'install' installs an add-on, and upgrades one that is installed"),
    (&["uninstall", "delete"], "--cascade", "'--keep' forgets the installation and keeps its objects"),
    (&["upgrade"], "--target-namespace", "only 'install' and 'adopt' set the target namespace of an installation"),
    (&["upgrade"], "--reuse-values", "'upgrade' keeps the values of the installation"),
    (&["install"], "--all", "name the add-ons to install; 'search' lists them"),
    (&["install", "upgrade", "rollback", "uninstall", "delete", "apply"], "-o", EVENTS),
    (&["install", "upgrade", "rollback", "uninstall", "delete", "apply"], "--output", EVENTS),
    (&["install", "upgrade"], "--create-namespace", "namespaces that are missing are created"),
    (&["uninstall", "delete"], "-f", "'apply -f FILE --set-name NAME --prune' uninstalls what left the set"),
    (&["rollback"], "--to-revision", "write the revision behind the name: rollback NAME REVISION"),
    (&["list", "ls"], "--all", "'-A' lists all namespaces"),
    (&["list", "ls"], "--watch", WATCH),
    (&["list", "ls"], "-w", WATCH),
];
const EVENTS: &str = "'--events' prints what happens as JSON, 'plan -o json' what would happen";
const WATCH: &str = "'status -A --watch' shows installations while they change";

/// Commands of helm and kubectl, and their counterparts.
#[rustfmt::skip]
const VERBS: &[(&str, &str)] = &[
    ("get", "'list' lists what is installed, 'status NAME' shows the objects of an installation"),
    ("describe", "'status NAME' describes an installation, 'show NAME' an add-on of a catalogue"),
    ("explain", "'show NAME --values' prints the values of an add-on"),
    ("repo", "'catalogue' manages where add-ons come from"),
    ("template", "'render NAME' prints the manifests"),
    ("lint", "'catalogue validate FILE' finds the mistakes in a catalogue"),
    ("pull", "'export NAME --output FILE' writes an add-on with its images into an archive"),
    ("edit", "'upgrade NAME --set PATH=VALUE' changes the values of an installation"),
    ("remove", "'uninstall NAME' uninstalls an add-on"),
];

/// Adds tips to the error, and removes misleading ones.
pub(super) fn with_tips(mut error: Error, args: &[OsString]) -> Error {
    match error.kind() {
        ErrorKind::UnknownArgument => add_flag_tip(&mut error, args),
        ErrorKind::InvalidSubcommand => add_verb_tip(&mut error),
        _ => {}
    }
    error
}

fn add_flag_tip(error: &mut Error, args: &[OsString]) {
    let Some(typed) = context_text(error, ContextKind::InvalidArg) else {
        return;
    };
    let flag = typed.split('=').next().unwrap_or_default().to_owned();
    // No name begins with a dash.
    error.remove(ContextKind::Suggested);
    let known = FLAGS.iter().find(|(verbs, name, _)| {
        let is_typed = |verb: &&str| args.iter().any(|arg| arg.to_str() == Some(verb));
        *name == flag && verbs.iter().any(is_typed)
    });
    if let Some((_, _, tip)) = known {
        remove_suggestion(error);
        add_tip(error, tip);
        return;
    }
    let near = context_text(error, ContextKind::SuggestedArg);
    if near.is_some_and(|near| !is_near(&flag, &near)) {
        remove_suggestion(error);
    }
}

fn add_verb_tip(error: &mut Error) {
    let typed = context_text(error, ContextKind::InvalidSubcommand);
    let known = VERBS
        .iter()
        .find(|(verb, _)| typed.as_deref() == Some(verb));
    if let Some((_, tip)) = known {
        error.remove(ContextKind::SuggestedSubcommand);
        add_tip(error, tip);
    }
}

fn is_near(typed: &str, suggested: &str) -> bool {
    let [typed, suggested] = [typed, suggested].map(|flag| flag.trim_start_matches('-'));
    let is_protected = PROTECTED.iter().any(|flag| suggested.starts_with(flag));
    !is_protected && nearest(typed, [suggested]).is_some()
}

/// Removes the flag that clap considers similar, and the usage that shows it.
fn remove_suggestion(error: &mut Error) {
    if error.remove(ContextKind::SuggestedArg).is_some() {
        error.remove(ContextKind::Usage);
    }
}

fn add_tip(error: &mut Error, tip: &'static str) {
    let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
    error.insert(ContextKind::Suggested, tips);
}

fn context_text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        let words = std::iter::once("kubectl-addons").chain(line.split(' '));
        let args: Vec<OsString> = words.map(Into::into).collect();
        crate::cli::parse(&args).unwrap_err().to_string()
    }

    #[test]
    fn what_helm_and_kubectl_call_otherwise_is_named() {
        for (line, tip) in [
            ("diff web --version 1.0.0", "NAME@VERSION"),
            ("upgrade --install web", "'install' installs an add-on"),
            ("uninstall web --cascade=orphan", "'--keep'"),
            ("install --all", "name the add-ons"),
            ("upgrade web --target-namespace a", "only 'install'"),
            ("get web", "'status NAME'"),
            ("describe web", "'show NAME'"),
            ("install web -o json", "'--events'"),
            ("rollback web --output=json", "'--events'"),
            ("install web --create-namespace", "are created"),
            (
                "delete -f set.yaml",
                "'apply -f FILE --set-name NAME --prune'",
            ),
            ("rollback web --to-revision=3", "rollback NAME REVISION"),
            ("list --all", "'-A'"),
            ("ls -w", "'status -A --watch'"),
            ("lint web", "'catalogue validate FILE'"),
            ("pull web", "'export NAME --output FILE'"),
        ] {
            let said = said(line);
            assert!(
                said.contains("  tip: ") && said.contains(tip),
                "{line}: {said}"
            );
            assert!(!said.contains("similar"), "{line}: {said}");
            assert!(!said.contains("--steal-lock"), "{line}: {said}");
        }
    }

    #[test]
    fn only_a_close_name_is_a_tip_and_no_protection_is_lifted_by_one() {
        for (line, tip) in [
            ("upgrade web --timout 5m", Some("'--timeout'")),
            ("list --no-header", Some("'--no-headers'")),
            ("upgrade web --steal-loc", None),
            ("uninstall web --delete-crd", None),
            ("upgrade web --alow-prune 60%", None),
            ("list --nowhere", None),
        ] {
            let said = said(line);
            match tip {
                Some(tip) => assert!(said.contains(tip), "{line}: {said}"),
                None => assert!(!said.contains("tip:"), "{line}: {said}"),
            }
        }
    }
}
