use std::collections::BTreeMap;
use std::slice;

use jiff::SignedDuration;
use serde_json::json;

use super::super::fake::{self, FakeReply};
use super::*;
use addons_plan::Target;
use addons_plan::adoption::Adoption;
use addons_plan::changes::RefusalRemedy;
use addons_plan::conflicts::Policy;
use common::manifest::key::ObjectKey;
use tokio::sync::mpsc::unbounded_channel;

mod recreating;
mod settling;

fn step(kind: &str, action: Action) -> Step {
    let key = ObjectKey {
        kind: kind.into(),
        namespace: Some("web".into()),
        name: "a".into(),
        ..ObjectKey::default()
    };
    Step {
        target: Target {
            key,
            version: "v1".into(),
            plural: format!("{}s", kind.to_lowercase()),
        },
        action,
        object: Arc::new(json!({"kind": kind, "data": {"password": "aHVudGVyMg=="}})),
        uid: None,
        digest: String::new(),
        seen: None,
        policy: Policy::default(),
    }
}

fn live(owner: &str) -> serde_json::Value {
    json!({"metadata": {"uid": "u", "resourceVersion": "1", "labels": {names::LABEL_OWNER: owner}}})
}

/// A live object with these managers of the main resource or of a subresource.
fn written_by(managers: &[(&str, &str)]) -> serde_json::Value {
    let entry = |(name, subresource): &(&str, &str)| json!({"manager": format!("kubectl-addons.{name}"), "operation": "Apply", "subresource": subresource});
    let mut live = live("ours");
    live["metadata"]["managedFields"] = managers.iter().map(entry).collect();
    live
}

fn answer(code: u16, body: serde_json::Value) -> FakeReply {
    Some((code, &[], body))
}

fn failure(code: u16, message: &str) -> FakeReply {
    answer(
        code,
        json!({"kind": "Status", "code": code, "message": message, "details": {"name": "a"}}),
    )
}

