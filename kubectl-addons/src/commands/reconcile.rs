//! `reconcile [NAME…] [--watch]`

use std::sync::Arc;

use addons_loops::core_set::{CoreSetReport, CoreStep};
use addons_loops::distribution::Distribution;
use addons_loops::election::ElectionCandidate;
use addons_loops::{
    Attempts, LoopEvent, LoopMetrics, ReconcileCause, ReconcileOptions, ReconcileOutcome,
    Reconciler, pass, retire, sync,
};
use addons_operation::RunOptions;
use anyhow::Result;
use common::api::names::InstallationName;

use crate::cli::operation::ReconcileArgs;
use crate::exit::{self, Exit};
use crate::output::log::{self, LogLevel, LogLine, LogOutcome};
use crate::session::Session;
use crate::words::{core, describe_pushed, hint, reconcile as words};
use crate::{change, failure, output, partial, serve};

/// The name of the leader's Lease in the system namespace.
const LEASE: &str = "addons-reconciler";

/// Reconciles the records. The exit code of a single pass is that of its worst outcome.
///
/// # Errors
/// The records cannot be read, no installation has a name, or a port cannot be bound.
pub async fn run(session: &Session, args: &ReconcileArgs) -> Result<Exit> {
    let how = ReconcileOptions {
        run: RunOptions {
            timeout: args.timeout,
            // In a loop, the other installations do not wait for it.
            wait_for_lock: !args.watch,
            ..RunOptions::default()
        },
        repair: !args.names.is_empty(),
        only_due: false,
        outside_window: args.outside_window,
        describe: words::describe_message,
        events: args.watch,
        adds_finalizer: args.watch,
        account: args.service_account.clone(),
        attempts: Attempts::default(),
        cause: ReconcileCause::Command,
    };
    if args.retire {
        return retire(session).await;
    }
    if args.watch {
        return watch(session, args, how).await;
    }
    let mut worst = Exit::Done;
    let mut synced = None;
    if args.names.is_empty() {
        let now = sync::sync_all(session.ctx(), false).await;
        for error in now.failed {
            worst = worst.max(failure::report_failure(&error.into()));
        }
        // The catalogues that were read before have changed.
        synced = now.is_changed.then(|| session.ctx().fresh());
    }
    let ctx = synced.as_ref().unwrap_or(session.ctx());
    let mut of_core = Exit::Done;
    let mut see_core = |followed| of_core = report_core(followed);
    let mut see =
        |name: &InstallationName, outcome| worst = worst.max(report_outcome(name, outcome));
    change::run_interruptible(async |interruption| {
        let (names, see_core) = (&args.names, &mut see_core);
        pass(ctx, names, &how, interruption, see_core, &mut see).await
    })
    .await?;
    Ok(worst.max(of_core))
}

/// Prints the results of the core sets.
fn report_core(followed: CoreSetReport) -> Exit {
    let mut worst = Exit::Done;
    for (namespace, unknown) in followed.unknown {
        let error = anyhow::anyhow!("{unknown}").context(namespace);
        worst = worst.max(failure::report_failure(&error));
    }
    for (namespace, error) in followed.failed {
        worst = worst.max(partial::report_failure(&namespace, error));
    }
    for (name, step) in followed.steps {
        if let Some(line) = core::describe_step(&name, &step) {
            output::note(&line);
        } else if let CoreStep::Failed(error) = step {
            worst = worst.max(partial::report_failure(&name.to_string(), error));
        }
    }
    worst
}

async fn retire(session: &Session) -> Result<Exit> {
    let freed = retire::retire(session.ctx(), LEASE).await?;
    for name in &freed {
        output::note(&format!(
            "{name}  its deletion no longer waits for a reconciler"
        ));
    }
    if freed.is_empty() {
        output::note("no installation waits for a reconciler");
    }
    Ok(Exit::Done)
}

