//! Atomic upgrades: if one fails, the former revision is restored under the same lock.

use std::sync::Arc;

use addons_engine::{PlanBack, WayBack};
use addons_plan::Verb;
use addons_plan::choices::Choices;
use addons_plan::gitops::diff_specs;
use addons_plan::graph::Graph;
use addons_plan::history;
use addons_plan::prune::limit::PruneLimit;
use common::manifest::key::ObjectKey;
use futures::FutureExt as _;

use super::RunOptions;
use super::interruption::Interruption;
use crate::context::{Context, Offer};
use crate::error::{OperationError, RollbackError};
use crate::event::OperationEvent;
use crate::plan::release::ReleaseWork;
use crate::plan::{OnFailure, Plan, PlannedInstallation, RollbackPoint, gitops};
use crate::resolve::{Answers, Resolution, Resolver};
use crate::stage::FailedInstallation;

impl Resolver<'_> {
    /// Returns the plan with rollbacks for upgrades that fail. An installation that could not be rolled back becomes one of the failed
    /// installations, and its upgrade does not begin.
    ///
    /// # Errors
    /// The objects of the command have no order.
    pub async fn atomic(&self, mut plan: Plan) -> Result<Plan, OperationError> {
        let mut installations = Vec::new();
        for mut planned in std::mem::take(&mut plan.installations) {
            match self.decide_on_failure(&planned, plan.choices.force).await {
                Ok(on_failure) => {
                    planned.on_failure = on_failure;
                    installations.push(planned);
                }
                Err(error) => plan.failed.push(FailedInstallation {
                    name: planned.plan.installation.to_string(),
                    error,
                }),
            }
        }
        plan.with_only(installations)
    }

    /// Decides what an installation is rolled back to. `force` allows this even if it edits a record that Argo CD or Flux applies.
    async fn decide_on_failure(
        &self,
        planned: &PlannedInstallation,
        force: bool,
    ) -> Result<OnFailure, OperationError> {
        let record = self.records.get(&planned.plan.installation);
        let (Some(record), Some(from), Verb::Upgrade) =
            (record, &planned.plan.from, planned.plan.verb)
        else {
            return Ok(OnFailure::NothingBefore);
        };
        let kept = self.list_revisions(record).await?;
        let Some(revision) = history::find_installed(&kept, from) else {
            return Ok(OnFailure::NothingBefore);
        };
        let mut taken = planned.plan.steps.iter();
        let taken =
            taken.find(|step| step.policy.adopted.is_some() || step.policy.inherited.is_some());
        if let Some(step) = taken {
            return Err(RollbackError::TakesOver {
                installation: planned.plan.installation.clone(),
                object: Box::new(step.target.key.clone()),
            }
            .into());
        }
        let entry = self.find_revision_entry(record, revision).await?;
        self.check_reachable(record, revision, &entry).await?;
        if !force {
            let now = &planned.record.spec;
            let restored = revision.spec_to_restore(now, &entry.version);
            if let Some(why) = gitops::refuse_edits(record, &diff_specs(now, &restored)) {
                return Err(why.into());
            }
        }
        Ok(OnFailure::GoesBack(Box::new(RollbackPoint {
            revision: revision.clone(),
            entry,
        })))
    }
}

/// Returns the planner of the rollback for an installation of a plan, or `None` if there is no rollback.
pub(crate) fn rollback_planner<'a>(
    ctx: &'a Context,
    plan: &'a Plan,
    part: usize,
    run: &'a RunOptions,
    interruption: &'a Interruption,
) -> Option<PlanBack<'a>> {
    let failed = plan.installations.get(part)?;
    let OnFailure::GoesBack(before) = &failed.on_failure else {
        return None;
    };
    let planning = async move {
        let back = plan_way_back(ctx, plan, failed, before).await;
        let back = Arc::new(back.map_err(|error| error.chain())?);
        let [planned] = back.installations.as_slice() else {
            return Err("everything is as it was".to_owned());
        };
        let plan = Arc::clone(&back);
        ctx.emit(OperationEvent::RollingBack { part, plan });
        let handed_over = to_way_back(ctx, planned, &back.graph, run, interruption).await;
        handed_over.map_err(|error| error.chain())
    };
    Some(planning.boxed_local())
}

/// Plans the rollback. It reads the live objects again; the lock of the record is already held.
async fn plan_way_back(
    ctx: &Context,
    plan: &Plan,
    failed: &PlannedInstallation,
    before: &RollbackPoint,
) -> Result<Plan, OperationError> {
    ctx.restart_render_time();
    let resolver = Resolver::read(ctx, Offer::Catalogues).await?;
    let name = &failed.plan.installation;
    let record = resolver.records.get(name);
    let record = record.ok_or_else(|| OperationError::UnknownInstallation {
        name: name.name.clone(),
        near: None,
        offered: false,
    })?;
    let entry = before.entry.clone();
    let answers = Answers::new();
    let restored = resolver
        .resolve_restored(record, &before.revision, entry, &answers)
        .await?;
    let resolution = Resolution {
        installations: vec![restored],
        ..Resolution::default()
    };
    let planned = resolver
        .plan(resolution, &rollback_choices(&plan.choices))
        .await?;
    let mut planned = planned.whole()?;
    // Objects that were recreated with consent are recreated again, and objects that made room for others are restored.
    let consented = |key: &ObjectKey| {
        let mut all = failed.plan.recreations.iter();
        all.any(|object| object.key == *key || object.deleted_keys().any(|other| other == key))
    };
    let recreations = planned.installations.iter();
    let mut recreations = recreations.flat_map(|one| &one.plan.recreations);
    if recreations.all(|object| consented(&object.key)) {
        planned = planned.accepting_recreations();
    }
    planned.check()?;
    Ok(planned)
}

/// Returns the choices for the rollback, from what was accepted for the upgrade. All objects that the upgrade added may be pruned, except
/// kinds that hold data.
fn rollback_choices(of_upgrade: &Choices) -> Choices {
    Choices {
        allow_downgrade: true,
        allow_prune: PruneLimit::ALL,
        allow_breakage: of_upgrade.allow_breakage,
        migrate_stored_versions: of_upgrade.migrate_stored_versions,
        force: of_upgrade.force,
        ..Choices::default()
    }
}

/// Converts the only installation of a plan into the engine's input.
async fn to_way_back(
    ctx: &Context,
    planned: &PlannedInstallation,
    graph: &Graph,
    run: &RunOptions,
    interruption: &Interruption,
) -> Result<WayBack, OperationError> {
    Ok(WayBack {
        wanted: planned.record.clone(),
        plan: planned.plan.clone(),
        graph: graph.clone(),
        entry: planned.entry.clone(),
        outside: ReleaseWork::prepare(ctx, planned, run, interruption).await?,
    })
}
