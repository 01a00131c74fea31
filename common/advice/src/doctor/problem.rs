//! The problems that `doctor` finds.

use serde::Serialize;

use super::UnreadFact;
use addons_plan::continuation::Continuation;
use addons_plan::standing::{Standing, StandingState};
use common::api::catalogue::Deprecation;
use common::api::names::{InstallationName, LABEL_HOLDS_CORE, SYSTEM_NAMESPACE};
use common::entrance::UnreadableField;
use common::right::Right;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// It works, but should be fixed.
    Warning,
    /// It is broken.
    Error,
}

/// A problem of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DoctorProblem {
    /// The server does not answer.
    #[error("it cannot be reached: {why}")]
    Unreachable {
        /// The reason.
        why: String,
    },
    /// A part of the diagnosis is missing.
    #[error("it could not be checked: {}", unread.why)]
    Unchecked {
        /// The fact that could not be read.
        what: &'static str,
        /// Why it could not be read.
        unread: UnreadFact,
    },
    /// Admission policies are not served.
    #[error("{version} serves no admission policies: 1.30 is the oldest that does")]
    OldServer {
        /// Version of the server.
        version: String,
    },
    /// One of our CRDs does not exist.
    #[error("it does not exist")]
    DefinitionMissing {
        /// Its name.
        name: String,
    },
    /// A CRD is from a newer release.
    #[error("it is of the newer release {version}")]
    DefinitionNewer {
        /// Its name.
        name: String,
        /// Version of the release.
        version: String,
    },
    /// A CRD is older than this release, or was edited.
    #[error("it is older than this release, or was edited")]
    DefinitionDiffers {
        /// Its name.
        name: String,
    },
    /// The caller lacks a right that commands need.
    #[error("not allowed: {right}")]
    Right {
        /// The right.
        right: Right,
    },
    /// The webhook is not installed.
    #[error("it is not installed: nothing is judged at admission")]
    NoWebhook,
    /// A part of the webhook does not exist.
    #[error("it does not exist")]
    PartMissing {
        /// Kind and name, `Deployment …`.
        object: String,
    },
    /// A part of the webhook differs from ours.
    #[error("{field} is not what this release installs")]
    PartDiffers {
        /// Kind and name.
        object: String,
        /// The first field that differs.
        field: String,
    },
    /// Failures of the webhook are ignored.
    #[error("what the webhook does not answer passes (failurePolicy Ignore)")]
    FailuresIgnored,
    /// The API server does not trust the authority of the webhook.
    #[error("caBundle does not hold the authority of the webhook")]
    StaleBundle {
        /// The webhook configuration.
        object: String,
    },
    /// A certificate cannot be used.
    #[error("{why}")]
    Certificate {
        /// Name of the Secret.
        secret: String,
        /// The reason.
        why: String,
    },
    /// No pod of the webhook is ready.
    #[error("no pod of it is ready")]
    NoEndpoints,
    /// The webhook does not answer.
    #[error("it does not answer: {why}")]
    Unanswered {
        /// The message of the API server.
        why: String,
    },
    /// The webhook answers, but cannot decide.
    #[error("it refuses every request: {why}")]
    RefusesAll {
        /// The message of the webhook.
        why: String,
    },
    /// A webhook outside the cluster does not answer.
    #[error("it runs outside the cluster at {url}, and does not answer: {why}")]
    UnansweredOutside {
        /// Its URL in the configuration.
        url: String,
        /// The message of the API server.
        why: String,
    },
    /// A request that must be denied is accepted.
    #[error("it does not deny a request that it must deny")]
    NotJudged,
    /// No policy is installed.
    #[error("they are not installed: without the webhook, core add-ons have no guard")]
    NoPolicies,
    /// A policy or binding is missing.
    #[error("it does not exist")]
    PolicyMissing {
        /// Kind and name.
        object: String,
    },
    /// A policy or binding differs from ours.
    #[error("{field} is not what this release installs")]
    PolicyDiffers {
        /// Kind and name.
        object: String,
        /// The first field that differs.
        field: String,
    },
    /// A stored object cannot be read as a whole.
    #[error("{unreadable}")]
    Unreadable {
        /// `addoninstallation`, `addoncatalogue`.
        resource: &'static str,
        /// The object.
        object: InstallationName,
        /// The field that cannot be read, and why.
        unreadable: UnreadableField,
    },
    /// A client stopped in the middle of an operation.
    #[error("an operation of {holder} was interrupted")]
    Interrupted {
        /// The installation.
        installation: InstallationName,
        /// The client that was interrupted.
        holder: String,
        /// How to continue it.
        next: Continuation,
    },
    /// The deletion of a record waits for a reconciler, and none is running.
    #[error("its deletion waits for a reconciler, and none is running")]
    Held {
        /// The installation.
        installation: InstallationName,
    },
    /// A record was copied from another cluster.
    #[error("its record is of another cluster")]
    OtherCluster {
        /// The installation.
        installation: InstallationName,
    },
    /// An installation has problems.
    #[error("{standing}")]
    Unwell {
        /// The installation.
        installation: InstallationName,
        /// The state of the installation.
        standing: Standing,
        /// What continues its operation or restores its objects.
        next: Option<Continuation>,
    },
    /// Objects of an installation that guards others were edited.
    #[error("{objects} edited since our last apply")]
    Edited {
        /// The installation.
        installation: InstallationName,
        /// The first object, and the number of others.
        objects: String,
        /// How to restore them.
        next: Continuation,
    },
    /// A record is in a namespace that does not stand for a cluster.
    #[error("its namespace does not stand for a cluster")]
    NoCluster {
        /// The installation.
        installation: InstallationName,
    },
    /// A record of which nothing was installed is in a namespace that does not stand for a cluster.
    #[error(
        "its namespace does not stand for a cluster, so nothing installs it: installations of this cluster belong in {system}"
    )]
    Misplaced {
        /// The installation.
        installation: InstallationName,
        /// The system namespace.
        system: String,
    },
    /// A Helm release also claims its objects.
    #[error("Helm release {release} names its objects, too: helm can change and delete them")]
    HeldByRelease {
        /// The installation.
        installation: InstallationName,
        /// Namespace and name of the release.
        release: String,
    },
    /// Objects whose installation no longer exists.
    #[error("it has no record, and {count} objects: {objects}")]
    Orphans {
        /// The value of their owner label.
        owner: String,
        /// The installation in their annotation.
        installation: Option<InstallationName>,
        /// Number of objects.
        count: usize,
        /// The first objects.
        objects: String,
    },
    /// The installed version is deprecated in its catalogue.
    #[error("{version} is {deprecation}")]
    Deprecated {
        /// The installation.
        installation: InstallationName,
        /// The installed version, or `id ID`.
        version: String,
        /// Its deprecation.
        deprecation: Deprecation,
    },
    /// A catalogue has an entry that another catalogue holds.
    #[error("{message}")]
    Duplicate {
        /// The catalogue that does not offer the entry.
        catalogue: String,
        /// The message of its condition.
        message: String,
    },
    /// No reconciler leads, although one did.
    #[error("{}{}", describe_holder(holder.as_deref()), describe_relying(*relying))]
    NoLeader {
        /// The process that stopped without giving its Lease back.
        holder: Option<String>,
        /// The number of installations that a reconciler manages.
        relying: usize,
        /// Whether core add-ons of a core set are among them.
        holds_core: bool,
    },
    /// A namespace with core add-ons or their objects lacks the label that guards its deletion.
    #[error(
        "it holds core add-on {installation} and lacks label {LABEL_HOLDS_CORE}: it can be deleted"
    )]
    Unmarked {
        /// The namespace.
        namespace: String,
        /// The first core installation in it.
        installation: InstallationName,
    },
    /// A namespace stands both for this cluster and for another one.
    #[error("it stands for this cluster, and for the one of Secret {secret}")]
    AmbiguousCluster {
        /// The namespace.
        namespace: String,
        /// The Secret.
        secret: String,
    },
    /// The kubeconfig Secret of a cluster does not exist.
    #[error("its label names Secret {secret}, which does not exist")]
    NoKubeconfig {
        /// The namespace.
        namespace: String,
        /// The Secret.
        secret: String,
    },
}

