use addons_plan::teardown::TeardownTurn;
use std::collections::BTreeMap;
use std::sync::Arc;

use addons_plan::closing::ClosingStep;
use addons_plan::migration::Migration;
use addons_plan::refusal::describe_writes;
use addons_plan::{Deletion, Target};
use common::api::names::InstallationName;
use serde_json::{Value, json};

use super::super::fake::{self, FakeReply};
use super::*;

fn key(group: &str, kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: (kind != "CustomResourceDefinition").then(|| "shop".to_owned()),
        name: name.to_owned(),
    }
}

fn target(key: ObjectKey) -> Target {
    Target {
        version: "v1".to_owned(),
        plural: format!("{}s", key.kind.to_lowercase()),
        key,
    }
}

fn step(key: ObjectKey, action: Action, object: Value) -> Step {
    Step {
        target: target(key),
        action,
        object: Arc::new(object),
        uid: None,
        digest: String::new(),
        seen: None,
        policy: Policy::default(),
    }
}

fn pruned(key: ObjectKey) -> Deletion {
    Deletion {
        target: target(key),
        uid: "u".to_owned(),
        resource_version: String::new(),
        labels: BTreeMap::new(),
    }
}

fn plan(steps: Vec<Step>, deletions: Vec<Deletion>) -> InstallationPlan {
    let deletions = deletions.into_iter().map(|deletion| ClosingStep::Delete {
        turn: TeardownTurn::Workloads,
        deletion,
    });
    let installation = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "set".to_owned(),
    };
    InstallationPlan {
        verb: Verb::Upgrade,
        steps,
        closing: deletions.collect(),
        ..InstallationPlan::nothing(installation, "set")
    }
}

fn ok(object: Value) -> FakeReply {
    Some((200, &[], object))
}

fn refusal(code: u16, message: &str, causes: &[(&str, &str)]) -> FakeReply {
    let causes = causes.iter().map(|(field, message)| {
        json!({"reason": "FieldValueInvalid", "field": field, "message": message})
    });
    let causes: Vec<Value> = causes.collect();
    Some((
        code,
        &[],
        json!({"kind": "Status", "code": code, "message": message, "details": {"name": "a", "causes": causes}}),
    ))
}

fn denied() -> FakeReply {
    let message = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
    refusal(422, message, &[])
}

/// The plan with what the server said, and the requests.
async fn asked(
    mut plan: InstallationPlan,
    replies: Vec<FakeReply>,
) -> (InstallationPlan, Vec<String>) {
    let (cluster, asked) = fake::cluster(replies);
    find_refusals(&cluster, &mut [&mut plan]).await.unwrap();
    (plan, asked.lines())
}

fn told(plan: &InstallationPlan) -> Vec<String> {
    describe_writes(&plan.refused)
}

