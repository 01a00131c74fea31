//! The commands that continue an operation, and that roll it back.

use addons_operation::execute::continued;
use addons_operation::{Choices, PlannedInstallation};
use addons_plan::continuation::{Continuation, NextCommand};
use addons_plan::{InstallationPlan, Verb};

use crate::words::typed;

/// Returns the command that continues an operation with the flags that the user typed. `choices` are those that the plan was made with.
pub fn continue_command(plan: &InstallationPlan, choices: &Choices) -> String {
    let next = Continuation::from_plan(plan, choices);
    typed::continue_command(&continued::command(&next, &plan.installation))
}

/// Returns the command that rolls back to a revision, or to the previous one if `revision` is `None`.
pub(super) fn rollback_command(
    plan: &InstallationPlan,
    revision: Option<i64>,
    choices: &Choices,
) -> String {
    let back = Continuation {
        command: NextCommand::Rollback(revision),
        choices: choices.clone(),
    };
    typed::continue_command(&continued::command(&back, &plan.installation))
}

/// Returns the command that rolls back a failed upgrade. `None` if no revision of the former version is kept, or if the version did not
/// change.
pub(super) fn go_back_command(item: &PlannedInstallation, choices: &Choices) -> Option<String> {
    let plan = &item.plan;
    let (from, to) = (plan.from.as_ref()?, plan.to.as_ref()?);
    let status = item.record.status.as_ref()?;
    let mut done = status.history.iter().filter(|one| one.is_done());
    let is_known = done.any(|one| one.installed.is_same_target(from));
    let is_changed = plan.verb == Verb::Upgrade && !to.is_same_target(from);
    // A folder determines what is installed from it, so a rollback would not last.
    let is_of_directory = plan.wanted.spec.addon_ref.directory.is_some();
    let can = is_known && is_changed && !is_of_directory;
    can.then(|| rollback_command(plan, None, choices))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use addons_plan::prune::KeptKind;
    use addons_plan::prune::limit::PruneLimit;
    use common::api::installation::Installed;
    use common::api::names::InstallationName;

    use super::*;
    use crate::cli;

    fn plan(verb: Verb) -> InstallationPlan {
        let installation = InstallationName {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        };
        InstallationPlan {
            verb,
            ..InstallationPlan::nothing(installation, "web")
        }
    }

    #[test]
    fn what_was_to_stay_stays_when_it_is_continued() {
        for (keep, expected) in [
            (true, "uninstall web -n shop --keep"),
            (false, "uninstall web -n shop"),
        ] {
            let choices = Choices {
                keep,
                ..Choices::default()
            };
            let line = continue_command(&plan(Verb::Uninstall), &choices);
            assert_eq!(line, format!("kubectl addons {expected}"));
        }
    }

    #[test]
    fn each_verb_is_continued_by_its_own_command() {
        let again = |plan: &InstallationPlan| continue_command(plan, &Choices::default());
        for (verb, expected) in [
            (Verb::Install, "upgrade web -n shop"),
            (Verb::Upgrade, "upgrade web -n shop"),
            (Verb::Adopt, "adopt web -n shop"),
            (Verb::Release, "adopt --release web -n shop"),
        ] {
            assert_eq!(again(&plan(verb)), format!("kubectl addons {expected}"));
        }
        let back = InstallationPlan {
            revision: Some(2),
            ..plan(Verb::Rollback)
        };
        assert_eq!(again(&back), "kubectl addons rollback web 2 -n shop");
        let mut pinned = plan(Verb::Upgrade);
        pinned.wanted.spec.addon_ref.version = Some("2.0.0".to_owned());
        pinned.to = Some(Installed {
            version: "2.0.0".to_owned(),
            ..Installed::default()
        });
        assert_eq!(again(&pinned), "kubectl addons upgrade web@2.0.0 -n shop");
    }

    #[test]
    fn every_command_is_one_that_the_plugin_takes() {
        let all = Choices {
            repair: true,
            allow_downgrade: true,
            allow_prune: PruneLimit::ALL,
            delete: [
                KeptKind::Namespace,
                KeptKind::CustomResourceDefinition,
                KeptKind::PersistentVolumeClaim,
                KeptKind::PersistentVolume,
            ]
            .into(),
            recreate: vec!["Service/web".to_owned(), "Job/web".to_owned()],
            allow_breakage: true,
            migrate_stored_versions: true,
            adopt: true,
            force_adopt: true,
            force: true,
            ..Choices::default()
        };
        let keep = Choices {
            keep: true,
            ..all.clone()
        };
        let version = || Some("1.0.0".to_owned());
        for next in [
            NextCommand::Sync("/srv/web".to_owned()),
            NextCommand::Upgrade(None),
            NextCommand::Upgrade(version()),
            NextCommand::Rollback(None),
            NextCommand::Rollback(Some(2)),
            NextCommand::Adopt(version()),
            NextCommand::Uninstall,
            NextCommand::Release,
        ] {
            for choices in [&all, &keep, &Choices::default()] {
                let continuation = Continuation {
                    command: next.clone(),
                    choices: choices.clone(),
                };
                let line = continued::command(&continuation, &plan(Verb::Upgrade).installation);
                let words: Vec<OsString> = line.split(' ').skip(1).map(Into::into).collect();
                let read = cli::parse(&words);
                assert!(read.is_ok(), "{line}: {:?}", read.err());
            }
        }
    }
}
