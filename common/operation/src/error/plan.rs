//! Why a plan is not made or not executed, although its installations were resolved.

use std::time::Duration;

use addons_admission::policy::maintenance::ClosedWindow;
use addons_engine::webhooks::WEBHOOK;
use addons_plan::found::ForeignInstall;
use addons_sources::signature::{SignatureError, SignerError};
use common::api::catalogue::HelmMode;
use common::api::installation::HelmRelease;
use common::api::names::{InstallationName, SYSTEM_NAMESPACE};
use common::right::Right;
use common::text::list_first;

use crate::text::seconds;

/// How many values of a release an error names.
const LISTED: usize = 8;

/// A change that may not begin now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{installation}: {what} has to wait {window}{}", describe_more(*more))]
pub struct OutsideWindow {
    /// The installation.
    pub installation: InstallationName,
    /// The change: `upgrade to 1.2.0`.
    pub what: String,
    /// The windows that are closed.
    pub window: ClosedWindow,
    /// How long the windows stay closed, by the clock of the server; `None` if they never open.
    pub wait: Option<Duration>,
    /// How many installations of the plan have to wait besides this one.
    pub more: usize,
}

fn describe_more(more: usize) -> String {
    match more {
        0 => String::new(),
        1 => " (and 1 more installation)".to_owned(),
        more => format!(" (and {more} more installations)"),
    }
}

/// A catalogue requires signatures, and nothing vouches for the content.
#[derive(Debug, thiserror::Error)]
#[error("{why}; {origin} requires signatures (spec.signature): {}", why.way_out())]
pub struct Unvouched {
    /// The catalogue.
    pub origin: String,
    /// Why.
    pub why: UnvouchedReason,
}

/// Why nothing vouches for the content.
#[derive(Debug, thiserror::Error)]
pub enum UnvouchedReason {
    /// It is not signed, or not by an accepted signer.
    #[error(transparent)]
    Signature(SignatureError),
    /// The policy itself is invalid.
    #[error("spec.signature: {0}")]
    Policy(SignerError),
    /// The source cannot be signed, and the entry has no sha256 instead.
    #[error("{field} cannot be signed, and its version has no sha256 in manifestHash")]
    Unsignable {
        /// `source.git`, …
        field: &'static str,
    },
    /// The dependencies of a chart come from elsewhere.
    #[error(
        "the charts that its lock file names ({charts}) are fetched from elsewhere, and no sha256 in manifestHash covers them"
    )]
    Parts {
        /// The names and versions of the dependencies.
        charts: String,
        /// The sha256 of chart and dependencies.
        whole: String,
    },
}

impl UnvouchedReason {
    fn way_out(&self) -> String {
        match self {
            Self::Signature(_) => "have this digest signed, or use a version that is".to_owned(),
            Self::Policy(_) => "correct it".to_owned(),
            Self::Unsignable { .. } => "set manifestHash to the sha256 of the content".to_owned(),
            Self::Parts { whole, .. } => format!("set it to {whole}, or commit charts/"),
        }
    }
}

/// Why nothing is adopted. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdoptError {
    /// kubectl addons has installed it.
    #[error("{0} is already installed")]
    Installed(InstallationName),
    /// The installation already owns its objects, and nothing was applied yet.
    #[error("{0} has already been taken over")]
    Adopted(InstallationName),
    /// The installation already owns its objects, and the changes to them were not confirmed yet.
    #[error("{0} was taken over, but the changes to its objects were not confirmed yet")]
    Unconfirmed(InstallationName),
    /// Its record belongs to this cluster.
    #[error("{0} is recorded as an installation of this cluster")]
    SameCluster(InstallationName),
    /// None of its objects exists.
    #[error("there is nothing to adopt: none of the objects of {addon} exists{}", there_is(release.as_deref(), elsewhere.as_deref()))]
    Nothing {
        /// The add-on.
        addon: String,
        /// What another tool has installed of the add-on under another name, or in another namespace.
        elsewhere: Option<Box<ForeignInstall>>,
        /// The Helm release with the same name, if there is one: its values may give the objects other names.
        release: Option<Box<ConfiguredRelease>>,
    },
    /// The values of a Helm release cannot be read, and the user gave none.
    #[error("the values of {release} cannot be read, and may not be the defaults: {why}")]
    UnreadableValues {
        /// The release.
        release: String,
        /// The refusal of the server.
        why: String,
    },
    /// Values of a Helm release look like secrets.
    #[error(
        "Helm release {namespace}/{release} was given values that look like secrets, which everyone who can read the installation \
         would see: {}",
        list_first(paths, LISTED)
    )]
    SecretValues {
        /// The installation.
        installation: InstallationName,
        /// Namespace of the release.
        namespace: String,
        /// Name of the release.
        release: String,
        /// Paths of the values.
        paths: Vec<String>,
    },
    /// The add-on is installed as a release of helm (`template.helm.mode: release`).
    #[error("{0} is installed by helm as a release of its own, which is not adopted")]
    Release(InstallationName),
}

