//! Asks, executes and reports.

use std::io::BufRead as _;

use addons_engine::{Cause, ExecuteOptions, Report, Task, diff, execute as run_plans};
use anyhow::Result;
use common::plan::graph::{Graph, Part};
use common::plan::{InstallationName, Plan, Verb};
use futures::future::BoxFuture;

use crate::cli::operation::{Accept, Change, DryRun, Run};
use crate::definitions;
use crate::exit::Exit;
use crate::output;
use crate::progress::Progress;
use crate::session::Session;

use super::announce;
use super::candidate::Candidate;
use super::content::masked;
use super::interruption::Interruption;
use super::known::Known;
use super::prepare::Prepared;
use super::release::Work;
use super::tear_down::tear_down;
use super::together::Planned;

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

/// One installation of a command, and its plan where something is due.
#[derive(Debug)]
pub struct Item {
    /// `metrics-server  0.9.0`
    title: String,
    prepared: Option<Prepared>,
}

impl Item {
    /// Whether there is a plan.
    pub fn is_due(&self) -> bool {
        self.prepared.is_some()
    }

    /// Its plan, to be changed before it is shown.
    pub fn plan_mut(&mut self) -> Option<&mut Plan> {
        Some(&mut self.prepared.as_mut()?.plan)
    }

    /// What was found for a candidate.
    pub fn new(candidate: &Candidate, prepared: Option<Prepared>) -> Self {
        Self {
            title: format!(
                "{}  {}",
                candidate.name.name,
                announce::label(&candidate.target())
            ),
            prepared,
        }
    }
}

/// The items of plans, where every one of them could be made.
///
/// # Errors
/// The first that could not.
pub fn items(planned: Vec<Planned>) -> Result<Vec<Item>> {
    planned
        .into_iter()
        .map(|(candidate, outcome)| Ok(Item::new(&candidate, outcome?)))
        .collect()
}

/// Announces what is due, asks and executes it; `--dry-run` only announces.
///
/// # Errors
/// Nothing was written: the user declined, there is no terminal to ask on, or the definitions are missing.
pub async fn run(
    session: &Session,
    known: &Known,
    items: Vec<Item>,
    change: &Change,
) -> Result<Exit> {
    let mut prepared = Vec::new();
    for item in items {
        match item.prepared {
            Some(due) => prepared.push(due),
            None => output::note(&format!("{}  nothing to do", item.title)),
        }
    }
    if prepared.is_empty() {
        return Ok(Exit::Done);
    }
    if change.dry_run != DryRun::None {
        let exit = dry_run(session, &prepared, change.dry_run).await?;
        return refuse_breakages(&prepared, change.accept).map(|()| exit);
    }
    if let Err(refusal) = refuse_breakages(&prepared, change.accept) {
        for text in announce::plans(&prepared, &graph(&prepared)?) {
            output::note(text.trim_end());
        }
        return Err(refusal);
    }
    let init = known.uninitialised.then_some(definitions::Init {
        forbidden: change.no_init,
    });
    execute(session, &prepared, &change.run, init).await
}

/// Refuses definitions that break live objects; nothing was written.
///
/// # Errors
/// What they would break.
pub fn refuse_breakages(prepared: &[Prepared], accept: Accept) -> Result<()> {
    for item in prepared {
        item.plan.check_breakages(accept.allow_crd_breakage)?;
    }
    Ok(())
}

