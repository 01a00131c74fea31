//! PersistentVolumeClaim and PersistentVolume.

use serde_json::{Value, json};

use super::ReadinessStatus::{Current, Failed, InProgress};
use super::{
    ContextNeed, ReadinessContext, StorageClasses, check, check_in, find_context_need, object,
};

const CLAIM: &str = "PersistentVolumeClaim";
const ON_USE: &str = "bound when a pod uses it";
const UNBOUND: &str = "waiting: not yet bound";

fn phase(phase: &str) -> Value {
    json!({"status": {"phase": phase}})
}

#[test]
fn phases() {
    check(CLAIM, phase("Bound"), Current, "bound");
    check(CLAIM, phase("Lost"), Failed, "lost: its volume is gone");
    check(CLAIM, phase("Pending"), Current, ON_USE);
    check(CLAIM, json!({}), InProgress, UNBOUND);
    let volume = "PersistentVolume";
    check(volume, phase("Available"), Current, "available");
    check(volume, phase("Released"), Current, "released");
    check(
        volume,
        phase("Pending"),
        InProgress,
        "waiting: not yet available",
    );
    let failed = json!({"status": {"phase": "Failed", "message": "no plugin"}});
    check(volume, failed, Failed, "failed: no plugin");
}

fn class(name: &str, mode: &str, made: &str, annotation: &str) -> Value {
    json!({
        "metadata": {"name": name, "creationTimestamp": made, "annotations": {annotation: "true"}},
        "volumeBindingMode": mode,
    })
}

/// Such a claim is bound only when a pod uses it, which is not a problem.
#[test]
fn a_claim_waits_for_its_first_consumer_where_its_class_says_so() {
    const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
    const OLD_DEFAULT: &str = "storageclass.beta.kubernetes.io/is-default-class";
    let lazy = "WaitForFirstConsumer";
    let ordinary = [
        class("now", "Immediate", "2026-01-01T00:00:00Z", "x"),
        class("later", lazy, "2026-01-01T00:00:00Z", "x"),
    ];
    let with = |more: &[Value]| StorageClasses::from_objects(&[&ordinary, more].concat());
    let none = with(&[]);
    let lazy_default = with(&[class("standard", lazy, "2026-01-01T00:00:00Z", OLD_DEFAULT)]);
    let newest_default = with(&[
        class("new", "Immediate", "2026-02-01T00:00:00Z", DEFAULT),
        class("old", lazy, "2026-01-01T00:00:00Z", DEFAULT),
    ]);
    let named =
        |class: &str| json!({"spec": {"storageClassName": class}, "status": {"phase": "Pending"}});
    let placed = json!({
        "metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}},
        "spec": {"storageClassName": "later"}, "status": {"phase": "Pending"},
    });
    let of_a_volume = json!({"spec": {"volumeName": "v", "storageClassName": "later"}, "status": {"phase": "Pending"}});
    for (classes, claim, status, message) in [
        (&none, named("now"), InProgress, UNBOUND),
        (&none, named("later"), Current, ON_USE),
        (&none, named("missing"), InProgress, UNBOUND),
        (&none, phase("Pending"), InProgress, UNBOUND),
        (&lazy_default, phase("Pending"), Current, ON_USE),
        (&newest_default, phase("Pending"), InProgress, UNBOUND),
        (&lazy_default, named(""), InProgress, UNBOUND),
        (&none, placed, InProgress, UNBOUND),
        (&none, of_a_volume, InProgress, UNBOUND),
        (&none, phase("Bound"), Current, "bound"),
    ] {
        let ctx = ReadinessContext {
            classes: Some(classes),
            ..ReadinessContext::default()
        };
        check_in(CLAIM, claim, &ctx, status, message);
    }
    assert_eq!(
        find_context_need(&object(CLAIM, named("now"))),
        Some(ContextNeed::Classes)
    );
    assert_eq!(find_context_need(&object(CLAIM, phase("Bound"))), None);
    assert_eq!(find_context_need(&object(CLAIM, named(""))), None);
}
