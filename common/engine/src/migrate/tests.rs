use std::sync::Arc;

use addons_plan::closing::ClosingStep;
use addons_plan::conflicts::Policy;
use addons_plan::inventory::InventoryItem;
use addons_plan::{Target, Verb};
use common::api::names::InstallationName;

use super::super::fake::{self, FakeReply, FakeRequests};
use super::super::report::Report;
use serde_json::json;

use super::*;

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tills.shop.example";
const TILLS: &str = "/apis/shop.example/v1/namespaces/shop/tills";

fn version(name: &str, stays: bool) -> Value {
    json!({"name": name, "served": stays, "storage": stays})
}

/// The definition in the middle of the migration.
fn definition(generation: i64, revision: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tills.shop.example", "generation": generation, "resourceVersion": revision},
        "spec": {"group": "shop.example", "names": {"kind": "Till", "plural": "tills"},
            "versions": [version("v1", true), version("v1alpha1", false)]},
        "status": {"storedVersions": ["v1alpha1", "v1"]},
    })
}

fn plan(is_accepted: bool) -> InstallationPlan {
    let name = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "shop".to_owned(),
    };
    let mut wanted = definition(1, "1");
    wanted["spec"]["versions"] = json!([version("v1", true)]);
    let wanted = Arc::new(wanted);
    let mut migration = Migration::new(&definition(1, "1"), &wanted, None).unwrap();
    migration.is_accepted = is_accepted;
    let key = migration.definition.clone();
    let mut plan = InstallationPlan {
        verb: Verb::Upgrade,
        closing: vec![ClosingStep::Rewrite(migration)],
        ..InstallationPlan::nothing(name, "shop")
    };
    plan.exact
        .objects
        .insert(key.clone(), InventoryItem::planned(&key.name, "v1"));
    plan.steps.push(Step {
        target: Target {
            key,
            version: "v1".to_owned(),
            plural: "customresourcedefinitions".to_owned(),
        },
        action: Action::Update,
        object: wanted,
        uid: None,
        digest: String::new(),
        seen: None,
        policy: Policy::default(),
    });
    plan
}

fn till(name: &str) -> Value {
    json!({"apiVersion": "shop.example/v1", "kind": "Till",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1"}})
}

fn page(items: &[Value], next: &str) -> FakeReply {
    let list = json!({"metadata": {"continue": next}, "items": items});
    Some((200, &[], list))
}

fn ok(object: Value) -> FakeReply {
    Some((200, &[], object))
}

fn failure(code: u16, reason: &str, message: &str) -> FakeReply {
    let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message,
        "details": {"name": "a"}});
    Some((code, &[], status))
}

async fn migrated(plan: &InstallationPlan, replies: Vec<FakeReply>) -> (Report, FakeRequests) {
    let (cluster, asked) = fake::cluster(replies);
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut report = Report::default();
    let migrator = Migrator::of(&cluster, plan, deadline, &|_| {});
    for migration in plan.migrations() {
        let ended = migrator.run(migration, &Journal::from_plan(plan)).await;
        report.ended.extend(ended);
    }
    (report, asked)
}

fn conflict() -> FakeReply {
    failure(409, "Conflict", "the object has been modified")
}

/// Where no object of the kind can be converted, the server answers 429 to a LIST: that is waited for as well.
#[tokio::test]
async fn a_conversion_that_fails_for_the_whole_kind_is_waited_for() {
    let waiting = "conversion webhook for shop.example/v1alpha1, Kind=Till failed: no endpoints";
    let (report, asked) = migrated(
        &plan(true),
        vec![
            ok(definition(1, "1")),
            failure(429, "TooManyRequests", waiting),
            page(&[], ""),
            ok(definition(1, "2")),
            ok(definition(1, "2")),
            ok(definition(2, "3")),
        ],
    )
    .await;
    assert!(report.is_done(), "{report:?} {:?}", asked.lines());
}

/// Two pages; an object and the definition that others write meanwhile; a conversion webhook that is not ready yet.
#[tokio::test]
async fn every_object_is_replaced_by_itself_and_the_version_leaves() {
    let waiting = "conversion webhook for shop.example/v1alpha1, Kind=Till failed: no endpoints";
    let (report, asked) = migrated(
        &plan(true),
        vec![
            ok(definition(1, "1")),
            failure(500, "InternalError", waiting),
            page(&[till("a")], "more"),
            conflict(),
            ok(till("a")),
            ok(till("a")),
            page(&[till("b")], ""),
            ok(till("b")),
            conflict(),
            ok(definition(1, "2")),
            ok(definition(1, "3")),
            ok(definition(1, "3")),
            ok(definition(2, "4")),
        ],
    )
    .await;
    assert!(report.is_done(), "{report:?}");
    let written = |end: &StepEnd| matches!(end, StepEnd::Rewritten(2));
    assert_eq!(report.objects(written).count(), 1);
    let all = "/apis/shop.example/v1/tills?limit=100";
    let replace = |name: &str| format!("PUT {TILLS}/{name}?fieldManager=kubectl-addons");
    let lines = asked.lines();
    assert_eq!(
        lines.get(..11).unwrap_or_default(),
        [
            format!("GET {DEFINITION}"),
            format!("GET {all}"),
            format!("GET {all}"),
            replace("a"),
            format!("GET {TILLS}/a"),
            replace("a"),
            format!("GET {all}&continue=more"),
            replace("b"),
            format!("PATCH {DEFINITION}/status"),
            format!("GET {DEFINITION}"),
            format!("PATCH {DEFINITION}/status"),
        ]
    );
    assert_eq!(lines[11], format!("GET {DEFINITION}"));
    assert!(lines[12].starts_with(&format!("PATCH {DEFINITION}?fieldManager=")));
    let left = json!({"metadata": {"resourceVersion": "2"}, "status": {"storedVersions": ["v1"]}});
    assert_eq!(asked.body(10), left);
    assert_eq!(
        asked.body(12)["spec"]["versions"],
        json!([version("v1", true)])
    );
}

/// Whatever stops it, the version stays in the status.
#[tokio::test]
async fn what_cannot_be_written_stops_the_removal() {
    let denied = "admission webhook \"x\" denied the request: no";
    let mut moved = definition(1, "2");
    moved["spec"]["versions"][1]["served"] = json!(true);
    for (is_accepted, replies, words) in [
        (
            true,
            vec![
                ok(definition(1, "1")),
                page(&[till("a"), till("b")], ""),
                failure(403, "Forbidden", denied),
                failure(403, "Forbidden", denied),
            ],
            "denied the request: no",
        ),
        (
            false,
            vec![ok(definition(1, "1")), page(&[till("a")], "")],
            "objects were created after the plan was made",
        ),
        (true, vec![ok(moved)], "another client changed it"),
        (
            true,
            vec![
                ok(definition(1, "1")),
                page(&[], ""),
                conflict(),
                ok(definition(2, "2")),
            ],
            "another client changed it",
        ),
    ] {
        let (report, asked) = migrated(&plan(is_accepted), replies).await;
        let told = report.failed().map(|failure| failure.message.clone());
        let told: Vec<String> = told.collect();
        assert!(
            told.iter().any(|message| message.contains(words)),
            "{told:?}"
        );
        let lines = asked.lines();
        let last = lines.iter().filter(|line| line.starts_with("PATCH"));
        assert!(last.count() <= 1, "{lines:?}");
    }
}
