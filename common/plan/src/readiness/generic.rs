//! Rules for all kinds, and custom resources by their conditions.

use serde_json::Value;

use super::fields::{field, find_condition, join_reason, number, text};
use super::{GRACE, Readiness, ReadinessContext, ReadinessStatus};
use common::entrance;

/// The message of an object that its controller has not seen since it changed.
pub(super) const UNSEEN: &str = "waiting: not yet seen by its controller";

/// Checks whether an object is being deleted or cannot be read, which precedes all other rules.
pub(super) fn assess_lost(object: &Value) -> Option<Readiness> {
    if field(object, &["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null()) {
        return Some(Readiness::new(
            ReadinessStatus::Terminating,
            describe_deletion(object),
        ));
    }
    let why = entrance::reduced_reason(object)?;
    Some(Readiness::new(
        ReadinessStatus::Unknown,
        format!("it cannot be read: {why}"),
    ))
}

/// Checks deletion, generation, Reconciling and Stalled, which precede the rule of the kind (kstatus).
pub(super) fn assess_any_kind(object: &Value) -> Option<Readiness> {
    if let Some(lost) = assess_lost(object) {
        return Some(lost);
    }
    let generation = number(object, &["metadata", "generation"]);
    let observed = number(object, &["status", "observedGeneration"]);
    if let (Some(generation), Some(observed)) = (generation, observed)
        && generation != observed
    {
        return Some(Readiness::in_progress(UNSEEN));
    }
    if let Some(reconciling) = find_condition(object, "Reconciling")
        && reconciling.is_true()
    {
        return Some(Readiness::in_progress(format!(
            "waiting: {}",
            reconciling.why()
        )));
    }
    if let Some(stalled) = find_condition(object, "Stalled")
        && stalled.is_true()
    {
        return Some(Readiness::failed(format!("stalled: {}", stalled.why())));
    }
    None
}

/// Whether the object has no status yet.
pub(super) fn is_unreported(object: &Value) -> bool {
    match field(object, &["status"]) {
        None | Some(Value::Null) => true,
        Some(status) => status.as_object().is_some_and(serde_json::Map::is_empty),
    }
}

/// Assesses an object by the first of these conditions that exists. An object without any of them is ready.
///
/// A custom resource that its controller has not seen yet has no status either (helm#32066, kapp, kstatus: ready at once). If its kind has
/// a status, it gets [`GRACE`] from its creation; most that have none by then never get one.
pub(super) fn assess_by_conditions(
    object: &Value,
    kinds: &[&str],
    ctx: &ReadinessContext<'_>,
) -> Readiness {
    if ctx.has_status && is_unreported(object) {
        let created = text(object, &["metadata", "creationTimestamp"]).parse();
        let age = ctx.now.zip(created.ok());
        if age.is_some_and(|(now, created)| now.duration_since(created) < GRACE) {
            return Readiness::in_progress("waiting: no status yet");
        }
        let seconds = GRACE.as_secs();
        return Readiness::current(format!("ready, no status after {seconds} s"));
    }
    let Some((kind, condition)) = kinds
        .iter()
        .find_map(|kind| Some((kind, find_condition(object, kind)?)))
    else {
        return Readiness::current("ready");
    };
    let generation = number(object, &["metadata", "generation"]);
    if let (Some(generation), Some(observed)) = (generation, condition.observed_generation())
        && observed < generation
    {
        return Readiness::in_progress(UNSEEN);
    }
    if condition.is_true() {
        return Readiness::current(kind.to_lowercase());
    }
    Readiness::in_progress(format!("waiting: {}", condition.why()))
}

fn describe_deletion(object: &Value) -> String {
    let finalizers: Vec<_> = field(object, &["metadata", "finalizers"])
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if finalizers.is_empty() {
        "being deleted".to_owned()
    } else {
        format!(
            "being deleted, held by {}",
            join_reason("", &finalizers.join(", "))
        )
    }
}
