//! Changes the clusters of a fleet: plans all of them, asks once, and changes them wave by wave. A wave begins once the clusters of the
//! previous one are ready. If a cluster fails, the rollout ends with that wave.

use std::sync::Arc;
use std::time::{Duration, Instant};

use addons_clusters::fleet;
use addons_distribution::fleet::find_not_ready;
use addons_operation::Interruption;
use addons_plan::file::FleetClusterSource;
use anyhow::Result;
use common::api::names::InstallationName;
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};

use super::state::ClusterState;
use super::{AT_ONCE, Fleet};
use crate::change::run_interruptible;
use crate::exit::Exit;
use crate::failure;
use crate::output::{self, of_cluster};
use crate::prompt::confirm;
use crate::session::Session;
use crate::turn::{PlannedCommand, Turn};
use crate::words::fleet as words;

/// How often clusters that have to stay ready are checked.
const LOOK: Duration = Duration::from_secs(5);

/// How the clusters are changed.
pub struct FleetRollout<'a> {
    /// The waves.
    pub waves: fleet::RolloutSettings,
    /// Whether to skip the confirmation.
    pub yes: bool,
    /// How long a cluster may take.
    pub timeout: Duration,
    /// Returns the command that continues with some of the clusters.
    pub again: &'a dyn Fn(&[&FleetClusterSource]) -> String,
}

/// Why the rollout ended before the last wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopReason {
    /// A cluster failed, or was not ready.
    Failed,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// The clusters, and their running commands.
struct RolloutWork<'a, F> {
    fleet: &'a Fleet,
    sessions: &'a [Session],
    states: Vec<ClusterState>,
    begin: Vec<Option<oneshot::Sender<()>>>,
    planned: UnboundedReceiver<PlannedCommand>,
    running: FuturesUnordered<F>,
}

/// Runs a command that changes something on every cluster. `work` gets the position of the cluster in the fleet. Returns the highest exit
/// code.
///
/// Nothing was written: the user declined.
pub async fn run_rollout(
    fleet: &Fleet,
    rollout: &FleetRollout<'_>,
    work: impl AsyncFn(usize, &Session) -> Result<Exit>,
) -> Result<Exit> {
    let (sender, planned) = unbounded_channel();
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let (mut sessions, mut begin) = (Vec::new(), Vec::new());
    for (at, member) in fleet.members.iter().enumerate() {
        let (turn, begins) = Turn::new(at, rollout.yes, sender.clone(), Arc::clone(&permits));
        let session = fleet.session(member, Some(rollout.timeout));
        sessions.push(session.with_turn(turn));
        begin.push(Some(begins));
    }
    let running = fleet.members.iter().zip(&sessions).enumerate();
    let running = running.map(|(at, (member, session))| {
        let work = &work;
        async move {
            let command = async {
                if let Some(turn) = session.turn() {
                    turn.acquire_permit().await;
                }
                let done = work(at, session).await;
                done.unwrap_or_else(|error| failure::report_failure(&error))
            };
            let exit = of_cluster::run_labelled(member, command).await;
            if let Some(turn) = session.turn() {
                turn.release_permit();
            }
            (at, exit)
        }
    });
    let mut work = RolloutWork {
        fleet,
        sessions: &sessions,
        states: fleet
            .members
            .iter()
            .map(|_| ClusterState::Planning)
            .collect(),
        begin,
        planned,
        running: running.collect(),
    };
    work.plan().await;
    let waves = work.confirm_waves(rollout)?;
    let stop =
        run_interruptible(async |interruption| work.change_waves(&waves, interruption).await).await;
    Ok(work.report(stop, rollout))
}

