use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::conflicts::Policy;
use crate::inventory::InventoryItem;
use crate::{Action, Step, Target};

fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        kind: kind.to_owned(),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
        ..ObjectKey::default()
    }
}

/// A plan that updates these objects, each of which cannot be changed in place.
fn plan(keys: &[ObjectKey]) -> InstallationPlan {
    let name = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "till".to_owned(),
    };
    let mut plan = InstallationPlan::nothing(name, "till");
    for key in keys {
        plan.steps.push(Step {
            target: Target {
                key: key.clone(),
                version: "v1".to_owned(),
                plural: String::new(),
            },
            action: Action::Update,
            object: Arc::new(json!({})),
            uid: None,
            digest: String::new(),
            seen: None,
            policy: Policy::default(),
        });
        let mut item = InventoryItem::planned(&key.name, "v1");
        item.object.state = if key.name == "theirs" {
            ObjectState::Preexisting
        } else {
            ObjectState::Owned
        };
        plan.exact.objects.insert(key.clone(), item);
    }
    let fixed = FixedField {
        field: "spec.selector".to_owned(),
        rule: "field is immutable".to_owned(),
    };
    let recreations = keys
        .iter()
        .map(|key| Recreation::new(&plan, key, vec![fixed.clone()]));
    plan.recreations = recreations.collect();
    plan
}

#[test]
fn what_is_not_accepted_is_refused_and_named() {
    let mut plan = plan(&[key("Deployment", "api"), key("Deployment", "web")]);
    let error = check([&plan]).unwrap_err();
    assert!(error.is_acceptable() && !error.is_final());
    assert_eq!(
        error.to_string(),
        "2 objects of till cannot be changed in place; nothing was changed:\n\
         \u{20} shop/Deployment api: spec.selector: field is immutable\n\
         \u{20} shop/Deployment web: spec.selector: field is immutable"
    );
    plan.steps[0].policy.recreate = true;
    let error = check([&plan]).unwrap_err();
    assert_eq!(error.refused[0].objects.len(), 1);
    let plan = plan.accepting_recreations();
    assert_eq!(check([&plan]), Ok(()));
}

#[test]
fn what_holds_data_is_refused_whatever_is_accepted() {
    let plan = plan(&[
        key("PersistentVolumeClaim", "data"),
        key("Service", "theirs"),
    ]);
    let plan = plan.accepting_recreations();
    let error = check([&plan]).unwrap_err();
    assert!(error.is_final() && !error.is_acceptable());
    for words in [
        "is never recreated: the data in it would be lost",
        "it existed before this installation",
    ] {
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn claims_are_lost_where_pods_go_with_their_set() {
    let set = |app: &str, policy: &str| {
        json!({"kind": "StatefulSet", "spec": {"selector": {"matchLabels": {"app": app}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy}}})
    };
    for (live, wanted, lost) in [
        (set("a", "Delete"), set("b", "Delete"), true),
        (set("a", "Delete"), set("a", "Delete"), false),
        (set("a", "Retain"), set("b", "Delete"), false),
    ] {
        assert_eq!(loses_claims(&live, &wanted), lost);
    }
}
