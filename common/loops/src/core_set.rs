//! Creates, restores, upgrades and releases core installations as the rules and the list say (semantics 14.6).
//!
//! This module only writes records, which the loop then reconciles like all others. Each cluster is checked separately: a cluster that
//! does not respond delays only its own records. Releases, and the waves of a change, are decided for all clusters together.

mod act;
mod due;
mod releases;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use act::{execute, request_release};
use addons_clusters::core_set::UnknownCoreSet;
use addons_clusters::core_set::rollout::{CoreSetStanding, RolloutGate, RolloutProgress};
use addons_distribution::core_set::look::{ClusterLook, CoreSetInputs, CoreSetState};
use addons_distribution::core_set::{ClusterCore, CoreSetTexts, progress};
use addons_engine::events::{self, EventContent, EventSubject};
use addons_engine::{Cluster, EngineError, record};
use addons_operation::{Context, OperationError, health, name_of, windows};
use common::api::installation::AddonInstallation;
use common::api::names::{
    CORE_ADDON_ROLLOUT, CORE_ADDON_RULES, CUSTOM_CORE_ADDONS, InstallationName,
};
use due::{DueCoreChange, cluster_standing, list_due};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use releases::Releases;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::installation::{ReconcileOptions, Rights};

/// The pause after a failure.
const AGAIN: Duration = Duration::from_secs(5);
/// The pause if another client wrote the record meanwhile: the loop itself writes statuses at the same time.
const SOON: Duration = Duration::from_millis(300);
/// The pause per cluster before the next check whether a wave is ready, so that many clusters are checked less often. It grows with each
/// check, up to [`AGAIN`]; a change of a record ends it.
const LOOK: Duration = Duration::from_millis(100);

/// What was done with a core installation, or why nothing was.
#[derive(Debug)]
pub enum CoreStep {
    /// Its record was created.
    Created,
    /// Its record was changed to match the list.
    Restored,
    /// It is no longer listed: it was marked as released and is uninstalled.
    Released,
    /// Its cluster is being deleted: no finalizer of ours holds its record any more.
    Freed,
    /// It is listed, but the installation with its name is not a core add-on.
    Taken,
    /// It is no longer listed, and a person has to release it.
    Waits,
    /// Its change waits for other clusters.
    Later,
    /// The record could not be determined or written.
    Failed(OperationError),
}

/// The most clusters that are looked at, or changed, at the same time.
const WORKERS: usize = 16;

/// The result of following the core sets.
#[derive(Debug, Default)]
pub struct CoreSetReport {
    /// The installations with something to report.
    pub steps: Vec<(InstallationName, CoreStep)>,
    /// The clusters whose core set is unknown, by their namespaces.
    pub unknown: Vec<(String, UnknownCoreSet)>,
    /// The clusters that could not be looked at, by their namespaces.
    pub failed: Vec<(String, OperationError)>,
    /// Why the next wave of a change waits.
    pub gate: Option<RolloutGate>,
    /// The number of clusters.
    clusters: usize,
}

/// Follows the core sets whenever they may have changed, one run after the other, and reports what is new. Events report each problem once.
pub(crate) async fn run(
    mut contexts: watch::Receiver<Arc<Context>>,
    how: ReconcileOptions,
    outbox: UnboundedSender<Result<CoreSetReport, OperationError>>,
) {
    let (mut said, mut reported) = (BTreeSet::new(), BTreeSet::new());
    let mut looks = 0;
    while contexts.changed().await.is_ok() {
        loop {
            let ctx = contexts.borrow_and_update().clone();
            let again = match follow(&ctx, &how).await {
                Ok(followed) => {
                    looks = match followed.gate {
                        Some(RolloutGate::NotReady(_)) => looks + 1,
                        Some(RolloutGate::Soaking { .. } | RolloutGate::OutsideWindow { .. })
                        | None => 0,
                    };
                    let now = ctx.home().await.map(Cluster::now).unwrap_or_default();
                    let again = followed.retry_pause(looks, now);
                    publish_events(&ctx, &followed, &mut said).await;
                    // The receiver may have ended.
                    let _ = outbox.send(Ok(followed.without_known(&mut reported)));
                    again
                }
                // A caller that may not read them has no core sets to follow.
                Err(error) if error.is_forbidden() => None,
                Err(error) => {
                    let _ = outbox.send(Err(error));
                    Some(AGAIN)
                }
            };
            match again {
                // A change ends the pause.
                Some(pause) => tokio::select! {
                    () = sleep(pause) => {}
                    changed = contexts.changed() => if changed.is_err() { return },
                },
                None => break,
            }
        }
    }
}

