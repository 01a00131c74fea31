//! Fields that others hold, and entries of managedFields that prevent an apply.

use super::*;
use addons_plan::changes::RefusalRemedy;
use addons_plan::conflicts::{Conflict, FieldRule};
use common::api::installation::ConflictPolicy;

/// A Deployment that wants two replicas and the image web:2.
fn deployment(conflicts: ConflictPolicy) -> Step {
    let mut step = super::step("Deployment", Action::Update);
    step.target.key.group = "apps".into();
    step.object = Arc::new(json!({
        "kind": "Deployment",
        "metadata": {"annotations": {"kubectl-addons.dev/installation": "kubectl-addons/shop"}},
        "spec": {"replicas": 2, "containers": [{"name": "main", "image": "web:2"}]},
    }));
    step.policy.conflicts = conflicts;
    step
}

fn conflict(fields: &[(&str, &str)]) -> FakeReply {
    let causes: Vec<_> = fields
        .iter()
        .map(|(field, manager)| {
            json!({"reason": "FieldManagerConflict", "field": field, "message": format!("conflict with {manager}")})
        })
        .collect();
    refusal(409, "Conflict", "Apply failed", &causes)
}

const IMAGE: (&str, &str) = (
    ".spec.containers[name=\"main\"].image",
    "\"kubectl-set\" using apps/v1",
);
const REPLICAS: (&str, &str) = (
    ".spec.replicas",
    "\"kube-controller-manager\" with subresource \"scale\" using apps/v1",
);

fn theirs() -> FakeReply {
    answer(
        200,
        json!({
            "metadata": {"resourceVersion": "7", "managedFields": [
                {"manager": "kubectl-set", "operation": "Update", "time": "2026-11-21T12:00:00Z"},
                {"manager": "kubectl-set", "operation": "Update", "time": "2026-11-21T12:34:56Z"},
            ]},
            "spec": {"replicas": 5, "containers": [{"name": "main", "image": "web:9"}]},
        }),
    )
}

struct Ran {
    result: Result<ApplyAnswer, String>,
    remedy: Option<RefusalRemedy>,
    asked: Vec<String>,
    bodies: Vec<serde_json::Value>,
    settled: Vec<String>,
    warnings: usize,
}

/// The live object is read first; here it makes no difference, and the read is not part of the result.
async fn run(step: &Step, replies: Vec<FakeReply>) -> Ran {
    let replies = [vec![missing()], replies].concat();
    let (cluster, asked) = fake::cluster(replies);
    let outcome = applier().apply_step(&cluster, step).await;
    let path = "/api/v1/namespaces/web/deployments/a";
    let lines = asked.lines();
    assert!(lines[0].starts_with("GET "), "{lines:?}");
    let settled = outcome.settled.iter().map(|settled| {
        let Conflict { field, manager, .. } = &settled.conflict;
        let left = if settled.is_left() { "left" } else { "taken" };
        format!("{left} {field} {manager}")
    });
    Ran {
        settled: settled.collect(),
        warnings: outcome.warnings.len(),
        remedy: outcome.result.as_ref().err().and_then(EngineError::remedy),
        result: outcome.result.map_err(|error| error.to_string()),
        bodies: (1..lines.len()).map(|index| asked.body(index)).collect(),
        asked: lines
            .iter()
            .skip(1)
            .map(|line| {
                let line = line
                    .replace(path, "")
                    .replace("/apis/apps/v1/namespaces/web/deployments/a", "");
                line.replace(
                    "fieldManager=kubectl-addons.ours&fieldValidation=Warn",
                    "apply",
                )
            })
            .collect(),
    }
}

#[tokio::test]
async fn what_is_taken_is_read_first_and_taken_from_that_version_only() {
    let step = deployment(ConflictPolicy::Take);
    let modified = || failure(409, "the object has been modified");
    let done = || answer(200, live("ours"));
    let ran = run(
        &step,
        vec![
            conflict(&[IMAGE]),
            theirs(),
            modified(),
            conflict(&[IMAGE]),
            theirs(),
            done(),
        ],
    )
    .await;
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    let round = ["PATCH ?apply", "GET ", "PATCH ?apply&force=true"];
    assert_eq!(ran.asked, [round, round].concat());
    assert_eq!(ran.bodies[5]["metadata"]["resourceVersion"], "7");
    assert_eq!(
        ran.settled,
        ["taken spec.containers[name=\"main\"].image kubectl-set"]
    );
}