/// A Helm release, and the paths of the values that a user set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredRelease {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Paths.
    pub values: Vec<String>,
}

fn there_is(release: Option<&ConfiguredRelease>, elsewhere: Option<&ForeignInstall>) -> String {
    let Some(release) = release else {
        return elsewhere.map_or_else(String::new, |install| format!("; {install} has it"));
    };
    let ConfiguredRelease {
        namespace,
        name,
        values,
    } = release;
    match values.as_slice() {
        [] => format!("; Helm release {namespace}/{name} exists, and is of other objects"),
        values => format!(
            "; Helm release {namespace}/{name} exists, and was given values for {}: give them with -f",
            list_first(values, LISTED)
        ),
    }
}

/// A Helm release that the installation did not create.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
        "Helm release {namespace}/{release} is not of {installation}: {}; nothing was changed",
        if *other { "another installation created it" } else { "it was not installed by this tool" }
)]
pub struct ForeignRelease {
    /// The installation.
    pub installation: InstallationName,
    /// Namespace of the release.
    pub namespace: String,
    /// The name of the release.
    pub release: String,
    /// Whether another installation created it.
    pub other: bool,
}

/// A Helm release that another client has changed since our last operation, or that existed before the first one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Helm release {release} of {installation}: not as the last operation left it, and helm would apply and delete what it says \
     now: Secret {}; nothing was changed",
    changed.join(", Secret ")
)]
pub struct ChangedRelease {
    /// The installation.
    pub installation: InstallationName,
    /// The release.
    pub release: HelmRelease,
    /// The Secrets that are new, deleted or changed; at least one.
    pub changed: Vec<String>,
}

/// Objects that this tool applies and a Helm release cannot replace each other: helm refuses objects that it did not create, and this tool
/// must not prune those that helm created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModeError {
    /// The mode is the same, but the release is another one.
    #[error("{name} is the Helm release {recorded}, and would be replaced by {wanted}")]
    OtherRelease {
        /// The installation.
        name: String,
        /// `NAMESPACE/NAME` of the installed release.
        recorded: String,
        /// `NAMESPACE/NAME` of the wanted release.
        wanted: String,
    },
    /// The mode changed.
    #[error(
        "the catalogue changed template.helm.mode of {name} to {mode}: neither helm nor this tool takes over what the other one created"
    )]
    OtherMode {
        /// The installation.
        name: String,
        /// The mode of the catalogue.
        mode: HelmMode,
    },
}

/// The caller lacks rights. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("not allowed: {first}{}", others(*more))]
pub struct MissingRights {
    /// The first missing right.
    pub first: Right,
    /// How many more are missing.
    pub more: usize,
}

fn others(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    }
}

/// The webhook has a certificate from elsewhere, and would lose it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{SYSTEM_NAMESPACE}/Deployment {WEBHOOK}: its certificate comes from files (--tls-cert): apply the kustomization that installed it"
)]
pub struct OwnCertificate;

/// Why the loop does not plan an installation again (semantics 20.6).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// The process was killed during former attempts.
    #[error(
        "{installation}: the reconciler was killed during {times} attempts to plan it, maybe for lack of memory, and does not plan \
         it again until its record changes"
    )]
    Killed {
        /// The installation.
        installation: InstallationName,
        /// The number of attempts.
        times: u32,
    },
    /// An attempt that ran alone took too long.
    #[error(
        "{installation}: the reconciler was killed during an attempt to plan it, and the next attempt was stopped after {}",
        seconds(*bound)
    )]
    Slow {
        /// The installation.
        installation: InstallationName,
        /// The time limit of the attempt.
        bound: Duration,
    },
}