impl<F: Future<Output = (usize, Exit)>> RolloutWork<'_, F> {
    /// Runs every command until its plan waits, or the command ended.
    async fn plan(&mut self) {
        let is_planning = |state: &ClusterState| matches!(state, ClusterState::Planning);
        while self.states.iter().any(is_planning) {
            tokio::select! {
                Some(planned) = self.planned.recv() => {
                    let at = planned.command;
                    self.set_state(at, ClusterState::Planned(planned));
                }
                Some((at, exit)) = self.running.next() => self.record_end(at, exit),
            }
        }
    }

    /// Asks for confirmation, and returns the waves: the positions in the fleet, each with its gate.
    fn confirm_waves(
        &self,
        rollout: &FleetRollout<'_>,
    ) -> Result<Vec<(Vec<usize>, Option<Duration>)>> {
        let planned = self
            .states
            .iter()
            .enumerate()
            .filter_map(|(at, state)| match state {
                ClusterState::Planned(planned) => Some((at, planned.is_due)),
                _ => None,
            });
        let planned: Vec<(usize, bool)> = planned.collect();
        let places: Vec<usize> = planned.iter().map(|(at, _)| *at).collect();
        let due = planned.iter().filter(|(_, is_due)| *is_due).count();
        if due == 0 {
            let all = (!places.is_empty()).then_some((places, None));
            return Ok(all.into_iter().collect());
        }
        let waves = rollout.waves.waves(places.len()).into_iter();
        let waves: Vec<_> = waves
            .map(|wave| {
                let clusters = places.get(wave.clusters).unwrap_or_default();
                (clusters.to_vec(), wave.gate)
            })
            .collect();
        let sizes: Vec<usize> = waves.iter().map(|(clusters, _)| clusters.len()).collect();
        output::note(&words::announce_rollout(due, self.states.len(), &sizes));
        if !rollout.yes {
            confirm(&words::confirm_rollout_question(due))?;
        }
        Ok(waves)
    }

    /// Changes one wave after the other. Returns why it stopped before the last one.
    async fn change_waves(
        &mut self,
        waves: &[(Vec<usize>, Option<Duration>)],
        interruption: &Interruption,
    ) -> Option<StopReason> {
        for (number, (clusters, gate)) in waves.iter().enumerate() {
            if waves.len() > 1 {
                let names = clusters.iter().map(|at| self.name(*at)).collect::<Vec<_>>();
                output::note(&words::announce_wave(number + 1, waves.len(), &names));
            }
            for at in clusters {
                self.begin(*at);
            }
            let mut looked_at = Vec::new();
            let (mut is_done, mut is_changed) = (true, false);
            for _ in clusters {
                let Some((at, exit)) = self.running.next().await else {
                    break;
                };
                if let Some(ClusterState::Begun(planned)) = self.states.get(at) {
                    looked_at.push((at, planned.installations.clone()));
                    is_changed |= planned.is_due;
                }
                is_done &= exit == Exit::Done;
                self.record_end(at, exit);
            }
            if interruption.is_interrupted() {
                return Some(StopReason::Interrupted);
            }
            if !is_done {
                return Some(StopReason::Failed);
            }
            looked_at.retain(|(_, installations)| !installations.is_empty());
            // Where nothing changed, and before clusters where nothing is due, there is nothing to wait for.
            let waits = is_changed && self.has_due(waves.get(number + 1..).unwrap_or_default());
            let gate = gate.map(|soak| if waits { soak } else { Duration::ZERO });
            if let Some(soak) = gate.filter(|_| !looked_at.is_empty()) {
                let is_ready = tokio::select! {
                    is_ready = self.stays_ready(&looked_at, soak) => is_ready,
                    () = interruption.wait_interrupted() => return Some(StopReason::Interrupted),
                };
                if !is_ready {
                    return Some(StopReason::Failed);
                }
            }
        }
        None
    }

    /// Whether anything is due in the clusters of waves that have not begun.
    fn has_due(&self, waves: &[(Vec<usize>, Option<Duration>)]) -> bool {
        let mut clusters = waves.iter().flat_map(|(clusters, _)| clusters);
        clusters.any(|at| {
            let state = self.states.get(*at);
            matches!(state, Some(ClusterState::Planned(planned)) if planned.is_due)
        })
    }

    /// Whether clusters stay ready for the duration.
    async fn stays_ready(
        &mut self,
        clusters: &[(usize, Vec<InstallationName>)],
        soak: Duration,
    ) -> bool {
        if !soak.is_zero() {
            output::note(&words::announce_soak(soak));
        }
        let begun = Instant::now();
        loop {
            let sessions = self.sessions;
            let looks = clusters.iter().filter_map(|(at, installations)| {
                let session = sessions.get(*at)?;
                Some(async move { (*at, find_not_ready(session.ctx(), installations).await) })
            });
            let mut is_ready = true;
            for (at, found) in join_all(looks).await {
                let why = match found {
                    Ok(None) => continue,
                    Ok(Some(why)) => why,
                    Err(error) => output::describe_chain(&error),
                };
                output::note(&words::describe_not_ready(self.name(at), &why));
                self.set_state(at, ClusterState::NotReady);
                is_ready = false;
            }
            let left = soak.saturating_sub(begun.elapsed());
            if !is_ready || left.is_zero() {
                return is_ready;
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }

    /// Shows the result of every cluster, and the command that continues. Returns the exit code.
    fn report(&self, stop: Option<StopReason>, rollout: &FleetRollout<'_>) -> Exit {
        let members = || self.fleet.members.iter().zip(&self.states);
        let rows = members().map(|(member, state)| (member.name(), state));
        output::note(words::render_results(rows.collect()).trim_end());
        let is_left = |state: &ClusterState| {
            state.exit_code() != Exit::Done || matches!(state, ClusterState::Planned(_))
        };
        let left = members().filter(|(_, state)| is_left(state));
        let left: Vec<&FleetClusterSource> = left.map(|(member, _)| member).collect();
        let is_begun = members().any(|(_, state)| {
            matches!(
                state,
                ClusterState::Ended {
                    exit: Exit::Done,
                    ..
                }
            )
        });
        if !left.is_empty() && (stop.is_some() || is_begun) {
            let not_begun =
                members().filter(|(_, state)| matches!(state, ClusterState::Planned(_)));
            let not_begun: Vec<&str> = not_begun.map(|(member, _)| member.name()).collect();
            output::note(&words::describe_remaining(
                &not_begun,
                &(rollout.again)(&left),
            ));
        }
        let interrupted = stop.filter(|stop| *stop == StopReason::Interrupted);
        let interrupted = interrupted.map(|_| Exit::Interrupted);
        let exits = self
            .states
            .iter()
            .map(ClusterState::exit_code)
            .chain(interrupted);
        exits.max().unwrap_or(Exit::Done)
    }

    fn name(&self, at: usize) -> &str {
        self.fleet
            .members
            .get(at)
            .map_or("", FleetClusterSource::name)
    }

    fn begin(&mut self, at: usize) {
        let begin = self.begin.get_mut(at).and_then(Option::take);
        if let Some(begin) = begin {
            // If the command ended in the meantime, its end is received later.
            let _ = begin.send(());
        }
        if let Some(state) = self.states.get_mut(at)
            && let ClusterState::Planned(_) = state
            && let ClusterState::Planned(planned) = std::mem::replace(state, ClusterState::Planning)
        {
            *state = ClusterState::Begun(planned);
        }
    }

    fn record_end(&mut self, at: usize, exit: Exit) {
        let state = match self.states.get(at) {
            Some(ClusterState::Planning) if exit == Exit::Done => ClusterState::Shown,
            Some(ClusterState::Planned(planned) | ClusterState::Begun(planned)) => {
                ClusterState::Ended {
                    exit,
                    was_due: planned.is_due,
                }
            }
            _ => ClusterState::Ended {
                exit,
                was_due: true,
            },
        };
        self.set_state(at, state);
    }

    fn set_state(&mut self, at: usize, state: ClusterState) {
        if let Some(known) = self.states.get_mut(at) {
            *known = state;
        }
    }
}
