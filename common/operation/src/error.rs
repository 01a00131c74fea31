//! Errors that end an operation, or one installation of it.

mod place;

use std::time::Duration;

use addons_engine::EngineError;
use addons_engine::remote::RemoteError;
use addons_engine::template_facts::OverlayError;
use addons_helm::{BinaryError, HelmError};
use addons_plan::{crd_safety::BreakageError, desired::DesiredError, file::Moved, graph::Cycle};
use addons_plan::{immutable::RecreationError, migration::MigrationError};
use addons_plan::{planner::PlanError, recreate::RecreateError};
use addons_plan::{refusal::RefusalError, requires::RequiresError};
use addons_render::chart::release_name::ReleaseNameError;
use addons_render::text::TextError;
use addons_sources::{SourceError, credentials::CredentialsError, dependency::DependencyError};
use addons_sources::{location::CatalogueError, url::UrlError};
use addons_versions::VersionError;
use common::manifest::{digest::HashError, parse::ManifestError};
use common::schema::SchemaError;
use common::{api::names::InstallationName, directory::Problem};
use common::{image::ImageError, pin::OtherCluster, registry::RegistryError};
use common::{target::kkp::KkpError, values::ValuesError};

use crate::adopt::AdoptError;
use crate::attempt::AttemptError;
use crate::builtin::{BuiltinError, rights::Lacking, webhook::OwnCertificate};
use crate::channel::IndexesError;
use crate::choose::{ChooseError, meant};
use crate::context::BoxError;
use crate::core_set::restore::RestoreError;
use crate::declared::MemberError;
use crate::directory::NotSynced;
use crate::distribution::DistributionError;
use crate::elapsed::seconds;
use crate::gitops::InGit;
use crate::interruption::Interrupted;
use crate::jail::JailError;
use crate::not_local::NotLocal;
use crate::release::{ChangedRelease, ForeignRelease, ModeError};
use crate::required_types::NotServed;
use crate::requirements::Dependents;
use crate::rollback::RollbackError;
use crate::rollout::RolloutFailed;
use crate::signature::Unvouched;
use crate::unfinished::Unfinished;
use crate::values_from::ValuesFromError;
use crate::verdict::Refused;
use common::catalogue::content::ContentError;
use common::catalogue::orphan::Lost;

pub use place::within;

