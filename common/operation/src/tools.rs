//! Other tools that manage the same add-ons. The stages of an operation ask each of them what it adds, and know none by name.

use std::fmt::Debug;

use addons_plan::InstallationPlan;
use addons_plan::claims::Claims;
use addons_plan::found::ForeignInstall;
use addons_plan::snapshot::Snapshot;
use common::api::installation::{AddonInstallation, AddonInstallationStatus};
use futures::future::{LocalBoxFuture, ready};

use crate::context::Context;
use crate::error::OperationError;
use crate::resolve::resolved::Resolved;

/// What a tool does for an operation. Its result is in the value that it was given to change.
pub type Work<'a> = LocalBoxFuture<'a, Result<(), OperationError>>;

/// Another tool that manages add-ons of the cluster, such as kops or Helm. What it wants done, it adds as steps to the plan.
pub trait OtherTool: Debug + Send + Sync {
    /// Adds to a chosen installation what the records of the tool say about it, before it gets defaults and is checked.
    fn complete<'a>(&'a self, _ctx: &'a Context, _resolved: &'a mut Resolved) -> Work<'a> {
        Box::pin(ready(Ok(())))
    }

    /// Adds steps and warnings to the plan of an installation or upgrade.
    fn plan<'a>(
        &'a self,
        _ctx: &'a Context,
        _planning: Planning<'a>,
        _plan: &'a mut InstallationPlan,
    ) -> Work<'a> {
        Box::pin(ready(Ok(())))
    }

    /// Adds steps and warnings to the plan of an uninstallation.
    fn plan_removal<'a>(
        &'a self,
        _ctx: &'a Context,
        _removal: PlannedRemoval<'a>,
        _plan: &'a mut InstallationPlan,
    ) -> Work<'a> {
        Box::pin(ready(Ok(())))
    }

    /// Lists what the tool has installed, to explain why an add-on is missing. Returns an empty list if it cannot be read.
    fn find_installs<'a>(&'a self, _ctx: &'a Context) -> LocalBoxFuture<'a, Vec<ForeignInstall>> {
        Box::pin(ready(Vec::new()))
    }
}

/// Asks every tool to complete an installation.
///
/// # Errors
/// The records of a tool cannot be read.
pub(crate) async fn complete(ctx: &Context, resolved: &mut Resolved) -> Result<(), OperationError> {
    for tool in ctx.settings().tools {
        tool.complete(ctx, resolved).await?;
    }
    Ok(())
}

/// The inputs of the plan of an installation or upgrade.
#[derive(Clone, Copy, Debug)]
pub struct Planning<'a> {
    /// The installation.
    pub resolved: &'a Resolved,
    /// The live objects.
    pub snapshot: &'a Snapshot,
    /// What other installations own.
    pub claims: &'a Claims,
    /// Whether objects that no installation owns are adopted.
    pub adopts: bool,
}

/// An uninstallation for which a plan was made.
#[derive(Clone, Copy, Debug)]
pub struct PlannedRemoval<'a> {
    /// The record.
    pub record: &'a AddonInstallation,
    /// Its status; empty if it has none.
    pub status: &'a AddonInstallationStatus,
    /// Whether the objects stay and only the record is deleted.
    pub keeps: bool,
    /// Whether the objects stay and are given back to the tool that they were adopted from.
    pub gives_back: bool,
}
