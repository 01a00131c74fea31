//! Kinds with rules about a phase, an address or a condition of their own: Namespace, Service, HorizontalPodAutoscaler.

use serde_json::Value;

use super::fields::{field, find_condition, text};
use super::{Readiness, ReadinessStatus};

pub(super) fn assess_namespace(object: &Value) -> Readiness {
    match text(object, &["status", "phase"]) {
        "Active" => Readiness::current("active"),
        "Terminating" => Readiness::new(ReadinessStatus::Terminating, "being deleted"),
        _ => Readiness::in_progress("waiting: not yet active"),
    }
}

pub(super) fn assess_service(object: &Value) -> Readiness {
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

/// Argo CD's rule: a HorizontalPodAutoscaler is not ready if it cannot find or scale its target. Without metrics, it merely has no effect.
pub(super) fn assess_autoscaler(object: &Value) -> Readiness {
    match find_condition(object, "AbleToScale") {
        Some(able) if able.is_false() => Readiness::in_progress(format!("waiting: {}", able.why())),
        _ => Readiness::current("ready"),
    }
}