impl CoreSetReport {
    fn add_failure(&mut self, ctx: &Context, error: OperationError) {
        let namespace = ctx.settings().records_namespace().to_owned();
        self.failed.push((namespace, error));
    }

    /// Returns the report without what `known` says was reported before and is still so. Writes are always reported.
    fn without_known(mut self, known: &mut BTreeSet<String>) -> Self {
        let before = std::mem::take(known);
        let mut is_new = |text: String| {
            let is_new = !before.contains(&text);
            known.insert(text);
            is_new
        };
        self.steps.retain(|(name, step)| match step {
            CoreStep::Created | CoreStep::Restored | CoreStep::Released | CoreStep::Freed => true,
            CoreStep::Taken | CoreStep::Waits | CoreStep::Later => {
                is_new(format!("{name} {step:?}"))
            }
            CoreStep::Failed(error) => is_new(format!("{name} {error}")),
        });
        self.unknown
            .retain(|(namespace, unknown)| is_new(format!("{namespace} {unknown}")));
        self.failed
            .retain(|(namespace, error)| is_new(format!("{namespace} {error}")));
        self
    }

    /// Returns the pause before another attempt, if one is useful. `looks`: how many checks whether a wave is ready came before.
    fn retry_pause(&self, looks: u32, now: Timestamp) -> Option<Duration> {
        let was_faster = |(_, step): &(InstallationName, CoreStep)| match step {
            CoreStep::Failed(error) => match error.root() {
                OperationError::Engine(error) => error.is_conflict(),
                _ => false,
            },
            _ => false,
        };
        let faster = self.steps.iter().any(was_faster).then_some(SOON);
        let failed = (!self.failed.is_empty()).then_some(AGAIN);
        let many = u32::try_from(self.clusters).unwrap_or(u32::MAX);
        let gate = self.gate.as_ref().and_then(|gate| match gate {
            RolloutGate::Soaking { left, .. } => Some((*left).max(SOON)),
            RolloutGate::NotReady(_) => {
                let shortest = LOOK.saturating_mul(many);
                let pause = shortest.saturating_mul(2_u32.saturating_pow(looks.saturating_sub(1)));
                Some(pause.min(AGAIN.max(shortest)))
            }
            RolloutGate::OutsideWindow { opens, .. } => {
                let left = (*opens)?.duration_since(now);
                Some(Duration::try_from(left).unwrap_or_default().max(SOON))
            }
        });
        [faster, failed, gate].into_iter().flatten().min()
    }
}

/// Makes the core records of this cluster, and of every cluster that a labelled namespace stands for, match their core set.
///
/// # Errors
/// The ConfigMaps or the namespaces cannot be read.
pub async fn follow(
    ctx: &Context,
    how: &ReconcileOptions,
) -> Result<CoreSetReport, OperationError> {
    loop {
        let texts = CoreSetTexts::read(ctx).await?;
        // Most clusters have no core sets, and for these one look at the records suffices.
        if texts.is_missing() && !has_core_records(ctx).await? {
            return Ok(CoreSetReport::default());
        }
        if let Some(followed) = follow_texts(ctx, texts, how).await? {
            return Ok(followed);
        }
    }
}