#[tokio::test]
async fn what_is_left_is_not_sent() {
    let mut step = deployment(ConflictPolicy::Yield);
    let done = || answer(200, live("ours"));
    let other = (".spec.containers[name=\"main\"].name", IMAGE.1);
    let ran = run(
        &step,
        vec![
            conflict(&[IMAGE]),
            theirs(),
            conflict(&[other]),
            theirs(),
            done(),
        ],
    )
    .await;
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    assert_eq!(
        ran.asked,
        [
            "PATCH ?apply",
            "GET ",
            "PATCH ?apply",
            "GET ",
            "PATCH ?apply"
        ]
    );
    assert_eq!(
        ran.bodies[4]["spec"],
        json!({"replicas": 2, "containers": [{}]})
    );
    assert_eq!(ran.settled.len(), 2);

    // A field, and one below it.
    let list = (".spec.containers", "\"other\"");
    let ran = run(&step, vec![conflict(&[list, IMAGE]), theirs(), done()]).await;
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    assert_eq!(ran.bodies[2]["spec"], json!({"replicas": 2}));

    // One field is left, the other one taken.
    step.policy = Policy {
        fields: vec![FieldRule {
            field: "spec.containers".into(),
            conflicts: ConflictPolicy::Yield,
        }],
        ..Policy::default()
    };
    let scaled = (".spec.paused", "\"me\"");
    let ran = run(&step, vec![conflict(&[IMAGE, scaled]), theirs(), done()]).await;
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    assert_eq!(ran.asked[2], "PATCH ?apply&force=true");
    assert_eq!(
        ran.bodies[2]["spec"],
        json!({"replicas": 2, "containers": [{"name": "main"}]})
    );
}

#[tokio::test]
async fn a_refusal_names_field_manager_time_both_values_and_a_remedy() {
    let ran = run(
        &deployment(ConflictPolicy::Fail),
        vec![conflict(&[IMAGE]), theirs()],
    )
    .await;
    assert_eq!(ran.asked.len(), 2);
    assert_eq!(
        ran.result.unwrap_err(),
        "web/Deployment a: a field belongs to another manager\n    \
         spec.containers[name=\"main\"].image: \"web:9\", kubectl-set since 2026-11-21T12:34:56Z; wanted \"web:2\""
    );
    assert_eq!(ran.remedy, Some(RefusalRemedy::TakeOrYield));
}

/// Semantics 12: replicas under a HorizontalPodAutoscaler always yield; the plan says whether there is one.
#[tokio::test]
async fn replicas_are_the_autoscalers() {
    for (autoscaler, settled) in [(Some("auto"), "left"), (None, "taken")] {
        let done = answer(200, live("ours"));
        let mut step = deployment(ConflictPolicy::Take);
        step.policy.autoscaler = autoscaler.map(str::to_owned);
        let ran = run(&step, vec![conflict(&[REPLICAS]), theirs(), done]).await;
        assert!(ran.result.is_ok(), "{:?}", ran.result);
        let wanted = format!("{settled} spec.replicas kube-controller-manager/scale");
        assert_eq!(ran.settled, [wanted]);
        let is_sent = ran.bodies[2]["spec"].get("replicas").is_some();
        assert_eq!(is_sent, settled == "taken");
    }
}

fn managed(entries: serde_json::Value) -> FakeReply {
    answer(
        200,
        json!({"metadata": {"uid": "u", "resourceVersion": "8", "managedFields": entries}}),
    )
}

fn client_side() -> serde_json::Value {
    json!([{"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1",
        "fieldsV1": {"f:data": {"f:a": {}}}}])
}

#[tokio::test]
async fn fields_of_client_side_apply_become_ours_where_all_is_taken() {
    let done = || answer(200, live("ours"));
    let replies = vec![
        managed(client_side()),
        managed(client_side()),
        managed(json!(null)),
        done(),
    ];
    let ran = run(&deployment(ConflictPolicy::Take), replies).await;
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    let wanted = [
        "PATCH ?apply",
        "GET ",
        "PATCH ?fieldManager=kubectl-addons.ours",
        "PATCH ?apply",
    ];
    assert_eq!(ran.asked, wanted);
    assert_eq!(
        ran.bodies[2][0]["value"][0]["manager"],
        "kubectl-addons.ours"
    );
    assert_eq!(ran.bodies[2][1]["value"], "8");
    assert_eq!(ran.warnings, 1);

    let ran = run(
        &deployment(ConflictPolicy::Yield),
        vec![managed(client_side())],
    )
    .await;
    assert_eq!((ran.result.is_ok(), ran.asked.len()), (true, 1));
}

