//! Objects that are recreated.

use super::*;
use addons_plan::changes::RefusalRemedy;

fn allowed(kind: &str) -> Step {
    let mut step = super::step(kind, Action::Update);
    step.policy.recreate = true;
    step
}

fn immutable() -> FakeReply {
    let cause = json!({"reason": "FieldValueInvalid", "field": "spec.selector",
        "message": "Invalid value: {\"matchLabels\":{}}: field is immutable"});
    refusal(422, "Invalid", "…", &[cause])
}

fn exists() -> FakeReply {
    failure(409, "already exists")
}

fn deleted() -> FakeReply {
    answer(200, json!({"kind": "Status", "status": "Success"}))
}

fn none() -> FakeReply {
    answer(
        200,
        json!({"metadata": {"resourceVersion": "9"}, "items": []}),
    )
}

#[tokio::test]
async fn deleted_by_its_uid_waited_for_and_created() {
    let replies = vec![
        immutable(),
        answer(200, live("ours")),
        exists(),
        deleted(),
        none(),
        answer(201, live("ours")),
    ];
    let (cluster, asked) = fake::cluster(replies);
    let mut applier = applier();
    applier.deadline = Instant::now() + Duration::from_secs(60);
    let step = allowed("ConfigMap");
    let outcome = applier.apply_step(&cluster, &step).await;
    assert!(outcome.result.unwrap().created && outcome.recreated);
    let lines = asked.lines();
    let methods: Vec<_> = lines
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(methods, ["PATCH", "GET", "POST", "DELETE", "GET", "PATCH"]);
    assert!(lines[2].ends_with("configmaps?dryRun=All"), "{}", lines[2]);
    let read = json!({"uid": "u", "resourceVersion": "1"});
    assert_eq!(asked.body(3)["preconditions"], read);
}

/// Nothing is deleted.
#[tokio::test]
async fn not_where_it_is_not_allowed_or_not_ours_or_could_not_be_made() {
    let ours = || answer(200, live("ours"));
    let claim = "PersistentVolumeClaim";
    let plain = super::step("ConfigMap", Action::Update);
    for (step, replies, words, methods) in [
        (
            plain,
            vec![immutable()],
            "spec.selector: field is immutable",
            "PATCH",
        ),
        (
            allowed(claim),
            vec![missing(), immutable()],
            "is never recreated: the data in it would be lost",
            "GET PATCH",
        ),
        (
            allowed("ConfigMap"),
            vec![immutable(), answer(200, live("others"))],
            "no longer has the label of this installation",
            "PATCH GET",
        ),
        (
            allowed("ConfigMap"),
            vec![immutable(), ours(), failure(422, "spec.x: Invalid value")],
            "spec.x: Invalid value",
            "PATCH GET POST",
        ),
    ] {
        let (result, used) = apply(&step, replies).await;
        let error = result.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(used, methods);
    }
}

#[tokio::test]
async fn what_cannot_change_can_be_recreated_unless_it_holds_data() {
    for (kind, remedy, replies) in [
        ("Deployment", RefusalRemedy::Recreate, vec![immutable()]),
        (
            "PersistentVolumeClaim",
            RefusalRemedy::ByHand,
            vec![missing(), immutable()],
        ),
    ] {
        let (result, _) = apply(&super::step(kind, Action::Update), replies).await;
        let error = result.unwrap_err();
        let message =
            format!("web/{kind} a: cannot be changed\n    spec.selector: field is immutable");
        assert!(error.to_string().starts_with(&message), "{error}");
        assert_eq!(error.remedy(), Some(remedy));
    }
}

/// The next run creates what was deleted.
#[tokio::test]
async fn a_creation_that_fails_says_that_the_object_is_gone() {
    let denied = failure(403, "admission webhook \"x\" denied the request: no");
    let replies = vec![
        immutable(),
        answer(200, live("ours")),
        exists(),
        deleted(),
        none(),
        denied,
    ];
    let (cluster, _) = fake::cluster(replies);
    let mut applier = applier();
    applier.deadline = Instant::now() + Duration::from_secs(60);
    let step = allowed("ConfigMap");
    let error = applier
        .apply_step(&cluster, &step)
        .await
        .result
        .unwrap_err();
    assert!(matches!(error, EngineError::Denied { .. }), "{error:?}");
    let error = error.to_string();
    assert!(
        error.contains("it was deleted to be recreated") && error.contains("denied the request"),
        "{error}"
    );
}
