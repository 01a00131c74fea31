//! What an error means for its caller, in one table: the category, which has an exit code (semantics 17.5), and the reason of the
//! condition that the reconciler writes (semantics 20).

use addons_engine::EngineError;
use addons_engine::remote::RemoteError;
use addons_helm::HelmError;
use addons_plan::crd_safety::BreakageError;
use addons_plan::planner::{PlanError, RefusalReason};
use addons_plan::refusal::FailureCause;
use common::api::conditions::{self, PROCESS_KILLED, ROLLOUT_FAILED};
use common::values::ValuesError;

use super::{AdoptError, OperationError};
use crate::error::AttemptError;
use crate::render::jail::JailError;
use crate::resolve::choose::ChooseError;

/// The categories of errors that have different exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Anything else.
    Failed,
    /// The command line, or a required answer, was wrong.
    Usage,
    /// Not ready in time.
    TimedOut,
    /// Conflict with another owner, or the lock is held.
    Conflict,
    /// Does not fit the cluster.
    DoesNotFit,
    /// Denied at admission.
    Denied,
    /// The caller interrupted the operation.
    Interrupted,
}

/// What an error means for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorKind {
    /// The category; `None` if the causes of the error decide.
    pub category: Option<Category>,
    /// The reason of the condition.
    pub reason: &'static str,
    /// Whether a person can accept what was refused: then the installation needs a confirmation, and is not stalled.
    pub can_be_accepted: bool,
    /// Whether the error is about the installation, and not about the server, another client at work, or the end of this process.
    pub is_of_installation: bool,
}

/// The reason if there is no better one.
const PLAN_FAILED: &str = "PlanFailed";

impl ErrorKind {
    const fn new(category: Category, reason: &'static str) -> Self {
        Self {
            category: Some(category),
            reason,
            can_be_accepted: false,
            is_of_installation: true,
        }
    }

    /// The error of an installation that stays as it is until its cause ends.
    const fn failed(reason: &'static str) -> Self {
        Self::new(Category::Failed, reason)
    }

    /// A protection that a person can lift.
    const fn acceptable(category: Category, reason: &'static str) -> Self {
        Self {
            can_be_accepted: true,
            ..Self::new(category, reason)
        }
    }

    /// An error whose category is that of one of its causes.
    const fn of_causes(reason: &'static str) -> Self {
        Self {
            category: None,
            ..Self::failed(reason)
        }
    }

    /// The same for an error that says nothing about the installation.
    const fn of_environment(self) -> Self {
        Self {
            is_of_installation: false,
            ..self
        }
    }
}