async fn watch(session: &Session, args: &ReconcileArgs, how: ReconcileOptions) -> Result<Exit> {
    log::start();
    let metrics = Arc::new(LoopMetrics::default());
    if let Some(address) = args.health_bind {
        let listener = serve::bind_health(address).await?;
        tokio::spawn(serve::serve_health(listener, Arc::clone(&metrics)));
    }
    let settings = session.ctx().settings();
    let reconciler = Reconciler {
        ctx: session.ctx(),
        how,
        candidate: ElectionCandidate {
            namespace: settings.system_namespace.clone(),
            name: LEASE.to_owned(),
            identity: settings.holder.clone(),
        },
        interval: args.interval,
        distribution: Distribution {
            push_to: args.push_catalogues.clone(),
            store_compatible: args.store_compatible,
        },
        metrics: &metrics,
    };
    change::run_interruptible(async |interruption| {
        reconciler.run(interruption, &print_progress).await
    })
    .await?;
    Ok(Exit::Done)
}

fn print_progress(told: LoopEvent<'_>) {
    match told {
        LoopEvent::Leads(true) => output::note("leads: reconciling from now on"),
        LoopEvent::Leads(false) => output::note("is no longer the leader"),
        LoopEvent::Reconciled(name, outcome, cause) => log_outcome(name, outcome, cause),
        LoopEvent::CoreSets(report) => log_core_sets(&report),
        LoopEvent::Distributed(target, pushed) => pushed
            .iter()
            .for_each(|one| output::note(&describe_pushed(target, one))),
        LoopEvent::NotDistributed(error) => output::warn(&output::describe_chain(error)),
        LoopEvent::Unwatched(what, failure) => {
            output::warn(&words::describe_unwatched(what, failure));
        }
        LoopEvent::Failed(error) => output::warn(&output::describe_chain(error)),
    }
}

/// Logs an outcome, if something happened, and what caused it.
fn log_outcome(name: &InstallationName, outcome: &ReconcileOutcome, cause: &ReconcileCause) {
    let Some(line) = words::describe_news(name, outcome) else {
        return;
    };
    let became = match outcome {
        ReconcileOutcome::Executed(_, report) if report.is_done() => LogOutcome::Changed,
        ReconcileOutcome::LetGo => LogOutcome::LetGo,
        _ => LogOutcome::Failed,
    };
    log::write_line(LogLine {
        level: match became {
            LogOutcome::Failed => LogLevel::Warning,
            LogOutcome::Changed | LogOutcome::LetGo => LogLevel::Info,
        },
        installation: Some(&name.to_string()),
        outcome: Some(became),
        cause: Some(&words::describe_cause(cause)),
        message: &line,
    });
}

/// Logs what is new about the core sets: each installation, and each cluster, on a line of its own.
fn log_core_sets(report: &CoreSetReport) {
    for (name, step) in &report.steps {
        let (level, line) = match (core::describe_step(name, step), step) {
            (Some(line), _) => (LogLevel::Info, line),
            (None, CoreStep::Failed(error)) => (
                LogLevel::Warning,
                format!("{name}  {}", output::describe_chain(error)),
            ),
            (None, _) => continue,
        };
        log::write_line(LogLine {
            level,
            installation: Some(&name.to_string()),
            cause: Some(core::CORE_SET_CAUSE),
            message: &line,
            ..LogLine::default()
        });
    }
    for (namespace, unknown) in &report.unknown {
        output::warn(&format!("{namespace}: {unknown}"));
    }
    for (namespace, error) in &report.failed {
        output::warn(&format!("{namespace}: {}", output::describe_chain(error)));
    }
}

fn report_outcome(name: &InstallationName, outcome: ReconcileOutcome) -> Exit {
    match outcome {
        ReconcileOutcome::Failed(error) => partial::report_failure(&name.to_string(), error),
        ReconcileOutcome::Lost(error) => {
            let way_out = hint::indent_lines(&hint::hint_lines(&*error));
            output::note(&format!(
                "error: {name}: {}{way_out}",
                output::describe_chain(&*error)
            ));
            Exit::from_operation(&error).unwrap_or(Exit::Failed)
        }
        outcome => {
            output::note(words::describe_outcome(name, &outcome).trim_end());
            match outcome {
                ReconcileOutcome::Executed(_, report) => exit::exit_of_report(&report),
                _ => Exit::Done,
            }
        }
    }
}
