//! Readiness of live objects by the rules of kstatus, with some gaps closed.
//!
//! The order of kstatus: deletionTimestamp, observedGeneration, Reconciling, Stalled, the rule of the kind, Ready. Additions: a paused
//! Deployment counts as rolled out, a failed pod is a failure, a Job has to complete, an APIService has to answer, a webhook configuration
//! needs a backend, `OnDelete` still needs ready replicas, ReplicaFailure (quota, pod security) is a failure, generations are also read
//! from strings, a custom resource may have no status for a moment. There is no clock here: the caller handles time-outs.
//!
//! Facts about other objects are in the [`ReadinessContext`]; without them, an object is assessed by itself. If the entry of an installation
//! has a health check for a kind ([`health_check`]), that decides instead of all other rules.
//!
//! Some rules are less strict than those of other tools, because waiting would block whole clusters for ever: a `LoadBalancer` Service
//! without an address is Current, as in kstatus, and its message says so (many clusters have nothing that would assign one); an Ingress is
//! not waited for; a pod that fits on no node is InProgress, not Failed as in kstatus (nodes may be added).

pub mod blocker;
mod extension;
mod fields;
mod generic;
pub mod health_check;
mod job;
mod phase;
mod pod;
mod storage;
mod webhook;
mod workload;

pub use job::assess_ended_by_events;
pub use storage::StorageClasses;
pub use webhook::{ReadyEndpoints, called_namespaces};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use common::manifest::key::Gvk;
use common::manifest::kinds::traits::is_built_in;

use health_check::HealthCheck;

/// The readiness of one live object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// The status.
    pub status: ReadinessStatus,
    /// The reason, for display: `1/2 ready`, `available`, `waiting: …`.
    pub message: String,
}

/// The statuses of kstatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ReadinessStatus {
    /// It is ready.
    Current,
    /// It is progressing.
    InProgress,
    /// It will not become ready by itself.
    Failed,
    /// It is being deleted.
    Terminating,
    /// It cannot be read, so its state is unknown.
    Unknown,
}

impl ReadinessStatus {
    /// Whether waiting longer is useless: it has failed, or it cannot be read.
    #[must_use]
    pub fn is_hopeless(self) -> bool {
        matches!(self, Self::Failed | Self::Unknown)
    }
}

impl Readiness {
    fn current(message: impl Into<String>) -> Self {
        Self::new(ReadinessStatus::Current, message)
    }

    fn in_progress(message: impl Into<String>) -> Self {
        Self::new(ReadinessStatus::InProgress, message)
    }

    fn failed(message: impl Into<String>) -> Self {
        Self::new(ReadinessStatus::Failed, message)
    }

    fn new(status: ReadinessStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}

/// How long to tolerate conditions that usually pass: a status that was not written yet, a failure to create pods.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

/// Facts that the readiness of an object depends on and that are not part of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadinessContext<'a> {
    /// The server's time. With `None`, ages are unknown, and nothing is tolerated.
    pub now: Option<Timestamp>,
    /// When the wait for the object began, in the server's time: a failure from before may have been resolved. `None` if no one waits.
    pub begun: Option<Timestamp>,
    /// The health check that the entry of the installation has for the kind. If it has one, only that decides.
    pub check: Option<&'a HealthCheck>,
    /// Whether the kind has a subresource `status`.
    pub has_status: bool,
    /// The StorageClasses of the cluster, if known.
    pub classes: Option<&'a StorageClasses>,
    /// The Services with ready endpoints, if known.
    pub endpoints: Option<&'a ReadyEndpoints>,
}

/// A part of the [`ReadinessContext`] that the readiness of an object depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContextNeed {
    /// [`ReadinessContext::has_status`].
    HasStatus,
    /// [`ReadinessContext::classes`].
    Classes,
    /// [`ReadinessContext::endpoints`] in the [`called_namespaces`].
    Endpoints,
}