/// Does the same for this state of the rules and the list. Returns `None` if they changed before any record was written: a look at many
/// clusters may take minutes, and an add-on that the old list dropped may be listed again.
async fn follow_texts(
    ctx: &Context,
    texts: CoreSetTexts,
    how: &ReconcileOptions,
) -> Result<Option<CoreSetReport>, OperationError> {
    let mut followed = CoreSetReport::default();
    let world = CoreSetInputs::read(ctx, texts).await?;
    let contexts = world.contexts(ctx);
    let account = how.account.as_deref();
    let looking = contexts
        .iter()
        .map(async |ctx| (ctx, look_at(&world, ctx, account).await));
    let mut looking = stream::iter(looking).buffered(WORKERS);
    let (mut looks, mut lost) = (Vec::new(), Vec::new());
    while let Some((ctx, looked)) = looking.next().await {
        match looked {
            Ok(look) => looks.push((ctx, look)),
            Err((error, records)) => {
                lost.push(records);
                followed.add_failure(ctx, error);
            }
        }
    }
    let of_lost = lost.iter().map(Option::as_deref);
    let releases = Releases::from_looks(looks.iter().map(|(_, look)| look), of_lost);
    let preparing = looks
        .iter()
        .map(async |(ctx, look)| (*ctx, look, list_due(ctx, look, &releases).await));
    let prepared: Vec<_> = stream::iter(preparing).buffered(WORKERS).collect().await;
    followed.clusters = prepared.len() + followed.failed.len();
    let standings = list_standings(&followed, &prepared).await;
    let progress = match plan_waves(ctx, &world, standings, &prepared, how).await {
        Ok((progress, gate)) => {
            followed.gate = gate;
            progress
        }
        // It is not known what may begin, so nothing does.
        Err(error) => {
            let name = InstallationName {
                namespace: ctx.settings().system_namespace.clone(),
                name: CORE_ADDON_ROLLOUT.to_owned(),
            };
            followed.steps.push((name, CoreStep::Failed(error)));
            return Ok(Some(followed));
        }
    };
    let all_due = || {
        let known = prepared.iter().filter_map(|(.., due)| due.as_ref().ok());
        known.flatten()
    };
    let is_written = all_due().any(|(_, due)| due.is_written());
    if is_written && CoreSetTexts::read(ctx).await? != world.texts {
        return Ok(None);
    }
    let waiting = releases.also_waiting(all_due());
    let acting = prepared.into_iter().map(async |(ctx, look, due)| {
        let acted = match due {
            Ok(due) => {
                let is_held = progress.is_waiting(ctx.settings().records_namespace());
                execute(ctx, look, due, how, is_held).await
            }
            Err(error) => Err(error),
        };
        (ctx, acted)
    });
    let mut acting = stream::iter(acting).buffered(WORKERS);
    while let Some((ctx, acted)) = acting.next().await {
        match acted {
            Ok(acted) => {
                followed.steps.extend(acted.steps);
                followed.unknown.extend(acted.unknown);
            }
            Err(error) => followed.add_failure(ctx, error),
        }
    }
    for record in waiting {
        let step = request_release(ctx.home().await?, record, how).await;
        let step = step.unwrap_or_else(CoreStep::Failed);
        followed.steps.push((name_of(record), step));
    }
    Ok(Some(followed))
}

/// Looks at a cluster. If that fails, returns the error and the records, which are in this cluster and thus readable. Both are read in
/// the same future, because one that is not polled may hold a permit for requests.
async fn look_at(
    world: &CoreSetInputs,
    ctx: &Context,
    account: Option<&str>,
) -> Result<ClusterLook, (OperationError, Option<Vec<AddonInstallation>>)> {
    match world.look_at(ctx, account).await {
        Ok(look) => Ok(look),
        Err(error) => Err((error, world.records(ctx).await.ok())),
    }
}

/// A cluster that was looked at, and what is due there.
type PreparedCluster<'a> = (
    &'a Context,
    &'a ClusterLook,
    Result<Vec<(InstallationName, DueCoreChange<'a>)>, OperationError>,
);

