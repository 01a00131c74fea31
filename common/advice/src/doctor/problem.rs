//! What can be wrong.

use serde::Serialize;

use super::Unread;
use addons_plan::continuation::Continuation;
use addons_plan::standing::{Standing, Word};
use common::api::names::{InstallationName, LABEL_HOLDS_CORE, SYSTEM_NAMESPACE};
use common::entrance::Unreadable;
use common::right::Right;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// It works, and should not stay so.
    Warning,
    /// It is broken.
    Error,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The server does not answer.
    #[error("it cannot be reached: {why}")]
    Unreachable {
        /// Why.
        why: String,
    },
    /// A part of the diagnosis is missing.
    #[error("it could not be checked: {}", unread.why)]
    Unchecked {
        /// What was to be read.
        what: &'static str,
        /// Why it could not.
        unread: Unread,
    },
    /// Admission policies are not served.
    #[error("{version} serves no admission policies: 1.30 is the oldest that does")]
    OldServer {
        /// Of the server.
        version: String,
    },
    /// A definition of ours does not exist.
    #[error("it does not exist")]
    DefinitionMissing {
        /// Its name.
        name: String,
    },
    /// A definition is of a newer release.
    #[error("it is of the newer release {version}")]
    DefinitionNewer {
        /// Its name.
        name: String,
        /// Of the release.
        version: String,
    },
    /// A definition is older, or was edited.
    #[error("it is older than this release, or was edited")]
    DefinitionDiffers {
        /// Its name.
        name: String,
    },
    /// The caller lacks a right that verbs need.
    #[error("not allowed: {right}")]
    Right {
        /// The right.
        right: Right,
    },
    /// There is no webhook.
    #[error("it is not installed: nothing is judged at admission")]
    NoWebhook,
    /// A part of the webhook does not exist.
    #[error("it does not exist")]
    PartMissing {
        /// `Deployment`, …
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
        /// The configuration.
        object: String,
    },
    /// A certificate cannot be used.
    #[error("{why}")]
    Certificate {
        /// The Secret.
        secret: String,
        /// Why.
        why: String,
    },
    /// No pod of the webhook is ready.
    #[error("no pod of it is ready")]
    NoEndpoints,
    /// The webhook cannot be asked.
    #[error("it does not answer: {why}")]
    Unanswered {
        /// What the API server says.
        why: String,
    },
    /// The webhook answers, and cannot judge.
    #[error("it refuses every request: {why}")]
    RefusesAll {
        /// What it says.
        why: String,
    },
    /// A webhook outside the cluster cannot be asked.
    #[error("it runs outside the cluster at {url}, and does not answer: {why}")]
    UnansweredOutside {
        /// Where, as its configuration says.
        url: String,
        /// What the API server says.
        why: String,
    },
    /// What must be denied is accepted.
    #[error("it does not deny a request that it must deny")]
    NotJudged,
    /// No policy is installed.
    #[error("they are not installed: without the webhook, core add-ons have no guard")]
    NoPolicies,
    /// One of them is missing.
    #[error("it does not exist")]
    PolicyMissing {
        /// Kind and name.
        object: String,
    },
    /// One of them was changed.
    #[error("{field} is not what this release installs")]
    PolicyDiffers {
        /// Kind and name.
        object: String,
        /// The first field that differs.
        field: String,
    },
    /// Something of a stored object cannot be read.
    #[error("{unreadable}")]
    Unreadable {
        /// `addoninstallation`, `addoncatalogue`.
        resource: &'static str,
        /// The object.
        object: InstallationName,
        /// What, and why.
        unreadable: Unreadable,
    },
    /// A client stopped in the middle of an operation.
    #[error("an operation of {holder} was interrupted")]
    Interrupted {
        /// The installation.
        installation: InstallationName,
        /// Who.
        holder: String,
        /// How it is continued.
        next: Continuation,
    },
    /// A record waits for a reconciler, and none is alive.
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
    /// An installation is not well.
    #[error("{standing}")]
    Unwell {
        /// The installation.
        installation: InstallationName,
        /// How it stands.
        standing: Standing,
        /// What continues its operation, or restores its objects.
        next: Option<Continuation>,
    },
    /// Objects of an installation that guards were edited.
    #[error("{objects} edited since our last apply")]
    Edited {
        /// The installation.
        installation: InstallationName,
        /// The first of them, and how many more.
        objects: String,
        /// What restores them.
        next: Continuation,
    },
    /// A record stands where no cluster is meant.
    #[error("its namespace does not stand for a cluster")]
    NoCluster {
        /// The installation.
        installation: InstallationName,
    },
    /// A release of Helm names its objects, too.
    #[error("Helm release {release} names its objects, too: helm can change and delete them")]
    HeldByRelease {
        /// The installation.
        installation: InstallationName,
        /// Namespace and name.
        release: String,
    },
    /// Objects whose installation is gone.
    #[error("it has no record, and {count} objects: {objects}")]
    Orphans {
        /// The value of their owner label.
        owner: String,
        /// What they say.
        installation: Option<InstallationName>,
        /// How many.
        count: usize,
        /// The first of them.
        objects: String,
    },
    /// An entry that another catalogue holds.
    #[error("{message}")]
    Duplicate {
        /// The catalogue that has to give way.
        catalogue: String,
        /// Of the condition.
        message: String,
    },
    /// A reconciler stopped without giving its Lease back.
    #[error("{holder} has not renewed it")]
    StaleLease {
        /// Who.
        holder: String,
    },
    /// A namespace with core add-ons, or with their objects, that lacks the mark which guards its deletion.
    #[error(
        "it holds core add-on {installation} and lacks label {LABEL_HOLDS_CORE}: it can be deleted"
    )]
    Unmarked {
        /// The namespace.
        namespace: String,
        /// The first core installation that it holds.
        installation: InstallationName,
    },
    /// A namespace that stands for this cluster and for another one.
    #[error("it stands for this cluster, and for the one of Secret {secret}")]
    AmbiguousCluster {
        /// The namespace.
        namespace: String,
        /// The Secret.
        secret: String,
    },
    /// The Secret of a cluster is missing.
    #[error("its label names Secret {secret}, which does not exist")]
    NoKubeconfig {
        /// The namespace.
        namespace: String,
        /// The Secret.
        secret: String,
    },
}

impl Problem {
    /// How bad it is. What was not asked for, and what one reader may not see, is not broken.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::Unchecked { unread, .. } if !unread.is_forbidden => Severity::Error,
            Self::Unwell { standing, .. } => match standing.word {
                Word::Degraded | Word::Failed | Word::Stalled | Word::RecordOlderThanCluster => {
                    Severity::Error
                }
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
            | Self::Duplicate { .. }
            | Self::StaleLease { .. } => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// What it is about.
    #[must_use]
    pub fn object(&self) -> String {
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
            Self::StaleLease { .. } => "Lease addons-reconciler".to_owned(),
            Self::Unmarked { namespace, .. }
            | Self::AmbiguousCluster { namespace, .. }
            | Self::NoKubeconfig { namespace, .. } => format!("Namespace {namespace}"),
        }
    }
}
