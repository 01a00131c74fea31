//! Errors that end an operation, or one installation of it.

mod catalogue;
mod kind;
mod place;
mod plan;
mod resolve;

use std::time::Duration;

use addons_engine::EngineError;
use addons_engine::remote::RemoteError;
use addons_engine::template_facts::OverlayError;
use addons_helm::{BinaryError, HelmError};
use addons_plan::{
    crd_safety::BreakageError, desired::DesiredError, file::PlanOutdated, graph::Cycle,
};
use addons_plan::{immutable::RecreationError, migration::MigrationError};
use addons_plan::{planner::PlanError, recreate::RecreateError};
use addons_plan::{refusal::RefusalError, requires::RequiresError};
use addons_render::chart::release_name::ReleaseNameError;
use addons_render::text::TextError;
use addons_sources::{SourceError, credentials::CredentialsError, dependency::DependencyError};
use addons_sources::{location::CatalogueError, url::UrlError};
use addons_versions::VersionError;
use common::manifest::{digest::HashError, parse::ManifestError};
use common::patch::PatchError;
use common::schema::SchemaError;
use common::{api::names::InstallationName, directory::DirectoryProblem};
use common::{image::ImageError, pin::OtherCluster, registry::RegistryNameError};
use common::{target::kkp::KkpVersionError, values::ValuesError};

use crate::builtin::BuiltinError;
use crate::execute::interruption::Interrupted;
use crate::render::jail::JailError;
use crate::resolve::choose::{ChooseError, meant};
use crate::text::seconds;
use common::catalogue::content::ContentError;
use common::catalogue::orphan::MissingOrigin;

pub use catalogue::CatalogueFileError;
pub use kind::{Category, ErrorKind};
pub use place::within;
pub use plan::{
    AdoptError, AttemptError, ChangedRelease, ConfiguredRelease, ForeignRelease, MissingRights,
    ModeError, OutsideWindow, OwnCertificate, Unvouched, UnvouchedReason,
};
pub use resolve::{
    Dependents, DirectorySyncError, IndexesError, ManagedInGit, MemberError, NotLocal, NotServed,
    Questions, RollbackError, RolloutFailed, UnfinishedOperation, ValuesFromError, VerdictRefusal,
};

