//! Reconciles one installation: what its record asks for is planned and executed, as `upgrade` does it, and what cannot be done
//! becomes a condition of the record.

use std::sync::Arc;
use std::time::Duration;

use addons_clusters::core_set::change::{is_guarded, is_released};
use addons_engine::attempt as attempt_mark;
use addons_engine::error::StaleReason;
use addons_engine::events::{self, Happened};
use addons_engine::standing::{Standing, stand};
use addons_engine::{EngineError, Report, record};
use addons_operation::adopt::AdoptError;
use addons_operation::elsewhere::is_managed_elsewhere;
use addons_operation::plan::{Removal, plan_removal};
use addons_operation::{
    Choices, Context, Interruption, OperationError, Outcome as Executed, Plan, Resolution,
    Resolver, Run, execute, name_of, rollout, unfinished,
};
use common::api::conditions::bounded;
use common::api::installation::{AddonInstallation, DeletionPolicy, format};
use common::api::names::{FINALIZER_UNINSTALL, InstallationName};
use common::catalogue::content::ContentError;

use crate::attempts::{Attempts, Begun};
use crate::rights::Rights;
use crate::{compatibility, reason};

/// How conditions and Events say what happened.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// An error, and the way out, as one line of text.
    pub error: fn(&InstallationName, &OperationError) -> String,
    /// Why an index cannot be read here, and the command of those who can, as one line of text.
    pub elsewhere: fn(&AddonInstallation, &OperationError) -> String,
    /// The result of an operation, as one line of text.
    pub report: fn(&Plan, &Report) -> String,
    /// How a person releases a core installation, as one line of text.
    pub release: fn(&InstallationName) -> String,
}

/// How installations are reconciled.
#[derive(Clone, Debug)]
pub struct How {
    /// How each is executed. The bound is that of one installation.
    pub run: Run,
    /// Whether edits are repaired although nothing is due.
    pub repair: bool,
    /// Whether live objects are left unread where nothing is due.
    pub only_due: bool,
    /// The words for conditions and Events.
    pub words: Words,
    /// Whether Events say what happened.
    pub events: bool,
    /// Whether records get our finalizer, because what finishes their deletion goes on (semantics 15).
    pub holds: bool,
    /// The ServiceAccount of the system namespace for installations there that name none; `None` = our own rights (semantics 16).
    pub account: Option<String>,
    /// The attempts of this process.
    pub attempts: Attempts,
}

/// What became of one installation.
#[derive(Debug)]
pub enum Outcome {
    /// It is as recorded.
    UpToDate,
    /// It is left alone because of `spec.suspend`.
    Suspended,
    /// It comes from a directory, which only another command reads.
    OfDirectory,
    /// Its index can be read elsewhere only: what is wrong here, and the command of a person.
    Elsewhere(String),
    /// It is being deleted, and others finish that.
    Terminating,
    /// Its catalogue lists other content than its record accepts, which its core set has not reached yet (semantics 14).
    Waits,
    /// The plan was executed, with this result.
    Executed(Box<Plan>, Box<Report>),
    /// Its deletion waits for us no longer, and the other cluster that its objects are in is left as it is.
    LetGo,
    /// The other cluster that its objects are in cannot be worked on, as all installations there.
    Lost(Arc<OperationError>),
    /// Nothing was changed, or the record could not be written.
    Failed(OperationError),
}

/// What the deletion of a record asks for.
enum Deletion {
    No,
    /// Our finalizer holds the record: its objects are deleted, or left, before it goes (semantics 15).
    Ours(Removal),
    OfOthers,
}

impl Outcome {
    /// Whether the cluster was changed, so that what failed before may succeed now.
    #[must_use]
    pub fn is_progress(&self) -> bool {
        matches!(self, Self::Executed(_, report) if report.is_done())
    }
}

