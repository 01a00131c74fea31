//! Plans the rendered installations of a command: collects what all of them define, reads the live objects, and writes nothing.

pub(crate) mod assemble;
mod file_order;
mod generated;
pub mod gitops;
mod installation;
mod moves;
pub(crate) mod owners;
mod planned;
mod rebuild;
pub mod release;
pub mod replay;
pub mod required_types;
pub mod requirements;
pub(crate) mod uninstall;
mod unrecorded;

use addons_engine::refusals;
use addons_plan::Verb;
use addons_plan::changes::ObjectDiff;
use addons_plan::choices::Choices;
use addons_plan::file::{self, PlanFile};
use addons_render::hooks::Occasion;
use common::api::names::CLIENT;

use crate::context::Context;
use crate::error::OperationError;
use crate::resolve::resolved::Resolved;
use crate::resolve::{Resolution, Resolver};
use crate::{fetch, render};

pub use assemble::plan;
pub use planned::{OnFailure, Plan, PlannedInstallation, RollbackPoint};
pub use rebuild::plan_rebuild;
pub use uninstall::{UninstallRequest, plan_removal, plan_uninstall};
pub(crate) use uninstall::{may_uninstall, plan_separately, with_uninstallations};

impl Plan {
    /// Returns what the plan does to each object that it applies, installation by installation.
    #[must_use]
    pub fn changes(&self) -> Vec<ObjectDiff> {
        let plans = self.installations.iter();
        plans.flat_map(|planned| planned.plan.changes()).collect()
    }

    /// Makes the writes for which the user lacks rights unchecked ones, for commands that only show the plan.
    pub fn leave_rights_unchecked(&mut self) {
        for planned in &mut self.installations {
            planned.plan.leave_rights_unchecked();
        }
    }

    /// Returns the plan as a plan file, with its changes for review.
    ///
    /// # Errors
    /// The cluster cannot be reached.
    pub async fn to_file(&self, ctx: &Context) -> Result<PlanFile, OperationError> {
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
            changes: self.changes(),
        })
    }
}

impl Resolver<'_> {
    /// Fetches, renders and plans a resolution. Installations that turn out to adopt live objects are rendered again, as an upgrade.
    ///
    /// # Errors
    /// Those of [`plan()`].
    pub async fn plan(
        &self,
        resolution: Resolution,
        choices: &Choices,
    ) -> Result<Plan, OperationError> {
        if !choices.adopt || choices.only_owners {
            return self.plan_once(resolution, choices).await;
        }
        let mut again = Resolution {
            installations: resolution.installations.clone(),
            failed: Vec::new(),
            to_uninstall: resolution.to_uninstall.clone(),
            leaving: resolution.leaving.clone(),
        };
        let failed = resolution.failed.len();
        let mut plan = self.plan_once(resolution, choices).await?;
        let takes_over = |resolved: &Resolved| {
            let mut plans = plan.installations.iter().map(|planned| &planned.plan);
            resolved.occasion() == Occasion::Install
                && plans.any(|plan| plan.installation == resolved.name && plan.takes_over())
        };
        let mut is_other = false;
        for resolved in &mut again.installations {
            resolved.takes_over = takes_over(resolved);
            is_other |= resolved.takes_over;
        }
        if !is_other {
            return Ok(plan);
        }
        again.failed = plan.failed.drain(..failed).collect();
        self.plan_once(again, choices).await
    }

    async fn plan_once(
        &self,
        resolution: Resolution,
        choices: &Choices,
    ) -> Result<Plan, OperationError> {
        let mut installations = resolution.installations;
        for resolved in &mut installations {
            resolved.apply_choices(choices);
        }
        let (installations, in_git) = gitops::separate_git_managed(installations, choices);
        let installations = installations.into_iter();
        let (given, chosen) = installations.partition(|resolved| resolved.given.is_some());
        let fetched = fetch::fetch(self.ctx, chosen, choices).await;
        let mut rendered = render::render(self.ctx, fetched).await;
        rendered.extend(render::take_given(given, choices));
        let gone = &resolution.to_uninstall;
        let leaving: Vec<_> = gone.iter().chain(&resolution.leaving).collect();
        let mut plan = plan(self, rendered, &leaving, choices).await?;
        plan.failed.splice(0..0, in_git);
        plan.failed.splice(0..0, resolution.failed);
        // Installations that cannot be planned may still need those that are to be uninstalled.
        if gone.is_empty() || !plan.failed.is_empty() {
            return Ok(plan);
        }
        with_uninstallations(self, plan, gone).await
    }
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