impl OperationError {
    /// Returns what the error means for the caller. Places around the error do not matter.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        use Category::{Conflict, Denied, Interrupted, TimedOut, Usage};
        match self {
            Self::Within { error, .. } | Self::InDirectory { error, .. } => error.kind(),
            Self::Engine(error) => error.into(),
            Self::NotListed(EngineError::Forbidden { .. }) => ErrorKind::of_causes("Forbidden"),
            Self::Plan(error) => error.into(),
            Self::Choose(error) => error.into(),
            Self::OtherCluster(_) => ErrorKind::acceptable(Conflict, "OtherCluster"),
            Self::Breakage(BreakageError::Breaks { .. }) => {
                ErrorKind::acceptable(Category::Failed, "Breakage")
            }
            Self::Breakage(_) => ErrorKind::failed("Breakage"),
            Self::Migration(_) => ErrorKind::acceptable(Conflict, "Migration"),
            Self::Recreation(refused) if refused.is_acceptable() => {
                ErrorKind::acceptable(Conflict, "Recreation")
            }
            // Objects that hold data have to be changed in the manifest: no flag accepts their loss.
            Self::Recreation(refused) if refused.is_final() => ErrorKind::failed("Immutable"),
            Self::Recreation(_) => ErrorKind::new(Conflict, "Immutable"),
            Self::Downgrade { .. } => ErrorKind::acceptable(Category::Failed, "Downgrade"),
            Self::Content(_) => ErrorKind::acceptable(Conflict, "ContentChanged"),
            Self::Unfinished(_) => ErrorKind::acceptable(Category::Failed, "Unfinished"),
            Self::Adopt(AdoptError::Unconfirmed(_)) => {
                ErrorKind::acceptable(Category::Failed, "Adopted")
            }
            Self::Adopt(AdoptError::UnreadableValues { .. } | AdoptError::SecretValues { .. }) => {
                ErrorKind::acceptable(Conflict, "Values")
            }
            Self::ChangedRelease(_) => ErrorKind::acceptable(Conflict, "ReleaseChanged"),
            Self::ForeignRelease(_) => ErrorKind::new(Conflict, "Conflict"),
            Self::Helm(HelmError::Memory { .. } | HelmError::TooMuch { .. })
            | Self::Jail(JailError::Memory | JailError::TooLarge | JailError::File { .. }) => {
                ErrorKind::of_causes("TooLarge")
            }
            Self::Refusal(refused) => {
                let cause = refused.cause();
                let reason = match cause {
                    FailureCause::Denied => "Denied",
                    FailureCause::Conflict => "Conflict",
                    FailureCause::Forbidden | FailureCause::Other => "Refused",
                };
                ErrorKind::new(cause.into(), reason)
            }
            Self::Refused(_) => ErrorKind::new(Denied, "Denied"),
            Self::Orphaned { .. } | Self::UnknownCatalogue { .. } => ErrorKind::failed("EntryGone"),
            Self::NoIndex { .. }
            | Self::Index(_)
            | Self::Source(_)
            | Self::Dependency(_)
            | Self::Url(_)
            | Self::Credentials(_)
            | Self::NoCredentials { .. } => ErrorKind::of_causes("SourceUnavailable"),
            Self::Hash(_) | Self::PartialHash { .. } => ErrorKind::failed("HashMismatch"),
            Self::Unvouched(_) => ErrorKind::of_causes("NotSigned"),
            Self::NotServed(_) => ErrorKind::new(TimedOut, "Requirement"),
            Self::Requires(_) | Self::Dependents(_) => ErrorKind::failed("Requirement"),
            Self::Values(ValuesError::Set { .. } | ValuesError::NoValue { .. }) => {
                ErrorKind::new(Usage, "Values")
            }
            Self::ValuesFrom(_) | Self::Values(_) => ErrorKind::of_causes("Values"),
            Self::RolloutFailed(_) => ErrorKind::failed(ROLLOUT_FAILED),
            Self::OutsideWindow(_) => ErrorKind::acceptable(Denied, conditions::OUTSIDE_WINDOW),
            Self::Attempt(AttemptError::Killed { .. }) => ErrorKind::failed(PROCESS_KILLED),
            Self::Remote(RemoteError::NoSecret { .. }) => {
                ErrorKind::of_causes(conditions::KUBECONFIG_MISSING)
            }
            Self::NotLocal(_) => ErrorKind::new(Usage, conditions::KUBECONFIG_MISSING),
            Self::Remote(_) => ErrorKind::of_causes(conditions::KUBECONFIG_REFUSED),
            Self::NoAccount(_) => ErrorKind::failed("NoServiceAccount"),
            Self::NotManaged(_) => ErrorKind::failed("NotManaged"),
            Self::Moved(_) | Self::InGit(_) | Self::Member(_) | Self::NotSynced(_) => {
                ErrorKind::new(Conflict, PLAN_FAILED)
            }
            Self::Recreate(_) | Self::Ambiguous { .. } => ErrorKind::new(Usage, PLAN_FAILED),
            Self::Interrupted(_) => ErrorKind::new(Interrupted, PLAN_FAILED).of_environment(),
            Self::Connect(_) | Self::NoCluster | Self::Suspended(_) => {
                ErrorKind::of_causes(PLAN_FAILED).of_environment()
            }
            Self::Masked(_)
            | Self::Kkp(_)
            | Self::Overlay(_)
            | Self::UnknownInstallation { .. }
            | Self::NotListed(_)
            | Self::OfDirectory { .. }
            | Self::OtherAddon { .. }
            | Self::Directory(_)
            | Self::Indexes(_)
            | Self::EntryGone { .. }
            | Self::NoEntry(_)
            | Self::NoKubernetesVersion
            | Self::Defaults(_)
            | Self::Authority(_)
            | Self::Builtin(_)
            | Self::OwnCertificate(_)
            | Self::Lacking(_)
            | Self::CatalogueFile(_)
            | Self::Adopt(_)
            | Self::Rollback(_)
            | Self::Attempt(_)
            | Self::Mode(_)
            | Self::GeneratedUnreadable { .. }
            | Self::LookupUnreadable { .. }
            | Self::Cycle(_)
            | Self::Desired(_)
            | Self::Schema(_)
            | Self::Manifest(_)
            | Self::Patch(_)
            | Self::Text(_)
            | Self::SlowTemplates { .. }
            | Self::LostTemplates
            | Self::Jail(_)
            | Self::Thread(_)
            | Self::ReleaseName(_)
            | Self::Image(_)
            | Self::Registry(_)
            | Self::Version(_)
            | Self::Helm(_)
            | Self::HelmBinary(_) => ErrorKind::of_causes(PLAN_FAILED),
        }
    }
}