/// Reconciles one installation. What cannot be done is written into its record: one write, and only where that is new.
pub async fn reconcile(
    ctx: &Context,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    how: &How,
    interruption: &Interruption,
) -> Outcome {
    if let Some(outcome) = left_alone(record) {
        return outcome;
    }
    if let Deletion::OfOthers = deletion(record) {
        return Outcome::Terminating;
    }
    let held;
    let record = match interruption.unless_asked(hold(ctx, record, how)).await {
        Ok(Some(now)) => {
            held = now;
            &held
        }
        Ok(None) => record,
        Err(error) => return Outcome::Failed(error),
    };
    let begun = how.attempts.begin(ctx, record, how.repair, interruption);
    let (begun, marked) = match begun.await {
        Ok((begun, marked)) => (Ok(begun), marked),
        Err(error) => (Err(error), None),
    };
    let record = marked.as_ref().unwrap_or(record);
    let attempted = match begun {
        // On the heap: what it takes to plan would make the stack of a pass deep.
        Ok(begun) => Box::pin(attempt(ctx, resolver, record, how, begun, interruption)).await,
        Err(error) => Err(error),
    };
    how.attempts.end(&name_of(record));
    let outcome = attempted.unwrap_or_else(|error| {
        if is_managed_elsewhere(&error) {
            Outcome::Elsewhere(bounded((how.words.elsewhere)(record, &error)))
        } else if is_guarded(record) && has_moved(&error) {
            Outcome::Waits
        } else {
            Outcome::Failed(error)
        }
    });
    let writing = async {
        match compatibility::note(ctx, resolver, record, &outcome).await? {
            Some(now) => write(ctx, &now, &outcome, how).await,
            None => write(ctx, record, &outcome, how).await,
        }
    };
    let written = match &outcome {
        // What was done is said in any case.
        Outcome::Executed(..) => writing.await,
        _ => interruption.unless_asked(writing).await,
    };
    // Whatever became of it, the process did not end with it.
    if written.is_err()
        && let Some(marked) = &marked
    {
        let _ = unmark(ctx, marked).await;
    }
    match written {
        Ok(()) => outcome,
        // The first error is the one that matters.
        Err(error) => match outcome {
            Outcome::Failed(first) => Outcome::Failed(first),
            _ => Outcome::Failed(error),
        },
    }
}

/// Whether an entry has other content than the record names.
fn has_moved(error: &OperationError) -> bool {
    matches!(
        error.root(),
        OperationError::Content(ContentError::Changed { .. })
    )
}

/// What becomes of an installation that the loop leaves alone, whatever its cluster is like.
pub(crate) fn left_alone(record: &AddonInstallation) -> Option<Outcome> {
    let is_of_directory = record.spec.addon_ref.directory.is_some();
    if record.spec.suspend {
        Some(Outcome::Suspended)
    } else if is_of_directory && record.metadata.deletion_timestamp.is_none() {
        Some(Outcome::OfDirectory)
    } else {
        None
    }
}

/// The record with our finalizer, where it is to get that now.
async fn hold(
    ctx: &Context,
    record: &AddonInstallation,
    how: &How,
) -> Result<Option<AddonInstallation>, OperationError> {
    let is_deleted_with_objects = record.spec.deletion_policy == DeletionPolicy::Delete;
    if !how.holds || !is_deleted_with_objects || record.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    match record::hold(ctx.home().await?, record).await {
        Ok(held) => Ok(Some(held)),
        Err(error) if error.is_conflict() => Err(stale(record).into()),
        Err(error) => Err(error.into()),
    }
}

/// Another client wrote the record meanwhile.
pub(crate) fn stale(record: &AddonInstallation) -> EngineError {
    EngineError::Stale {
        installation: name_of(record).to_string(),
        what: StaleReason::SpecChanged,
    }
}

async fn attempt(
    ctx: &Context,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    how: &How,
    begun: Begun<'_>,
    interruption: &Interruption,
) -> Result<Outcome, OperationError> {
    let name = name_of(record);
    let account = match interruption
        .unless_asked(Rights::of(ctx, record, how))
        .await?
    {
        Rights::Own => return work(ctx, resolver, record, how, begun, interruption).await,
        Rights::Of(account) => account,
        Rights::Missing => return Err(OperationError::NoAccount(name)),
    };
    let acting = ctx.acting_as(&name.namespace, &account);
    let acting = interruption.unless_asked(acting).await?;
    let resolver = resolver.acting(&acting);
    work(&acting, &resolver, record, how, begun, interruption).await
}

async fn work(
    ctx: &Context,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    how: &How,
    begun: Begun<'_>,
    interruption: &Interruption,
) -> Result<Outcome, OperationError> {
    let removal = match deletion(record) {
        Deletion::Ours(removal) => Some(removal),
        Deletion::OfOthers | Deletion::No => None,
    };
    let planning = Box::pin(plan(ctx, resolver, record, removal.as_ref(), how));
    let planning = begun.plan(record, planning);
    let plan = interruption.unless_asked(planning).await?;
    if plan.is_empty() {
        return Ok(Outcome::UpToDate);
    }
    let mut outcomes: Vec<Executed> = execute::execute(ctx, &plan, &how.run, interruption).await?;
    let Some(executed) = outcomes.pop() else {
        return Ok(Outcome::UpToDate);
    };
    let report = executed.result?;
    Ok(match is_nothing(&report) {
        true => Outcome::UpToDate,
        false => Outcome::Executed(Box::new(plan), Box::new(report)),
    })
}

