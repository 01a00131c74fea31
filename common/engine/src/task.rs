//! The engine's input.

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

/// Options of a command.
#[derive(Clone, Debug)]
pub struct ExecuteOptions {
    /// The name of the lock's holder, as other users see it: `alice, user@host (kubectl-addons, pid 4711)`.
    pub holder: String,
    /// Whether to wait for readiness. CRDs that other objects need are always waited for.
    pub wait: bool,
    /// The timeout of the whole command.
    pub timeout: Duration,
    /// Whether to wait for another holder until `timeout`, or to fail at once with [`super::EngineError::Locked`].
    pub wait_for_lock: bool,
    /// Whether to take the lock from a live holder.
    pub steal_lock: bool,
    /// Namespaces that an uninstallation leaves although it created them, because another installation of the command is in them. They are
    /// removed after that installation ([`super::namespace::remove_leftover`]).
    pub leave_namespaces: BTreeSet<String>,
    /// The choices that the plans were made with. The record holds them until the operation has ended as planned.
    pub choices: Choices,
}

/// Work that the engine leaves to another program: installing or removing a release with helm.
pub type Outside<'a> =
    &'a (dyn Fn() -> BoxFuture<'static, Result<(), OutsideFailure>> + Send + Sync);

/// The failure of the other program.
#[derive(Clone, Debug)]
pub struct OutsideFailure {
    /// Its message.
    pub message: String,
    /// The category of the failure, such as a conflict with other field managers.
    pub cause: FailureCause,
}

/// An owned [`Outside`].
pub type OwnedOutside =
    Box<dyn Fn() -> BoxFuture<'static, Result<(), OutsideFailure>> + Send + Sync>;

/// The automatic rollback of a failed operation: a plan like any other, executed under the same lock.
pub struct WayBack {
    /// The record with the spec that is restored.
    pub wanted: AddonInstallation,
    /// The plan.
    pub plan: InstallationPlan,
    /// The order of its objects. The graph has this one part.
    pub graph: Graph,
    /// See [`Task::entry`].
    pub entry: Option<CatalogueEntry>,
    /// See [`Task::outside`].
    pub outside: Option<OwnedOutside>,
}

/// Plans the automatic rollback, or returns why there is none. Polled only once the operation has failed.
pub type PlanBack<'a> = LocalBoxFuture<'a, Result<WayBack, String>>;

/// The planned operation of one installation.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The record with the spec that the user wants. If a record is stored, this one has the resourceVersion and status that the plan was
    /// made with.
    pub wanted: &'a AddonInstallation,
    /// The plan.
    pub plan: &'a InstallationPlan,
    /// The progress so far, for a caller that ends the operation early.
    pub journal: &'a Journal,
    /// The record whose labels, annotations and spec are restored if the server refuses everything that the plan applies, so that later
    /// commands do not try the failed change again. `None`: the wanted ones stay.
    pub fallback: Option<&'a AddonInstallation>,
    /// The entry that is installed, which is stored with the revision; `None` if no revision is stored.
    pub entry: Option<&'a CatalogueEntry>,
    /// Installs or removes the plan's `helm_release`, under the lock of the record.
    pub outside: Option<Outside<'a>>,
}
