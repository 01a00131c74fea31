//! Effects of an operation that a rollback does not undo.

use common::api::installation::AddonInstallationSpec;
use common::manifest::key::ObjectKey;

use super::InstallationPlan;

/// An effect that a rollback does not undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastingEffect {
    /// Stored versions are removed from a CRD, and its objects are stored in another version.
    Migrated {
        /// The definition.
        definition: ObjectKey,
        /// The removed versions.
        versions: Vec<String>,
    },
    /// An object is deleted and created again, and loses its content.
    Recreated(ObjectKey),
    /// A Job runs.
    Job(ObjectKey),
    /// Values come from Secrets, which a rollback reads as they are then.
    Secrets,
}

/// Returns the effects of a plan that stay if the installation goes back to the spec `back`.
#[must_use]
pub fn find_lasting_effects(
    plan: &InstallationPlan,
    back: &AddonInstallationSpec,
) -> Vec<LastingEffect> {
    let migrated = plan.migrations().map(|migration| LastingEffect::Migrated {
        definition: migration.definition.clone(),
        versions: migration.versions.clone(),
    });
    let recreated = plan.recreations.iter();
    let recreated =
        recreated.filter(|object| object.obstacle.is_none() && object.holders.is_empty());
    let recreated = recreated.map(|object| LastingEffect::Recreated(object.key.clone()));
    let keys = plan.steps.iter().map(|step| &step.target.key);
    let jobs = keys.filter(|key| key.group == "batch" && key.kind == "Job");
    let jobs = jobs.map(|key| LastingEffect::Job(key.clone()));
    let secrets = !back.values_from.is_empty();
    migrated
        .chain(recreated)
        .chain(jobs)
        .chain(secrets.then_some(LastingEffect::Secrets))
        .collect()
}

#[cfg(test)]
#[path = "lasting/tests.rs"]
mod tests;