/// Why an operation, or one installation of it, was given up. Nothing was written, unless the error is in a
/// [`crate::Outcome`].
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
    /// The message of an error that repeated a Secret, without it.
    #[error("{0}")]
    Masked(String),
    /// No cluster was given.
    #[error("this needs a cluster, and none was given")]
    NoCluster,
    /// The connection cannot be made.
    #[error(transparent)]
    Connect(BoxError),
    /// The cluster that the namespace of the command stands for cannot be worked on.
    #[error(transparent)]
    Remote(RemoteError),
    /// The version of KKP cannot be read.
    #[error(transparent)]
    Kkp(#[from] KkpError),
    /// The server refused, or cannot be reached.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Facts that users add in a ConfigMap or Secret.
    #[error(transparent)]
    Overlay(#[from] OverlayError),
    /// No AddonCatalogue has that name.
    #[error("no catalogue named {name}")]
    UnknownCatalogue {
        /// As asked.
        name: String,
    },
    /// No installation has that name.
    #[error("no installation named {name}{}", meant(near.as_deref(), false))]
    UnknownInstallation {
        /// As asked.
        name: String,
        /// One that may have been meant.
        near: Option<String>,
    },
    /// Several installations have that name.
    #[error("{name} is installed in {}", namespaces.join(", "))]
    Ambiguous {
        /// As asked.
        name: String,
        /// Where.
        namespaces: Vec<String>,
    },
    /// The caller may list the installations neither of the cluster nor of the system namespace, and named no other namespace.
    #[error(transparent)]
    NotListed(EngineError),
    /// A namespace for a record that does not stand for this cluster (semantics 6).
    #[error(transparent)]
    NotLocal(#[from] NotLocal),
    /// An installation outside the system namespace is reconciled with the rights of a ServiceAccount (semantics 16).
    #[error(
        "{0}: spec.serviceAccountName names no ServiceAccount with whose rights to reconcile it"
    )]
    NoAccount(InstallationName),
    /// A record of another cluster.
    #[error(transparent)]
    OtherCluster(#[from] OtherCluster),
    /// A record that was created from a directory.
    #[error("{installation} comes from directory {directory}, which has no catalogue entries")]
    OfDirectory {
        /// The record.
        installation: InstallationName,
        /// The directory.
        directory: String,
    },
    /// What is wrong with a file of a directory.
    #[error(transparent)]
    Directory(#[from] Problem),
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
    /// A directory is not taken for the truth.
    #[error(transparent)]
    NotSynced(#[from] NotSynced),
    /// What a set says of its members is not done.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// An installation whose catalogue, or its entry there, is gone.
    #[error("{installation}: its {lost}")]
    Orphaned {
        /// The installation.
        installation: InstallationName,
        /// What is gone.
        lost: Lost,
    },
    /// An installation whose index cannot be read.
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
    /// No verb changes an installation with `spec.suspend`.
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
    /// What several indexes say, or do not say any more.
    #[error(transparent)]
    Indexes(#[from] IndexesError),
    /// The entry of a recorded plan is not in its catalogue any more.
    #[error("{addon} no longer exists in {origin}")]
    EntryGone {
        /// The add-on.
        addon: String,
        /// Catalogue or index.
        origin: String,
    },
    /// A plan file that does not say where the add-on comes from.
    #[error("the plan file names no entry and no version of {0}")]
    NoEntry(String),
    /// The Kubernetes version for a chart is not known.
    #[error("a chart is rendered for a version of Kubernetes, and none is known")]
    NoKubernetesVersion,
    /// The defaults of catalogue and form do not make an installation.
    #[error("the defaults do not fit the installation")]
    Defaults(#[source] BoxError),
    /// No certificate authority could be made for an entry that asks for one.
    #[error("its certificate authority cannot be made")]
    Authority(#[source] BoxError),
    /// What this program brings along cannot be read.
    #[error(transparent)]
    Builtin(#[from] BuiltinError),
    /// The webhook was installed with a certificate from elsewhere.
    #[error(transparent)]
    OwnCertificate(#[from] OwnCertificate),
    /// Rights that the whole plan needs.
    #[error(transparent)]
    Lacking(#[from] Lacking),
    /// An index or a catalogue file.
    #[error(transparent)]
    Index(#[from] CatalogueError),
    /// A catalogue cannot be brought up to date or to other clusters.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// Nothing is taken over.
    #[error(transparent)]
    Adopt(#[from] AdoptError),
    /// A core record is not made again.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// It is left to Argo CD or Flux.
    #[error(transparent)]
    InGit(#[from] InGit),
    /// No entry fits, or none has that name.
    #[error(transparent)]
    Choose(#[from] ChooseError),
    /// An entry that the installation does not accept.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The verdict on the installation is a denial.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Values in Secrets.
    #[error(transparent)]
    ValuesFrom(#[from] ValuesFromError),
    /// Types that an add-on requires are not served.
    #[error(transparent)]
    NotServed(#[from] NotServed),
    /// Installations that stay require one that is removed.
    #[error(transparent)]
    Dependents(#[from] Dependents),
    /// What add-ons require of each other.
    #[error(transparent)]
    Requires(#[from] RequiresError),
    /// There is no revision to go back to.
    #[error(transparent)]
    Rollback(#[from] RollbackError),
    /// What is due was applied already, and failed.
    #[error(transparent)]
    RolloutFailed(#[from] RolloutFailed),
    /// Former attempts to plan it ended with their process.
    #[error(transparent)]
    Attempt(#[from] AttemptError),
    /// A person is removing, releasing or adopting it.
    #[error(transparent)]
    Unfinished(#[from] Unfinished),
    /// A Helm release that the installation did not create.
    #[error(transparent)]
    ForeignRelease(#[from] ForeignRelease),
    /// A Helm release that another client changed.
    #[error(transparent)]
    ChangedRelease(#[from] ChangedRelease),
    /// The mode of a helm release changed.
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
    /// Objects would be written again.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// Objects with values that the chart generates cannot be read, so it is not known what would be replaced.
    #[error("the chart generates values, and the live ones of kind {kind} cannot be read: {why}")]
    GeneratedUnreadable {
        /// The kind of the objects.
        kind: String,
        /// The server's message.
        why: String,
    },
    /// An object that the chart looks up: taken for missing, it would be rendered with a new password.
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
    Moved(#[from] Moved),
    /// The caller interrupted it.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// Manifests that cannot become objects.
    #[error(transparent)]
    Desired(#[from] DesiredError),
    /// Objects that do not fit definitions of the same command.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A template.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Templates that do not end.
    #[error(
        "its templates were not rendered after {} and were stopped: does a loop, or an expression, go over long texts?", seconds(*bound)
    )]
    SlowTemplates {
        /// How long they had.
        bound: Duration,
    },
    /// A thread that ended without an answer.
    #[error("rendering ended by a bug of this program: report it with the output on stderr")]
    LostTemplates,
    /// The process that renders.
    #[error(transparent)]
    Jail(#[from] JailError),
    /// No thread to render on.
    #[error("no thread can be started to render templates")]
    Thread(#[source] std::io::Error),
    /// Values.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The name of a Helm release.
    #[error(transparent)]
    ReleaseName(#[from] ReleaseNameError),
    /// The name of an image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A private registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Content with another hash than its entry says, or a hash that verifies nothing.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// A hash of a chart's folder that leaves out what its lock file names.
    #[error(
        "manifestHash covers the folder of the chart, but not the charts that its lock file names ({charts}): use {whole}, \
         which covers both, or commit charts/"
    )]
    PartialHash {
        /// Their names and versions.
        charts: String,
        /// The sha256 of everything.
        whole: String,
    },
    /// Nothing vouches for the content.
    #[error(transparent)]
    Unvouched(Box<Unvouched>),
    /// A version.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// A source.
    #[error(transparent)]
    Source(Box<SourceError>),
    /// A chart that a chart is made of.
    #[error(transparent)]
    Dependency(#[from] DependencyError),
    /// A location.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// Credentials of a source.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Helm.
    #[error(transparent)]
    Helm(#[from] HelmError),
    /// The helm program.
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