fn describe_holder(holder: Option<&str>) -> String {
    match holder {
        Some(holder) => format!("{holder} has not renewed it"),
        None => "no reconciler holds it".to_owned(),
    }
}

fn describe_relying(relying: usize) -> String {
    match relying {
        0 => String::new(),
        1 => "; 1 installation relies on a reconciler".to_owned(),
        more => format!("; {more} installations rely on a reconciler"),
    }
}

impl DoctorProblem {
    /// Returns the severity. What the user did not ask for, and what the caller may not read, is not an error.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::Unchecked { unread, .. } if !unread.is_forbidden => Severity::Error,
            Self::Unwell { standing, .. } => match standing.state {
                StandingState::Degraded
                | StandingState::Failed
                | StandingState::Stalled
                | StandingState::RecordOlderThanCluster => Severity::Error,
                _ => Severity::Warning,
            },
            Self::Unchecked { .. }
            | Self::OldServer { .. }
            | Self::DefinitionNewer { .. }
            | Self::Right { .. }
            | Self::NoWebhook
            | Self::FailuresIgnored
            | Self::NoPolicies
            | Self::Orphans { .. }
            | Self::HeldByRelease { .. }
            | Self::Deprecated { .. }
            | Self::Duplicate { .. }
            | Self::NoLeader {
                holds_core: false, ..
            } => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Returns a description of the object or part that has the problem.
    #[must_use]
    pub fn subject(&self) -> String {
        match self {
            Self::Unreachable { .. } | Self::OldServer { .. } => "API server".to_owned(),
            Self::Unchecked { what, .. } => (*what).to_owned(),
            Self::DefinitionMissing { name }
            | Self::DefinitionNewer { name, .. }
            | Self::DefinitionDiffers { name } => format!("CustomResourceDefinition {name}"),
            Self::Right { .. } => "the caller".to_owned(),
            Self::NoWebhook
            | Self::Unanswered { .. }
            | Self::UnansweredOutside { .. }
            | Self::RefusesAll { .. }
            | Self::NotJudged => "webhook".to_owned(),
            Self::FailuresIgnored => "ValidatingWebhookConfiguration kubectl-addons".to_owned(),
            Self::NoEndpoints => format!("{SYSTEM_NAMESPACE}/Service addons-webhook"),
            Self::NoPolicies => "admission policies".to_owned(),
            Self::PartMissing { object }
            | Self::PartDiffers { object, .. }
            | Self::StaleBundle { object }
            | Self::PolicyMissing { object }
            | Self::PolicyDiffers { object, .. } => object.clone(),
            Self::Certificate { secret, .. } => format!("{SYSTEM_NAMESPACE}/Secret {secret}"),
            Self::Unreadable {
                resource, object, ..
            } => format!("{resource} {object}"),
            Self::Interrupted { installation, .. }
            | Self::Held { installation }
            | Self::OtherCluster { installation }
            | Self::Unwell { installation, .. }
            | Self::Edited { installation, .. }
            | Self::HeldByRelease { installation, .. }
            | Self::Deprecated { installation, .. }
            | Self::Misplaced { installation, .. }
            | Self::NoCluster { installation } => format!("installation {installation}"),
            Self::Orphans {
                installation,
                owner,
                ..
            } => match installation {
                Some(installation) => format!("installation {installation}"),
                None => format!("owner {owner}"),
            },
            Self::Duplicate { catalogue, .. } => format!("catalogue {catalogue}"),
            Self::NoLeader { .. } => "Lease addons-reconciler".to_owned(),
            Self::Unmarked { namespace, .. }
            | Self::AmbiguousCluster { namespace, .. }
            | Self::NoKubeconfig { namespace, .. } => format!("Namespace {namespace}"),
        }
    }
}
