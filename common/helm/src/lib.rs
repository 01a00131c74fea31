//! The real helm, which renders charts (no library renders charts as helm does): found once, run in a private folder with an environment of its
//! own, bounded in time and output.
//!
//! [`template`] renders for our engine, and [`lookup`] answers what charts ask of a cluster; [`release`] lets helm install
//! (`template.helm.mode: release`). What can be said about a chart without helm is in [`addons_render::chart`], what its hooks mean
//! in [`addons_render::hooks`].

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

use addons_render::chart::references::ReferenceError;
use addons_render::chart::{Chart, ChartError};
use addons_render::package::{Package, PackageError};

pub use addons_sources::archive::ArchiveError;
pub use binary::{BinaryError, Helm};

/// Why helm, or what it was given, failed.
#[derive(Debug, thiserror::Error)]
pub enum HelmError {
    /// No private folder can be made.
    #[error("no temporary folder for helm can be written: {what}")]
    Workspace {
        /// The file.
        what: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It cannot be started or read from.
    #[error("helm cannot be run: {program}")]
    Start {
        /// Its path.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Its bound.
    #[error("helm {verb} took longer than {} s and was stopped", bound.as_secs())]
    TimedOut {
        /// `template`, …
        verb: &'static str,
        /// The bound.
        bound: Duration,
    },
    /// The user pressed Ctrl-C, which also ends the command.
    #[error("helm {verb} was interrupted")]
    Interrupted {
        /// `upgrade`, …
        verb: &'static str,
    },
    /// More than is read.
    #[error("helm {verb} prints more than {} MiB and was stopped: what the chart renders is too large", limit >> 20)]
    TooMuch {
        /// `template`, …
        verb: &'static str,
        /// Bytes.
        limit: usize,
    },
    /// It needs more memory than it gets.
    #[error("helm {verb} needs more than {} MiB of memory: what the chart renders is too large", limit >> 20)]
    Memory {
        /// `template`, …
        verb: &'static str,
        /// Bytes.
        limit: u64,
    },
    /// It failed.
    #[error("helm {verb}: {message}")]
    Failed {
        /// `template`, …
        verb: &'static str,
        /// Its own words.
        message: String,
    },
    /// Its output cannot be read.
    #[error("helm {verb} printed something that cannot be read; helm 3.14 to 4 is supported")]
    Answer {
        /// `status`, …
        verb: &'static str,
    },
    /// The endpoint for `lookup` cannot be opened.
    #[error("no endpoint for `lookup` in the chart can be opened on loopback")]
    Endpoint {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A chart that cannot be rendered.
    #[error("chart: {0}")]
    Chart(ChartError),
    /// An archive that cannot be read.
    #[error("chart archive: {0}")]
    Archive(ArchiveError),
    /// A schema of values that helm would follow out of the chart.
    #[error("chart: {file}: {problem}")]
    Schema {
        /// Its path.
        file: String,
        /// What is wrong.
        problem: ReferenceError,
    },
    /// Charts in charts without end.
    #[error("chart: {file}: charts lie in charts more than 8 levels deep")]
    Nested {
        /// Its path.
        file: String,
    },
    /// A chart with its dependencies does not make a package.
    #[error("chart with its dependencies: {0}")]
    Package(PackageError),
    /// Whoever gave the chart did not fetch what its lock file names.
    #[error("dependency {name} of the chart was not fetched")]
    NotFetched {
        /// Its name.
        name: String,
    },
}

impl HelmError {
    /// Whether helm met fields that another manager changed, and left them.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        // Its only sign; the words are the API server's.
        matches!(self, Self::Failed { message, .. } if message.contains("conflicts with ") || message.contains("conflict with "))
    }
}

/// The chart of a package: a folder, or a `.tgz` as a file.
///
/// # Errors
/// An archive that cannot be read, a folder that is not a chart, a library chart.
pub fn chart(package: &Package) -> Result<Chart, HelmError> {
    let folder = files(package)?;
    Chart::read(&folder).map_err(HelmError::Chart)
}

/// The files of a chart: those of a folder, or of a `.tgz` without the folder that all of them are in.
///
/// # Errors
/// An archive that cannot be read.
pub fn files(package: &Package) -> Result<Cow<'_, Package>, HelmError> {
    let Some(file) = package.as_file() else {
        return Ok(Cow::Borrowed(package));
    };
    let files = addons_sources::archive::unpack(&file.bytes).map_err(HelmError::Archive)?;
    Ok(Cow::Owned(files))
}