/// An error of other code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why an operation, or one installation in it, was given up. Nothing was written, unless the error is in an [`crate::InstallationOutcome`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// An error with its place.
    #[error("{place}")]
    Within {
        /// `NAME in catalogue C, spec.addons[0].versions[0]`.
        place: String,
        /// The error.
        #[source]
        error: Box<OperationError>,
    },
    /// An error message that repeated content of a Secret, with that content masked.
    #[error("{0}")]
    Masked(String),
    /// No cluster was given.
    #[error("this needs a cluster, and none was given")]
    NoCluster,
    /// The connection cannot be made.
    #[error(transparent)]
    Connect(BoxError),
    /// The namespace of the command stands for another cluster that cannot be used.
    #[error(transparent)]
    Remote(RemoteError),
    /// The version of KKP cannot be read.
    #[error(transparent)]
    Kkp(#[from] KkpVersionError),
    /// The server refused, or cannot be reached.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Template data that users add in a ConfigMap or Secret cannot be read.
    #[error(transparent)]
    Overlay(#[from] OverlayError),
    /// No AddonCatalogue has that name.
    #[error("no catalogue named {name}{}", meant(near.as_deref(), false))]
    UnknownCatalogue {
        /// The name that was asked for.
        name: String,
        /// A similar name that may have been meant.
        near: Option<String>,
    },
    /// No installation has that name.
    #[error(
        "no installation named {name}{}",
        if *offered { "; a catalogue has an add-on of this name".to_owned() } else { meant(near.as_deref(), false) }
    )]
    UnknownInstallation {
        /// The name that was asked for.
        name: String,
        /// A similar name that may have been meant.
        near: Option<String>,
        /// Whether an add-on with this name can be installed.
        offered: bool,
    },
    /// Several installations have that name.
    #[error("{name} is installed in {}", namespaces.join(", "))]
    Ambiguous {
        /// The name that was asked for.
        name: String,
        /// The namespaces with such an installation.
        namespaces: Vec<String>,
    },
    /// The caller may list the installations neither of the cluster nor of the system namespace, and named no other namespace.
    #[error(transparent)]
    NotListed(EngineError),
    /// The namespace of a record does not stand for this cluster (semantics 6.1).
    #[error(transparent)]
    NotLocal(#[from] NotLocal),
    /// An installation outside the system namespace names no ServiceAccount with whose rights it is reconciled (semantics 16.6).
    #[error(
        "{0}: spec.serviceAccountName names no ServiceAccount with whose rights to reconcile it"
    )]
    NoAccount(InstallationName),
    /// The deletion of a record would leave its objects, because no reconciler holds it.
    #[error(
        "{0}: no reconciler manages it, and its cluster cannot be used: deleting its record would leave its objects"
    )]
    NotManaged(InstallationName),
    /// The record belongs to another cluster.
    #[error(transparent)]
    OtherCluster(#[from] OtherCluster),
    /// The record was created from a directory.
    #[error("{installation} comes from directory {directory}, which has no catalogue entries")]
    OfDirectory {
        /// The record.
        installation: InstallationName,
        /// The directory.
        directory: String,
    },
    /// The chart that the user names is another add-on than the one of the installation.
    #[error("{location} is add-on {found}, and {installation} is an installation of {addon}")]
    OtherAddon {
        /// The reference.
        location: String,
        /// The add-on there.
        found: String,
        /// The record.
        installation: InstallationName,
        /// The add-on of the record.
        addon: String,
    },
    /// A file of a directory has an error.
    #[error(transparent)]
    Directory(#[from] DirectoryProblem),
    /// An add-on of a directory cannot be installed.
    #[error("{path}")]
    InDirectory {
        /// The file or folder of the add-on.
        path: String,
        /// Its installation.
        installation: InstallationName,
        /// The directory.
        directory: String,
        /// Why.
        #[source]
        error: Box<OperationError>,
    },
    /// A directory is not synced.
    #[error(transparent)]
    NotSynced(#[from] DirectorySyncError),
    /// A set is not applied because of its members.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// The catalogue of an installation, or its entry there, was deleted.
    #[error("{installation}: its {lost}")]
    Orphaned {
        /// The installation.
        installation: InstallationName,
        /// What was deleted.
        lost: MissingOrigin,
    },
    /// The index of an installation cannot be read.
    #[error("{installation}: the index or folder that it comes from cannot be read")]
    NoIndex {
        /// The installation.
        installation: InstallationName,
        /// Why.
        #[source]
        error: Box<OperationError>,
    },
    /// The Secret that a source names is missing.
    #[error("Secret {namespace}/{name} with the credentials of the source is missing")]
    NoCredentials {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
    },
    /// No command changes an installation with `spec.suspend`.
    #[error("{0} is suspended: it is not changed")]
    Suspended(InstallationName),
    /// A lower version was asked for and not accepted.
    #[error("{} {from} is installed and {to} is lower", installation.name)]
    Downgrade {
        /// The installation.
        installation: InstallationName,
        /// The add-on.
        addon: String,
        /// The installed version.
        from: String,
        /// The version that was asked for.
        to: String,
    },
    /// Indexes contradict each other, or most of their add-ons left them.
    #[error(transparent)]
    Indexes(#[from] IndexesError),
    /// The entry of a recorded plan is no longer in its catalogue.
    #[error("{addon} no longer exists in {origin}")]
    EntryGone {
        /// The add-on.
        addon: String,
        /// The catalogue or index.
        origin: String,
    },
    /// A plan file does not say where the add-on comes from.
    #[error("the plan file names no entry and no version of {0}")]
    NoEntry(String),
    /// The Kubernetes version for a chart is not known.
    #[error("a chart is rendered for a version of Kubernetes, and none is known")]
    NoKubernetesVersion,
    /// The defaults of catalogue and form do not fit the installation.
    #[error("the defaults do not fit the installation")]
    Defaults(#[source] BoxError),
    /// The certificate authority that an entry asks for cannot be created.
    #[error("its certificate authority cannot be made")]
    Authority(#[source] BoxError),
    /// A builtin file cannot be read.
    #[error(transparent)]
    Builtin(#[from] BuiltinError),
    /// The webhook was installed with a certificate from elsewhere.
    #[error(transparent)]
    OwnCertificate(#[from] OwnCertificate),
    /// The caller lacks rights that the plan needs.
    #[error(transparent)]
    Lacking(#[from] MissingRights),
    /// An index or a catalogue file cannot be read.
    #[error(transparent)]
    Index(#[from] CatalogueError),
    /// The content of a catalogue cannot be read from its file, or not be stored.
    #[error(transparent)]
    CatalogueFile(#[from] CatalogueFileError),
    /// Nothing is adopted.
    #[error(transparent)]
    Adopt(#[from] AdoptError),
    /// The installation is left to Argo CD or Flux.
    #[error(transparent)]
    InGit(#[from] ManagedInGit),
    /// No entry fits, or none has that name.
    #[error(transparent)]
    Choose(#[from] ChooseError),
    /// The installation does not accept the entry.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The verdict on the installation is a denial.
    #[error(transparent)]
    Refused(#[from] VerdictRefusal),
    /// Values cannot be read from Secrets.
    #[error(transparent)]
    ValuesFrom(#[from] ValuesFromError),
    /// Types that an add-on requires are not served.
    #[error(transparent)]
    NotServed(#[from] NotServed),
    /// Installations that stay require one that is uninstalled.
    #[error(transparent)]
    Dependents(#[from] Dependents),
    /// Requirements between add-ons are not met.
    #[error(transparent)]
    Requires(#[from] RequiresError),
    /// The revision cannot be restored.
    #[error(transparent)]
    Rollback(#[from] RollbackError),
    /// The rollout that is due was already applied, and failed.
    #[error(transparent)]
    RolloutFailed(#[from] RolloutFailed),
    /// The change would begin outside the maintenance windows of a policy.
    #[error(transparent)]
    OutsideWindow(#[from] Box<OutsideWindow>),
    /// The process was killed during former attempts to plan the installation.
    #[error(transparent)]
    Attempt(#[from] AttemptError),
    /// A person is uninstalling, releasing or adopting the installation.
    #[error(transparent)]
    Unfinished(#[from] UnfinishedOperation),
    /// The installation did not create the Helm release.
    #[error(transparent)]
    ForeignRelease(#[from] ForeignRelease),
    /// Another client changed the Helm release.
    #[error(transparent)]
    ChangedRelease(#[from] ChangedRelease),
    /// The mode of a Helm release changed.
    #[error(transparent)]
    Mode(#[from] ModeError),
    /// The plan could not be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Live objects would break.
    #[error(transparent)]
    Breakage(#[from] BreakageError),
    /// An object that the user named cannot be recreated.
    #[error(transparent)]
    Recreate(#[from] RecreateError),
    /// Objects would be deleted and created again.
    #[error(transparent)]
    Recreation(#[from] RecreationError),
    /// The server refuses writes of the command.
    #[error(transparent)]
    Refusal(#[from] RefusalError),
    /// Stored objects would be rewritten.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// Live objects with generated values cannot be read, so their values could be replaced unnoticed.
    #[error("the chart generates values, and the live ones of kind {kind} cannot be read: {why}")]
    GeneratedUnreadable {
        /// The kind of the objects.
        kind: String,
        /// The server's message.
        why: String,
    },
    /// An object that the chart looks up cannot be read. Treated as missing, it would be rendered with a new password.
    #[error("the chart looks up {object}, which cannot be read")]
    LookupUnreadable {
        /// The object.
        object: String,
        /// Why.
        #[source]
        error: EngineError,
    },
    /// The objects of the command wait for each other.
    #[error(transparent)]
    Cycle(#[from] Cycle),
    /// The cluster changed after the plan was made.
    #[error(transparent)]
    Moved(#[from] PlanOutdated),
    /// The caller interrupted the operation.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// Manifests cannot become objects.
    #[error(transparent)]
    Desired(#[from] DesiredError),
    /// Objects do not fit definitions of the same command.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A manifest cannot be parsed.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A patch of the installation is not valid, or cannot be applied.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// A template cannot be rendered.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Rendering the templates exceeded its time limit.
    #[error(
        "its templates were not rendered after {} and were stopped: does a loop, or an expression, go over long texts?", seconds(*bound)
    )]
    SlowTemplates {
        /// The time limit.
        bound: Duration,
    },
    /// The rendering thread ended without a result.
    #[error("rendering ended by a bug of this program: report it with the output on stderr")]
    LostTemplates,
    /// The rendering process failed.
    #[error(transparent)]
    Jail(#[from] JailError),
    /// The rendering thread cannot be started.
    #[error("no thread can be started to render templates")]
    Thread(#[source] std::io::Error),
    /// The values are invalid.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The name of a Helm release is invalid.
    #[error(transparent)]
    ReleaseName(#[from] ReleaseNameError),
    /// The name of an image is invalid.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The private registry is invalid.
    #[error(transparent)]
    Registry(#[from] RegistryNameError),
    /// The content has another hash than its entry says, or the hash verifies nothing.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// The hash of the folder of a chart leaves out the charts that its lock file names.
    #[error(
        "manifestHash covers the folder of the chart, but not the charts that its lock file names ({charts}): use {whole}, \
         which covers both, or commit charts/"
    )]
    PartialHash {
        /// The names and versions of these charts.
        charts: String,
        /// The sha256 of folder and charts.
        whole: String,
    },
    /// No accepted signature vouches for the content.
    #[error(transparent)]
    Unvouched(Box<Unvouched>),
    /// A version cannot be parsed.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// A source cannot be read.
    #[error(transparent)]
    Source(Box<SourceError>),
    /// A dependency of a chart cannot be read.
    #[error(transparent)]
    Dependency(#[from] DependencyError),
    /// A location is invalid or cannot be read.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The credentials of a source are invalid.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Helm failed.
    #[error(transparent)]
    Helm(#[from] HelmError),
    /// The helm program is missing or unsuitable.
    #[error(transparent)]
    HelmBinary(#[from] BinaryError),
}

impl From<SourceError> for OperationError {
    fn from(error: SourceError) -> Self {
        Self::Source(Box::new(error))
    }
}

#[cfg(test)]
mod tests;