impl From<FailureCause> for Category {
    fn from(cause: FailureCause) -> Self {
        match cause {
            FailureCause::Denied => Self::Denied,
            FailureCause::Conflict => Self::Conflict,
            FailureCause::Forbidden | FailureCause::Other => Self::Failed,
        }
    }
}

impl From<&EngineError> for ErrorKind {
    fn from(error: &EngineError) -> Self {
        let with = |reason| Self::new(error.cause().into(), reason);
        match error {
            EngineError::Denied { .. } => with("Denied"),
            EngineError::Forbidden { .. } => with("Forbidden"),
            EngineError::Unreachable { .. } | EngineError::NotKubernetes { .. } => {
                with(conditions::CLUSTER_UNREACHABLE).of_environment()
            }
            EngineError::Unauthorized { .. } => {
                with(conditions::CREDENTIALS_REFUSED).of_environment()
            }
            EngineError::Locked { .. }
            | EngineError::Stale { .. }
            | EngineError::NotInitialised => with(PLAN_FAILED).of_environment(),
            EngineError::Record(_)
            | EngineError::Conflict { .. }
            | EngineError::FieldConflict { .. }
            | EngineError::Impersonating
            | EngineError::Immutable { .. }
            | EngineError::Unchangeable { .. }
            | EngineError::OwnWebhook { .. }
            | EngineError::Invalid { .. }
            | EngineError::Unserved { .. }
            | EngineError::Api { .. }
            | EngineError::TooLarge { .. } => with(PLAN_FAILED),
        }
    }
}

impl From<&ChooseError> for ErrorKind {
    fn from(error: &ChooseError) -> Self {
        match error {
            ChooseError::Unknown { .. } | ChooseError::NoSuchVersion { .. } => {
                Self::failed("EntryGone")
            }
            ChooseError::Held { .. } => Self::failed("EntryHeld"),
            ChooseError::DoesNotFit { .. } => Self::new(Category::DoesNotFit, "DoesNotFit"),
            ChooseError::Unread { .. } => Self::failed("SourceUnavailable"),
        }
    }
}

impl From<&PlanError> for ErrorKind {
    fn from(error: &PlanError) -> Self {
        match error {
            PlanError::MostlyPruned { .. } => Self::acceptable(Category::Failed, "PruneLimit"),
            PlanError::RecordOlder(_) => {
                Self::acceptable(Category::Conflict, "RecordOlderThanCluster")
            }
            PlanError::TooLarge(_) => Self::failed("TooLarge"),
            PlanError::Refused { objects } => {
                let categories = objects.iter().map(|object| match object.reason {
                    RefusalReason::Foreign { .. }
                    | RefusalReason::Claimed { .. }
                    | RefusalReason::Controlled { .. }
                    | RefusalReason::Reconciled { .. } => Category::Conflict,
                    RefusalReason::Terminating | RefusalReason::NoNamespace => Category::Failed,
                });
                Self::new(categories.max().unwrap_or(Category::Failed), "Conflict")
            }
        }
    }
}
