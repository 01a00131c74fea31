//! What happens while an operation runs, and what it finds, as values: the caller shows them, stores them or drops them.

use std::sync::Arc;

use addons_engine::crds::Installed;
use addons_plan::requires::{Dependent, Unready};
use addons_sources::reach::UsedAccount;
use common::api::catalogue::ResourceType;
use common::api::names::InstallationName;
use common::directory::Ignored;
use common::manifest::key::ObjectKey;

use crate::plan::Plan;

/// What happens, as it happens. Several add-ons may be at work at the same time.
#[derive(Clone, Debug)]
pub enum Event {
    /// Work began that may take a while and has no progress of its own.
    Began(Work),
    /// That work ended, successfully or not.
    Ended(Work),
    /// Something that the user should know and that does not stop the operation.
    Found(Finding),
    /// One of our own definitions was installed.
    Defined {
        /// The definition.
        definition: ObjectKey,
        /// What was done.
        done: Installed,
    },
    /// What the engine does for one installation of the plan, by its place there.
    Executing {
        /// Place of the installation in the plan.
        part: usize,
        /// What happened.
        event: addons_engine::Event,
    },
    /// An installation of the plan failed, and goes back.
    GoingBack {
        /// Place of the installation in the plan.
        part: usize,
        /// The way back: a plan of this installation alone.
        plan: Arc<Plan>,
    },
}

/// Work that may take a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A source is read.
    Fetch {
        /// The add-on.
        addon: String,
        /// Kind and location of the source, without credentials.
        source: String,
    },
    /// What a chart depends on is fetched.
    Dependencies {
        /// The add-on.
        addon: String,
    },
    /// Helm renders a chart.
    Render {
        /// The add-on.
        addon: String,
    },
    /// Types that an add-on requires are waited for.
    Types {
        /// The add-on.
        addon: String,
        /// What is not served yet.
        missing: Vec<ResourceType>,
    },
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
    /// A warning of the verdict that the admission webhook would give.
    Verdict(String),
    /// The installed version is newer than the newest one that fits; it stays.
    NewerInstalled {
        /// The installation.
        installation: InstallationName,
        /// The installed version.
        installed: String,
        /// The newest that fits.
        newest: String,
    },
    /// An installation stays at the version that its record names, and a newer one fits.
    Pinned {
        /// The installation.
        installation: InstallationName,
        /// The version that it stays at.
        version: String,
        /// The newest that fits.
        newest: String,
    },
    /// Installations of a namespace besides the system namespace are worked on (semantics 6).
    OtherNamespace(String),
    /// A value was to be taken away that `spec.values` of an installation does not have.
    NotSet {
        /// The installation.
        installation: InstallationName,
        /// The path.
        path: String,
    },
    /// An installation is left alone because of `spec.suspend`.
    Suspended(InstallationName),
    /// A core add-on is not uninstalled with others: it has to be released first (semantics 14).
    CoreStays(InstallationName),
    /// An add-on of an index has no version that fits.
    DoesNotFit {
        /// The add-on.
        addon: String,
    },
    /// A record of kops that cannot be read: the add-on counts as not installed.
    KopsRecord(String),
    /// An object of a directory that is not applied although its manifest is there.
    Unmanaged(Ignored),
    /// An installation is left alone because it comes from a directory.
    OfDirectory {
        /// The installation.
        installation: InstallationName,
        /// The directory.
        directory: String,
    },
    /// The addon-manager runs, and works on the same objects.
    OriginalRuns {
        /// Its pod.
        pod: String,
    },
    /// kops manages the cluster, and applies the same index by itself.
    KopsRuns {
        /// What shows that.
        controller: String,
        /// The index.
        channel: String,
    },
    /// The numbers of a directory's files contradict the order that their objects need, and do not count.
    NumbersIgnored,
    /// A warning of the plan of an add-on of a directory for which there is nothing to do.
    Stays(String),
    /// A required installation is not ready.
    Requirement(Unready),
    /// An installation in another namespace says that it requires what is uninstalled, which does not keep it.
    Deprived(Dependent),
    /// A revision took values from Secrets, which are read as they are now.
    SecretsOfToday(InstallationName),
    /// Types that an installation would wait for.
    TypesNotServed {
        /// The add-on.
        addon: String,
        /// The types.
        missing: Vec<ResourceType>,
    },
    /// A release that an interrupted helm had left pending was recovered.
    ReleaseRecovered {
        /// Name of the release.
        release: String,
        /// What was done.
        recovery: String,
    },
}