fn service(port: u32) -> Value {
    json!({"kind": "Service", "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}})
}

fn taken() -> FakeReply {
    let words = "Invalid value: 31480: provided port is already allocated";
    refusal(422, "…", &[("spec.ports[0].nodePort", words)])
}

#[tokio::test]
async fn creations_and_deletions_are_asked_about() {
    let map = |action| {
        step(
            key("", "ConfigMap", "a"),
            action,
            json!({"kind": "ConfigMap"}),
        )
    };
    let (found, lines) = asked(plan(vec![map(Action::Create)], Vec::new()), vec![denied()]).await;
    assert_eq!(
        told(&found),
        ["shop/ConfigMap a: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"]
    );
    assert_eq!(found.refused[0].cause, FailureCause::Denied);
    assert!(
        lines[0].starts_with("PATCH ") && lines[0].ends_with("&dryRun=All"),
        "{lines:?}"
    );

    let deletion = pruned(key("", "ConfigMap", "a"));
    let (found, lines) = asked(plan(Vec::new(), vec![deletion]), vec![denied()]).await;
    assert_eq!(
        told(&found),
        [
            "shop/ConfigMap a: cannot be deleted: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
        ]
    );
    assert!(lines[0].starts_with("DELETE "), "{lines:?}");

    let invalid = refusal(422, "…", &[("data[a b]", "Invalid value: \"a b\": no key")]);
    let (found, _) = asked(
        plan(vec![map(Action::Update)], Vec::new()),
        vec![ok(json!({"metadata": {}})), invalid],
    )
    .await;
    assert_eq!(
        told(&found),
        ["shop/ConfigMap a: data[a b]: Invalid value: \"a b\": no key"]
    );
}

#[tokio::test]
async fn what_the_command_brings_first_is_not_asked_about() {
    let map = || step(key("", "ConfigMap", "a"), Action::Create, json!({}));
    let mut fresh = plan(vec![map()], Vec::new());
    fresh.create_namespace = Some("shop".to_owned());
    let (found, lines) = asked(fresh, Vec::new()).await;
    assert!(lines.is_empty() && found.refused.is_empty());
    assert!(found.unjudged[0].is_created_by_command);

    // A policy that denies it is changed before.
    let mut policy = key(
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        "p",
    );
    policy.namespace = None;
    let steps = vec![map(), step(policy, Action::Create, json!({}))];
    let (found, _) = asked(plan(steps, Vec::new()), vec![denied(), ok(json!({}))]).await;
    assert!(found.refused.is_empty(), "{:?}", told(&found));
    assert!(found.unjudged[0].why.contains("is part of the plan"));

    // A webhook that does not answer says nothing.
    let silent = refusal(500, "failed calling webhook \"w\": connection refused", &[]);
    let (found, _) = asked(plan(vec![map()], Vec::new()), vec![silent]).await;
    assert!(found.refused.is_empty() && !found.unjudged[0].is_created_by_command);
}

#[tokio::test]
async fn of_a_migration_the_last_definition_counts() {
    let versions = |names: &[&str]| {
        let versions = names
            .iter()
            .map(|name| json!({"name": name, "served": true, "storage": *name == "v1"}));
        let versions: Vec<Value> = versions.collect();
        json!({"kind": "CustomResourceDefinition", "metadata": {"name": "tills.shop.example"},
            "spec": {"group": "shop.example", "names": {"kind": "Till"}, "versions": versions},
            "status": {"storedVersions": names}})
    };
    let name = key(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "tills.shop.example",
    );
    let live = versions(&["v1beta1", "v1"]);
    let wanted = Arc::new(versions(&["v1"]));
    let migrated = || {
        let migration = Migration {
            definition: name.clone(),
            ..Migration::new(&live, &wanted, Some(0)).unwrap()
        };
        let update = step(name.clone(), Action::Update, Value::clone(&wanted));
        let mut plan = plan(vec![update], Vec::new());
        plan.add_migration(migration, &live);
        plan
    };
    let stored = (
        "status.storedVersions[0]",
        "Invalid value: \"v1beta1\": missing from spec.versions",
    );
    let conversion = ("spec.conversion.strategy", "Required value");
    for (causes, expected) in [
        (&[stored][..], None),
        (
            &[stored, conversion],
            Some("spec.conversion.strategy: Required value"),
        ),
    ] {
        let replies = vec![
            ok(live.clone()),
            ok(live.clone()),
            refusal(422, "…", causes),
        ];
        let (found, lines) = asked(migrated(), replies).await;
        let expected = expected.map(|words| format!("{name}: {words}"));
        assert_eq!(told(&found), Vec::from_iter(expected));
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
}

#[tokio::test]
async fn what_a_pruned_object_has_is_freed_on_demand() {
    let renamed = || {
        let new = step(key("", "Service", "new"), Action::Create, service(31480));
        plan(vec![new], vec![pruned(key("", "Service", "old"))])
    };
    // The creation, the deletion, then the live object that is deleted.
    let replies = || vec![taken(), ok(json!({})), ok(service(31480))];
    let (found, _) = asked(renamed(), replies()).await;
    assert!(found.refused.is_empty(), "{:?}", told(&found));
    assert_eq!(
        found.recreations[0].to_string(),
        "shop/Service new: spec.ports[0].nodePort: provided port is already allocated; \
         shop/Service old, which is pruned, has to be deleted first"
    );
    assert!(addons_plan::immutable::check([&found]).is_err());

    let mut named = renamed();
    named.may_go_first.insert(key("", "Service", "old"));
    let (found, _) = asked(named, replies()).await;
    assert!(
        found.steps[0]
            .policy
            .deletes_first(found.deletions().next().unwrap())
    );
    assert!(addons_plan::immutable::check([&found]).is_ok());

    // Another one has it.
    let (found, _) = asked(renamed(), vec![taken(), ok(json!({})), ok(service(31481))]).await;
    assert_eq!(
        told(&found),
        ["shop/Service new: spec.ports[0].nodePort: provided port is already allocated"]
    );
}

#[tokio::test]
async fn two_new_objects_do_not_get_what_only_one_can_have() {
    let service = |name: &str, port| step(key("", "Service", name), Action::Create, service(port));
    let steps = vec![
        service("a", 31480),
        service("b", 31480),
        service("c", 31481),
    ];
    let mut fresh = plan(steps, Vec::new());
    fresh.create_namespace = Some("shop".to_owned());
    let (found, _) = asked(fresh, Vec::new()).await;
    assert_eq!(
        told(&found),
        [
            "shop/Service b: shop/Service a asks for node port 31480 as well, which only one can have"
        ]
    );
}
