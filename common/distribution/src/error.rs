//! Errors of work on many clusters.

use addons_clusters::core_set::UnknownCoreSet;
use addons_engine::EngineError;
use addons_operation::OperationError;
use addons_operation::error::{CatalogueFileError, Category};
use common::api::names::InstallationName;
use common::catalogue::channel::LocationError;
use common::catalogue::compatible::TooManyVersions;
use common::causes::with_causes;

/// Why catalogues are not pushed to other clusters, or core records are not restored.
#[derive(Debug, thiserror::Error)]
pub enum DistributionError {
    /// An operation on one cluster failed.
    #[error(transparent)]
    Operation(Box<OperationError>),
    /// The error concerns one of several clusters.
    #[error("{cluster}")]
    Cluster {
        /// The name of its namespace here, or of a kubeconfig context.
        cluster: String,
        /// The error.
        #[source]
        error: Box<DistributionError>,
    },
    /// There is no catalogue to merge.
    #[error("no catalogues to push")]
    NoSources,
    /// Catalogues have the same entries.
    #[error("catalogues with the same entries cannot be merged: {}", lost.join("; "))]
    HeldTwice {
        /// The entries that each catalogue has to give up.
        lost: Vec<String>,
    },
    /// A relative manifest has no base URL.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// An object with the name of a copy exists that is not a copy from this cluster.
    #[error("{object}: it exists there and {}", match holder {
        Some(uid) => format!("is a copy from another cluster ({uid})"),
        None => "is not a copy".to_owned(),
    })]
    NotOurs {
        /// The object: `catalogue NAME`.
        object: String,
        /// The uid of the cluster that it was copied from.
        holder: Option<String>,
    },
    /// The namespace stands for no cluster.
    #[error("the namespace does not stand for a cluster")]
    NoCluster,
    /// No namespace has these labels.
    #[error("no namespace has the labels {selector}")]
    NoTargets {
        /// The selector that was asked for.
        selector: String,
    },
    /// The copy of what fits a cluster is too large.
    #[error(transparent)]
    TooMany(#[from] TooManyVersions),
    /// A core record is not restored.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

/// Why a core record is not restored. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The record exists and has nothing to add.
    #[error("the record of {0} exists, and is as new as the cluster")]
    Recorded(InstallationName),
    /// The record of that name is not a core add-on.
    #[error("{0}: spec.coreAddon: it is not a core add-on")]
    NotCore(InstallationName),
    /// None of its objects exists.
    #[error("there is nothing to restore: no object carries the label of {name}")]
    Nothing {
        /// The installation.
        name: InstallationName,
        /// Whether the core set of the cluster lists the add-on.
        is_listed: bool,
    },
    /// The core set decides what the record contains.
    #[error("{0} is listed as a core add-on: the list says its origin, version and values")]
    Listed(InstallationName),
    /// The core set is unknown.
    #[error(transparent)]
    Unknown(UnknownCoreSet),
}

impl DistributionError {
    /// Returns the category of the error; `None` if its causes decide.
    #[must_use]
    pub fn category(&self) -> Option<Category> {
        match self {
            Self::Operation(error) => error.kind().category,
            Self::Cluster { error, .. } => error.category(),
            Self::NoSources
            | Self::HeldTwice { .. }
            | Self::Location(_)
            | Self::NotOurs { .. }
            | Self::NoCluster
            | Self::NoTargets { .. }
            | Self::TooMany(_)
            | Self::Restore(_) => None,
        }
    }

    /// Wraps the error with the name of its cluster.
    #[must_use]
    pub fn in_cluster(self, cluster: String) -> Self {
        Self::Cluster {
            cluster,
            error: Box::new(self),
        }
    }

    /// Returns the error and its causes in one line.
    #[must_use]
    pub fn chain(&self) -> String {
        with_causes(self)
    }
}

impl From<OperationError> for DistributionError {
    fn from(error: OperationError) -> Self {
        Self::Operation(Box::new(error))
    }
}

impl From<EngineError> for DistributionError {
    fn from(error: EngineError) -> Self {
        OperationError::from(error).into()
    }
}

impl From<CatalogueFileError> for DistributionError {
    fn from(error: CatalogueFileError) -> Self {
        OperationError::from(error).into()
    }
}
