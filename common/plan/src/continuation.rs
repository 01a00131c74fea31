//! The command that continues an operation that was interrupted or failed, with the choices that were made for it.

use super::choices::Choices;
use super::{InstallationPlan, Verb};
use common::api::installation::{AddonInstallation, AddonInstallationSpec, Installed};
use common::api::verb::RecordedVerb;

/// The next command, and the choices that were made for the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The command.
    pub command: NextCommand,
    /// The choices of the interrupted operation, which the command repeats.
    pub choices: Choices,
}

/// The command that continues an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextCommand {
    /// Apply the directory of the installation again.
    Sync(String),
    /// Upgrade or install to this version; without one, to the newest, which the installation follows. Also used if the record has a verb
    /// that this release does not know.
    Upgrade(Option<String>),
    /// Roll back to this revision; without one, to the revision that the record names.
    Rollback(Option<i64>),
    /// Adopt the installation in this version; without one, `adopt` would record the newest.
    Adopt(Option<String>),
    /// Uninstall it.
    Uninstall,
    /// Release it without deleting anything.
    Release,
}

impl Continuation {
    /// Returns how to continue the operation of a record. `verb` is the verb in the record, `target` the version that it was
    /// installing.
    #[must_use]
    pub fn from_record(
        record: &AddonInstallation,
        verb: &RecordedVerb,
        target: Option<&Installed>,
    ) -> Self {
        let verb = match verb.known() {
            Some(Verb::Adopt) if is_installed(record) => Verb::Upgrade,
            Some(verb) => verb,
            None => Verb::Upgrade,
        };
        Self {
            command: NextCommand::new(verb, &record.spec, target, None),
            choices: Choices::from_record(record),
        }
    }

    /// Returns the command that restores objects that others edited or deleted. It names the installed version, because without it the
    /// newest one would be installed.
    #[must_use]
    pub fn for_restore(record: &AddonInstallation) -> Self {
        let version = record.installed().map(|installed| &installed.version);
        let version = version.filter(|version| !version.is_empty());
        let repair = Self::repair(version.cloned());
        match &record.spec.addon_ref.directory {
            Some(directory) => Self {
                command: NextCommand::Sync(directory.clone()),
                ..repair
            },
            None => repair,
        }
    }

    /// Returns an upgrade to a version, or to the newest one, that also restores objects that others edited or deleted.
    #[must_use]
    pub fn repair(version: Option<String>) -> Self {
        Self {
            command: NextCommand::Upgrade(version),
            choices: Choices {
                repair: true,
                ..Choices::default()
            },
        }
    }

    /// Returns how to continue the operation of a plan that was made with `choices`.
    #[must_use]
    pub fn from_plan(plan: &InstallationPlan, choices: &Choices) -> Self {
        let target = plan.to.as_ref().filter(|_| plan.rebuilt.is_none());
        Self {
            command: NextCommand::new(plan.verb, &plan.wanted.spec, target, plan.revision),
            choices: choices.clone(),
        }
    }
}

impl NextCommand {
    fn new(
        verb: Verb,
        spec: &AddonInstallationSpec,
        target: Option<&Installed>,
        revision: Option<i64>,
    ) -> Self {
        let version = target.map(|target| target.version.clone());
        let version = version.filter(|version| !version.is_empty());
        match (verb, &spec.addon_ref.directory) {
            (Verb::Uninstall, _) => Self::Uninstall,
            (Verb::Release, _) => Self::Release,
            (_, Some(directory)) => Self::Sync(directory.clone()),
            (Verb::Rollback, None) => Self::Rollback(revision),
            (Verb::Adopt, None) => Self::Adopt(version),
            // Name a version only if the record is pinned: an installation that follows the newest version continues to do so.
            (Verb::Install | Verb::Upgrade, None) => {
                let pinned = spec.addon_ref.version.as_ref();
                Self::Upgrade(pinned.map(|pinned| version.unwrap_or_else(|| pinned.clone())))
            }
        }
    }
}

/// Whether an operation has applied the installation. Then an adoption only recorded it again, and the next upgrade applies the
/// differences.
fn is_installed(record: &AddonInstallation) -> bool {
    let installed = record.installed();
    installed.is_some_and(|installed| !installed.adopted)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(addon_ref: &Value, status: &Value) -> AddonInstallation {
        let record = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"addonRef": addon_ref},
            "status": status,
        });
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn what_failed_is_named_where_the_installation_names_a_version() {
        let target = Installed {
            version: "2.0.0".to_owned(),
            ..Installed::default()
        };
        let next = |addon_ref: Value, verb: &str| {
            let record = record(&addon_ref, &json!({}));
            Continuation::from_record(&record, &verb.into(), Some(&target)).command
        };
        let version = |version: &str| Some(version.to_owned());
        for (verb, addon_ref, expected) in [
            (
                "upgrade",
                json!({"name": "web", "version": "2.0.0"}),
                NextCommand::Upgrade(version("2.0.0")),
            ),
            // Nothing was applied, and the record names its former version again.
            (
                "upgrade",
                json!({"name": "web", "version": "1.0.0"}),
                NextCommand::Upgrade(version("2.0.0")),
            ),
            (
                "upgrade",
                json!({"name": "web"}),
                NextCommand::Upgrade(None),
            ),
            (
                "unheard-of",
                json!({"name": "web"}),
                NextCommand::Upgrade(None),
            ),
            (
                "rollback",
                json!({"name": "web", "version": "2.0.0"}),
                NextCommand::Rollback(None),
            ),
            (
                "adopt",
                json!({"name": "web"}),
                NextCommand::Adopt(version("2.0.0")),
            ),
            ("uninstall", json!({"name": "web"}), NextCommand::Uninstall),
            ("release", json!({"name": "web"}), NextCommand::Release),
            (
                "install",
                json!({"name": "web", "directory": "/srv"}),
                NextCommand::Sync("/srv".to_owned()),
            ),
        ] {
            assert_eq!(
                next(addon_ref.clone(), verb),
                expected,
                "{verb} {addon_ref}"
            );
        }
    }

    #[test]
    fn what_was_decided_is_decided_again() {
        let deletes = json!({"choices": {"delete": ["CustomResourceDefinition"]}});
        let newer = json!({"choices": {"unheard": "of"}});
        for (status, expected) in [
            (&json!({}), 0),
            (&deletes, 1),
            // A newer release decided something that this one does not know.
            (&newer, 0),
        ] {
            let record = record(&json!({"name": "web"}), status);
            let continuation = Continuation::from_record(&record, &Verb::Uninstall.into(), None);
            assert_eq!(continuation.choices.delete.len(), expected, "{status}");
        }
    }
}
