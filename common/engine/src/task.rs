//! The input of the engine.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::{BoxFuture, LocalBoxFuture};

use addons_plan::InstallationPlan;
use addons_plan::choices::Choices;
use addons_plan::graph::Graph;
use common::api::installation::AddonInstallation;
use common::catalogue::CatalogueEntry;

use super::journal::Journal;
use super::report::FailureCause;

/// How a command runs.
#[derive(Clone, Debug)]
pub struct ExecuteOptions {
    /// Name of the lock's holder, as others will read it: `user@host (kubectl-addons, pid 4711)`.
    pub holder: String,
    /// Whether readiness is waited for (definitions that other objects need always are).
    pub wait: bool,
    /// Bound of the whole command.
    pub timeout: Duration,
    /// Whether to wait for another holder (until `timeout`), or to fail with [`super::EngineError::Locked`] at once.
    pub wait_for_lock: bool,
    /// Take the lock over from a live holder.
    pub steal_lock: bool,
    /// Namespaces that an uninstallation leaves although it created them: another installation of the command is in them, and they are
    /// removed after that ([`super::namespace::remove_leftover`]).
    pub leave_namespaces: BTreeSet<String>,
    /// The choices that the plans were made with. They are recorded until the operation has ended as planned.
    pub choices: Choices,
}

/// Work that the engine leaves to another program: a release of helm's own.
pub type Outside<'a> =
    &'a (dyn Fn() -> BoxFuture<'static, Result<(), OutsideFailure>> + Send + Sync);

/// Why the other program failed.
#[derive(Clone, Debug)]
pub struct OutsideFailure {
    /// Its message.
    pub message: String,
    /// Whether it met fields of others.
    pub cause: FailureCause,
}

/// [`Outside`], owned.
pub type OwnedOutside =
    Box<dyn Fn() -> BoxFuture<'static, Result<(), OutsideFailure>> + Send + Sync>;

/// Where an installation goes back to whose operation failed: a plan like any other, executed under the same lock.
pub struct WayBack {
    /// The record with the spec that is restored.
    pub wanted: AddonInstallation,
    /// What to do.
    pub plan: InstallationPlan,
    /// The order of its objects, which are the only part.
    pub graph: Graph,
    /// See [`Task::entry`].
    pub entry: Option<CatalogueEntry>,
    /// See [`Task::outside`].
    pub outside: Option<OwnedOutside>,
}

/// Plans the way back, or says why there is none. It is polled once the operation has failed, and never where it has not.
pub type PlanBack<'a> = LocalBoxFuture<'a, Result<WayBack, String>>;

/// One installation of a command.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The record with the spec that the user wants (and, where there is one, the stored resourceVersion and status that the
    /// plan was made with).
    pub wanted: &'a AddonInstallation,
    /// What to do.
    pub plan: &'a InstallationPlan,
    /// What was done so far, for whoever ends the operation early.
    pub journal: &'a Journal,
    /// The record to which labels, annotations and spec go back where the server refuses everything that the plan applies: what failed
    /// must not be tried again by each later command. `None`: they stay.
    pub fallback: Option<&'a AddonInstallation>,
    /// The entry that is installed, of which a revision is kept; `None` where none is.
    pub entry: Option<&'a CatalogueEntry>,
    /// Installs or removes the plan's `helm_release`, under the lock of the record; why it failed.
    pub outside: Option<Outside<'a>>,
}
