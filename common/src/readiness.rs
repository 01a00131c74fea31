//! Whether a live object works, in kstatus' words, with the gaps of kstatus closed (research/peers.md 4).
//!
//! kstatus' order: deletionTimestamp, observedGeneration, Reconciling, Stalled, the rule of the kind, Ready. Closed:
//! a paused Deployment settles, a failed pod is a failure, a Job has to complete, an APIService has to answer,
//! `OnDelete` still needs ready replicas, ReplicaFailure (quota, pod security) is a failure, generations are read
//! from text too. There is no clock here: what takes too long is for the caller to say.
//!
//! Two kinds cannot be judged from the object alone, and waiting would block whole clusters for ever:
//! - a pending PersistentVolumeClaim that no pod wants yet is Current: with `WaitForFirstConsumer` it stays so until
//!   one does, and a pod that waits for it is not ready itself;
//! - a `LoadBalancer` Service without an address is Current, as in kstatus, and its message says so: many clusters have
//!   nothing that would give it one.

mod extension;
mod fields;
mod generic;
mod job;
mod phase;
mod pod;
mod workload;

use serde::Serialize;
use serde_json::Value;

use crate::manifest::key::Gvk;

/// The verdict on one live object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// The word.
    pub status: Status,
    /// Why, for people: `1/2 ready`, `available`, `waiting: …`.
    pub message: String,
}

/// kstatus' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Status {
    /// It works.
    Current,
    /// It is on its way.
    InProgress,
    /// It will not get there by itself.
    Failed,
    /// It is being deleted.
    Terminating,
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

/// Judges a live object as the API server returned it, with its status.
#[must_use]
pub fn assess(object: &Value) -> Readiness {
    if let Some(verdict) = generic::before_the_kind(object) {
        return verdict;
    }
    let gvk = Gvk::of(object).unwrap_or_default();
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps" | "extensions", "Deployment") => workload::deployment(object),
        ("apps", "StatefulSet") => workload::stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => workload::daemon_set(object),
        ("apps" | "extensions", "ReplicaSet") | ("", "ReplicationController") => {
            workload::replica_set(object)
        }
        ("", "Pod") => pod::pod(object),
        ("batch", "Job") => job::job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => extension::crd(object),
        ("apiregistration.k8s.io", "APIService") => extension::api_service(object),
        ("", "Namespace") => phase::namespace(object),
        ("", "PersistentVolumeClaim") => phase::claim(object),
        ("", "PersistentVolume") => phase::volume(object),
        ("", "Service") => phase::service(object),
        ("gateway.networking.k8s.io", "Gateway") => {
            generic::by_conditions(object, &["Programmed", "Accepted"])
        }
        ("gateway.networking.k8s.io", "GatewayClass") => {
            generic::by_conditions(object, &["Accepted"])
        }
        _ => generic::by_conditions(object, &["Ready", "Available"]),
    }
}

#[cfg(test)]
mod tests;