/// Announces the plans, asks, executes them, and reports. The worst outcome is the exit code (semantics 17); what fails
/// stops only what comes after it in the order. `init`: our definitions are missing.
///
/// # Errors
/// Nothing was written: the objects have no order, the user declined, there is no terminal to ask on, or the definitions
/// are missing. Or the user pressed Ctrl-C while helm was at work.
pub async fn execute(
    session: &Session,
    prepared: &[Prepared],
    run: &Run,
    init: Option<definitions::Init>,
) -> Result<Exit> {
    let graph = graph(prepared)?;
    for text in announce::plans(prepared, &graph) {
        output::note(text.trim_end());
    }
    if !run.yes {
        confirm(question(prepared))?;
    }
    if let Some(init) = init {
        definitions::initialise(session, init).await?;
    }
    for namespace in record_namespaces(prepared) {
        addons_engine::namespace::ensure(session.cluster().await?, namespace).await?;
    }
    for namespace in core_namespaces(prepared) {
        addons_engine::namespace::hold_core(session.cluster().await?, namespace).await?;
    }
    let options = ExecuteOptions {
        holder: session.holder(),
        wait: run.wait,
        timeout: run.timeout,
        wait_for_lock: !run.no_wait,
        steal_lock: run.steal_lock,
    };
    let interruption = Interruption::default();
    let mut work = Vec::new();
    for item in prepared {
        work.push(Work::of(session, item, run, &interruption).await?);
    }
    let outside: Vec<Option<Outside>> = work.into_iter().map(|work| Some(outside(work?))).collect();
    let tasks: Vec<Task<'_>> = prepared
        .iter()
        .zip(&outside)
        .map(|(item, outside)| Task {
            wanted: &item.record,
            plan: &item.plan,
            outside: outside.as_deref(),
        })
        .collect();
    let plans: Vec<&Plan> = prepared.iter().map(|item| &item.plan).collect();
    let progress = Progress::new(output::live(), &plans);
    let cluster = session.cluster().await?;
    let work = async {
        if prepared
            .iter()
            .all(|item| item.plan.verb == Verb::Uninstall)
        {
            return tear_down(cluster, prepared, &tasks, &options, &progress).await;
        }
        let events = |part, event| progress.show(part, &event);
        run_plans(cluster, &tasks, &graph, &options, &events).await
    };
    let reports = if outside.iter().any(Option::is_some) {
        interruption.ends(work).await
    } else {
        Ok(work.await)
    };
    progress.finish();
    let reports = reports?;
    let mut worst = Exit::Done;
    let mut skipped = false;
    for (item, report) in prepared.iter().zip(reports) {
        let exit = match report {
            Ok(report) => {
                let text = announce::report(item, &report, run.wait);
                output::note(&item.plan.mask.text(text.trim_end()));
                skipped |= !report.skipped.is_empty();
                of_report(&report)
            }
            Err(error) => {
                let error = anyhow::Error::from(error);
                let exit = Exit::of(&error);
                output::failure(&masked(error, &item.plan.mask));
                exit
            }
        };
        worst = worst.max(exit);
    }
    Ok(of_skipped(worst, skipped))
}

/// Work of helm's, as the engine takes it.
type Outside = Box<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

fn outside(work: Work) -> Outside {
    Box::new(move || work.run())
}

/// The order of all objects of a command.
///
/// # Errors
/// What waits for each other.
pub fn graph(prepared: &[Prepared]) -> Result<Graph> {
    let index = |name: &InstallationName| {
        let mut items = prepared.iter();
        items.position(|item| item.plan.installation == *name)
    };
    let requires: Vec<Vec<usize>> = prepared
        .iter()
        .map(|item| item.requires.iter().filter_map(index).collect())
        .collect();
    let parts: Vec<Part<'_>> = prepared
        .iter()
        .zip(&requires)
        .map(|(item, requires)| Part {
            name: &item.plan.installation.name,
            desired: &item.desired,
            requires,
        })
        .collect();
    Ok(Graph::new(&parts)?)
}

/// Namespaces that have to be there before a first record is written into them.
fn record_namespaces(prepared: &[Prepared]) -> std::collections::BTreeSet<&str> {
    let new = prepared
        .iter()
        .filter(|item| item.record.metadata.resource_version.is_none());
    // kube-system is there before anything else is.
    new.map(|item| item.plan.installation.namespace.as_str())
        .filter(|name| *name != "kube-system")
        .collect()
}