/// What is to be executed, where nothing of it needs a person.
async fn plan(
    ctx: &Context,
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    removal: Option<&Removal>,
    how: &How,
) -> Result<Plan, OperationError> {
    let plan = match removal {
        Some(removal) => plan_removal(resolver, vec![record], removal).await?,
        None if is_adopted(record) => {
            return Err(AdoptError::Unconfirmed(name_of(record)).into());
        }
        None => {
            format::check(record).map_err(EngineError::from)?;
            // What the core set lists is repaired, whoever began to remove it (semantics 14).
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
                // Where they are missing, it is looked again after a pause.
                wait_for_types: Some(Duration::ZERO),
                ..Choices::default()
            };
            resolver.plan(resolution, &choices).await?.whole()?
        }
    };
    if !plan.is_empty() {
        plan.check()?;
        rollout::check(ctx, record, &plan).await?;
    }
    Ok(plan)
}

/// Whether its objects were taken over, and what differs in them is still to be agreed to (semantics 12).
fn is_adopted(record: &AddonInstallation) -> bool {
    record
        .installed()
        .is_some_and(|installed| installed.adopted)
}

/// Whether an operation found nothing to do, and wrote nothing: what an earlier one wrote of the record may no longer hold.
fn is_nothing(report: &Report) -> bool {
    report.is_unwritten && report.is_done()
}

fn deletion(record: &AddonInstallation) -> Deletion {
    let metadata = &record.metadata;
    if metadata.deletion_timestamp.is_none() {
        return Deletion::No;
    }
    // A listed core add-on is held, and repaired as before (semantics 14).
    let is_guarded = is_guarded(record);
    if is_guarded && !is_released(record) {
        return Deletion::No;
    }
    let mut finalizers = metadata.finalizers.iter().flatten();
    if !is_guarded && !finalizers.any(|finalizer| finalizer == FINALIZER_UNINSTALL) {
        return Deletion::OfOthers;
    }
    Deletion::Ours(Removal {
        keep: record.spec.deletion_policy == DeletionPolicy::Orphan,
        ..Removal::default()
    })
}

/// Writes how the installation stands, unless an operation has written that itself, and an Event about what is new.
pub(crate) async fn write(
    ctx: &Context,
    record: &AddonInstallation,
    outcome: &Outcome,
    how: &How,
) -> Result<(), OperationError> {
    let cluster = ctx.home().await?;
    let stalls = async |error: &OperationError| {
        let words = (how.words.error)(&name_of(record), error);
        let standing = reason::standing(error, words);
        let is_new = stand(cluster, record, &standing).await?;
        Ok::<_, OperationError>(standing.happened().filter(|_| is_new))
    };
    let happened = match outcome {
        Outcome::UpToDate => {
            stand(cluster, record, &Standing::AsRecorded).await?;
            None
        }
        Outcome::Elsewhere(message) => {
            let message = message.clone();
            stand(cluster, record, &Standing::ManagedElsewhere { message }).await?;
            None
        }
        Outcome::Failed(error) if is_of_record(error) || is_lost(ctx, error).await => {
            stalls(error).await?
        }
        Outcome::Lost(error) if is_of_record(error) || is_lost(ctx, error).await => {
            stalls(error).await?
        }
        Outcome::Executed(plan, report) => Some(Happened {
            is_warning: !report.is_done(),
            reason: (if report.is_done() {
                "Reconciled"
            } else {
                "ReconcileFailed"
            })
            .to_owned(),
            note: (how.words.report)(plan, report),
        }),
        _ => {
            attempt_mark::end(cluster, record).await?;
            None
        }
    };
    if let Some(happened) = happened.filter(|_| how.events) {
        // They tell people of what is in the record anyway.
        let reporter = &ctx.settings().holder;
        let _ = events::publish(cluster, record, &happened, reporter).await;
    }
    Ok(())
}

/// Removes the mark of an attempt from a record.
async fn unmark(ctx: &Context, record: &AddonInstallation) -> Result<(), OperationError> {
    Ok(attempt_mark::end(ctx.home().await?, record).await?)
}

/// Whether the other cluster that the objects are in does not answer, or refuses the credentials.
async fn is_lost(ctx: &Context, error: &OperationError) -> bool {
    match (ctx.cluster().await, error.root()) {
        (Ok(cluster), OperationError::Engine(error)) => cluster.is_lost(error),
        _ => false,
    }
}

/// Whether an error says something of the installation: not of the server, of another client at work, or of this one's end.
fn is_of_record(error: &OperationError) -> bool {
    match error.root() {
        OperationError::Interrupted(_)
        | OperationError::Connect(_)
        | OperationError::NoCluster
        | OperationError::Suspended(_) => false,
        OperationError::Engine(error) => !matches!(
            error,
            EngineError::Unreachable { .. }
                | EngineError::Unauthorized { .. }
                | EngineError::Locked { .. }
                | EngineError::Stale { .. }
                | EngineError::NotInitialised
        ),
        _ => true,
    }
}