/// Returns the state of each cluster with respect to its core set.
async fn list_standings(
    followed: &CoreSetReport,
    prepared: &[PreparedCluster<'_>],
) -> BTreeMap<String, CoreSetStanding> {
    let failed = followed.failed.iter();
    let mut standings: BTreeMap<_, _> = failed
        .map(|(namespace, _)| (namespace.clone(), CoreSetStanding::Unknown))
        .collect();
    for (ctx, look, due) in prepared {
        let namespace = ctx.settings().records_namespace().to_owned();
        let due = due.as_deref().ok();
        let mut standing = cluster_standing(look, due);
        if standing == Some(CoreSetStanding::Due) && due.is_some_and(changes_installed) {
            // A policy that cannot be read stops the installations themselves.
            let closed = windows::find_closed_for(ctx, &namespace).await;
            if let Ok(Some(closed)) = closed {
                standing = Some(CoreSetStanding::OutsideWindow(closed.next));
            }
        }
        standings.extend(standing.map(|standing| (namespace, standing)));
    }
    standings
}

/// Returns whether anything is due that maintenance windows hold back: core add-ons that a cluster lacks are installed at any time.
fn changes_installed(due: &[(InstallationName, DueCoreChange<'_>)]) -> bool {
    let mut changes = due.iter().filter(|(_, due)| due.is_change());
    changes.any(|(_, due)| !matches!(due, DueCoreChange::Create(_)))
}

/// Returns whether any record is a core add-on. Those that a person installed count as well: they are released with their cluster, and
/// otherwise stay unchanged.
async fn has_core_records(ctx: &Context) -> Result<bool, OperationError> {
    let namespace = ctx.settings().namespace.as_deref();
    match record::list(ctx.home().await?, namespace).await {
        Err(EngineError::NotInitialised) => Ok(false),
        records => Ok(records?.iter().any(|record| record.spec.core_addon)),
    }
}

/// Returns how far the change of the rules and the list may reach now, and why its next wave waits. The progress is stored before
/// anything else is written. If nothing has to change, or there is only one cluster, nothing is read; live objects are read only if a
/// wave would begin.
async fn plan_waves(
    ctx: &Context,
    world: &CoreSetInputs,
    mut standings: BTreeMap<String, CoreSetStanding>,
    prepared: &[PreparedCluster<'_>],
    how: &ReconcileOptions,
) -> Result<(RolloutProgress, Option<RolloutGate>), OperationError> {
    let is_due = standings.values().any(CoreSetStanding::is_due);
    let rollout = world.texts.rollout().ok().filter(|_| is_due);
    let Some(rollout) = rollout.filter(|_| standings.len() > 1) else {
        return Ok((RolloutProgress::default(), None));
    };
    let home = ctx.home().await?;
    let system = &ctx.settings().system_namespace;
    let stored = progress::read(home, system).await?;
    let before = &stored.progress;
    let looks: Vec<&ClusterLook> = prepared.iter().map(|(_, look, _)| *look).collect();
    // The catalogues were already read for the first cluster.
    let of = prepared.first().map_or(ctx, |(first, ..)| *first);
    let of = world.identity(of, &looks).await?;
    let (mut next, mut gate) = before.advance(&of, &standings, &rollout, home.now());
    if next.begins_next_wave(before) {
        let unready = find_unready(prepared, before.begun.keys(), how).await;
        if !unready.is_empty() {
            let mut doubted = before.clone();
            for namespace in unready {
                doubted.restart_soak(&namespace, home.now());
                standings.insert(namespace, CoreSetStanding::Followed(None));
            }
            (next, gate) = doubted.advance(&of, &standings, &rollout, home.now());
        }
    }
    if next.needs_storing(before) {
        progress::write(home, system, stored, &next).await?;
    }
    Ok((next, gate))
}

/// Returns the clusters among `begun` that cannot be looked at, or whose listed core add-ons are not all ready by their live objects.
async fn find_unready<'a>(
    prepared: &[PreparedCluster<'_>],
    begun: impl Iterator<Item = &'a String>,
    how: &ReconcileOptions,
) -> Vec<String> {
    let looking = begun.map(async |namespace| {
        let mut all = prepared.iter();
        let found = all.find(|(ctx, ..)| ctx.settings().records_namespace() == namespace);
        let is_ready = match found {
            Some((ctx, look, _)) => is_ready(ctx, look, how).await.unwrap_or(false),
            None => false,
        };
        (!is_ready).then(|| namespace.clone())
    });
    let found: Vec<_> = stream::iter(looking).buffered(WORKERS).collect().await;
    found.into_iter().flatten().collect()
}

/// Returns whether the objects of all listed core add-ons of a cluster are ready. Suspended installations and those that are not core are
/// not waited for.
async fn is_ready(
    ctx: &Context,
    look: &ClusterLook,
    how: &ReconcileOptions,
) -> Result<bool, OperationError> {
    let CoreSetState::Found(ClusterCore { set: Ok(set), .. }) = &look.state else {
        return Ok(true);
    };
    for record in &look.records {
        let name = name_of(record);
        let is_waited = record.spec.core_addon && !record.spec.suspend;
        if !is_waited || !set.addons.contains_key(&name.name) {
            continue;
        }
        let acting;
        let ctx = match Rights::for_record(ctx, record, how).await? {
            Rights::ServiceAccount(account) => {
                acting = ctx.acting_as(&name.namespace, &account).await?;
                &acting
            }
            Rights::Own | Rights::Missing => ctx,
        };
        let health = health::object_health(ctx.cluster().await?, record).await?;
        if !health.is_well() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// An Event about a core set.
struct CoreSetEvent {
    config_map: &'static str,
    reason: &'static str,
    is_warning: bool,
    text: String,
}

/// Returns the Events about the result.
fn list_events(followed: &CoreSetReport) -> Vec<CoreSetEvent> {
    let unknown = followed.unknown.iter().map(|(at, unknown)| CoreSetEvent {
        config_map: unknown.config_map(),
        reason: "CoreSetUnknown",
        is_warning: true,
        text: format!("{at}: {unknown}"),
    });
    let failed = followed.steps.iter().filter_map(|(name, step)| {
        let problem = match step {
            CoreStep::Failed(error) => error.root().to_string(),
            CoreStep::Taken => {
                "it is listed as a core add-on, but the installation with this name is not one"
                    .to_owned()
            }
            CoreStep::Released => {
                return Some(CoreSetEvent {
                    config_map: CUSTOM_CORE_ADDONS,
                    reason: "CoreAddonReleased",
                    is_warning: false,
                    text: format!("{name}: it is no longer listed: released and uninstalled"),
                });
            }
            _ => return None,
        };
        Some(CoreSetEvent {
            config_map: CUSTOM_CORE_ADDONS,
            reason: "CoreAddonFailed",
            is_warning: true,
            text: format!("{name}: {problem}"),
        })
    });
    let gate = followed.gate.iter().map(|gate| {
        let text = match gate {
            RolloutGate::NotReady(namespace) => {
                format!("other clusters wait until all core add-ons of {namespace} are ready")
            }
            RolloutGate::Soaking { namespace, .. } => {
                format!("other clusters wait while the core add-ons of {namespace} stay ready")
            }
            RolloutGate::OutsideWindow { namespace, opens } => match opens {
                Some(opens) => {
                    format!("{namespace} waits for its maintenance windows until {opens:.0}")
                }
                None => format!("{namespace} waits for its maintenance windows, which never open"),
            },
        };
        CoreSetEvent {
            config_map: CORE_ADDON_RULES,
            reason: "CoreChangeWaits",
            is_warning: false,
            text,
        }
    });
    unknown.chain(failed).chain(gate).collect()
}

/// Publishes Events about problems and waiting changes that were not reported before.
async fn publish_events(ctx: &Context, followed: &CoreSetReport, said: &mut BTreeSet<String>) {
    let Ok(home) = ctx.home().await else {
        return;
    };
    let system = &ctx.settings().system_namespace;
    let mut new = BTreeSet::new();
    for note in list_events(followed) {
        if !said.contains(&note.text) {
            let regarding = EventSubject {
                api_version: "v1",
                kind: "ConfigMap",
                namespace: system,
                name: note.config_map,
                uid: None,
            };
            let happened = EventContent {
                is_warning: note.is_warning,
                reason: note.reason.to_owned(),
                note: note.text.clone(),
            };
            // Errors are ignored, because `core list` shows the same.
            let reporter = &ctx.settings().holder;
            let _ = events::publish_about(home, &regarding, &happened, reporter).await;
        }
        new.insert(note.text);
    }
    *said = new;
}
