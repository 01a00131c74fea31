mod blocker;
mod other;
mod pod;
mod storage;
mod webhook;
mod workload;

use ReadinessStatus::{Current, Failed, InProgress, Terminating};
use serde_json::json;

use super::*;

/// Judges `KIND` (`group/Kind` or `Kind`) with the given parts, and compares word and message.
fn check(kind: &str, parts: Value, status: ReadinessStatus, message: &str) {
    check_in(kind, parts, &ReadinessContext::default(), status, message);
}

/// As [`check`], with more than the object.
fn check_in(
    kind: &str,
    parts: Value,
    ctx: &ReadinessContext<'_>,
    status: ReadinessStatus,
    message: &str,
) {
    let object = object(kind, parts);
    let verdict = assess_in(&object, ctx);
    assert_eq!(
        (verdict.status, verdict.message.as_str()),
        (status, message),
        "{object}"
    );
}

/// An object of `KIND` (`group/Kind` or `Kind`) with the given parts.
fn object(kind: &str, parts: Value) -> Value {
    let (group, kind) = kind.split_once('/').unwrap_or(("", kind));
    let api_version = if group.is_empty() {
        "v1".to_owned()
    } else {
        format!("{group}/v1")
    };
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2}});
    for (key, value) in parts.as_object().unwrap() {
        match object.get_mut(key) {
            Some(Value::Object(old)) => old.extend(value.as_object().unwrap().clone()),
            _ => object[key] = value.clone(),
        }
    }
    object
}

/// A time on the first day of 2026.
fn at(clock: &str) -> Timestamp {
    format!("2026-01-01T{clock}Z").parse().unwrap()
}

/// A condition.
fn c(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

#[test]
fn every_kind() {
    let seen = json!({"status": {"observedGeneration": 1}});
    for kind in [
        "apps/Deployment",
        "x.y/Widget",
        "policy/PodDisruptionBudget",
    ] {
        check(
            kind,
            seen.clone(),
            InProgress,
            "waiting: not yet seen by its controller",
        );
    }
    let text = json!({"status": {"observedGeneration": "1"}});
    check(
        "x.y/Widget",
        text,
        InProgress,
        "waiting: not yet seen by its controller",
    );
    check(
        "x.y/Widget",
        json!({"status": {"observedGeneration": "2"}}),
        Current,
        "ready",
    );
    check(
        "x.y/Widget",
        json!({"status": {"observedGeneration": {}}}),
        Current,
        "ready",
    );
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"observedGeneration": 1}});
    check("ConfigMap", deleted, Terminating, "being deleted");
    let held = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c", "d"]}});
    check(
        "x.y/Widget",
        held,
        Terminating,
        "being deleted, held by a.b/c, d",
    );
    let reconciling = json!({"status": {"conditions": [c("Reconciling", "True", "Rolling", ""), c("Ready", "True", "", "")]}});
    check("x.y/Widget", reconciling, InProgress, "waiting: Rolling");
    let stalled = json!({"status": {"conditions": [c("Stalled", "True", "Bad", "no such\nthing"), c("Ready", "True", "", "")]}});
    check("x.y/Widget", stalled, Failed, "stalled: Bad, no such");
}

#[test]
fn what_servers_say_is_shortened_and_cleaned() {
    let long =
        json!({"status": {"conditions": [c("Ready", "False", "\u{1b}[31mRed", &"é".repeat(500))]}});
    let message = format!("waiting: [31mRed, {}…", "é".repeat(190));
    check("x.y/Widget", long, InProgress, &message);
}
