//! Why an installation cannot be resolved: what was asked for, or what is recorded, stands in the way.

use std::fmt;
use std::time::Duration;

use addons_admission::rules::cluster::no_cluster_message;
use addons_plan::Verb;
use addons_plan::continuation::Continuation;
use addons_plan::history::NoRevision;
use common::api::catalogue::{FormField, ResourceType};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::values::secret::SecretValuesError;

use crate::text::{join_types, seconds};

/// Why indexes are not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexesError {
    /// Two indexes have the same entry with different contents.
    #[error("two manifests have the same version and id of {addon}: in {first} and in {second}")]
    TwoHashes {
        /// The add-on.
        addon: String,
        /// An index.
        first: String,
        /// Another one.
        second: String,
    },
    /// Most of what was installed from an index is not in it any more.
    #[error(
        "{removed} of {installed} installations from kops indexes are no longer in them; none was uninstalled"
    )]
    MostlyRemoved {
        /// How many would be uninstalled.
        removed: usize,
        /// How many there are.
        installed: usize,
    },
}

/// Why a set is not applied. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// Most of its members are no longer in the file, which looks like a truncated file or that of another set.
    #[error("{} of the {of} installations of set {set} are no longer in the file: {}", gone.len(), gone.join(", "))]
    MostlyGone {
        /// The set.
        set: String,
        /// The installations that are not in the file.
        gone: Vec<String>,
        /// How many members the set has.
        of: usize,
    },
    /// The installation is a member of another set: the two sets would undo each other.
    #[error("installation {installation} is a member of set {other}, and this is set {set}")]
    OfOtherSet {
        /// The installation.
        installation: InstallationName,
        /// The set that it is a member of.
        other: String,
        /// The set that is being applied.
        set: String,
    },
}

/// Why a directory, or an add-on in it, is not synced. Nothing of it was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectorySyncError {
    /// The directory has no manifest, so nothing is uninstalled because of it.
    #[error(
        "directory {directory} holds no manifest, and {installations} of the installations came from it: nothing is uninstalled"
    )]
    Empty {
        /// The directory.
        directory: String,
        /// How many installations came from it.
        installations: usize,
    },
    /// More than half of the add-ons that came from the directory are missing from it, so nothing is uninstalled because of it.
    #[error("{gone} of the {of} add-ons of directory {directory} are gone: nothing is uninstalled")]
    MostlyGone {
        /// The directory.
        directory: String,
        /// How many installations no longer have a manifest.
        gone: usize,
        /// How many installations came from it.
        of: usize,
    },
    /// An installation from elsewhere has the name of an add-on.
    #[error("{path}: the installation {installation} does not come from this directory")]
    NameTaken {
        /// The installation.
        installation: InstallationName,
        /// The file or folder.
        path: String,
    },
}

/// Why a record is left to Git. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagedInGit {
    /// Git sets these fields.
    #[error(
        "{installation} is applied by {by}, whose next sync would undo the change of {}: change it in Git", fields.join(", ")
    )]
    Undone {
        /// The record.
        installation: InstallationName,
        /// What applies it.
        by: String,
        /// Paths of the fields.
        fields: Vec<String>,
    },
    /// Git sets none of these fields: a sync would leave them, and Git would not show what is installed.
    #[error(
        "{installation} is applied by {by}, and Git does not set {}: set it there", fields.join(", ")
    )]
    Unset {
        /// The record.
        installation: InstallationName,
        /// What applies it.
        by: String,
        /// Paths of the fields.
        fields: Vec<String>,
    },
    /// The installation was to be uninstalled.
    #[error(
        "{installation} is applied by {by}, whose next sync would create it again: remove it from Git"
    )]
    Created {
        /// The record.
        installation: InstallationName,
        /// What applies it.
        by: String,
    },
}

/// Why an installation is left as it is. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{installation}: {} was begun, and has not ended", quote_word(*verb))]
pub struct UnfinishedOperation {
    /// The installation.
    pub installation: InstallationName,
    /// The operation that was begun.
    pub verb: Verb,
    /// The command that ends it.
    pub next: Box<Continuation>,
}

fn quote_word(verb: Verb) -> &'static str {
    match verb {
        Verb::Uninstall => "its uninstallation",
        Verb::Release => "its release",
        Verb::Adopt => "its adoption",
        Verb::Install | Verb::Upgrade | Verb::Rollback => "an operation",
    }
}