/// Namespaces that are to hold a first record of a core add-on: guarded before the record is there (semantics 14).
fn core_namespaces(prepared: &[Prepared]) -> std::collections::BTreeSet<&str> {
    let core = prepared.iter().filter(|item| {
        item.record.metadata.resource_version.is_none() && item.record.spec.core_addon
    });
    core.map(|item| item.plan.installation.namespace.as_str())
        .collect()
}

async fn dry_run(session: &Session, prepared: &[Prepared], mode: DryRun) -> Result<Exit> {
    let graph = graph(prepared)?;
    let mut worst = Exit::Done;
    for (item, text) in prepared.iter().zip(announce::plans(prepared, &graph)) {
        output::note(text.trim_end());
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

/// The highest code of what happened to the objects (semantics 17), but for what was skipped: [`of_skipped`].
fn of_report(report: &Report) -> Exit {
    let failed = report.failed.iter().map(|failure| match failure.cause {
        Cause::Denied => Exit::Denied,
        Cause::Conflict => Exit::Conflict,
        Cause::Other => Exit::Failed,
    });
    let not_ready = report.not_ready.iter().map(|_| Exit::TimedOut);
    failed.chain(not_ready).max().unwrap_or(Exit::Done)
}

/// The code of a command: what was skipped was so because of something that failed, perhaps in another add-on, or else because
/// the time was over.
fn of_skipped(worst: Exit, skipped: bool) -> Exit {
    if worst == Exit::Done && skipped {
        Exit::TimedOut
    } else {
        worst
    }
}

fn question(prepared: &[Prepared]) -> &'static str {
    match prepared {
        [one] if one.plan.verb == Verb::Install => "Install? [y/N] ",
        [one] if one.plan.verb == Verb::Upgrade => "Upgrade? [y/N] ",
        [one] if one.plan.verb == Verb::Uninstall => "Uninstall? [y/N] ",
        _ => "Go on? [y/N] ",
    }
}

fn confirm(question: &str) -> Result<(), Declined> {
    if !output::can_ask() {
        return Err(Declined::NoTerminal);
    }
    output::ask(question);
    let mut answer = String::new();
    // An unreadable answer is a no.
    let _ = std::io::stdin().lock().read_line(&mut answer);
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(Declined::No)
    }
}

#[cfg(test)]
mod tests {
    use addons_engine::Failure;
    use common::manifest::key::ObjectKey;
    use common::readiness::{Readiness, Status};

    use super::*;

    #[test]
    fn the_highest_code_counts() {
        let report = |causes: &[Cause], is_late: bool| Report {
            failed: causes
                .iter()
                .map(|cause| Failure {
                    key: ObjectKey::default(),
                    message: String::new(),
                    cause: *cause,
                })
                .collect(),
            not_ready: is_late
                .then(|| {
                    let readiness = Readiness {
                        status: Status::InProgress,
                        message: String::new(),
                    };
                    (ObjectKey::default(), readiness)
                })
                .into_iter()
                .collect(),
            ..Report::default()
        };
        for (causes, is_late, exit) in [
            (&[][..], false, Exit::Done),
            (&[Cause::Other], false, Exit::Failed),
            (&[Cause::Other], true, Exit::TimedOut),
            (&[Cause::Other, Cause::Conflict], true, Exit::Conflict),
            (&[Cause::Denied, Cause::Conflict], true, Exit::Denied),
        ] {
            assert_eq!(of_report(&report(causes, is_late)), exit, "{causes:?}");
        }
        let skipped = Report {
            skipped: vec![(ObjectKey::default(), "the time is over".to_owned())],
            ..Report::default()
        };
        assert_eq!(of_report(&skipped), Exit::Done);
        for (worst, skipped, exit) in [
            (Exit::Done, false, Exit::Done),
            (Exit::Done, true, Exit::TimedOut),
            (Exit::Failed, true, Exit::Failed),
            (Exit::Conflict, true, Exit::Conflict),
        ] {
            assert_eq!(of_skipped(worst, skipped), exit, "{worst:?}");
        }
    }
}
