//! Why an installation cannot be reconciled, as conditions say it: one word, and whether a person has to agree.

use addons_engine::EngineError;
use addons_engine::remote::RemoteError;
use addons_engine::standing::ReconcileState;
use addons_operation::OperationError;
use addons_operation::attempt::AttemptError;
use addons_operation::choose::ChooseError;
use addons_operation::error::AdoptError;
use addons_plan::crd_safety::BreakageError;
use addons_plan::planner::PlanError;
use addons_plan::refusal::FailureCause;
use common::api::conditions::{PROCESS_KILLED, ROLLOUT_FAILED, shorten_message};

/// What a condition says about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConditionReason {
    /// A protection that a person can override.
    Asks(&'static str),
    /// Any other error.
    Stalls(&'static str),
}

/// Returns the state of an installation that failed with this error.
pub(crate) fn to_standing(error: &OperationError, words: String) -> ReconcileState {
    let message = shorten_message(words);
    match condition_reason(error) {
        ConditionReason::Asks(reason) => ReconcileState::NeedsConfirmation { reason, message },
        ConditionReason::Stalls(reason) => ReconcileState::Stalled { reason, message },
    }
}

fn condition_reason(error: &OperationError) -> ConditionReason {
    match error.root() {
        OperationError::Plan(PlanError::MostlyPruned { .. }) => ConditionReason::Asks("PruneLimit"),
        OperationError::Plan(PlanError::RecordOlder(_)) => {
            ConditionReason::Asks("RecordOlderThanCluster")
        }
        OperationError::OtherCluster(_) => ConditionReason::Asks("OtherCluster"),
        OperationError::Breakage(BreakageError::Breaks { .. }) => ConditionReason::Asks("Breakage"),
        OperationError::Migration(_) => ConditionReason::Asks("Migration"),
        OperationError::Recreation(refused) if refused.is_acceptable() => {
            ConditionReason::Asks("Recreation")
        }
        OperationError::Downgrade { .. } => ConditionReason::Asks("Downgrade"),
        OperationError::Content(_) => ConditionReason::Asks("ContentChanged"),
        OperationError::Unfinished(_) => ConditionReason::Asks("Unfinished"),
        OperationError::Adopt(AdoptError::Unconfirmed(_)) => ConditionReason::Asks("Adopted"),
        OperationError::ChangedRelease(_) => ConditionReason::Asks("ReleaseChanged"),
        OperationError::Plan(PlanError::Refused { .. }) | OperationError::ForeignRelease(_) => {
            ConditionReason::Stalls("Conflict")
        }
        OperationError::Plan(PlanError::TooLarge(_)) => ConditionReason::Stalls("TooLarge"),
        error if error.is_too_large() => ConditionReason::Stalls("TooLarge"),
        OperationError::Breakage(_) => ConditionReason::Stalls("Breakage"),
        OperationError::Recreation(_) => ConditionReason::Stalls("Immutable"),
        OperationError::Refusal(refused) => ConditionReason::Stalls(match refused.cause() {
            FailureCause::Denied => "Denied",
            FailureCause::Conflict => "Conflict",
            FailureCause::Other => "Refused",
        }),
        OperationError::Orphaned { .. }
        | OperationError::UnknownCatalogue { .. }
        | OperationError::Choose(ChooseError::Unknown { .. } | ChooseError::NoSuchVersion { .. }) => {
            ConditionReason::Stalls("EntryGone")
        }
        OperationError::Choose(ChooseError::Held { .. }) => ConditionReason::Stalls("EntryHeld"),
        OperationError::Choose(ChooseError::DoesNotFit { .. }) => {
            ConditionReason::Stalls("DoesNotFit")
        }
        OperationError::NoIndex { .. }
        | OperationError::Choose(ChooseError::Unread { .. })
        | OperationError::Index(_)
        | OperationError::Source(_)
        | OperationError::Dependency(_)
        | OperationError::Url(_)
        | OperationError::Credentials(_)
        | OperationError::NoCredentials { .. } => ConditionReason::Stalls("SourceUnavailable"),
        OperationError::Hash(_) | OperationError::PartialHash { .. } => {
            ConditionReason::Stalls("HashMismatch")
        }
        OperationError::Unvouched(_) => ConditionReason::Stalls("NotSigned"),
        OperationError::Refused(_) | OperationError::Engine(EngineError::Denied { .. }) => {
            ConditionReason::Stalls("Denied")
        }
        OperationError::Requires(_)
        | OperationError::NotServed(_)
        | OperationError::Dependents(_) => ConditionReason::Stalls("Requirement"),
        OperationError::ValuesFrom(_) | OperationError::Values(_) => {
            ConditionReason::Stalls("Values")
        }
        OperationError::RolloutFailed(_) => ConditionReason::Stalls(ROLLOUT_FAILED),
        OperationError::Attempt(AttemptError::Killed { .. }) => {
            ConditionReason::Stalls(PROCESS_KILLED)
        }
        OperationError::Remote(RemoteError::NoSecret { .. }) | OperationError::NotLocal { .. } => {
            ConditionReason::Stalls("KubeconfigMissing")
        }
        OperationError::Remote(_) => ConditionReason::Stalls("KubeconfigRefused"),
        OperationError::Engine(EngineError::Unreachable { .. }) => {
            ConditionReason::Stalls("ClusterUnreachable")
        }
        OperationError::Engine(EngineError::Unauthorized { .. }) => {
            ConditionReason::Stalls("CredentialsRefused")
        }
        OperationError::NoAccount(_) => ConditionReason::Stalls("NoServiceAccount"),
        _ if error.is_forbidden() => ConditionReason::Stalls("Forbidden"),
        _ => ConditionReason::Stalls("PlanFailed"),
    }
}

#[cfg(test)]
mod tests {
    use addons_plan::Verb;
    use addons_plan::prune::limit::PruneLimit;
    use addons_plan::restored::OutdatedRecord;
    use common::api::conditions::LONGEST_MESSAGE;
    use common::api::names::InstallationName;
    use common::catalogue::orphan::MissingOrigin;
    use common::manifest::key::ObjectKey;
    use jiff::Timestamp;

    use super::*;

    fn till() -> InstallationName {
        InstallationName {
            namespace: "shop".to_owned(),
            name: "till".to_owned(),
        }
    }

    fn within(error: OperationError) -> OperationError {
        OperationError::Within {
            place: "till in catalogue team".to_owned(),
            error: Box::new(error),
        }
    }

    #[test]
    fn a_protection_asks_and_everything_else_stalls() {
        let pruned = || PlanError::MostlyPruned {
            installation: till(),
            verb: Verb::Upgrade,
            limit: PruneLimit::default(),
            needed: PruneLimit::new(75).unwrap(),
            prune: 9,
            there: 12,
            wanted: 3,
        };
        let downgrade = || OperationError::Downgrade {
            installation: till(),
            addon: "till".to_owned(),
            from: "1.1.0".to_owned(),
            to: "1.0.0".to_owned(),
        };
        let older = PlanError::RecordOlder(Box::new(OutdatedRecord {
            installation: till(),
            recorded: None,
            object: ObjectKey::default(),
            written: Timestamp::UNIX_EPOCH,
            objects: 1,
        }));
        let lost = MissingOrigin::Catalogue {
            catalogue: "team".to_owned(),
        };
        let orphaned = OperationError::Orphaned {
            installation: till(),
            lost,
        };
        let forbidden = EngineError::Forbidden {
            verb: "create",
            resource: "configmaps".to_owned(),
            message: String::new(),
        };
        let no_secret = RemoteError::NoSecret {
            namespace: "shop".to_owned(),
            secret: "admin".to_owned(),
        };
        let unauthorized = EngineError::Unauthorized {
            server: "https://shop.example.test".to_owned(),
        };
        for (error, expected) in [
            (pruned().into(), ConditionReason::Asks("PruneLimit")),
            (within(pruned().into()), ConditionReason::Asks("PruneLimit")),
            (downgrade(), ConditionReason::Asks("Downgrade")),
            (
                older.into(),
                ConditionReason::Asks("RecordOlderThanCluster"),
            ),
            (orphaned, ConditionReason::Stalls("EntryGone")),
            (
                within(forbidden.into()),
                ConditionReason::Stalls("Forbidden"),
            ),
            (
                no_secret.into(),
                ConditionReason::Stalls("KubeconfigMissing"),
            ),
            (
                unauthorized.into(),
                ConditionReason::Stalls("CredentialsRefused"),
            ),
            (
                OperationError::NoKubernetesVersion,
                ConditionReason::Stalls("PlanFailed"),
            ),
        ] {
            assert_eq!(condition_reason(&error), expected, "{error}");
        }
    }

    #[test]
    fn a_message_has_an_end() {
        let standing = to_standing(&OperationError::NoCluster, "ä".repeat(2 * LONGEST_MESSAGE));
        let ReconcileState::Stalled { message, .. } = standing else {
            panic!("{standing:?}");
        };
        assert_eq!(message.chars().count(), LONGEST_MESSAGE);
    }
}