/// A failure that names fields.
fn refusal(code: u16, reason: &str, message: &str, causes: &[serde_json::Value]) -> FakeReply {
    let details = json!({"causes": causes});
    answer(
        code,
        json!({"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}),
    )
}

/// No object is recorded.
static NOTHING: Inventory = Inventory {
    objects: BTreeMap::new(),
};

fn applier() -> Applier<'static> {
    Applier {
        part: 0,
        manager: "kubectl-addons.ours".into(),
        owner: "ours".into(),
        deadline: Instant::now(),
        mask: Arc::default(),
        first_job: Arc::default(),
        recorded: &NOTHING,
        events: unbounded_channel().0,
    }
}

fn missing() -> FakeReply {
    failure(404, "not found")
}

/// Applies one step against prepared answers: its result, and the methods that were used.
async fn apply(step: &Step, replies: Vec<FakeReply>) -> (Result<ApplyAnswer, EngineError>, String) {
    let (cluster, asked) = fake::cluster(replies);
    let outcome = applier().apply_step(&cluster, step).await;
    let lines = asked.lines();
    let methods = lines.iter().filter_map(|line| line.split(' ').next());
    (outcome.result, methods.collect::<Vec<_>>().join(" "))
}

#[tokio::test]
async fn who_made_a_planned_object_decides_whose_it_is() {
    for (replies, created, methods) in [
        (vec![answer(201, live("ours"))], true, "PATCH"),
        (vec![answer(200, live("ours"))], false, "PATCH"),
        // No other client wrote it: the late creation of a client that was killed.
        (
            vec![answer(200, written_by(&[("ours", "")]))],
            true,
            "PATCH",
        ),
        (
            vec![answer(
                200,
                written_by(&[("ours", ""), ("controller", "status")]),
            )],
            true,
            "PATCH",
        ),
        (
            vec![answer(200, written_by(&[("ours", ""), ("kubectl", "")]))],
            false,
            "PATCH",
        ),
        // The response was lost: the label of the live object decides.
        (
            vec![None, answer(200, live("ours")), answer(200, live("ours"))],
            true,
            "PATCH GET PATCH",
        ),
        (
            vec![None, answer(200, live("others")), answer(200, live("ours"))],
            false,
            "PATCH GET PATCH",
        ),
        (
            vec![None, missing(), answer(201, live("ours"))],
            true,
            "PATCH GET PATCH",
        ),
    ] {
        let (applied, used) = apply(&step("ConfigMap", Action::Create), replies).await;
        assert_eq!(applied.unwrap().created, created, "{used}");
        assert_eq!(used, methods);
    }
}

/// A definition that came into being after the first Job of the operation was made by that; anything else was not.
#[tokio::test]
async fn a_definition_that_a_job_of_the_operation_made_is_ours() {
    let at = |seconds: u8| format!("2026-11-21T12:00:{seconds:02}Z");
    let made = |code: u16, seconds: u8| {
        let mut live = written_by(&[("kubectl", "")]);
        live["metadata"]["creationTimestamp"] = json!(at(seconds));
        answer(code, live)
    };
    let of = |group: &str, kind: &str| {
        let mut step = step(kind, Action::Create);
        group.clone_into(&mut step.target.key.group);
        step
    };
    let definition = || of("apiextensions.k8s.io", "CustomResourceDefinition");
    for (step, job, seconds, is_ours) in [
        (definition(), made(201, 10), 10, true),
        (definition(), made(201, 10), 20, true),
        // It was there before the Job.
        (definition(), made(201, 10), 9, false),
        // The Job was there before the operation.
        (definition(), made(200, 10), 20, false),
        (of("", "ConfigMap"), made(201, 10), 20, false),
    ] {
        let (cluster, _) = fake::cluster(vec![job, made(200, seconds)]);
        let applier = applier();
        applier
            .apply_step(&cluster, &of("batch", "Job"))
            .await
            .result
            .unwrap();
        let applied = applier.apply_step(&cluster, &step).await.result.unwrap();
        assert_eq!(applied.created, is_ours, "{seconds}: {}", step.target.key);
    }
}

#[tokio::test]
async fn the_request_is_an_apply_that_asks_for_metadata() {
    let (cluster, asked) = fake::cluster(vec![answer(200, live("ours"))]);
    applier()
        .apply_step(&cluster, &step("ConfigMap", Action::Update))
        .await
        .result
        .unwrap();
    assert_eq!(
        asked.lines(),
        [
            "PATCH /api/v1/namespaces/web/configmaps/a?fieldManager=kubectl-addons.ours&fieldValidation=Warn"
        ]
    );
    assert_eq!(asked.body(0)["data"]["password"], "aHVudGVyMg==");
}

/// The generation of a Deployment counts changes of its annotations, and the second write changes some.
#[tokio::test]
async fn an_adopted_object_is_recorded_as_the_last_write_left_it() {
    let mut step = step("Deployment", Action::Adopt);
    step.policy.adopted = Some(Adoption {
        uid: "u".into(),
        only_owner: true,
        ..Adoption::default()
    });
    let seen = |generation: i64| {
        let entry = json!({"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:password": {}}}});
        let metadata = json!({"uid": "u", "generation": generation, "resourceVersion": format!("{generation}0"),
            "managedFields": [entry]});
        answer(200, json!({"metadata": metadata}))
    };
    let replies = vec![seen(1), seen(2), seen(2), seen(3)];
    let (applied, used) = apply(&step, replies).await;
    let applied = applied.unwrap();
    assert_eq!(used, "GET PATCH GET PATCH");
    assert_eq!(
        (applied.generation, applied.resource_version.as_str()),
        (Some(3), "30")
    );
}

#[tokio::test]
async fn a_secret_is_in_no_error() {
    let words = "data.password: Invalid value: \"aHVudGVyMg==\" is hunter2";
    for reply in [
        failure(422, words),
        failure(500, words),
        failure(403, words),
        failure(
            403,
            &format!("admission webhook \"x\" denied the request: {words}"),
        ),
    ] {
        let (result, _) = apply(&step("Secret", Action::Update), vec![missing(), reply]).await;
        let error = format!("{0} {0:?}", result.unwrap_err());
        assert!(
            !error.contains("aHVudGVyMg") && !error.contains("hunter2"),
            "{error}"
        );
    }
    let (result, _) = apply(
        &step("ConfigMap", Action::Update),
        vec![failure(422, words)],
    )
    .await;
    assert_eq!(
        result.unwrap_err().to_string(),
        format!("web/ConfigMap a: {words}")
    );
}