/// A write is sent again where its answer was lost, and is refused then because it was done.
#[tokio::test]
async fn a_write_whose_answer_was_lost_is_not_nothing() {
    let modified = || failure(409, "the object has been modified");
    let ours = || {
        managed(
            json!([{"manager": "kubectl-addons.ours", "operation": "Apply", "apiVersion": "v1",
            "fieldsV1": {"f:data": {"f:a": {}}}}]),
        )
    };
    let replies = vec![
        managed(client_side()),
        managed(client_side()),
        modified(),
        ours(),
        ours(),
    ];
    let ran = run(&deployment(ConflictPolicy::Take), replies).await;
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    let rewrite = "PATCH ?fieldManager=kubectl-addons.ours";
    assert_eq!(
        ran.asked,
        ["PATCH ?apply", "GET ", rewrite, "GET ", "PATCH ?apply"]
    );
    assert_eq!(ran.warnings, 1);

    let replies = vec![
        conflict(&[IMAGE]),
        theirs(),
        modified(),
        answer(200, live("ours")),
    ];
    let ran = run(&deployment(ConflictPolicy::Take), replies).await;
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    let forced = "PATCH ?apply&force=true";
    assert_eq!(ran.asked, ["PATCH ?apply", "GET ", forced, "PATCH ?apply"]);
    assert_eq!(ran.bodies[3]["metadata"].get("resourceVersion"), None);
    assert_eq!(
        ran.settled,
        ["taken spec.containers[name=\"main\"].image kubectl-set"]
    );
}

/// Another client deleted it and created it again after the plan was made.
#[tokio::test]
async fn nothing_is_taken_from_another_object_of_the_name() {
    let mut step = deployment(ConflictPolicy::Take);
    step.uid = Some("planned".into());
    let ran = run(&step, vec![conflict(&[IMAGE]), theirs()]).await;
    let error = ran.result.unwrap_err();
    assert!(
        error.contains("created again since the plan was made"),
        "{error}"
    );
    assert_eq!(ran.asked, ["PATCH ?apply", "GET "]);
    let ran = run(&step, vec![managed(client_side())]).await;
    assert_eq!((ran.result.is_ok(), ran.asked.len()), (true, 1));
}

#[tokio::test]
async fn an_entry_of_a_version_that_is_gone_is_moved_and_the_apply_tried_again() {
    let gone = || {
        failure(
            500,
            "request to convert CR to an invalid group/version: z.example/v1alpha1",
        )
    };
    let entries =
        json!([{"manager": "other", "operation": "Apply", "apiVersion": "z.example/v1alpha1"}]);
    let done = || answer(200, live("ours"));
    let replies = vec![gone(), managed(entries.clone()), done(), done()];
    let ran = run(&deployment(ConflictPolicy::Take), replies).await;
    assert!(ran.result.is_ok(), "{:?}", ran.result);
    assert_eq!(ran.bodies[2][0]["value"][0]["apiVersion"], "apps/v1");
    // No entry has that version: the server's message stays.
    let ran = run(
        &deployment(ConflictPolicy::Take),
        vec![gone(), managed(json!([]))],
    )
    .await;
    assert!(ran.result.unwrap_err().contains("z.example/v1alpha1"));
}

#[tokio::test]
async fn a_conflict_shows_no_value_of_a_secret() {
    let mut step = super::step("Secret", Action::Refresh);
    step.policy.conflicts = ConflictPolicy::Fail;
    let fields = [
        (".data.password", "\"eve\""),
        (".metadata.annotations.last", "\"eve\""),
    ];
    let secret = json!({"metadata": {"annotations": {"last": "hunter3"}}, "data": {"password": "aHVudGVyMw=="}});
    let (result, _) = apply(
        &step,
        vec![missing(), conflict(&fields), answer(200, secret)],
    )
    .await;
    let error = format!("{0} {0:?}", result.unwrap_err());
    assert!(
        error.contains("data.password: \"***\", eve; wanted \"***\""),
        "{error}"
    );
    assert!(
        !error.contains("aHVu") && !error.contains("hunter"),
        "{error}"
    );
}
