//! Runs the real helm, because no library renders charts as helm does. Helm is found once, and runs in a private folder with its own
//! environment and with limits of time and output.
//!
//! [`template`] renders for our engine, and [`lookup`] answers what charts ask of a cluster; [`release`] lets helm install
//! (`template.helm.mode: release`). [`addons_render::chart`] reads charts without helm, and [`addons_render::hooks`] interprets their
//! hooks.

pub mod binary;
pub mod dependencies;
mod kubeconfig;
pub mod lookup;
mod process;
pub mod provenance;
pub mod release;
mod schema;
pub mod template;
mod workspace;

use std::borrow::Cow;
use std::time::Duration;

use addons_render::chart::references::SchemaReferenceError;
use addons_render::chart::{Chart, ChartError};
use addons_render::package::{Package, PackageError};

pub use addons_sources::archive::ArchiveError;
pub use binary::{BinaryError, Helm};

/// Why helm, or a chart for it, failed.
#[derive(Debug, thiserror::Error)]
pub enum HelmError {
    /// No private folder can be created.
    #[error("no temporary folder for helm can be written: {what}")]
    Workspace {
        /// The file or folder.
        what: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Helm cannot be started, or its output cannot be read.
    #[error("helm cannot be run: {program}")]
    Start {
        /// Its path.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Helm took longer than its time limit.
    #[error("helm {verb} took longer than {} s and was stopped", bound.as_secs())]
    TimedOut {
        /// The command of helm: `template`, …
        verb: &'static str,
        /// The time limit.
        bound: Duration,
    },
    /// The user pressed Ctrl-C, which ends this program as well.
    #[error("helm {verb} was interrupted")]
    Interrupted {
        /// The command of helm: `upgrade`, …
        verb: &'static str,
    },
    /// Helm printed more than the limit.
    #[error("helm {verb} prints more than {} MiB and was stopped: what the chart renders is too large", limit >> 20)]
    TooMuch {
        /// The command of helm: `template`, …
        verb: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// Helm needs more memory than its limit.
    #[error("helm {verb} needs more than {} MiB of memory: what the chart renders is too large", limit >> 20)]
    Memory {
        /// The command of helm: `template`, …
        verb: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
    /// Helm failed.
    #[error("helm {verb}: {message}")]
    Failed {
        /// The command of helm: `template`, …
        verb: &'static str,
        /// Helm's own message.
        message: String,
    },
    /// Helm's output cannot be parsed.
    #[error("helm {verb} printed something that cannot be read; helm 3.14 to 4 is supported")]
    Answer {
        /// The command of helm: `status`, …
        verb: &'static str,
    },
    /// The endpoint for `lookup` cannot be opened.
    #[error("no endpoint for `lookup` in the chart can be opened on loopback")]
    Endpoint {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The chart cannot be rendered.
    #[error("chart: {0}")]
    Chart(ChartError),
    /// The archive cannot be read.
    #[error("chart archive: {0}")]
    Archive(ArchiveError),
    /// A schema of values would make helm read something outside of the chart.
    #[error("chart: {file}: {problem}")]
    Schema {
        /// Path of the schema.
        file: String,
        /// What is wrong.
        problem: SchemaReferenceError,
    },
    /// Charts are nested too deeply.
    #[error("chart: {file}: charts lie in charts more than 8 levels deep")]
    Nested {
        /// Path of the innermost chart.
        file: String,
    },
    /// The chart with its dependencies is not a valid package.
    #[error("chart with its dependencies: {0}")]
    Package(PackageError),
    /// The caller did not fetch a dependency that the lock file names.
    #[error("dependency {name} of the chart was not fetched")]
    NotFetched {
        /// Name of the dependency.
        name: String,
    },
}

impl HelmError {
    /// Returns whether helm failed because another field manager owns fields that it would change.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        // The message, which comes from the API server, is the only sign.
        matches!(self, Self::Failed { message, .. } if message.contains("conflicts with ") || message.contains("conflict with "))
    }
}

/// Reads the chart of a package: a folder, or a `.tgz` as a file.
///
/// # Errors
/// The archive cannot be read, or the package is not a chart or is a library chart.
pub fn read_chart(package: &Package) -> Result<Chart, HelmError> {
    let folder = chart_files(package)?;
    Chart::read(&folder).map_err(HelmError::Chart)
}

/// Returns the files of a chart: those of a folder, or those of a `.tgz` without their common top folder.
///
/// # Errors
/// The archive cannot be read.
pub fn chart_files(package: &Package) -> Result<Cow<'_, Package>, HelmError> {
    let Some(file) = package.as_file() else {
        return Ok(Cow::Borrowed(package));
    };
    let files = addons_sources::archive::unpack(&file.bytes).map_err(HelmError::Archive)?;
    Ok(Cow::Owned(files))
}
