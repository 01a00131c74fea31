//! The command that continues an operation that was interrupted or failed.

use addons_plan::choices::Choices;
use addons_plan::continuation::{Continuation, NextCommand};
use addons_plan::prune::KeptKind;
use addons_plan::prune::limit::PruneLimit;
use common::api::names::InstallationName;

use crate::text::shell_word;

/// Returns the command that continues an operation of this installation, with the flags of the recorded choices (semantics 17.4).
#[must_use]
pub fn command(continuation: &Continuation, installation: &InstallationName) -> String {
    let Continuation {
        command: next,
        choices,
    } = continuation;
    let InstallationName { namespace, name } = installation;
    let at = |version: &Option<String>| {
        let version = version.as_ref();
        version.map_or_else(String::new, |version| format!("@{}", shell_word(version)))
    };
    let (verb, more) = match next {
        NextCommand::Sync(directory) => ("sync", shell_word(directory)),
        NextCommand::Upgrade(version) => ("upgrade", at(version)),
        NextCommand::Rollback(revision) => (
            "rollback",
            revision.map_or_else(String::new, |revision| format!(" {revision}")),
        ),
        NextCommand::Adopt(version) => ("adopt", at(version)),
        NextCommand::Uninstall => ("uninstall", String::new()),
        NextCommand::Release => ("adopt --release", String::new()),
    };
    let mut line = match next {
        NextCommand::Sync(_) => format!("kubectl addons {verb} {more}"),
        _ => format!("kubectl addons {verb} {name}{more} -n {namespace}"),
    };
    for flag in flags(next, choices) {
        line.push(' ');
        line.push_str(&flag);
    }
    line
}

/// Returns the flags of the choices that the command accepts.
fn flags(next: &NextCommand, choices: &Choices) -> Vec<String> {
    let mut flags = Vec::new();
    let mut add = |is_said: bool, flag: &str| {
        if is_said {
            flags.push(flag.to_owned());
        }
    };
    let applies = matches!(
        next,
        NextCommand::Upgrade(_) | NextCommand::Rollback(_) | NextCommand::Sync(_)
    );
    let upgrades = matches!(next, NextCommand::Upgrade(_));
    add(upgrades && choices.repair, "--repair");
    add(upgrades && choices.allow_downgrade, "--allow-downgrade");
    add(*next == NextCommand::Uninstall && choices.keep, "--keep");
    let deletes = applies || *next == NextCommand::Uninstall && !choices.keep;
    for (kind, flag) in [
        (KeptKind::CustomResourceDefinition, "--delete-crds"),
        (KeptKind::Namespace, "--delete-namespaces"),
        (KeptKind::PersistentVolumeClaim, "--delete-volumes"),
    ] {
        add(deletes && choices.delete.contains(&kind), flag);
    }
    let limit = choices.allow_prune;
    add(
        applies && limit != PruneLimit::default(),
        &format!("--allow-prune {limit}"),
    );
    for object in &choices.recreate {
        add(applies, &format!("--recreate {}", shell_word(object)));
    }
    add(applies && choices.allow_breakage, "--allow-crd-breakage");
    add(
        applies && choices.migrate_stored_versions,
        "--migrate-stored-versions",
    );
    add(applies && choices.adopt, "--adopt");
    add(
        applies && choices.adopt && choices.force_adopt,
        "--force-adopt",
    );
    add(choices.force, "--force");
    flags
}

#[cfg(test)]
mod tests {
    use common::api::installation::{AddonInstallation, Installed};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_decided_is_part_of_the_command() {
        let installation = InstallationName {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        };
        let choices = Choices {
            repair: true,
            allow_downgrade: true,
            delete: [
                KeptKind::CustomResourceDefinition,
                KeptKind::PersistentVolumeClaim,
                KeptKind::PersistentVolume,
            ]
            .into(),
            recreate: vec!["Service/web".to_owned(), "Job/it's".to_owned()],
            migrate_stored_versions: true,
            force_adopt: true,
            force: true,
            ..Choices::default()
        };
        let keeps = Choices {
            keep: true,
            ..choices.clone()
        };
        let version = || Some("1.0.0".to_owned());
        for (next, choices, expected) in [
            (
                NextCommand::Upgrade(version()),
                &choices,
                r"upgrade web@1.0.0 -n shop --repair --allow-downgrade --delete-crds --delete-volumes --recreate Service/web --recreate 'Job/it'\''s' --migrate-stored-versions --force",
            ),
            (
                NextCommand::Rollback(Some(2)),
                &Choices {
                    allow_prune: PruneLimit::ALL,
                    ..Choices::default()
                },
                "rollback web 2 -n shop --allow-prune 100%",
            ),
            (
                NextCommand::Uninstall,
                &choices,
                "uninstall web -n shop --delete-crds --delete-volumes --force",
            ),
            (
                NextCommand::Uninstall,
                &keeps,
                "uninstall web -n shop --keep --force",
            ),
            (
                NextCommand::Adopt(version()),
                &choices,
                "adopt web@1.0.0 -n shop --force",
            ),
            (
                NextCommand::Release,
                &choices,
                "adopt --release web -n shop --force",
            ),
            (
                NextCommand::Upgrade(None),
                &Choices::default(),
                "upgrade web -n shop",
            ),
            (
                NextCommand::Sync("/srv/a b".to_owned()),
                &Choices::default(),
                "sync '/srv/a b'",
            ),
        ] {
            let continuation = Continuation {
                command: next,
                choices: choices.clone(),
            };
            let expected = format!("kubectl addons {expected}");
            assert_eq!(command(&continuation, &installation), expected);
        }
    }

    fn record(directory: Option<&str>, installed: Option<bool>) -> AddonInstallation {
        let installed = installed.map(|adopted| json!({"version": "1.0.0", "adopted": adopted}));
        let record = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"addonRef": {"name": "web", "directory": directory}},
            "status": {"installed": installed},
        });
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn an_operation_is_continued_by_the_verb_that_began_it() {
        let target = Installed {
            version: "1.0.0".to_owned(),
            ..Installed::default()
        };
        let srv = Some("/srv/web");
        for (verb, record, expected) in [
            ("upgrade", record(None, None), "upgrade web -n shop"),
            ("uninstall", record(srv, None), "uninstall web -n shop"),
            ("install", record(srv, None), "sync /srv/web"),
            // `upgrade` would install the newest version instead.
            ("rollback", record(None, None), "rollback web -n shop"),
            ("adopt", record(None, None), "adopt web@1.0.0 -n shop"),
            ("adopt", record(None, Some(true)), "adopt web@1.0.0 -n shop"),
            // What was recorded again is not adopted but upgraded.
            ("adopt", record(None, Some(false)), "upgrade web -n shop"),
            ("release", record(None, None), "adopt --release web -n shop"),
            ("release", record(srv, None), "adopt --release web -n shop"),
            ("unheard-of", record(None, None), "upgrade web -n shop"),
        ] {
            let next = Continuation::from_record(&record, &verb.into(), Some(&target));
            let installation = InstallationName {
                namespace: "shop".to_owned(),
                name: "web".to_owned(),
            };
            let found = command(&next, &installation);
            assert_eq!(found, format!("kubectl addons {expected}"), "{verb}");
        }
    }
}
