//! Why an installation cannot be reconciled, as conditions say it: one word, and whether a person has to agree.

use addons_engine::EngineError;
use addons_engine::remote::RemoteError;
use addons_engine::standing::Standing;
use addons_operation::OperationError;
use addons_operation::attempt::AttemptError;
use addons_operation::choose::ChooseError;
use addons_operation::error::AdoptError;
use addons_plan::crd_safety::BreakageError;
use addons_plan::planner::PlanError;
use addons_plan::refusal::Cause;
use common::api::conditions::{PROCESS_KILLED, ROLLOUT_FAILED, bounded};

/// What a condition says about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// A protection that a person can override.
    Asks(&'static str),
    /// Any other error.
    Stalls(&'static str),
}

/// Returns the state of an installation that failed with this error.
pub(crate) fn standing(error: &OperationError, words: String) -> Standing {
    let message = bounded(words);
    match reason(error) {
        Reason::Asks(reason) => Standing::NeedsConfirmation { reason, message },
        Reason::Stalls(reason) => Standing::Stalled { reason, message },
    }
}

fn reason(error: &OperationError) -> Reason {
    match error.root() {
        OperationError::Plan(PlanError::MostlyPruned { .. }) => Reason::Asks("PruneLimit"),
        OperationError::Plan(PlanError::RecordOlder(_)) => Reason::Asks("RecordOlderThanCluster"),
        OperationError::OtherCluster(_) => Reason::Asks("OtherCluster"),
        OperationError::Breakage(BreakageError::Breaks { .. }) => Reason::Asks("Breakage"),
        OperationError::Migration(_) => Reason::Asks("Migration"),
        OperationError::Recreation(refused) if refused.is_acceptable() => {
            Reason::Asks("Recreation")
        }
        OperationError::Downgrade { .. } => Reason::Asks("Downgrade"),
        OperationError::Content(_) => Reason::Asks("ContentChanged"),
        OperationError::Unfinished(_) => Reason::Asks("Unfinished"),
        OperationError::Adopt(AdoptError::Unconfirmed(_)) => Reason::Asks("Adopted"),
        OperationError::ChangedRelease(_) => Reason::Asks("ReleaseChanged"),
        OperationError::Plan(PlanError::Refused { .. }) | OperationError::ForeignRelease(_) => {
            Reason::Stalls("Conflict")
        }
        OperationError::Plan(PlanError::TooLarge(_)) => Reason::Stalls("TooLarge"),
        error if error.is_too_large() => Reason::Stalls("TooLarge"),
        OperationError::Breakage(_) => Reason::Stalls("Breakage"),
        OperationError::Recreation(_) => Reason::Stalls("Immutable"),
        OperationError::Refusal(refused) => Reason::Stalls(match refused.cause() {
            Cause::Denied => "Denied",
            Cause::Conflict => "Conflict",
            Cause::Other => "Refused",
        }),
        OperationError::Orphaned { .. }
        | OperationError::UnknownCatalogue { .. }
        | OperationError::Choose(ChooseError::Unknown { .. } | ChooseError::NoSuchVersion { .. }) => {
            Reason::Stalls("EntryGone")
        }
        OperationError::Choose(ChooseError::Held { .. }) => Reason::Stalls("EntryHeld"),
        OperationError::Choose(ChooseError::DoesNotFit { .. }) => Reason::Stalls("DoesNotFit"),
        OperationError::NoIndex { .. }
        | OperationError::Choose(ChooseError::Unread { .. })
        | OperationError::Index(_)
        | OperationError::Source(_)
        | OperationError::Dependency(_)
        | OperationError::Url(_)
        | OperationError::Credentials(_)
        | OperationError::NoCredentials { .. } => Reason::Stalls("SourceUnavailable"),
        OperationError::Hash(_) | OperationError::PartialHash { .. } => {
            Reason::Stalls("HashMismatch")
        }
        OperationError::Unvouched(_) => Reason::Stalls("NotSigned"),
        OperationError::Refused(_) | OperationError::Engine(EngineError::Denied { .. }) => {
            Reason::Stalls("Denied")
        }
        OperationError::Requires(_)
        | OperationError::NotServed(_)
        | OperationError::Dependents(_) => Reason::Stalls("Requirement"),
        OperationError::ValuesFrom(_) | OperationError::Values(_) => Reason::Stalls("Values"),
        OperationError::RolloutFailed(_) => Reason::Stalls(ROLLOUT_FAILED),
        OperationError::Attempt(AttemptError::Killed { .. }) => Reason::Stalls(PROCESS_KILLED),
        OperationError::Remote(RemoteError::NoSecret { .. }) | OperationError::NotLocal { .. } => {
            Reason::Stalls("KubeconfigMissing")
        }
        OperationError::Remote(_) => Reason::Stalls("KubeconfigRefused"),
        OperationError::Engine(EngineError::Unreachable { .. }) => {
            Reason::Stalls("ClusterUnreachable")
        }
        OperationError::Engine(EngineError::Unauthorized { .. }) => {
            Reason::Stalls("CredentialsRefused")
        }
        OperationError::NoAccount(_) => Reason::Stalls("NoServiceAccount"),
        _ if error.is_forbidden() => Reason::Stalls("Forbidden"),
        _ => Reason::Stalls("PlanFailed"),
    }
}

#[cfg(test)]
mod tests {
    use addons_plan::Verb;
    use addons_plan::prune::limit::PruneLimit;
    use addons_plan::restored::RecordOlder;
    use common::api::conditions::LONGEST_MESSAGE;
    use common::api::names::InstallationName;
    use common::catalogue::orphan::Lost;
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
        let older = PlanError::RecordOlder(Box::new(RecordOlder {
            installation: till(),
            recorded: None,
            object: ObjectKey::default(),
            written: Timestamp::UNIX_EPOCH,
            objects: 1,
        }));
        let lost = Lost::Catalogue {
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
            (pruned().into(), Reason::Asks("PruneLimit")),
            (within(pruned().into()), Reason::Asks("PruneLimit")),
            (downgrade(), Reason::Asks("Downgrade")),
            (older.into(), Reason::Asks("RecordOlderThanCluster")),
            (orphaned, Reason::Stalls("EntryGone")),
            (within(forbidden.into()), Reason::Stalls("Forbidden")),
            (no_secret.into(), Reason::Stalls("KubeconfigMissing")),
            (unauthorized.into(), Reason::Stalls("CredentialsRefused")),
            (
                OperationError::NoKubernetesVersion,
                Reason::Stalls("PlanFailed"),
            ),
        ] {
            assert_eq!(reason(&error), expected, "{error}");
        }
    }

    #[test]
    fn a_message_has_an_end() {
        let standing = standing(&OperationError::NoCluster, "ä".repeat(2 * LONGEST_MESSAGE));
        let Standing::Stalled { message, .. } = standing else {
            panic!("{standing:?}");
        };
        assert_eq!(message.chars().count(), LONGEST_MESSAGE);
    }
}