#[tokio::test]
async fn a_silent_webhook_is_asked_again_only_while_there_is_time() {
    let silent = || {
        failure(
            500,
            "Internal error occurred: failed calling webhook \"x\": connection refused",
        )
    };
    let (result, used) = apply(&step("ConfigMap", Action::Create), vec![silent()]).await;
    assert_eq!(
        (result.unwrap_err().code(), used.as_str()),
        (Some(500), "PATCH")
    );
}

/// No one else repairs what the webhook of an installation keeps from being repaired.
#[tokio::test]
async fn a_silent_webhook_of_the_installation_is_named() {
    let message =
        "Internal error occurred: failed calling webhook \"judge\": no endpoints available";
    let configuration = answer(200, json!({"webhooks": [{"name": "judge"}]}));
    let (cluster, asked) = fake::cluster(vec![missing(), failure(500, message), configuration]);
    let key = ObjectKey {
        group: "admissionregistration.k8s.io".into(),
        kind: "ValidatingWebhookConfiguration".into(),
        name: "judges".into(),
        ..ObjectKey::default()
    };
    let mut applier = applier();
    let mut recorded = Inventory::default();
    recorded.objects.insert(key.clone(), Default::default());
    applier.recorded = &recorded;
    let mut step = step("Deployment", Action::Update);
    step.target.key.group = "apps".into();
    let outcome = applier.apply_step(&cluster, &step).await;
    let error = outcome.result.unwrap_err();
    assert_eq!(
        error.remedy(),
        Some(RefusalRemedy::DeleteWebhooks(Box::new(key))),
        "{error}"
    );
    let lines = asked.lines();
    assert!(
        lines[2].ends_with("/validatingwebhookconfigurations/judges"),
        "{lines:?}"
    );
}

/// Semantics 12: until the API server has seen a changed definition, it judges objects by the former one.
#[tokio::test]
async fn an_object_waits_until_its_changed_definition_is_in_force() {
    let refused = || {
        failure(
            500,
            "failed to create typed patch object (web/a; shop.example/v1, Kind=Till): .spec.size: field not declared in schema",
        )
    };
    let definition = |changed: Timestamp| {
        let entry = json!({"manager": "m", "operation": "Apply", "time": changed.to_string(), "fieldsV1": {}});
        let metadata = json!({"name": "tills.shop.example", "uid": "1", "managedFields": [entry]});
        answer(200, json!({"metadata": metadata}))
    };
    let now = Timestamp::now();
    let former = now - SignedDuration::from_mins(1);
    let cause = json!({"reason": "FieldValueNotSupported", "field": "spec.size",
        "message": "Unsupported value: \"xl\": supported values: \"s\", \"m\""});
    let invalid = || refusal(422, "Invalid", "Till a is invalid", slice::from_ref(&cause));
    for (action, group, changed, expected, is_invalid) in [
        (
            Action::Update,
            "shop.example",
            now,
            "PATCH GET PATCH",
            false,
        ),
        (
            Action::Create,
            "shop.example",
            now,
            "PATCH GET PATCH",
            false,
        ),
        (Action::Update, "shop.example", now, "PATCH GET PATCH", true),
        (Action::Update, "shop.example", former, "PATCH GET", false),
        (Action::Create, "shop.example", former, "PATCH GET", false),
        (Action::Update, "shop.example", former, "PATCH GET", true),
        (Action::Update, "apps", now, "PATCH", false),
        (Action::Update, "apps", now, "PATCH", true),
    ] {
        let mut step = step("Till", action);
        step.target.key.group = group.into();
        step.target.plural = "tills".into();
        let refusal = if is_invalid { invalid() } else { refused() };
        let replies = vec![refusal, definition(changed), answer(200, live("ours"))];
        let (cluster, asked) = fake::cluster(replies);
        let (tell, mut told) = unbounded_channel();
        let applier = Applier {
            deadline: Instant::now() + Duration::from_secs(60),
            events: tell,
            ..applier()
        };
        let is_applied = applier.apply_step(&cluster, &step).await.result.is_ok();
        let lines = asked.lines();
        let methods = lines.iter().filter_map(|line| line.split(' ').next());
        let methods: Vec<&str> = methods.collect();
        assert_eq!(methods.join(" "), expected, "{action:?} {group}");
        let waits = expected.ends_with("GET PATCH");
        assert_eq!((is_applied, told.try_recv().is_ok()), (waits, waits));
    }
}

