use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::closing::ClosingStep;
use crate::conflicts::Policy;
use crate::immutable::{Recreation, RecreationObstacle};
use crate::migration::Migration;
use crate::{Action, Step, Target};
use common::api::names::InstallationName;

fn key(group: &str, kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        ..ObjectKey::default()
    }
}

fn step(key: ObjectKey) -> Step {
    Step {
        target: Target {
            key,
            version: "v1".to_owned(),
            plural: String::new(),
        },
        action: Action::Update,
        object: Arc::new(json!({})),
        uid: None,
        digest: String::new(),
        seen: None,
        policy: Policy::default(),
    }
}

fn spec(spec: &serde_json::Value) -> AddonInstallationSpec {
    serde_json::from_value(spec.clone()).unwrap()
}

#[test]
fn what_an_upgrade_leaves_behind_is_named() {
    let name = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "till".to_owned(),
    };
    let mut plan = InstallationPlan::nothing(name, "till");
    let plain = spec(&json!({"addonRef": {"name": "till"}}));
    plan.steps.push(step(key("apps", "Deployment", "till")));
    assert_eq!(find_lasting_effects(&plan, &plain), []);

    let job = key("batch", "Job", "upgrade");
    let other = key("example.test", "Job", "theirs");
    plan.steps.extend([step(job.clone()), step(other)]);
    let definition = key("apiextensions.k8s.io", "CustomResourceDefinition", "a");
    plan.close([ClosingStep::Rewrite(Migration {
        definition: definition.clone(),
        kind: "A".to_owned(),
        versions: vec!["v1alpha1".to_owned()],
        storage: "v1".to_owned(),
        has_objects: true,
        is_begun: false,
        count: None,
        is_accepted: true,
        wanted: Arc::new(json!({})),
        digest: String::new(),
    })]);
    let recreated = key("apps", "Deployment", "till");
    plan.recreations.push(Recreation {
        key: recreated.clone(),
        fields: Vec::new(),
        obstacle: None,
        holders: Vec::new(),
    });
    // It is refused: nothing becomes of it.
    plan.recreations.push(Recreation {
        key: key("apps", "StatefulSet", "till"),
        fields: Vec::new(),
        obstacle: Some(RecreationObstacle::Claims),
        holders: Vec::new(),
    });
    let from = json!([{"secretKeyRef": {"name": "keys", "key": "values"}}]);
    let back = spec(&json!({"addonRef": {"name": "till"}, "valuesFrom": from}));
    let expected = [
        LastingEffect::Migrated {
            definition,
            versions: vec!["v1alpha1".to_owned()],
        },
        LastingEffect::Recreated(recreated),
        LastingEffect::Job(job),
        LastingEffect::Secrets,
    ];
    assert_eq!(find_lasting_effects(&plan, &back), expected);
}
