//! Kinds that tell by a phase or an address: Namespace, PersistentVolumeClaim, PersistentVolume, Service.

use serde_json::Value;

use super::fields::{field, text, why};
use super::{Readiness, Status};

pub(super) fn namespace(object: &Value) -> Readiness {
    match text(object, &["status", "phase"]) {
        "Active" => Readiness::current("active"),
        "Terminating" => Readiness::new(Status::Terminating, "being deleted"),
        _ => Readiness::in_progress("waiting: not yet active"),
    }
}

pub(super) fn claim(object: &Value) -> Readiness {
    match text(object, &["status", "phase"]) {
        "Bound" => Readiness::current("bound"),
        "Lost" => Readiness::failed("lost: its volume is gone"),
        _ if no_pod_wants(object) => Readiness::current("bound when a pod uses it"),
        _ => Readiness::in_progress("waiting: not yet bound"),
    }
}

/// A claim that the scheduler has placed no pod for. `storageClassName: ""` asks for a volume that is there: no pod can
/// help with that. See [`super`] for what is not told apart.
fn no_pod_wants(object: &Value) -> bool {
    let placed = field(
        object,
        &[
            "metadata",
            "annotations",
            "volume.kubernetes.io/selected-node",
        ],
    );
    let is_static = field(object, &["spec", "storageClassName"]).is_some_and(|class| class == "")
        || !text(object, &["spec", "volumeName"]).is_empty();
    text(object, &["status", "phase"]) == "Pending" && placed.is_none() && !is_static
}

pub(super) fn volume(object: &Value) -> Readiness {
    match text(object, &["status", "phase"]) {
        "Failed" => {
            let status = |name| text(object, &["status", name]);
            Readiness::failed(format!(
                "failed: {}",
                why(status("reason"), status("message"))
            ))
        }
        "Pending" => Readiness::in_progress("waiting: not yet available"),
        "" => Readiness::current("ready"),
        phase => Readiness::current(phase.to_lowercase()),
    }
}

pub(super) fn service(object: &Value) -> Readiness {
    if text(object, &["spec", "type"]) != "LoadBalancer" {
        return Readiness::current("ready");
    }
    if text(object, &["spec", "clusterIP"]).is_empty() {
        return Readiness::in_progress("waiting: no cluster IP yet");
    }
    let has_items = |path: &[&str]| {
        field(object, path)
            .and_then(Value::as_array)
            .is_some_and(|items| !items.is_empty())
    };
    if has_items(&["status", "loadBalancer", "ingress"]) || has_items(&["spec", "externalIPs"]) {
        return Readiness::current("ready");
    }
    Readiness::current("ready, no load balancer address yet")
}
