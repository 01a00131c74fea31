//! Events of a running operation, and its findings, as values: the caller shows, stores or drops them.

use std::sync::Arc;

use addons_engine::crds::CrdResult;
use addons_plan::requires::{Dependent, UnreadyRequirement};
use addons_sources::reach::UsedAccount;
use common::api::catalogue::ResourceType;
use common::api::names::InstallationName;
use common::directory::IgnoredObject;
use common::manifest::key::ObjectKey;

use crate::plan::Plan;

/// An event of a running operation. Several add-ons may be processed at the same time.
#[derive(Clone, Debug)]
pub enum OperationEvent {
    /// An activity began that may take a while and has no progress of its own.
    Began(Activity),
    /// That activity ended, successfully or not.
    Ended(Activity),
    /// Something that the user should know and that does not stop the operation.
    Finding(Finding),
    /// A CustomResourceDefinition of kubectl addons was installed.
    Defined {
        /// The definition.
        definition: ObjectKey,
        /// What was done.
        done: CrdResult,
    },
    /// An event of the engine for one installation of the plan.
    Executing {
        /// The index of the installation in the plan.
        part: usize,
        /// What happened.
        event: addons_engine::Event,
    },
    /// An installation of the plan failed, and is rolled back.
    RollingBack {
        /// The index of the installation in the plan.
        part: usize,
        /// The rollback: a plan of this installation alone.
        plan: Arc<Plan>,
    },
}

/// An activity that may take a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    /// A source is read.
    Fetch {
        /// The add-on.
        addon: String,
        /// Kind and location of the source, without credentials.
        source: String,
    },
    /// The dependencies of a chart are fetched.
    Dependencies {
        /// The add-on.
        addon: String,
    },
    /// Helm renders a chart.
    Render {
        /// The add-on.
        addon: String,
    },
    /// The command waits for types that an add-on requires.
    Types {
        /// The add-on.
        addon: String,
        /// The types that are not served yet.
        missing: Vec<ResourceType>,
    },
}

/// How the successor of an add-on replaces an installation of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SuccessorPath {
    /// It contains objects of the installation, and takes them over where it is installed in its place.
    TakesOver {
        /// The number of these objects.
        objects: usize,
        /// The number of objects of the installation.
        of: usize,
        /// The target namespace of the installation, if the successor has another one by default.
        target_namespace: Option<String>,
    },
    /// It contains none of them, as far as it could be rendered: both are installed side by side, until its users have moved.
    Beside,
    /// Nothing can be installed under its name, for this reason.
    Unavailable(String),
}

/// Something that the user should know and that does not stop the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A key or an account of the user is used for the first time.
    Uses(UsedAccount),
    /// A doubtful value in an index or a catalogue file, with its place.
    Index(String),
    /// The choice between versions is ambiguous, or the chosen version has a flaw.
    Selection {
        /// The add-on.
        addon: String,
        /// What was found.
        warning: String,
    },
    /// An installation stays at a deprecated add-on or version, which names a successor.
    Successor {
        /// The installation.
        installation: InstallationName,
        /// The name of the add-on that replaces it.
        successor: String,
        /// How it does.
        path: SuccessorPath,
    },
    /// A warning of the verdict, as the admission webhook would give it.
    Verdict(String),
    /// The installed version is newer than the newest one that fits; it stays.
    NewerInstalled {
        /// The installation.
        installation: InstallationName,
        /// The installed version.
        installed: String,
        /// The newest version that fits.
        newest: String,
    },
    /// An installation stays at the version that its record names, and a newer one fits.
    Pinned {
        /// The installation.
        installation: InstallationName,
        /// The version that it stays at.
        version: String,
        /// The newest version that fits.
        newest: String,
    },
    /// Installations of a namespace other than the system namespace are used (semantics 6.1).
    OtherNamespace(String),
    /// A path to remove is not in `spec.values` of an installation.
    NotSet {
        /// The installation.
        installation: InstallationName,
        /// The path.
        path: String,
    },
    /// An installation is left alone because of `spec.suspend`.
    Suspended(InstallationName),
    /// A reference has other content than the installation recorded for it.
    Moved {
        /// The reference.
        location: String,
        /// The recorded digest.
        before: String,
        /// The digest now.
        now: String,
    },
    /// A core add-on is not uninstalled with the others: it has to be released first (semantics 14.1).
    CoreStays(InstallationName),
    /// An add-on of an index has no version that fits.
    DoesNotFit {
        /// The add-on.
        addon: String,
    },
    /// A record of kops cannot be read: the add-on counts as not installed.
    KopsRecord(String),
    /// The record of kops says that an add-on was installed from another index.
    OtherChannel {
        /// The add-on.
        addon: String,
        /// The index that the record names.
        channel: String,
    },
    /// An object of a directory is not applied although its manifest exists.
    Unmanaged(IgnoredObject),
    /// Files of a directory cannot be applied, and the other files of their add-on are.
    LeftOut(String),
    /// An installation is left alone because it comes from a directory.
    OfDirectory {
        /// The installation.
        installation: InstallationName,
        /// The directory.
        directory: String,
    },
    /// The addon-manager runs, and changes the same objects.
    OriginalRuns {
        /// Its pod.
        pod: String,
    },
    /// kops manages the cluster, and applies the same index by itself.
    KopsRuns {
        /// The object that shows it.
        controller: String,
        /// The index.
        channel: String,
    },
    /// The numbers of a directory's files contradict the order that their objects need, and are ignored.
    NumbersIgnored,
    /// A warning of the plan for an add-on of a directory that is up to date.
    Stays(String),
    /// A required installation is not ready.
    Requirement(UnreadyRequirement),
    /// An installation in another namespace says that it requires an uninstalled add-on, which does not keep the add-on (semantics 13.5).
    Deprived(Dependent),
    /// A revision took values from Secrets, whose current content is used.
    SecretsOfToday(InstallationName),
    /// Types are missing that an installation would wait for.
    TypesNotServed {
        /// The add-on.
        addon: String,
        /// The types.
        missing: Vec<ResourceType>,
    },
    /// A release that an interrupted helm left pending was recovered.
    ReleaseRecovered {
        /// Name of the release.
        release: String,
        /// What was done.
        recovery: String,
    },
}
