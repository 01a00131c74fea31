//! Reconciles one installation: plans and executes what its record asks for, as `upgrade` does, and records what cannot be done as a
//! condition.

use std::sync::Arc;
use std::time::{Duration, Instant};

use addons_engine::compatible::{self, Fitness};
use addons_engine::error::StaleReason;
use addons_engine::events::{self, EventContent};
use addons_engine::standing::{ReconcileState, record_state};
use addons_engine::{EngineError, Report, attempt as attempt_mark, record};
use addons_operation::error::{AdoptError, OutsideWindow};
use addons_operation::health::{self, DriftCounts};
use addons_operation::plan::{UninstallRequest, plan_removal};
use addons_operation::resolve::recorded::Compatibility;
use addons_operation::unattended::elsewhere::is_managed_elsewhere;
use addons_operation::unattended::{rollout, unfinished};
use addons_operation::windows;
use addons_operation::{
    Choices, Context, InstallationOutcome as Executed, Interruption, OperationError, Plan,
    Resolution, Resolver, RunOptions, execute, name_of,
};
use common::api::conditions::{DRIFTED, LONGEST_MESSAGE, find_raised, shorten_message};
use common::api::installation::core_guard::{is_guarded, is_released};
use common::api::installation::{AddonInstallation, DeletionPolicy, ReconcilePolicy, format};
use common::api::names::{FINALIZER_UNINSTALL, InstallationName};
use common::catalogue::content::ContentError;
use common::text::shorten;

use crate::attempts::{Attempts, BegunAttempt};
use crate::cause::ReconcileCause;

