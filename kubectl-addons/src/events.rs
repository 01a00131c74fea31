//! `--events`: prints what a command changes, as one JSON object per line on stdout. Fields are added, never renamed or removed;
//! docs/events.md lists them, and a test compares.
//!
//! Text for people stays on stderr. A process has one stdout and therefore one stream, even if it works on several clusters.

mod operation;

use std::sync::atomic::{AtomicBool, Ordering};

use addons_plan::file::FleetClusterSource;
use addons_plan::readiness::ReadinessStatus;
use addons_plan::{Action, Verb};
use common::api::installation::Installed;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::OutputFormat;
use crate::exit::{Exit, UsageError};
use crate::output::{self, of_cluster};

pub use operation::{emit_executing, emit_planned, emit_reported, emit_started, emit_up_to_date};

/// Whether events are printed.
static ON: AtomicBool = AtomicBool::new(false);

/// An event of a command.
#[derive(Debug, Serialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "type"
)]
pub enum PrintedEvent<'a> {
    /// A finding before or during the operation that stops nothing.
    Finding {
        /// The finding.
        message: &'a str,
    },
    /// An installation is up to date.
    UpToDate {
        /// The installation.
        installation: &'a InstallationName,
        /// The add-on.
        addon: &'a str,
    },
    /// A change to an installation was planned.
    Planned {
        /// The installation.
        installation: &'a InstallationName,
        /// The add-on.
        addon: &'a str,
        /// The kind of operation.
        verb: Verb,
        /// The installed version.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<EventVersion<'a>>,
        /// The planned version.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<EventVersion<'a>>,
        /// The number of objects by action.
        counts: PlannedCounts,
    },
    /// One of this plugin's CRDs was checked.
    Defined {
        /// The CRD.
        object: &'a ObjectKey,
        /// What was done.
        message: &'a str,
    },
    /// An operation on an installation began.
    Started {
        /// The installation.
        installation: &'a InstallationName,
        /// The kind of operation.
        verb: Verb,
    },
    /// Another client is changing the installation, and the operation waits for it.
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
    /// A field of another manager was taken, or left to it.
    Conflict {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
        /// The field.
        field: &'a str,
        /// The other manager.
        manager: &'a str,
        /// Who has the field now.
        settlement: PrintedSettlement,
    },
    /// The operation waits for an object.
    Waiting {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
        /// Its status.
        status: ReadinessStatus,
        /// What it waits for.
        message: &'a str,
    },
    /// An object that was waited for is ready.
    Ready {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
        /// Why it is ready.
        message: &'a str,
    },
    /// An object was deleted.
    Deleted {
        /// The installation.
        installation: &'a InstallationName,
        /// The object.
        object: &'a ObjectKey,
    },
    /// A warning of the plan or the API server.
    Warning {
        /// The installation.
        installation: &'a InstallationName,
        /// The object, if the warning concerns one.
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
    /// An object was skipped.
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
        /// What was missing.
        message: &'a str,
    },
    /// The operation on an installation ended.
    Finished {
        /// The installation.
        installation: &'a InstallationName,
        /// The kind of operation.
        verb: Verb,
        /// How it ended.
        outcome: Exit,
        /// The exit code of this installation alone.
        exit_code: u8,
        /// How long the operation took.
        seconds: f64,
        /// The number of objects by result.
        counts: ReportCounts,
    },
    /// An error that does not concern a single object.
    Error {
        /// The error as on stderr.
        message: &'a str,
        /// The exit code of this error.
        exit_code: u8,
    },
    /// The command ended. This is the last line.
    Ended {
        /// How it ended.
        outcome: Exit,
        /// The exit code of the command.
        exit_code: u8,
    },
}

/// How a conflict about a field of another manager was resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PrintedSettlement {
    /// The field has our value.
    Taken,
    /// The other manager keeps the field.
    Left,
}

/// An installed version, as the catalogue names it.
#[derive(Debug, Serialize)]
pub struct EventVersion<'a> {
    /// The version, or empty.
    version: &'a str,
    /// The id, or empty.
    id: &'a str,
}

/// The number of objects of a plan by action.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedCounts {
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

/// The number of objects of a report by result.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportCounts {
    pub(crate) created: usize,
    pub(crate) adopted: usize,
    pub(crate) changed: usize,
    pub(crate) recreated: usize,
    pub(crate) migrated: usize,
    pub(crate) pruned: usize,
    pub(crate) retained: usize,
    pub(crate) unchanged: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
    pub(crate) not_ready: usize,
}

/// A line of output.
#[derive(Serialize)]
struct EventLine<'a> {
    time: String,
    /// The name of the cluster, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    #[serde(flatten)]
    event: &'a PrintedEvent<'a>,
}

/// Enables the printing of events.
pub fn enable_events() {
    ON.store(true, Ordering::Relaxed);
}

/// Whether events are printed. Then stdout has nothing else.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Prints an event, if enabled. A reader that went away does not stop an operation.
pub fn emit(event: &PrintedEvent<'_>) {
    if !is_on() {
        return;
    }
    let cluster = of_cluster::current_place();
    let line = EventLine {
        time: Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
            .to_string(),
        cluster: cluster.as_deref().map(FleetClusterSource::name),
        event,
    };
    let is_read = serde_json::to_string(&line).is_ok_and(|text| output::print_json_line(&text));
    if !is_read {
        ON.store(false, Ordering::Relaxed);
    }
}

/// Refuses other output formats beside events.
///
/// # Errors
/// Events are printed, and another format was asked for.
pub fn check_output(format: OutputFormat) -> Result<(), UsageError> {
    match format {
        OutputFormat::Table => Ok(()),
        _ if is_on() => Err(UsageError(
            "--events cannot be combined with --output".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Prints the last event.
pub fn emit_end(exit: Exit) {
    emit(&PrintedEvent::Ended {
        outcome: exit,
        exit_code: exit as u8,
    });
}

impl<'a> EventVersion<'a> {
    fn new(installed: &'a Installed) -> Self {
        Self {
            version: &installed.version,
            id: &installed.id,
        }
    }
}

#[cfg(test)]
mod tests;
