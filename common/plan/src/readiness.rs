//! Whether a live object is ready, in kstatus' terms, with the gaps of kstatus closed.
//!
//! kstatus' order: deletionTimestamp, observedGeneration, Reconciling, Stalled, the rule of the kind, Ready. Closed:
//! a paused Deployment counts as rolled out, a failed pod is a failure, a Job has to complete, an APIService has to answer, a webhook
//! configuration needs a backend, `OnDelete` still needs ready replicas, ReplicaFailure (quota, pod
//! security) is a failure, generations are read from text too, a custom resource may have no status for a moment.
//! There is no clock here: time-outs are up to the caller.
//!
//! Facts about other objects are in the [`Context`]; without it an object is judged by itself.
//!
//! Where others are stricter, waiting would block whole clusters for ever: a `LoadBalancer` Service without an address is
//! Current, as in kstatus, and its message says so (many clusters have nothing that would give it one); an Ingress is
//! not waited for; a pod that no node accepts is InProgress, not Failed as in kstatus (nodes may be added).

pub mod blocker;
mod extension;
mod fields;
mod generic;
mod job;
mod phase;
mod pod;
mod storage;
mod webhook;
mod workload;

pub use job::ended_by_events;
pub use storage::StorageClasses;
pub use webhook::{Endpoints, called_namespaces};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use common::manifest::key::Gvk;
use common::manifest::kinds::traits::is_built_in;

/// The verdict on one live object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// The status.
    pub status: Status,
    /// Why, for people: `1/2 ready`, `available`, `waiting: …`.
    pub message: String,
}

/// kstatus' statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Status {
    /// It is ready.
    Current,
    /// It is progressing.
    InProgress,
    /// It will not become ready by itself.
    Failed,
    /// It is being deleted.
    Terminating,
    /// It cannot be seen: nothing is known of it.
    Unknown,
}

impl Status {
    /// Whether waiting longer is of no use: it has failed, or it cannot be seen.
    #[must_use]
    pub fn is_hopeless(self) -> bool {
        matches!(self, Self::Failed | Self::Unknown)
    }
}

impl Readiness {
    fn current(message: impl Into<String>) -> Self {
        Self::new(Status::Current, message)
    }

    fn in_progress(message: impl Into<String>) -> Self {
        Self::new(Status::InProgress, message)
    }

    fn failed(message: impl Into<String>) -> Self {
        Self::new(Status::Failed, message)
    }

    fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}

/// How long conditions that usually pass are tolerated: a status that was not written yet, a failure to create pods.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

/// Facts that are not part of an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The server's time; `None` = ages are not known, and nothing is tolerated.
    pub now: Option<Timestamp>,
    /// Since when the object is waited for, in the server's time: what failed before may have been mended. `None` = it is only looked
    /// at.
    pub begun: Option<Timestamp>,
    /// Whether the kind has a subresource `status`.
    pub has_status: bool,
    /// The StorageClasses of the cluster, where they are known.
    pub classes: Option<&'a StorageClasses>,
    /// Which Services have ready endpoints, where it is known.
    pub endpoints: Option<&'a Endpoints>,
}

/// A part of the [`Context`] that the verdict on an object depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// [`Context::has_status`].
    HasStatus,
    /// [`Context::classes`].
    Classes,
    /// [`Context::endpoints`] in the [`called_namespaces`].
    Endpoints,
}

/// The facts that [`assess_in`] needs for an object: most need none.
#[must_use]
pub fn need(object: &Value) -> Option<Need> {
    if generic::before_the_kind(object).is_some() {
        return None;
    }
    let gvk = Gvk::of(object).unwrap_or_default();
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "PersistentVolumeClaim") => storage::no_pod_wants(object).then_some(Need::Classes),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => {
            let calls_services = !called_namespaces(object).is_empty();
            calls_services.then_some(Need::Endpoints)
        }
        (group, _) => {
            let is_custom = !is_built_in(group) && generic::is_unreported(object);
            is_custom.then_some(Need::HasStatus)
        }
    }
}

/// Judges a live object as the API server returned it, with its status, by itself.
#[must_use]
pub fn assess(object: &Value) -> Readiness {
    assess_in(object, &Context::default())
}

/// Judges a live object as the API server returned it, with its status.
#[must_use]
pub fn assess_in(object: &Value, ctx: &Context<'_>) -> Readiness {
    let gvk = Gvk::of(object).unwrap_or_default();
    let kind = (gvk.group.as_str(), gvk.kind.as_str());
    // Its time to live deletes it, with a finalizer, because it has ended.
    if kind == ("batch", "Job")
        && job::is_removed_at_its_end(object)
        && let Some(ended) = job::ended(object)
    {
        return ended;
    }
    if let Some(verdict) = generic::before_the_kind(object) {
        return verdict;
    }
    match kind {
        ("apps" | "extensions", "Deployment") => workload::deployment(object, ctx),
        ("apps", "StatefulSet") => workload::stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => workload::daemon_set(object),
        ("apps" | "extensions", "ReplicaSet") | ("", "ReplicationController") => {
            workload::replica_set(object, ctx)
        }
        ("", "Pod") => pod::pod(object),
        ("batch", "Job") => job::job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => extension::crd(object),
        ("apiregistration.k8s.io", "APIService") => extension::api_service(object),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => webhook::configuration(object, ctx.endpoints),
        ("", "Namespace") => phase::namespace(object),
        ("", "PersistentVolumeClaim") => storage::claim(object, ctx.classes),
        ("", "PersistentVolume") => storage::volume(object),
        ("", "Service") => phase::service(object),
        ("autoscaling", "HorizontalPodAutoscaler") => phase::autoscaler(object),
        ("gateway.networking.k8s.io", "Gateway") => {
            generic::by_conditions(object, &["Programmed", "Accepted"], ctx)
        }
        ("gateway.networking.k8s.io", "GatewayClass") => {
            generic::by_conditions(object, &["Accepted"], ctx)
        }
        _ => generic::by_conditions(object, &["Ready", "Available"], ctx),
    }
}

/// The verdict on an object of a kind that is ready once it exists. Its metadata are enough.
#[must_use]
pub fn exists(object: &Value) -> Readiness {
    generic::before_the_kind(object).unwrap_or_else(|| Readiness::current("ready"))
}

/// The verdict on an object that does not exist, by the last time it was seen. `is_final`: that was its end,
/// as a watch reports it, and not just some time before.
///
/// A Job that is deleted by its time to live has done its work (Flux, Timoni); so has one whose end was not seen.
#[must_use]
pub fn assess_gone(last: Option<&Value>, is_final: bool) -> Readiness {
    let job = last.filter(|last| {
        let gvk = Gvk::of(last).unwrap_or_default();
        (gvk.group.as_str(), gvk.kind.as_str()) == ("batch", "Job")
    });
    match job.filter(|job| job::is_removed_at_its_end(job)) {
        Some(job) => match job::ended(job) {
            Some(ended) => ended,
            None if is_final => Readiness::in_progress("it does not exist"),
            None => Readiness::current("gone after its ttlSecondsAfterFinished"),
        },
        None => Readiness::in_progress("it does not exist"),
    }
}

#[cfg(test)]
mod tests;
