//! `--events`: what a change does, as one JSON object a line on stdout. Fields are added, never renamed or removed;
//! docs/events.md lists them, and a test compares.
//!
//! Everything that people read stays on stderr. There is one stdout, so there is one stream of a process, also where it works on several
//! clusters.

mod operation;

use std::sync::atomic::{AtomicBool, Ordering};

use addons_plan::file::Place;
use addons_plan::readiness::Status;
use addons_plan::{Action, Verb};
use common::api::installation::Installed;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::Format;
use crate::exit::Exit;
use crate::output::{self, of_cluster};
use crate::usage::Usage;

pub use operation::{executing, planned, reported, started, up_to_date};

/// Whether events are printed.
static ON: AtomicBool = AtomicBool::new(false);

/// What happens.
#[derive(Debug, Serialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "type"
)]
pub enum Event<'a> {
    /// Something that the user should know and that stops nothing, found before or during the work.
    Finding {
        /// What was found.
        message: &'a str,
    },
    /// There is nothing to do for an installation.
    UpToDate {
        /// The installation.
        installation: &'a InstallationName,
        /// The add-on.
        addon: &'a str,
    },
    /// What will be done to an installation.
    Planned {
        /// The installation.
        installation: &'a InstallationName,
        /// The add-on.
        addon: &'a str,
        /// What the operation is called.
        verb: Verb,
        /// What is installed.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<Version<'a>>,
        /// What will be.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<Version<'a>>,
        /// How many objects.
        counts: Planned,
    },
    /// One of our own definitions was looked at.
    Defined {
        /// The definition.
        object: &'a ObjectKey,
        /// What was done.
        message: &'a str,
    },
    /// The work on an installation begins.
    Started {
        /// The installation.
        installation: &'a InstallationName,
        /// What the operation is called.
        verb: Verb,
    },
    /// Another client changes the installation, and is waited for.
    WaitingForLock {
        /// The installation.
        installation: &'a InstallationName,
        /// The other client.
        holder: &'a str,
    },
    /// An object was applied.
    Applied {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
        /// Why it was applied.
        action: Action,
    },
    /// A field that another manager held was taken, or left to it.
    Conflict {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
        /// The field.
        field: &'a str,
        /// The other manager.
        manager: &'a str,
        /// `taken` or `left`.
        settlement: &'static str,
    },
    /// An object is waited for.
    Waiting {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
        /// Its status.
        status: Status,
        /// What it lacks.
        message: &'a str,
    },
    /// An object that was waited for is ready.
    Ready {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
        /// How it is.
        message: &'a str,
    },
    /// An object was deleted.
    Deleted {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
    },
    /// Something that the plan or the API server warns of.
    Warning {
        /// The installation.
        installation: &'a InstallationName,
        /// The object, where the warning is about one.
        #[serde(skip_serializing_if = "Option::is_none")]
        object: Option<&'a ObjectKey>,
        /// The warning.
        message: &'a str,
    },
    /// An object failed.
    Failed {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
        /// Why.
        message: &'a str,
    },
    /// An object was not tried.
    Skipped {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
        /// Why.
        message: &'a str,
    },
    /// An object was not ready in time.
    NotReady {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
        /// What it lacks.
        message: &'a str,
    },
    /// The work on an installation ended.
    Finished {
        /// The installation.
        installation: &'a InstallationName,
        /// What the operation is called.
        verb: Verb,
        /// How it ended.
        outcome: Exit,
        /// The exit code that it alone would have had.
        exit_code: u8,
        /// How long it took.
        seconds: f64,
        /// How many objects.
        counts: Done,
    },
    /// Something failed that is not about one object.
    Error {
        /// What, as stderr says it.
        message: &'a str,
        /// The exit code of this error.
        exit_code: u8,
    },
    /// The command ended: the last line.
    Ended {
        /// How.
        outcome: Exit,
        /// The exit code of the command.
        exit_code: u8,
    },
}

/// What is installed, as the catalogue names it.
#[derive(Debug, Serialize)]
pub struct Version<'a> {
    /// The version; empty where the entry has none.
    version: &'a str,
    /// The id; often empty.
    id: &'a str,
}

/// How many objects a plan is about.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    create: usize,
    adopt: usize,
    update: usize,
    restore: usize,
    refresh: usize,
    recreate: usize,
    prune: usize,
    release: usize,
    retain: usize,
    unchanged: usize,
}

/// What became of how many objects, as the report counts them.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    created: usize,
    adopted: usize,
    changed: usize,
    recreated: usize,
    migrated: usize,
    pruned: usize,
    retained: usize,
    unchanged: usize,
    failed: usize,
    skipped: usize,
    not_ready: usize,
}

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    /// Where the command works on several.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// From now on events are printed.
pub fn begin() {
    ON.store(true, Ordering::Relaxed);
}

/// Whether events are printed: then stdout has nothing else.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Prints an event, where events are printed. A reader that went away does not stop an operation.
pub fn emit(event: &Event<'_>) {
    if !is_on() {
        return;
    }
    let cluster = of_cluster::place();
    let line = Line {
        time: Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
            .to_string(),
        cluster: cluster.as_deref().map(Place::name),
        event,
    };
    let is_read = serde_json::to_string(&line).is_ok_and(|text| output::line(&text));
    if !is_read {
        ON.store(false, Ordering::Relaxed);
    }
}

/// Refuses another output beside the events.
///
/// # Errors
/// Events are printed, and another format was asked for.
pub fn check(format: Format) -> Result<(), Usage> {
    match format {
        Format::Table => Ok(()),
        _ if is_on() => Err(Usage(
            "--events cannot be combined with --output".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Prints the last event.
pub fn end(exit: Exit) {
    emit(&Event::Ended {
        outcome: exit,
        exit_code: exit as u8,
    });
}

impl<'a> Version<'a> {
    fn of(installed: &'a Installed) -> Self {
        Self {
            version: &installed.version,
            id: &installed.id,
        }
    }
}

#[cfg(test)]
mod tests;