/// Semantics 12: what would stay beside the manifest is claimed first, in one write that changes no value.
#[tokio::test]
async fn the_other_half_of_a_union_is_claimed_before_the_apply() {
    let mut step = step("Deployment", Action::Update);
    step.target.key.group = "apps".into();
    step.object =
        Arc::new(json!({"kind": "Deployment", "spec": {"strategy": {"type": "Recreate"}}}));
    let mut found = live("ours");
    found["spec"] =
        json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}});
    let edit = json!({"f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}}}}});
    found["metadata"]["managedFields"] =
        json!([{"manager": "kubectl-edit", "operation": "Update", "fieldsV1": edit}]);
    let replies = vec![
        answer(200, found.clone()),
        answer(200, found.clone()),
        answer(200, live("ours")),
        answer(200, live("ours")),
    ];
    let (cluster, asked) = fake::cluster(replies);
    let outcome = applier().apply_step(&cluster, &step).await;
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    let claimed = &asked.body(2)[0]["value"];
    let ours = json!({"f:spec": {"f:strategy": {"f:rollingUpdate": {}}}});
    assert_eq!(claimed.as_array().map(Vec::len), Some(1), "{claimed}");
    assert_eq!(
        (&claimed[0]["manager"], &claimed[0]["fieldsV1"]),
        (&json!("kubectl-addons.ours"), &ours)
    );
    let settled: Vec<_> = outcome
        .settled
        .iter()
        .map(|one| one.conflict.manager.as_str())
        .collect();
    assert_eq!(settled, ["kubectl-edit"]);
    // A field of another manager is not taken where the policy forbids it.
    step.policy.conflicts = common::api::installation::ConflictPolicy::Fail;
    let (result, used) = apply(&step, vec![answer(200, found)]).await;
    let error = result.unwrap_err().to_string();
    assert!(error.contains("spec.strategy.rollingUpdate"), "{error}");
    assert_eq!(used, "GET");
}

/// The server answers a write that changes nothing with the object as it was.
#[tokio::test]
async fn an_answer_with_the_same_version_changed_nothing() {
    for (seen, version, expected) in [
        (Some("1"), "1", true),
        (Some("1"), "2", false),
        (None, "1", false),
    ] {
        let mut step = step("ConfigMap", Action::Refresh);
        step.seen = seen.map(str::to_owned);
        let mut object = live("ours");
        object["metadata"]["resourceVersion"] = json!(version);
        let (cluster, _) = fake::cluster(vec![answer(200, object)]);
        let outcome = applier().apply_step(&cluster, &step).await;
        assert!(outcome.result.is_ok());
        assert_eq!(outcome.is_unchanged, expected, "{seen:?} {version}");
    }
}

/// Two add-ons of one command want the same Namespace, and the other one was faster.
#[tokio::test]
async fn what_others_created_meanwhile_is_only_recorded_where_it_may_be_of_several() {
    let cause = json!({"reason": "FieldManagerConflict", "field": ".metadata.labels.kubectl-addons.dev/owner",
        "message": "conflict with \"kubectl-addons.others\""});
    let taken = || refusal(409, "Conflict", "Apply failed", slice::from_ref(&cause));
    let mut step = step("Namespace", Action::Create);
    let (result, methods) = apply(&step, vec![taken()]).await;
    assert!(result.is_err(), "{result:?}");
    assert_eq!(methods, "PATCH");
    step.policy.only_recorded = true;
    let (cluster, _) = fake::cluster(vec![taken(), answer(200, live("others"))]);
    let outcome = applier().apply_step(&cluster, &step).await;
    assert!(outcome.is_unchanged);
    let found = outcome.result.unwrap();
    assert!(found.only_recorded && !found.created && found.uid == "u");
}
