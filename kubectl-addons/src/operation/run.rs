//! Asks, executes and reports.

use std::io::{BufRead as _, IsTerminal as _};

use anyhow::Result;
use common::engine::{EngineError, ExecuteOptions, Report, diff, execute};

use crate::cli::operation::{DryRun, Run};
use crate::exit::Exit;
use crate::output;
use crate::progress::Progress;
use crate::session::Session;

use super::announce;
use super::prepare::Prepared;

/// The user did not agree, or could not be asked: nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Declined {
    /// No terminal.
    #[error("there is no terminal to ask on; to change the cluster without being asked, add --yes")]
    NoTerminal,
    /// Anything but y.
    #[error("nothing was changed")]
    No,
}

/// Announces the plans, asks, executes them one after another, and reports. The worst outcome is the exit code
/// (semantics 17); the failure of one add-on does not stop the others.
///
/// # Errors
/// Nothing was written: the user declined, there is no terminal to ask on, or the definitions are missing.
pub async fn run(session: &Session, prepared: &[Prepared], options: &Run, no_init: bool) -> Result<Exit> {
    for item in prepared {
        output::note(announce::plan(&item.plan).trim_end());
    }
    let question = match prepared {
        [one] => format!("{}?", announce::verb(one.plan.verb)),
        _ => "Go on?".to_owned(),
    };
    if !options.yes {
        confirm(&question)?;
    }
    session.initialise(no_init).await?;
    let mut worst = Exit::Done;
    for item in prepared {
        let exit = match one(session, item, options).await {
            Ok(report) => {
                output::note(announce::report(&item.plan, &report, options.wait).trim_end());
                of_report(&report)
            }
            Err(error) => output::failure(&error.into()),
        };
        worst = worst.max(exit);
    }
    Ok(worst)
}

/// What `--dry-run` shows instead.
///
/// # Errors
/// The server refused to answer at all; what it refuses of single objects is part of the answer.
pub async fn dry_run(session: &Session, prepared: &[Prepared], mode: DryRun) -> Result<Exit> {
    let mut worst = Exit::Done;
    for item in prepared {
        output::note(announce::plan(&item.plan).trim_end());
        if mode == DryRun::Server {
            for change in diff::diff(session.cluster().await?, &item.plan).await? {
                if let Some(error) = change.error {
                    output::note(&format!("  refused  {}: {error}", change.key));
                    worst = worst.max(Exit::Failed);
                }
            }
        }
    }
    output::note("dry run: nothing was changed");
    Ok(worst)
}

async fn one(session: &Session, item: &Prepared, options: &Run) -> Result<Report, anyhow::Error> {
    let progress = Progress::new(output::live());
    let execute_options = ExecuteOptions {
        holder: session.holder(),
        wait: options.wait,
        timeout: options.timeout,
        wait_for_lock: !options.no_wait,
        steal_lock: options.steal_lock,
    };
    let cluster = session.cluster().await?;
    let outcome = execute(cluster, &item.candidate.wanted, &item.plan, &execute_options, &|event| progress.show(&event)).await;
    progress.finish();
    Ok(outcome?)
}

/// Failures of objects are 1, what was not ready in time is 3 (semantics 17).
fn of_report(report: &Report) -> Exit {
    if !report.not_ready.is_empty() {
        Exit::TimedOut
    } else if report.is_done() {
        Exit::Done
    } else {
        Exit::Failed
    }
}

fn confirm(question: &str) -> Result<(), Declined> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Declined::NoTerminal);
    }
    output::ask(&format!("{question} [y/N] "));
    let mut answer = String::new();
    // An unreadable answer is a no.
    let _ = stdin.lock().read_line(&mut answer);
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Declined::No) }
}
