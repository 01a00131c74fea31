//! The command that continues an operation that was interrupted or failed, with the choices that were made for it.

use super::choices::Choices;
use super::{InstallationPlan, Verb};
use common::api::installation::{AddonInstallation, AddonInstallationSpec, Installed};

/// The next command, and the choices that were made for the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The command.
    pub command: Next,
    /// The choices of the interrupted operation, which the command repeats.
    pub choices: Choices,
}

/// The command that continues an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
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
    /// Returns how to continue the operation of a record. `verb` is the verb as the record spells it, `target` the version that it was
    /// installing.
    #[must_use]
    pub fn of(record: &AddonInstallation, verb: &str, target: Option<&Installed>) -> Self {
        let verb = match Verb::of_record(verb) {
            Some(Verb::Adopt) if is_installed(record) => Verb::Upgrade,
            Some(verb) => verb,
            None => Verb::Upgrade,
        };
        Self {
            command: Next::of(verb, &record.spec, target, None),
            choices: Choices::of_record(record),
        }
    }

    /// Returns the command that restores objects that others edited or deleted. It names the installed version, because without it the
    /// newest one would be installed.
    #[must_use]
    pub fn restoring(record: &AddonInstallation) -> Self {
        let version = record.installed().map(|installed| &installed.version);
        let version = version.filter(|version| !version.is_empty());
        Self {
            command: match &record.spec.addon_ref.directory {
                Some(directory) => Next::Sync(directory.clone()),
                None => Next::Upgrade(version.cloned()),
            },
            choices: Choices {
                repair: true,
                ..Choices::default()
            },
        }
    }

    /// Returns how to continue the operation of a plan that was made with `choices`.
    #[must_use]
    pub fn of_plan(plan: &InstallationPlan, choices: &Choices) -> Self {
        let target = plan.to.as_ref().filter(|_| plan.rebuilt.is_none());
        Self {
            command: Next::of(plan.verb, &plan.wanted.spec, target, plan.revision),
            choices: choices.clone(),
        }
    }
}

impl Next {
    fn of(
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
            Continuation::of(&record, verb, Some(&target)).command
        };
        let version = |version: &str| Some(version.to_owned());
        for (verb, addon_ref, expected) in [
            (
                "upgrade",
                json!({"name": "web", "version": "2.0.0"}),
                Next::Upgrade(version("2.0.0")),
            ),
            // Nothing was applied, and the record names its former version again.
            (
                "upgrade",
                json!({"name": "web", "version": "1.0.0"}),
                Next::Upgrade(version("2.0.0")),
            ),
            ("upgrade", json!({"name": "web"}), Next::Upgrade(None)),
            ("unheard-of", json!({"name": "web"}), Next::Upgrade(None)),
            (
                "rollback",
                json!({"name": "web", "version": "2.0.0"}),
                Next::Rollback(None),
            ),
            (
                "adopt",
                json!({"name": "web"}),
                Next::Adopt(version("2.0.0")),
            ),
            ("uninstall", json!({"name": "web"}), Next::Uninstall),
            ("release", json!({"name": "web"}), Next::Release),
            (
                "install",
                json!({"name": "web", "directory": "/srv"}),
                Next::Sync("/srv".to_owned()),
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
            let continuation = Continuation::of(&record, "uninstall", None);
            assert_eq!(continuation.choices.delete.len(), expected, "{status}");
        }
    }
}
