//! Records the state of an installation that a reconciler did not change: conditions, in one write of the status, and only if something is
//! new.

use jiff::Timestamp;

use common::api::conditions;
use common::api::installation::core_guard::is_released;
use common::api::installation::{AddonInstallation, AddonInstallationStatus, InstallationPhase};

use super::cluster::Cluster;
use super::error::EngineError;
use super::events::EventContent;
use super::{attempt, lock, record, status};

/// Reason for lowering conditions that no longer hold.
const AS_RECORDED: &str = "AsRecorded";
/// Reason why an installation is managed elsewhere.
const NOT_READ_HERE: &str = "SourceNotReadHere";
/// Maximum number of tries while others write the record.
const TRIES: usize = 3;
/// The reason of `Drifted`: the record asks for no repair.
const NOT_REPAIRED: &str = "NotRepaired";

/// The state of an installation that was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconcileState {
    /// It is as its record says.
    AsRecorded,
    /// A due change is not possible.
    Stalled {
        /// One CamelCase word.
        reason: &'static str,
        /// What is wrong, and how to resolve it.
        message: String,
    },
    /// A protection refuses a due change until a person confirms it.
    NeedsConfirmation {
        /// One CamelCase word.
        reason: &'static str,
        /// What is refused, and the command that confirms it.
        message: String,
    },
    /// It is left to a client that can read its source.
    ManagedElsewhere {
        /// What cannot be read, and the command for a client that can.
        message: String,
    },
    /// What is due begins when a maintenance window opens.
    Waiting {
        /// When that is, and the command that does not wait.
        message: String,
    },
    /// It is as its record says, but objects were edited or deleted, and are not restored.
    Drifted {
        /// How many, and the command that restores them.
        message: String,
    },
    /// It is as its record says, but another manager keeps reverting a field: it is left alone for a while.
    Contested {
        /// The field and both managers.
        message: String,
    },
}

impl ReconcileState {
    /// Returns the content of an Event; `None` if nothing is wrong.
    #[must_use]
    pub fn into_event(self) -> Option<EventContent> {
        match self {
            Self::AsRecorded | Self::ManagedElsewhere { .. } => None,
            Self::Stalled { reason, message } | Self::NeedsConfirmation { reason, message } => {
                Some(EventContent {
                    is_warning: true,
                    reason: reason.to_owned(),
                    note: message,
                })
            }
            Self::Contested { message } => Some(EventContent {
                is_warning: true,
                reason: conditions::CONTESTED.to_owned(),
                note: message,
            }),
            Self::Waiting { message } => Some(EventContent {
                is_warning: false,
                reason: conditions::WAITING.to_owned(),
                note: message,
            }),
            Self::Drifted { message } => Some(EventContent {
                is_warning: true,
                reason: conditions::DRIFTED.to_owned(),
                note: message,
            }),
        }
    }
}

