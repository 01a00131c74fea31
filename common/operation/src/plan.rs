//! Plans the rendered installations of a command: collects what all of them define, reads the live objects, and writes nothing.

mod assemble;
mod generated;
mod moves;
mod numbers;
mod old;
mod one;
pub(crate) mod owners;
mod planned;
mod rebuild;
mod uninstall;

use addons_engine::{diff, refusals};
use addons_plan::Verb;
use addons_plan::changes::ObjectDiff;
use addons_plan::file::{self, PlanFile};
use common::api::names::CLIENT;

use crate::context::Context;
use crate::error::OperationError;

pub use assemble::plan;
pub use planned::{OnFailure, Plan, PlannedInstallation, RollbackPoint};
pub use rebuild::plan_rebuild;
pub use uninstall::{UninstallRequest, plan_removal, plan_uninstall};
pub(crate) use uninstall::{may_uninstall, plan_separately, with_uninstallations};

impl Plan {
    /// Returns the plan as a plan file. `changes` are the results of a dry run, for review.
    ///
    /// # Errors
    /// The cluster cannot be reached.
    pub async fn to_file(
        &self,
        ctx: &Context,
        changes: Vec<ObjectDiff>,
    ) -> Result<PlanFile, OperationError> {
        let plans = self
            .installations
            .iter()
            .map(|planned| planned.plan.clone());
        Ok(PlanFile {
            api_version: file::VERSION.to_owned(),
            kind: file::KIND.to_owned(),
            tool: format!("{CLIENT} {}", env!("CARGO_PKG_VERSION")),
            cluster: ctx.identity().await?,
            choices: self.choices.clone(),
            defines: self.defines,
            namespaces: self.namespaces.clone(),
            installations: plans.collect(),
            graph: self.graph.clone(),
            changes,
        })
    }
}

/// Returns the result of a dry run of a plan, field by field, with Secrets masked.
///
/// # Errors
/// The server cannot be reached. A refusal of the server is part of the result.
pub async fn compare(
    ctx: &Context,
    planned: &PlannedInstallation,
) -> Result<Vec<ObjectDiff>, OperationError> {
    Ok(diff::diff(ctx.cluster().await?, &planned.plan).await?)
}

/// As [`compare`], for every installation of a plan, in the order of a plan file.
///
/// # Errors
/// The server cannot be reached.
pub(crate) async fn compare_all(
    ctx: &Context,
    plan: &Plan,
) -> Result<Vec<ObjectDiff>, OperationError> {
    let mut changes = Vec::new();
    for planned in &plan.installations {
        changes.extend(compare(ctx, planned).await?);
    }
    Ok(changes)
}

/// Adds to uninstallations the deletions that the server refuses. Other plans already have the refusals of the server.
///
/// # Errors
/// The server cannot be reached.
pub async fn ask_about_removals(ctx: &Context, plan: &mut Plan) -> Result<(), OperationError> {
    let cluster = ctx.cluster().await?;
    for planned in &mut plan.installations {
        if planned.plan.verb == Verb::Uninstall {
            let refused =
                refusals::find_removal_refusals(cluster, &planned.plan, &planned.record).await?;
            planned.plan.refused = refused;
        }
    }
    Ok(())
}
