//! Describes conflicts over fields, for a report.

use addons_engine::{Settled, Settlement};
use addons_plan::conflicts::Conflict;
use jiff::Timestamp;

use common::age::age;

/// Describes a settled conflict: `taken`, `shop/Deployment web spec.replicas: 5 (kubectl/scale, 3m ago) → 3`.
pub fn describe_settled(settled: &Settled, now: Timestamp) -> (&'static str, String) {
    let conflict = &settled.conflict;
    let since = conflict.time.as_ref().and_then(|time| time.parse().ok());
    let since = since.map(|since| format!(", {} ago", age(since, now)));
    let held = format!(
        "{} {}: {} ({}{})",
        settled.key,
        conflict.field,
        Conflict::describe_value(conflict.live.as_ref()),
        conflict.manager,
        since.unwrap_or_default()
    );
    let ours = Conflict::describe_value(conflict.ours.as_ref());
    match &settled.settlement {
        Settlement::Taken => ("taken", format!("{held} → {ours}")),
        Settlement::Left { autoscaler: None } => ("left", format!("{held}, wanted {ours}")),
        Settlement::Left {
            autoscaler: Some(name),
        } => ("left", format!("{held}, wanted {ours}: {name} sets it")),
        Settlement::Kept { why } => ("left", format!("{held}, wanted {ours}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use common::manifest::key::ObjectKey;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_settled_field_is_one_line() {
        let now: Timestamp = "2026-11-21T12:03:00Z".parse().unwrap();
        let mut settled = Settled {
            key: ObjectKey {
                group: "apps".to_owned(),
                kind: "Deployment".to_owned(),
                namespace: Some("shop".to_owned()),
                name: "web".to_owned(),
            },
            conflict: Conflict {
                field: "spec.replicas".to_owned(),
                manager: "kubectl/scale".to_owned(),
                time: Some("2026-11-21T12:00:00Z".to_owned()),
                live: Some(json!(5)),
                ours: Some(json!(3)),
            },
            settlement: Settlement::Taken,
        };
        let held = "shop/Deployment web spec.replicas: 5 (kubectl/scale, 3m ago)";
        assert_eq!(
            describe_settled(&settled, now),
            ("taken", format!("{held} → 3"))
        );
        settled.settlement = Settlement::Left { autoscaler: None };
        assert_eq!(
            describe_settled(&settled, now),
            ("left", format!("{held}, wanted 3"))
        );
        settled.conflict.time = None;
        settled.settlement = Settlement::Left {
            autoscaler: Some("HorizontalPodAutoscaler web".to_owned()),
        };
        let held = "shop/Deployment web spec.replicas: 5 (kubectl/scale), wanted 3: HorizontalPodAutoscaler web sets it";
        assert_eq!(describe_settled(&settled, now), ("left", held.to_owned()));
    }
}