/// Returns the facts that [`assess_in`] needs for an object without a health check; most need none.
#[must_use]
pub fn find_context_need(object: &Value) -> Option<ContextNeed> {
    if generic::assess_any_kind(object).is_some() {
        return None;
    }
    let gvk = Gvk::of(object).unwrap_or_default();
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "PersistentVolumeClaim") => {
            storage::has_no_pod(object).then_some(ContextNeed::Classes)
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => {
            let calls_services = !called_namespaces(object).is_empty();
            calls_services.then_some(ContextNeed::Endpoints)
        }
        (group, _) => {
            let is_custom = !is_built_in(group) && generic::is_unreported(object);
            is_custom.then_some(ContextNeed::HasStatus)
        }
    }
}

/// Assesses a live object, as the API server returned it with its status, by itself.
#[must_use]
pub fn assess(object: &Value) -> Readiness {
    assess_in(object, &ReadinessContext::default())
}

/// Assesses a live object, as the API server returned it with its status, in a context.
#[must_use]
pub fn assess_in(object: &Value, ctx: &ReadinessContext<'_>) -> Readiness {
    if let Some(check) = ctx.check {
        return generic::assess_lost(object).unwrap_or_else(|| check.assess(object));
    }
    let gvk = Gvk::of(object).unwrap_or_default();
    let kind = (gvk.group.as_str(), gvk.kind.as_str());
    // The server deletes an ended Job after its time to live, with a finalizer.
    if kind == ("batch", "Job")
        && job::has_ttl(object)
        && let Some(ended) = job::assess_ended(object)
    {
        return ended;
    }
    if let Some(verdict) = generic::assess_any_kind(object) {
        return verdict;
    }
    match kind {
        ("apps" | "extensions", "Deployment") => workload::assess_deployment(object, ctx),
        ("apps", "StatefulSet") => workload::assess_stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => workload::assess_daemon_set(object),
        ("apps" | "extensions", "ReplicaSet") | ("", "ReplicationController") => {
            workload::assess_replica_set(object, ctx)
        }
        ("", "Pod") => pod::assess_pod(object),
        ("batch", "Job") => job::assess_job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => extension::assess_crd(object),
        ("apiregistration.k8s.io", "APIService") => extension::assess_api_service(object),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => webhook::assess_configuration(object, ctx.endpoints),
        ("", "Namespace") => phase::assess_namespace(object),
        ("", "PersistentVolumeClaim") => storage::assess_claim(object, ctx.classes),
        ("", "PersistentVolume") => storage::assess_volume(object),
        ("", "Service") => phase::assess_service(object),
        ("autoscaling", "HorizontalPodAutoscaler") => phase::assess_autoscaler(object),
        ("gateway.networking.k8s.io", "Gateway") => {
            generic::assess_by_conditions(object, &["Programmed", "Accepted"], ctx)
        }
        ("gateway.networking.k8s.io", "GatewayClass") => {
            generic::assess_by_conditions(object, &["Accepted"], ctx)
        }
        _ => generic::assess_by_conditions(object, &["Ready", "Available"], ctx),
    }
}

/// Assesses an object of a kind that is ready once it exists. Its metadata is enough.
#[must_use]
pub fn assess_existing(object: &Value) -> Readiness {
    generic::assess_any_kind(object).unwrap_or_else(|| Readiness::current("ready"))
}

/// Assesses an object that does not exist, by its last known state. `is_final` tells whether that was its state when it was deleted, as a
/// watch reports it, rather than some time before.
///
/// A Job that was deleted after its time to live has done its work (Flux, Timoni), even if no one saw its end.
#[must_use]
pub fn assess_missing(last: Option<&Value>, is_final: bool) -> Readiness {
    let job = last.filter(|last| {
        let gvk = Gvk::of(last).unwrap_or_default();
        (gvk.group.as_str(), gvk.kind.as_str()) == ("batch", "Job")
    });
    match job.filter(|job| job::has_ttl(job)) {
        Some(job) => match job::assess_ended(job) {
            Some(ended) => ended,
            None if is_final => Readiness::in_progress("it does not exist"),
            None => Readiness::current("gone after its ttlSecondsAfterFinished"),
        },
        None => Readiness::in_progress("it does not exist"),
    }
}

#[cfg(test)]
mod tests;
