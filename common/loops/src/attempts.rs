//! Marks attempts to plan an installation in its record before they begin, so that an installation that kills the process is not planned
//! again and again (semantics 20.6).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use addons_engine::attempt;
use addons_operation::error::AttemptError;
use addons_operation::{Context, Interruption, OperationError, name_of};
use common::api::installation::{AddonInstallation, PlanningAttempt};
use common::api::names::InstallationName;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::timeout;

use crate::installation::stale_error;

/// How long an installation may be planned while no other one is.
const ALONE: Duration = Duration::from_secs(30);
/// How many installations are planned alone after a process was killed, which is more than were planned at the same time. There is a
/// limit because anyone who may write the status of a record can write a mark, which must not keep all others waiting.
const MOST_ALONE: usize = 16;

/// The attempts of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Attempts(Arc<AttemptState>);

#[derive(Debug, Default)]
struct AttemptState {
    term: Mutex<AttemptTerm>,
    planning: RwLock<()>,
}

/// What follows from how the previous leader ended. A process that makes a single pass does not know this.
#[derive(Debug)]
struct AttemptTerm {
    /// The installations whose first attempt has ended; `None` if first attempts are not marked.
    ended: Option<BTreeSet<InstallationName>>,
    /// How many more installations are planned alone.
    alone: usize,
}

impl Default for AttemptTerm {
    fn default() -> Self {
        Self {
            ended: None,
            alone: MOST_ALONE,
        }
    }
}

/// A begun attempt. It ends when the installation is planned.
pub(crate) struct BegunAttempt<'a> {
    /// How long planning may take.
    bound: Option<Duration>,
    _turn: PlanningTurn<'a>,
}

/// Which other installations may be planned at the same time.
enum PlanningTurn<'a> {
    All { _guard: RwLockReadGuard<'a, ()> },
    None { _guard: RwLockWriteGuard<'a, ()> },
}

impl Attempts {
    /// Records that this process leads from now on. `is_suspicious`: whether the previous leader did not end by itself, in which case any
    /// installation may be the cause.
    pub(crate) fn record_lead(&self, is_suspicious: bool) {
        *self.term() = AttemptTerm {
            ended: is_suspicious.then(BTreeSet::new),
            alone: if is_suspicious { MOST_ALONE } else { 0 },
        };
    }

    /// Begins an attempt, and returns it with the marked record, if the record gets a mark. After an attempt that was killed, this one
    /// begins when no other installation is planned, so that others that were planned at that time are not blamed. `is_named`: whether a
    /// person asks for it; former attempts do not count then.
    ///
    /// # Errors
    /// [`AttemptError::Killed`]; an interruption; those of the request; a conflict where the record was written meanwhile.
    pub(crate) async fn begin(
        &self,
        ctx: &Context,
        record: &AddonInstallation,
        is_named: bool,
        interruption: &Interruption,
    ) -> Result<(BegunAttempt<'_>, Option<AddonInstallation>), OperationError> {
        let installation = name_of(record);
        let times = if is_named {
            0
        } else {
            attempt::count_killed(record)
        };
        if times >= PlanningAttempt::MOST {
            return Err(AttemptError::Killed {
                installation,
                times,
            }
            .into());
        }
        let is_alone = times > 0 && self.take_alone();
        let turn = async {
            let planning = &self.0.planning;
            Ok::<_, OperationError>(match is_alone {
                false => PlanningTurn::All {
                    _guard: planning.read().await,
                },
                true => PlanningTurn::None {
                    _guard: planning.write().await,
                },
            })
        };
        let begun = BegunAttempt {
            _turn: interruption.unless_interrupted(turn).await?,
            bound: is_alone.then_some(ALONE),
        };
        let is_left = record
            .status
            .as_ref()
            .is_some_and(|status| status.attempt.is_some());
        if !is_left && record.has_outcome() && !self.is_first(&installation) {
            return Ok((begun, None));
        }
        // Not interrupted: a mark that may have been written has to be removed.
        match attempt::begin(ctx.home().await?, record, times).await {
            Ok(marked) => Ok((begun, Some(marked))),
            Err(error) if error.is_conflict() => Err(stale_error(record).into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Records that an attempt has ended without ending the process.
    pub(crate) fn end(&self, installation: &InstallationName) {
        if let Some(ended) = &mut self.term().ended {
            ended.insert(installation.clone());
        }
    }

    fn is_first(&self, installation: &InstallationName) -> bool {
        let term = self.term();
        let ended = term.ended.as_ref();
        ended.is_some_and(|ended| !ended.contains(installation))
    }

    /// Returns whether one more installation is planned alone, and counts it.
    fn take_alone(&self) -> bool {
        let mut term = self.term();
        let left = term.alone.checked_sub(1);
        term.alone = left.unwrap_or_default();
        left.is_some()
    }

    fn term(&self) -> MutexGuard<'_, AttemptTerm> {
        self.0.term.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BegunAttempt<'_> {
    /// Plans within the time limit of the attempt, and ends it.
    ///
    /// # Errors
    /// [`AttemptError::Slow`]; those of the work.
    pub(crate) async fn plan<T>(
        self,
        record: &AddonInstallation,
        work: impl Future<Output = Result<T, OperationError>>,
    ) -> Result<T, OperationError> {
        let Some(bound) = self.bound else {
            return work.await;
        };
        match timeout(bound, work).await {
            Ok(planned) => planned,
            Err(_) => Err(AttemptError::Slow {
                installation: name_of(record),
                bound,
            }
            .into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> InstallationName {
        InstallationName {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn every_installation_is_suspicious_once_where_the_process_before_was_killed() {
        let attempts = Attempts::default();
        assert!(!attempts.is_first(&name("web")));
        attempts.end(&name("web"));
        attempts.record_lead(true);
        assert!(attempts.is_first(&name("web")));
        attempts.clone().end(&name("web"));
        assert!(!attempts.is_first(&name("web")) && attempts.is_first(&name("till")));
        attempts.record_lead(false);
        assert!(!attempts.is_first(&name("till")));
    }

    #[test]
    fn a_mark_by_itself_keeps_no_one_waiting() {
        let attempts = Attempts::default();
        for (is_suspicious, most) in [(false, 0), (true, MOST_ALONE)] {
            attempts.record_lead(is_suspicious);
            let alone = (0..2 * MOST_ALONE).filter(|_| attempts.take_alone());
            assert_eq!(alone.count(), most);
        }
    }
}