/// Writes the state into a record that was read before. Returns the record as it was written; `None` if the record already says so, an
/// operation is in progress or the record was deleted.
///
/// # Errors
/// Those of the requests.
pub async fn record_state(
    cluster: &Cluster,
    known: &AddonInstallation,
    standing: &ReconcileState,
) -> Result<Option<AddonInstallation>, EngineError> {
    let mut stored = known.clone();
    for attempt in 1.. {
        let generation = stored.metadata.generation;
        let status = stored.status.as_ref();
        let now = cluster.home().now();
        let is_released = is_released(&stored);
        let Some(status) = updated_status(status, is_released, standing, generation, now) else {
            return Ok(None);
        };
        stored.status = Some(status);
        match record::put_status(cluster, &mut stored).await {
            Ok(()) => return Ok(Some(stored)),
            Err(error) if error.is_conflict() && attempt < TRIES => {}
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        }
        stored = match lock::reread(cluster, known).await {
            Ok(found) => found,
            Err(EngineError::Stale { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        // A changed spec needs a new check.
        if stored.metadata.generation != known.metadata.generation {
            return Ok(None);
        }
    }
    Ok(None)
}

/// Returns the status with the conditions of a standing; `None` if nothing would change.
fn updated_status(
    stored: Option<&AddonInstallationStatus>,
    is_released: bool,
    standing: &ReconcileState,
    generation: Option<i64>,
    now: Timestamp,
) -> Option<AddonInstallationStatus> {
    let mut status = stored.cloned().unwrap_or_default();
    // The attempt has ended, and this is its result.
    attempt::remove_mark(&mut status);
    // The holder of the lock reports the state itself. An interrupted operation is handled like everything else.
    let is_locked = lock::availability(stored, now, false) != lock::Availability::Free;
    if is_locked {
        return None;
    }
    let all = &mut status.conditions;
    // Whether a release waits for confirmation does not depend on the other conditions, and must not be lost because of them.
    let is_waiting = !is_released && conditions::waits_for_release(all);
    let confirmed = (!is_waiting).then_some(conditions::NEEDS_CONFIRMATION);
    let mut raise = |r#type, reason, message: &str| {
        let mut raised = status::new_condition(r#type, "True", reason, message.to_owned(), now);
        raised.observed_generation = generation;
        conditions::set(all, raised);
    };
    match standing {
        ReconcileState::Stalled { reason, message } => {
            raise(conditions::STALLED, reason, message);
            let others = [conditions::MANAGED_ELSEWHERE, conditions::WAITING];
            for r#type in confirmed.into_iter().chain(others) {
                status::lower_condition(all, r#type, reason, generation, now);
            }
        }
        ReconcileState::NeedsConfirmation { reason, message }
            if *reason == conditions::CORE_RELEASE =>
        {
            raise(conditions::NEEDS_CONFIRMATION, reason, message);
            // Only a caller that knows the core set uses this reason.
            status::lower_condition(all, conditions::CORE_SET_UNKNOWN, reason, generation, now);
        }
        // There is one condition of each type: until the release is decided, no other confirmation is requested.
        ReconcileState::NeedsConfirmation { .. } if is_waiting => {}
        ReconcileState::NeedsConfirmation { reason, message } => {
            raise(conditions::NEEDS_CONFIRMATION, reason, message);
            for r#type in [conditions::MANAGED_ELSEWHERE, conditions::WAITING] {
                status::lower_condition(all, r#type, reason, generation, now);
            }
            // A failed operation stays failed.
            if status.phase != Some(InstallationPhase::Failed) {
                status::lower_condition(all, conditions::STALLED, reason, generation, now);
            }
        }
        ReconcileState::ManagedElsewhere { message } => {
            let reason = NOT_READ_HERE;
            raise(conditions::MANAGED_ELSEWHERE, reason, message);
            if let Some(r#type) = confirmed {
                status::lower_condition(all, r#type, reason, generation, now);
            }
            // A failed operation stays failed.
            if status.phase != Some(InstallationPhase::Failed) {
                status::lower_condition(all, conditions::STALLED, reason, generation, now);
            }
        }
        ReconcileState::Contested { message } => {
            raise(conditions::CONTESTED, "FieldTakenBack", message);
        }
        ReconcileState::Waiting { message } => {
            let reason = conditions::OUTSIDE_WINDOW;
            raise(conditions::WAITING, reason, message);
            let others = [conditions::MANAGED_ELSEWHERE];
            for r#type in confirmed.into_iter().chain(others) {
                status::lower_condition(all, r#type, reason, generation, now);
            }
            // A failed operation stays failed.
            if status.phase != Some(InstallationPhase::Failed) {
                status::lower_condition(all, conditions::STALLED, reason, generation, now);
            }
        }
        ReconcileState::AsRecorded | ReconcileState::Drifted { .. } => {
            match standing {
                ReconcileState::Drifted { message } => {
                    raise(conditions::DRIFTED, NOT_REPAIRED, message);
                }
                _ => {
                    let drifted = conditions::DRIFTED;
                    status::lower_condition(all, drifted, AS_RECORDED, generation, now);
                }
            }
            let lowered = confirmed.into_iter().chain([
                conditions::STALLED,
                conditions::CONTESTED,
                conditions::MANAGED_ELSEWHERE,
                conditions::WAITING,
            ]);
            for r#type in lowered {
                status::lower_condition(all, r#type, AS_RECORDED, generation, now);
            }
            // The record of a moved installation does not say which spec was installed. If it does, only an operation changes it.
            if matches!(
                status.phase,
                Some(InstallationPhase::Ready | InstallationPhase::Installed)
            ) {
                status.observed_generation = status.observed_generation.or(generation);
            }
        }
    }
    let is_as_recorded = matches!(
        standing,
        ReconcileState::AsRecorded | ReconcileState::Drifted { .. }
    );
    if status.phase.is_none() && !is_as_recorded {
        status.phase = Some(InstallationPhase::Pending);
    }
    (stored != Some(&status)).then_some(status)
}

#[cfg(test)]
mod tests {
    use common::api::installation::OperationRecord;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn stalled(message: &str) -> ReconcileState {
        ReconcileState::Stalled {
            reason: "SourceUnavailable",
            message: message.to_owned(),
        }
    }

    fn confirmation() -> ReconcileState {
        ReconcileState::NeedsConfirmation {
            reason: "PruneLimit",
            message: "it would prune 9 of 12".to_owned(),
        }
    }

    fn waiting() -> ReconcileState {
        ReconcileState::Waiting {
            message: "until 2026-12-05T01:00:00Z".to_owned(),
        }
    }

    /// `Stalled=True NeedsConfirmation=False`
    fn words(status: &AddonInstallationStatus) -> String {
        let conditions = status.conditions.iter();
        let words: Vec<String> = conditions
            .map(|condition| format!("{}={}", condition.r#type, condition.status))
            .collect();
        words.join(" ")
    }

    #[test]
    fn one_condition_is_true_at_a_time() {
        let mut status = AddonInstallationStatus::default();
        for (standing, expected) in [
            (stalled("down"), "Stalled=True"),
            (confirmation(), "Stalled=False NeedsConfirmation=True"),
            (stalled("down"), "Stalled=True NeedsConfirmation=False"),
            (
                ReconcileState::ManagedElsewhere {
                    message: "its index is a file".to_owned(),
                },
                "Stalled=False NeedsConfirmation=False ManagedElsewhere=True",
            ),
            (
                confirmation(),
                "Stalled=False NeedsConfirmation=True ManagedElsewhere=False",
            ),
            (
                waiting(),
                "Stalled=False NeedsConfirmation=False ManagedElsewhere=False Waiting=True",
            ),
            (
                confirmation(),
                "Stalled=False NeedsConfirmation=True ManagedElsewhere=False Waiting=False",
            ),
            (
                waiting(),
                "Stalled=False NeedsConfirmation=False ManagedElsewhere=False Waiting=True",
            ),
            (
                ReconcileState::AsRecorded,
                "Stalled=False NeedsConfirmation=False ManagedElsewhere=False Waiting=False",
            ),
        ] {
            status = updated_status(Some(&status), false, &standing, Some(2), at(10)).unwrap();
            assert_eq!(words(&status), expected);
            let generations = status.conditions.iter();
            assert!(
                generations
                    .into_iter()
                    .all(|one| one.observed_generation == Some(2))
            );
            let again = updated_status(Some(&status), false, &standing, Some(2), at(20));
            assert_eq!(again, None, "nothing is new: {expected}");
        }
        assert_eq!(status.phase, Some(InstallationPhase::Pending));
    }

    #[test]
    fn drift_is_told_until_it_is_gone() {
        let drifted = ReconcileState::Drifted {
            message: "1 edited".to_owned(),
        };
        let first = updated_status(None, false, &stalled("down"), Some(1), at(10)).unwrap();
        let status = updated_status(Some(&first), false, &drifted, Some(1), at(20)).unwrap();
        assert_eq!(words(&status), "Stalled=False Drifted=True");
        // What is due or fails says nothing about it.
        let later = updated_status(Some(&status), false, &waiting(), Some(1), at(30)).unwrap();
        assert_eq!(words(&later), "Stalled=False Drifted=True Waiting=True");
        let as_recorded = ReconcileState::AsRecorded;
        let last = updated_status(Some(&later), false, &as_recorded, Some(1), at(40)).unwrap();
        assert_eq!(words(&last), "Stalled=False Drifted=False Waiting=False");
    }

    #[test]
    fn a_release_goes_on_waiting_whatever_else_is_said() {
        let release = ReconcileState::NeedsConfirmation {
            reason: conditions::CORE_RELEASE,
            message: "core release dns".to_owned(),
        };
        let elsewhere = ReconcileState::ManagedElsewhere {
            message: "its index is a file".to_owned(),
        };
        let mut status = updated_status(None, false, &release, Some(1), at(10)).unwrap();
        for standing in [
            stalled("down"),
            confirmation(),
            elsewhere,
            release.clone(),
            ReconcileState::AsRecorded,
        ] {
            if let Some(next) = updated_status(Some(&status), false, &standing, Some(1), at(20)) {
                status = next;
            }
            assert!(
                conditions::waits_for_release(&status.conditions),
                "{standing:?}"
            );
        }
        let stalled =
            updated_status(Some(&status), false, &stalled("down"), Some(1), at(30)).unwrap();
        let again = updated_status(Some(&stalled), false, &release, Some(1), at(40));
        assert_eq!(again, None, "it does not undo what the other one says");
        // A person has decided it, and whatever else keeps its objects from being deleted is asked now.
        let asked = updated_status(Some(&stalled), true, &confirmation(), Some(1), at(50)).unwrap();
        let raised = conditions::find_raised(&asked.conditions, conditions::NEEDS_CONFIRMATION);
        assert_eq!(raised.unwrap().reason, "PruneLimit");
    }

    #[test]
    fn a_spec_is_observed_without_an_operation_where_none_was_before() {
        let mut status = AddonInstallationStatus {
            phase: Some(InstallationPhase::Ready),
            ..AddonInstallationStatus::default()
        };
        let as_recorded = |status: &_, generation| {
            updated_status(
                Some(status),
                false,
                &ReconcileState::AsRecorded,
                Some(generation),
                at(0),
            )
        };
        let observed = as_recorded(&status, 2).unwrap();
        assert_eq!(
            (words(&observed).as_str(), observed.observed_generation),
            ("", Some(2))
        );
        // An edit that comes with a downgrade, which nobody asked for, is still to be carried out.
        assert_eq!(as_recorded(&observed, 3), None);
        status.phase = Some(InstallationPhase::Failed);
        assert_eq!(as_recorded(&status, 2), None);
    }

    #[test]
    fn another_message_keeps_the_time_of_the_transition() {
        let first = updated_status(None, false, &stalled("down"), Some(1), at(10)).unwrap();
        let second =
            updated_status(Some(&first), false, &stalled("other"), Some(1), at(20)).unwrap();
        let condition = conditions::find_raised(&second.conditions, conditions::STALLED).unwrap();
        assert_eq!(condition.message, "other");
        assert_eq!(condition.last_transition_time, Time(at(10)));
    }

    #[test]
    fn the_holder_of_the_lock_says_how_it_stands() {
        let mut status = AddonInstallationStatus {
            operation: Some(OperationRecord {
                id: "0".to_owned(),
                verb: "upgrade".into(),
                holder: "ann".to_owned(),
                started_at: Time(at(0)),
                renewed_at: Time(at(0)),
                lease_seconds: 15,
                target: None,
            }),
            ..AddonInstallationStatus::default()
        };
        assert_eq!(
            updated_status(Some(&status), false, &stalled("down"), None, at(10)),
            None
        );
        assert!(updated_status(Some(&status), false, &stalled("down"), None, at(20)).is_some());
        status.operation = None;
        assert!(updated_status(Some(&status), false, &stalled("down"), None, at(10)).is_some());
    }
}