/// Why an installation is not rolled back to an earlier revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RollbackError {
    /// There is no revision to restore.
    #[error("{installation}: {why}")]
    NoRevision {
        /// The installation.
        installation: InstallationName,
        /// Why.
        why: NoRevision,
    },
    /// The entry is not taken from the revision, and the catalogue has another one now.
    #[error(
        "{installation}: the entry of revision {revision} ({version}) {}, and {}",
        if *is_core { "is that of a core add-on, which is taken from its catalogue only" } else { "is not kept with it" },
        unlisted(origin.as_deref())
    )]
    EntryLost {
        /// The installation.
        installation: InstallationName,
        /// The revision.
        revision: i64,
        /// The version that it installed.
        version: String,
        /// Whether it is a core add-on.
        is_core: bool,
        /// The catalogue or index of the entry; `None` if any catalogue may have it.
        origin: Option<String>,
    },
    /// No catalogue lists the entry, and a catalogue requires signatures.
    #[error(
        "{installation}: no catalogue lists the entry of revision {revision} ({version}), and catalogue {catalogue} requires signatures"
    )]
    Unlisted {
        /// The installation.
        installation: InstallationName,
        /// The revision.
        revision: i64,
        /// The version that it installed.
        version: String,
        /// The catalogue that the revision names, or that lists other versions of the add-on.
        catalogue: String,
    },
    /// An upgrade takes over objects that existed before: a rollback would delete them.
    #[error("{installation}: the upgrade takes over {object}, which going back would delete")]
    TakesOver {
        /// The installation.
        installation: InstallationName,
        /// The existing object, of another installation or of none.
        object: Box<ObjectKey>,
    },
}

fn unlisted(origin: Option<&str>) -> String {
    match origin {
        Some(origin) => format!("{origin} no longer lists it"),
        None => "no catalogue lists it".to_owned(),
    }
}

/// Why a plan is not executed again. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{installation}: what is due was applied, and {object} failed: {message}")]
pub struct RolloutFailed {
    /// The installation.
    pub installation: InstallationName,
    /// The object that will not become ready by itself.
    pub object: Box<ObjectKey>,
    /// The reason in its status.
    pub message: String,
}

/// A denial by this program, with the message of the webhook (exit code 6).
#[derive(Debug, thiserror::Error)]
#[error("{what} is refused: {message}")]
pub struct VerdictRefusal {
    /// What was validated.
    pub what: String,
    /// The denial.
    pub message: String,
    /// The missing values that are part of the denial.
    pub questions: Option<Box<Questions>>,
    /// The AddonPolicies that deny.
    pub policies: Vec<String>,
    /// The rules that were broken.
    pub rules: Vec<&'static str>,
}

/// Values that a form requires and no layer has.
#[derive(Clone, Debug)]
pub struct Questions {
    /// The installation that needs the values.
    pub installation: InstallationName,
    /// Its add-on.
    pub addon: String,
    /// The version.
    pub version: String,
    /// The fields; at least one.
    pub fields: Vec<FormField>,
    /// Whether answers would lift the denial, because nothing else is wrong with the values.
    pub are_all: bool,
}

/// Why values cannot be taken from a Secret. No variant repeats its content.
#[derive(Debug, thiserror::Error)]
pub enum ValuesFromError {
    /// The Secret does not exist.
    #[error(
        "{installation} takes values from Secret {}/{name}, which does not exist",
        .installation.namespace
    )]
    NoSecret {
        /// The installation; the Secret is in its namespace.
        installation: InstallationName,
        /// Name of the Secret.
        name: String,
        /// The index of the reference.
        index: usize,
    },
    /// The Secret does not have the key.
    #[error(
        "{installation} takes values from key {key} of Secret {}/{name}, which has no such key",
        .installation.namespace
    )]
    NoKey {
        /// The installation; the Secret is in its namespace.
        installation: InstallationName,
        /// Name of the Secret.
        name: String,
        /// The key.
        key: String,
        /// The index of the reference.
        index: usize,
    },
    /// The Secret must not be used for values.
    #[error("the values of {installation} cannot be read")]
    NotValues {
        /// The installation.
        installation: InstallationName,
        /// Why.
        #[source]
        why: SecretValuesError,
    },
    /// The key holds no values.
    #[error("{installation} takes values from a Secret without values: {why}")]
    NoValues {
        /// The installation.
        installation: InstallationName,
        /// The Secret, key and line.
        why: String,
    },
}

/// Installations that stay require one that is uninstalled (exit code 1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines.join("\n"))]
pub struct Dependents {
    /// One line for each requirement.
    pub(crate) lines: Vec<String>,
    /// The installations that would have to be uninstalled together.
    pub together: Vec<String>,
}

/// Required types were not served in time (exit code 3). Nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("{addon}: {}", words(types, *waited))]
pub struct NotServed {
    /// The add-on.
    pub addon: String,
    /// The types that are still missing.
    pub types: Vec<ResourceType>,
    /// How long the command waited.
    pub waited: Duration,
}

fn words(types: &[ResourceType], waited: Duration) -> String {
    let types = join_types(types);
    match waited.is_zero() {
        true => format!("it requires {types}, which the cluster does not serve"),
        false => format!("timed out after {} waiting for {types}", seconds(waited)),
    }
}

/// Why nothing is recorded in the namespace of a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct NotLocal {
    /// The namespace that was asked for.
    pub asked: String,
    /// The system namespace.
    pub system: String,
    /// Whether the namespace exists.
    pub exists: bool,
}

impl fmt::Display for NotLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, system, .. } = self;
        if self.exists {
            return write!(f, "namespace {}", no_cluster_message(asked, system));
        }
        write!(
            f,
            "namespace {asked} does not exist: installations of this cluster belong in {system}"
        )
    }
}