/// What a condition or an Event of an installation says. The caller turns it into a line of text, because a way out is a command of the
/// caller's program.
#[derive(Clone, Copy, Debug)]
pub enum ReconcileMessage<'a> {
    /// The installation failed, and how to fix that.
    Failed(&'a InstallationName, &'a OperationError),
    /// The index of the record cannot be read here, and how a person reconciles it elsewhere.
    Elsewhere(&'a AddonInstallation, &'a OperationError),
    /// The plan was executed, with this result.
    Executed(&'a Plan, &'a Report),
    /// Why an installation was reconciled; follows one of the others.
    Cause(&'a ReconcileCause),
    /// The change has to wait for a maintenance window, and how a person begins it now.
    OutsideWindow(&'a OutsideWindow),
    /// Objects of the installation differ and are not restored, and how a person restores them.
    Drifted(&'a AddonInstallation, DriftCounts),
    /// The core installation waits until a person releases it.
    WaitsForRelease(&'a InstallationName),
}

/// How installations are reconciled.
#[derive(Clone, Debug)]
pub struct ReconcileOptions {
    /// How each operation is executed. The time limit is per installation.
    pub run: RunOptions,
    /// Whether edits are repaired even if nothing is due.
    pub repair: bool,
    /// Whether live objects are not read if nothing is due.
    pub only_due: bool,
    /// Whether changes begin outside maintenance windows.
    pub outside_window: bool,
    /// Describes a message as one line of text, for conditions and Events.
    pub describe: fn(ReconcileMessage<'_>) -> String,
    /// Whether Events are published.
    pub events: bool,
    /// Whether records get our finalizer, because this process will finish their deletion (semantics 15).
    pub adds_finalizer: bool,
    /// The ServiceAccount for installations of the system namespace that name none; `None` = our own rights (semantics 16.6).
    pub account: Option<String>,
    /// The attempts of this process.
    pub attempts: Attempts,
    /// Why the installation is reconciled.
    pub cause: ReconcileCause,
}

/// The result of reconciling one installation.
#[derive(Debug)]
pub enum ReconcileOutcome {
    /// It matches its record.
    UpToDate,
    /// It matches its record, but objects were edited or deleted, and `reconcile: Once` asks for no repair.
    Drifted(DriftCounts),
    /// What is due begins when a maintenance window opens (semantics 19.7).
    OutsideWindow(Box<OutsideWindow>),
    /// It is left alone because of `spec.suspend`.
    Suspended,
    /// It comes from a directory, which only another command reads.
    OfDirectory,
    /// Its index can only be read elsewhere. The text says what is wrong here, and which command a person can run.
    Elsewhere(String),
    /// It is being deleted, and other clients finish that.
    Terminating,
    /// Its catalogue lists other content than its record accepts, and its core set has not reached that content yet (semantics 14.8).
    Waits,
    /// The plan was executed, with this result.
    Executed(Box<Plan>, Box<Report>),
    /// Our finalizer no longer holds its record, and the other cluster with its objects is left unchanged.
    LetGo,
    /// The other cluster with its objects cannot be worked on. This affects all installations there.
    Lost(Arc<OperationError>),
    /// Nothing was changed, or the record could not be written.
    Failed(OperationError),
}

/// What the deletion of a record asks for.
enum RecordDeletion {
    No,
    /// Our finalizer holds the record: its objects are deleted, or left, before the record is deleted (semantics 15).
    Ours(UninstallRequest),
    OfOthers,
}

impl ReconcileOutcome {
    /// Returns whether the cluster was changed, so that an installation that failed before may succeed now.
    #[must_use]
    pub fn is_progress(&self) -> bool {
        matches!(self, Self::Executed(_, report) if report.is_done())
    }
}

/// The result of reconciling an installation, and its record.
pub(crate) struct ReconciledRecord {
    pub(crate) outcome: ReconcileOutcome,
    /// The record as it was last read or written; `None` if it was deleted.
    pub(crate) record: Option<AddonInstallation>,
}

impl ReconciledRecord {
    /// The result for a record that was left as it was read.
    fn unwritten(outcome: ReconcileOutcome, record: &AddonInstallation) -> Self {
        Self {
            outcome,
            record: Some(record.clone()),
        }
    }
}

/// Reconciles one installation. What cannot be done is written into its record: in one write, and only if it is new.
pub(crate) async fn reconcile(
    ctx: &Context,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    how: &ReconcileOptions,
    interruption: &Interruption,
) -> ReconciledRecord {
    if let Some(outcome) = skipped_outcome(record) {
        return ReconciledRecord::unwritten(outcome, record);
    }
    if let RecordDeletion::OfOthers = required_deletion(record) {
        return ReconciledRecord::unwritten(ReconcileOutcome::Terminating, record);
    }
    let held;
    let record = match interruption
        .unless_interrupted(add_finalizer(ctx, record, how))
        .await
    {
        Ok(Some(now)) => {
            held = now;
            &held
        }
        Ok(None) => record,
        Err(error) => {
            return ReconciledRecord::unwritten(ReconcileOutcome::Failed(error), record);
        }
    };
    let begun = how.attempts.begin(ctx, record, how.repair, interruption);
    let (begun, marked) = match begun.await {
        Ok((begun, marked)) => (Ok(begun), marked),
        Err(error) => (Err(error), None),
    };
    let record = marked.as_ref().unwrap_or(record);
    let attempted = match begun {
        // Boxed, because planning would make the stack of a pass deep.
        Ok(begun) => Box::pin(attempt(ctx, resolver, record, how, begun, interruption)).await,
        Err(error) => Err(error),
    };
    how.attempts.end(&name_of(record));
    let outcome = attempted.unwrap_or_else(|error| {
        if is_managed_elsewhere(&error) {
            let message = ReconcileMessage::Elsewhere(record, &error);
            ReconcileOutcome::Elsewhere(shorten_message((how.describe)(message)))
        } else if is_guarded(record) && has_changed_content(&error) {
            ReconcileOutcome::Waits
        } else if let OperationError::OutsideWindow(outside) = error.root() {
            ReconcileOutcome::OutsideWindow(outside.clone())
        } else {
            ReconcileOutcome::Failed(error)
        }
    });
    let mut last = match &outcome {
        ReconcileOutcome::Executed(_, report) => report.record.clone(),
        _ => Some(record.clone()),
    };
    let writing = async {
        let updated = update_compatibility(ctx, resolver, record, &outcome).await?;
        let written = match &updated {
            Some(now) => write_outcome(ctx, now, &outcome, how).await?,
            None => write_outcome(ctx, record, &outcome, how).await?,
        };
        Ok::<_, OperationError>(written.or(updated))
    };
    let written = match &outcome {
        // The result of an execution is written even after an interruption.
        ReconcileOutcome::Executed(..) => writing.await,
        _ => interruption.unless_interrupted(writing).await,
    };
    // The process has survived the attempt, whatever its result.
    if written.is_err()
        && let Some(marked) = &marked
    {
        let _ = unmark(ctx, marked).await;
    }
    let outcome = match written {
        Ok(written) => {
            last = written.or(last);
            outcome
        }
        // The first error is the one that matters.
        Err(error) => match outcome {
            ReconcileOutcome::Failed(first) => ReconcileOutcome::Failed(first),
            _ => ReconcileOutcome::Failed(error),
        },
    };
    ReconciledRecord {
        outcome,
        record: last,
    }
}

/// Returns whether an entry has other content than the record names.
fn has_changed_content(error: &OperationError) -> bool {
    matches!(
        error.root(),
        OperationError::Content(ContentError::Changed { .. })
    )
}

/// Returns the outcome of an installation that the loop leaves alone, whatever the state of its cluster.
pub(crate) fn skipped_outcome(record: &AddonInstallation) -> Option<ReconcileOutcome> {
    let is_of_directory = record.spec.addon_ref.directory.is_some();
    if record.spec.suspend {
        Some(ReconcileOutcome::Suspended)
    } else if is_of_directory && record.metadata.deletion_timestamp.is_none() {
        Some(ReconcileOutcome::OfDirectory)
    } else {
        None
    }
}

/// Adds our finalizer to a record and returns the record; `None` if it does not get one.
async fn add_finalizer(
    ctx: &Context,
    record: &AddonInstallation,
    how: &ReconcileOptions,
) -> Result<Option<AddonInstallation>, OperationError> {
    let is_deleted_with_objects = record.spec.deletion_policy == DeletionPolicy::Delete;
    if !how.adds_finalizer
        || !is_deleted_with_objects
        || record.metadata.deletion_timestamp.is_some()
    {
        return Ok(None);
    }
    match record::add_finalizer(ctx.home().await?, record).await {
        Ok(held) => Ok(Some(held)),
        Err(error) if error.is_conflict() => Err(stale_error(record).into()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the error that another client wrote the record meanwhile.
pub(crate) fn stale_error(record: &AddonInstallation) -> EngineError {
    EngineError::Stale {
        installation: name_of(record).to_string(),
        what: StaleReason::SpecChanged,
    }
}

async fn attempt(
    ctx: &Context,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    how: &ReconcileOptions,
    begun: BegunAttempt<'_>,
    interruption: &Interruption,
) -> Result<ReconcileOutcome, OperationError> {
    let name = name_of(record);
    let account = match interruption
        .unless_interrupted(Rights::for_record(ctx, record, how))
        .await?
    {
        Rights::Own => {
            return plan_and_execute(ctx, resolver, record, how, begun, interruption).await;
        }
        Rights::ServiceAccount(account) => account,
        Rights::Missing => return Err(OperationError::NoAccount(name)),
    };
    let acting = ctx.acting_as(&name.namespace, &account);
    let acting = interruption.unless_interrupted(acting).await?;
    let resolver = resolver.with_context(&acting);
    plan_and_execute(&acting, &resolver, record, how, begun, interruption).await
}

async fn plan_and_execute(
    ctx: &Context,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    how: &ReconcileOptions,
    begun: BegunAttempt<'_>,
    interruption: &Interruption,
) -> Result<ReconcileOutcome, OperationError> {
    let removal = match required_deletion(record) {
        RecordDeletion::Ours(removal) => Some(removal),
        RecordDeletion::OfOthers | RecordDeletion::No => None,
    };
    let planning = Box::pin(plan(ctx, resolver, record, removal.as_ref(), how));
    let planning = begun.plan(record, planning);
    let plan = interruption.unless_interrupted(planning).await?;
    if plan.is_empty() {
        let drift = interruption
            .unless_interrupted(count_drift(ctx, record, how))
            .await?;
        return Ok(match drift.is_empty() {
            true => ReconcileOutcome::UpToDate,
            false => ReconcileOutcome::Drifted(drift),
        });
    }
    let mut outcomes: Vec<Executed> = execute::execute(ctx, &plan, &how.run, interruption).await?;
    let Some(executed) = outcomes.pop() else {
        return Ok(ReconcileOutcome::UpToDate);
    };
    let report = executed.result?;
    Ok(match is_noop(&report) {
        true => ReconcileOutcome::UpToDate,
        false => ReconcileOutcome::Executed(Box::new(plan), Box::new(report)),
    })
}

/// Counts what was edited or deleted of an installation that is not repaired. What is known to have drifted is counted each time, so that
/// the end of it is noticed.
async fn count_drift(
    ctx: &Context,
    record: &AddonInstallation,
    how: &ReconcileOptions,
) -> Result<DriftCounts, OperationError> {
    let status = record.status.as_ref();
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let is_counted = !how.only_due || find_raised(conditions, DRIFTED).is_some();
    let is_repaired = record.spec.effective_reconcile() == ReconcilePolicy::Ensure;
    if is_repaired || !is_counted || record.metadata.deletion_timestamp.is_some() {
        return Ok(DriftCounts::default());
    }
    Ok(health::count_drift(ctx.cluster().await?, record).await?)
}

/// Plans what has to be executed, if nothing of it needs a person or a maintenance window.
async fn plan(
    ctx: &Context,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    removal: Option<&UninstallRequest>,
    how: &ReconcileOptions,
) -> Result<Plan, OperationError> {
    let plan = match removal {
        Some(removal) => plan_removal(resolver, vec![record], removal).await?,
        None if is_adopted(record) => {
            return Err(AdoptError::Unconfirmed(name_of(record)).into());
        }
        None => {
            format::check(record).map_err(EngineError::from)?;
            // A listed core add-on is repaired, whoever began to remove it (semantics 14.6).
            if !is_guarded(record) || is_released(record) {
                unfinished::check(record, ctx.home().await?.now())?;
            }
            let resolution = Resolution {
                installations: vec![resolver.resolve_record(record).await?],
                ..Resolution::default()
            };
            let choices = Choices {
                repair: how.repair,
                only_due: how.only_due,
                // If types are missing, the loop looks again after a pause (semantics 17.7).
                wait_for_types: Some(Duration::ZERO),
                ..Choices::default()
            };
            resolver.plan(resolution, &choices).await?.whole()?
        }
    };
    if !plan.is_empty() {
        plan.check()?;
        rollout::check(ctx, record, &plan).await?;
        if !how.outside_window {
            windows::check(ctx, &plan).await?;
        }
    }
    Ok(plan)
}

/// Returns whether the objects were adopted, and their differences still need a confirmation (semantics 12.11).
fn is_adopted(record: &AddonInstallation) -> bool {
    record
        .installed()
        .is_some_and(|installed| installed.adopted)
}

/// Returns whether an operation had nothing to do and wrote nothing. What an earlier one wrote into the record may no longer hold.
fn is_noop(report: &Report) -> bool {
    report.is_unwritten && report.is_done()
}

fn required_deletion(record: &AddonInstallation) -> RecordDeletion {
    let metadata = &record.metadata;
    if metadata.deletion_timestamp.is_none() {
        return RecordDeletion::No;
    }
    // A listed core add-on is held, and repaired as before (semantics 14.6).
    let is_guarded = is_guarded(record);
    if is_guarded && !is_released(record) {
        return RecordDeletion::No;
    }
    let mut finalizers = metadata.finalizers.iter().flatten();
    if !is_guarded && !finalizers.any(|finalizer| finalizer == FINALIZER_UNINSTALL) {
        return RecordDeletion::OfOthers;
    }
    RecordDeletion::Ours(UninstallRequest {
        keep: record.spec.deletion_policy == DeletionPolicy::Orphan,
        ..UninstallRequest::default()
    })
}

/// Writes the state of the installation into its record, unless an operation has written it, and publishes an Event about what is new.
/// Returns the record if it was written.
pub(crate) async fn write_outcome(
    ctx: &Context,
    record: &AddonInstallation,
    outcome: &ReconcileOutcome,
    how: &ReconcileOptions,
) -> Result<Option<AddonInstallation>, OperationError> {
    let cluster = ctx.home().await?;
    let stalled = |error: &OperationError| {
        let words = (how.describe)(ReconcileMessage::Failed(&name_of(record), error));
        to_state(error, words)
    };
    let standing = match outcome {
        ReconcileOutcome::UpToDate => Some(ReconcileState::AsRecorded),
        ReconcileOutcome::Drifted(counts) => Some(ReconcileState::Drifted {
            message: (how.describe)(ReconcileMessage::Drifted(record, *counts)),
        }),
        ReconcileOutcome::OutsideWindow(outside) => Some(ReconcileState::Waiting {
            message: shorten_message((how.describe)(ReconcileMessage::OutsideWindow(outside))),
        }),
        ReconcileOutcome::Elsewhere(message) => Some(ReconcileState::ManagedElsewhere {
            message: message.clone(),
        }),
        ReconcileOutcome::Failed(error)
            if error.kind().is_of_installation || is_cluster_lost(ctx, error).await =>
        {
            Some(stalled(error))
        }
        ReconcileOutcome::Lost(error)
            if error.kind().is_of_installation || is_cluster_lost(ctx, error).await =>
        {
            Some(stalled(error))
        }
        _ => None,
    };
    let written = match &standing {
        Some(standing) => record_state(cluster, record, standing).await?,
        None => None,
    };
    let happened = match outcome {
        _ if let Some(standing) = standing => standing.into_event().filter(|_| written.is_some()),
        ReconcileOutcome::Executed(plan, report) => Some(EventContent {
            is_warning: !report.is_done(),
            reason: (if report.is_done() {
                "Reconciled"
            } else {
                "ReconcileFailed"
            })
            .to_owned(),
            note: (how.describe)(ReconcileMessage::Executed(plan, report)),
        }),
        _ => {
            attempt_mark::end(cluster, record).await?;
            None
        }
    };
    if let Some(mut happened) = happened.filter(|_| how.events) {
        let cause = how.cause.with_record(record);
        let cause = (how.describe)(ReconcileMessage::Cause(&cause));
        let room = LONGEST_MESSAGE.saturating_sub(cause.chars().count());
        happened.note = format!("{}; {cause}", shorten(happened.note, room));
        // Errors are ignored, because the record says the same.
        let reporter = &ctx.settings().holder;
        let _ = events::publish(cluster, record, &happened, reporter).await;
    }
    Ok(written)
}

/// Removes the mark of an attempt from a record.
async fn unmark(ctx: &Context, record: &AddonInstallation) -> Result<(), OperationError> {
    Ok(attempt_mark::end(ctx.home().await?, record).await?)
}

/// Returns the state of an installation that failed with this error. Only protections that a person can override ask for a confirmation.
fn to_state(error: &OperationError, words: String) -> ReconcileState {
    let (kind, message) = (error.kind(), shorten_message(words));
    let reason = kind.reason;
    if kind.can_be_accepted {
        ReconcileState::NeedsConfirmation { reason, message }
    } else {
        ReconcileState::Stalled { reason, message }
    }
}

/// Returns whether the other cluster with the objects does not respond, or refuses the credentials.
async fn is_cluster_lost(ctx: &Context, error: &OperationError) -> bool {
    match (ctx.cluster().await, error.root()) {
        (Ok(cluster), OperationError::Engine(error)) => cluster.is_remote_failure(error),
        _ => false,
    }
}

/// A report about an installation that is being reconciled.
pub(crate) enum ReconcileReport {
    /// It only waits from now on.
    Waits(InstallationName),
    /// It was reconciled.
    Done(Box<ReconciledInstallation>),
}

/// An installation that was reconciled.
pub(crate) struct ReconciledInstallation {
    pub(crate) name: InstallationName,
    /// Why it was reconciled.
    pub(crate) cause: ReconcileCause,
    /// The record as it was last read or written; `None` if it was deleted, or if its namespace does not stand for a cluster.
    pub(crate) record: Option<AddonInstallation>,
    pub(crate) is_elsewhere: bool,
    pub(crate) outcome: Result<ReconcileOutcome, OperationError>,
    pub(crate) took: Duration,
}

/// Reconciles one installation of this cluster, from records that are read now.
pub(crate) async fn reconcile_named(
    ctx: Arc<Context>,
    name: InstallationName,
    how: ReconcileOptions,
    interruption: Interruption,
) -> ReconciledInstallation {
    let begun = Instant::now();
    let mut is_elsewhere = false;
    let mut cause = how.cause.clone();
    let resolving = Resolver::for_records(&ctx);
    let (record, outcome) = match interruption.unless_interrupted(resolving).await {
        Err(error) => (None, Err(error)),
        Ok(resolver) => {
            let found = resolver.records.get(&name);
            is_elsewhere = found.is_some() && !resolver.records.local.contains(&name.namespace);
            match found.filter(|_| !is_elsewhere) {
                None => (None, Ok(ReconcileOutcome::UpToDate)),
                Some(record) => {
                    cause = cause.with_record(record);
                    let done = reconcile(&ctx, &resolver, record, &how, &interruption).await;
                    (done.record, Ok(done.outcome))
                }
            }
        }
    };
    ReconciledInstallation {
        name,
        cause,
        record,
        is_elsewhere,
        outcome,
        took: begun.elapsed(),
    }
}

/// The rights with which the objects of an installation are read and written (semantics 16.6).
pub(crate) enum Rights {
    /// The rights of the loop, or of the kubeconfig of another cluster.
    Own,
    /// The rights of this ServiceAccount in the namespace of the record.
    ServiceAccount(String),
    /// None: outside the system namespace, the record has to name an account.
    Missing,
}

impl Rights {
    /// Determines the rights for a record.
    ///
    /// # Errors
    /// What the namespace of the record stands for cannot be read.
    pub(crate) async fn for_record(
        ctx: &Context,
        record: &AddonInstallation,
        how: &ReconcileOptions,
    ) -> Result<Self, OperationError> {
        let is_of_system = name_of(record).namespace == ctx.settings().system_namespace;
        let default = how.account.as_ref().filter(|_| is_of_system);
        if let Some(account) = record.spec.service_account_name.as_ref().or(default) {
            return Ok(Self::ServiceAccount(account.clone()));
        }
        // In another cluster, the kubeconfig gives the rights; from this cluster, only the Secrets of `valuesFrom` are read. A record
        // with template data is refused later, because only some methods take it.
        let is_given = ctx.is_remote().await? && record.spec.values_from.is_empty();
        Ok(if is_of_system || is_given {
            Self::Own
        } else {
            Self::Missing
        })
    }
}

/// Checks whether the installed version still fits its cluster, which may have been upgraded, and is still listed by its catalogue. Only
/// updates the conditions `Compatible` and `Unlisted`. Returns the new record, or `None` if nothing changed.
async fn update_compatibility(
    ctx: &Context,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    outcome: &ReconcileOutcome,
) -> Result<Option<AddonInstallation>, OperationError> {
    let last = match outcome {
        ReconcileOutcome::Executed(_, report) => report.record.as_ref(),
        _ => Some(record),
    };
    let Some(last) = last.filter(|last| last.metadata.deletion_timestamp.is_none()) else {
        return Ok(None);
    };
    let fitness = match resolver.compatibility(last).await? {
        Compatibility::Unknown => return Ok(None),
        Compatibility::Fits => Fitness::Fits,
        Compatibility::Orphaned(lost) => Fitness::Unlisted(lost.to_string()),
        Compatibility::Unlisted(unlisted) => Fitness::Unlisted(unlisted.to_string()),
        Compatibility::Misfit(reason) => {
            let version = last.installed().map(|installed| installed.version.as_str());
            let version = version.unwrap_or_default();
            Fitness::Misfit(format!("{} {version}: {reason}", last.spec.addon_ref.name))
        }
    };
    Ok(compatible::update_conditions(ctx.home().await?, last, &fitness).await?)
}
