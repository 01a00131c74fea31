//! The fields that the server would change in a live object, from the dry run of a step.

pub(super) mod fields;
pub(super) mod former;
mod overlay;

use serde_json::Value;

use addons_plan::Step;
use addons_plan::changes::FieldChange;
use addons_plan::migration::Migration;

use super::dry_run::PlanDryRun;

/// Returns the fields that a step changes: `live` compared with `answer`, the result of its dry run. `migration`: that of a step that applies
/// a transitional CRD; its final form is compared. Values of Secrets are masked.
pub(super) async fn changed_fields(
    run: &PlanDryRun<'_>,
    step: &Step,
    live: &Value,
    answer: &Value,
    migration: Option<&Migration>,
) -> Vec<FieldChange> {
    let unmarked = step.policy.adopted.as_ref().map(|_| {
        let mut live = live.clone();
        former::remove_helm_marks(&mut live);
        live
    });
    let live = unmarked.as_ref().unwrap_or(live);
    let manager = &run.manager;
    let mut wanted = former::apply_takeover(run.cluster, step, live, answer.clone(), manager).await;
    if let Some(migration) = migration {
        wanted = migration.to_final(&wanted);
    }
    let changes = fields::compare(live, &wanted, manager, step.target.key.is_secret());
    let sets = |change: &FieldChange| !step.policy.leaves_to_autoscaler(&change.path);
    changes.into_iter().filter(sets).collect()
}

/// Returns the fields of a manifest that the live object has not, without asking the server: its defaults are missing, and so are the fields
/// that the manifest no longer has. Values of Secrets are masked.
pub(super) fn manifest_fields(step: &Step, live: &Value, manager: &str) -> Vec<FieldChange> {
    let wanted = overlay::apply(live, &step.object);
    fields::compare(live, &wanted, manager, step.target.key.is_secret())
}
