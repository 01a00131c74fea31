//! What an operation does that going back does not undo.

use common::api::installation::AddonInstallationSpec;
use common::manifest::key::ObjectKey;

use super::InstallationPlan;

/// Something that stays as the operation leaves it, although the installation goes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// Stored versions leave a definition: their objects are stored in another one then.
    Migrated {
        /// The definition.
        definition: ObjectKey,
        /// The versions that leave it.
        versions: Vec<String>,
    },
    /// An object is deleted and created again: what was in it is gone.
    Recreated(ObjectKey),
    /// A Job runs: what it does stays done.
    Job(ObjectKey),
    /// Values come from Secrets, which are read as they are then.
    Secrets,
}

/// What of a plan stays where the installation goes back to this spec.
#[must_use]
pub fn lasting(plan: &InstallationPlan, back: &AddonInstallationSpec) -> Vec<Lasting> {
    let migrated = plan.migrations.iter().map(|migration| Lasting::Migrated {
        definition: migration.definition.clone(),
        versions: migration.versions.clone(),
    });
    let recreated = plan.recreations.iter();
    let recreated =
        recreated.filter(|object| object.obstacle.is_none() && object.holders.is_empty());
    let recreated = recreated.map(|object| Lasting::Recreated(object.key.clone()));
    let keys = plan.steps.iter().map(|step| &step.target.key);
    let jobs = keys.filter(|key| key.group == "batch" && key.kind == "Job");
    let jobs = jobs.map(|key| Lasting::Job(key.clone()));
    let secrets = !back.values_from.is_empty();
    migrated
        .chain(recreated)
        .chain(jobs)
        .chain(secrets.then_some(Lasting::Secrets))
        .collect()
}

#[cfg(test)]
#[path = "lasting/tests.rs"]
mod tests;
