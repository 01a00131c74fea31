use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::super::fake::{self, FakeReply};
use super::super::super::journal::Journal;
use super::super::super::lock;
use super::super::super::report::{FailureCause, Fate};
use super::super::super::task::WayBack;
use super::*;
use addons_plan::choices::Choices;
use addons_plan::closing::{AnnotationChange, ClosingStep};
use addons_plan::graph::Graph;
use addons_plan::{Deletion, InstallationPlan};
use common::api::installation::{
    AddonInstallationStatus, FormerObject, FormerRecord, FormerTool, OperationRecord as Recorded,
};
use common::api::names::InstallationName;

/// The record, whose spec names this registry.
fn record(generation: i64, registry: &str) -> AddonInstallation {
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "dns", "namespace": "a", "uid": "u", "resourceVersion": "1", "generation": generation},
        "spec": {"addonRef": {"name": "dns"}, "registry": registry},
    });
    serde_json::from_value(record).unwrap()
}

fn answer(code: u16, body: Value) -> FakeReply {
    Some((code, &[], body))
}

fn written() -> FakeReply {
    answer(200, json!({"metadata": {"resourceVersion": "2"}}))
}

/// Someone else wrote first.
fn conflict() -> FakeReply {
    let body = json!({"kind": "Status", "code": 409, "reason": "Conflict", "message": "changed"});
    answer(409, body)
}

/// A record that another write left while our operation is in it.
fn found(generation: i64, registry: &str, ours: &Recorded) -> AddonInstallation {
    let mut found = record(generation, registry);
    found.status = Some(AddonInstallationStatus {
        operation: Some(ours.clone()),
        ..AddonInstallationStatus::default()
    });
    found
}

/// Of a plan that no entry and no other program is needed for.
fn task<'a>(
    wanted: &'a AddonInstallation,
    plan: &'a InstallationPlan,
    journal: &'a Journal,
) -> Task<'a> {
    Task {
        wanted,
        plan,
        journal,
        fallback: None,
        entry: None,
        outside: None,
    }
}

/// Nothing was applied.
fn refused() -> Report {
    Report {
        ended: vec![
            Failure {
                key: ObjectKey::default(),
                message: String::new(),
                recorded: String::new(),
                cause: FailureCause::Denied,
                fate: Fate::Refused,
            }
            .into(),
        ],
        ..Report::default()
    }
}

/// A plan that changes nothing.
fn plan(verb: Verb) -> InstallationPlan {
    let installation = InstallationName {
        namespace: "a".into(),
        name: "dns".into(),
    };
    InstallationPlan {
        verb,
        ..InstallationPlan::nothing(installation, "dns")
    }
}

fn options() -> ExecuteOptions {
    ExecuteOptions {
        holder: "me".into(),
        wait: true,
        timeout: Duration::from_secs(60),
        wait_for_lock: false,
        steal_lock: false,
        leave_namespaces: Default::default(),
        choices: Choices::default(),
    }
}

fn operation<'a>(
    cluster: &'a Cluster,
    task: Task<'a>,
    options: &'a ExecuteOptions,
    turn: &'a Mutex<()>,
    beginnings: &'a Beginnings,
) -> RunningOperation<'a> {
    let (news, _) = mpsc::unbounded_channel();
    RunningOperation {
        part: 0,
        cluster,
        task,
        options,
        deadline: Instant::now() + options.timeout,
        events: &|_| {},
        news,
        turn,
        beginnings,
    }
}

/// Semantics 12 and 13: a spec that another client changes during an operation was not installed, and is not written over.
#[tokio::test]
async fn a_spec_that_is_changed_meanwhile_is_left_to_the_next_operation() {
    let (before, wanted) = (record(1, "before.example"), record(2, "wanted.example"));
    let ours = lock::new_operation(Verb::Upgrade, "me", None, jiff::Timestamp::UNIX_EPOCH);
    let theirs = found(3, "theirs.example", &ours);
    let (cluster, asked) = fake::cluster(vec![
        written(),
        conflict(),
        answer(200, serde_json::to_value(&theirs).unwrap()),
        written(),
        written(),
    ]);
    let begun = AddonInstallationStatus::default();
    let lock = Lock::acquire(&cluster, wanted.clone(), begun, ours).await;
    let mut lock = lock.unwrap();
    // As a renewal does.
    let renewing = lock.write(&cluster, |status| {
        status.phase = Some(InstallationPhase::Progressing)
    });
    renewing.await.unwrap();
    assert_eq!(lock.record.spec, theirs.spec);

    let plan = plan(Verb::Upgrade);
    let journal = Journal::from_plan(&plan);
    let task = Task {
        fallback: Some(&before),
        ..task(&wanted, &plan, &journal)
    };
    let mut refused = refused();
    restore::spec(&cluster, &task, &mut lock, &mut refused).await;
    assert!(!refused.spec_restored);
    assert_eq!(asked.lines().len(), 4, "{:?}", asked.lines());

    let (options, turn, beginnings) = (options(), Mutex::new(()), Beginnings::new(&[]));
    let operation = operation(&cluster, task, &options, &turn, &beginnings);
    let done = Report::default();
    let finished = operation.finish(&mut lock, None, &done, Afterwards::Free);
    finished.await.unwrap();
    let last = asked.body(4);
    assert_eq!(last["spec"]["registry"], "theirs.example");
    assert_eq!(last["metadata"]["generation"], 3);
    assert_eq!(last["status"]["observedGeneration"], 2);
}

/// Semantics 13 and 17: where the time is over before the last steps, they are not done, and the record of what ends stays.
#[tokio::test]
async fn what_the_deadline_leaves_undone_is_reported() {
    let target = Target {
        key: super::super::super::namespace::key("shop"),
        version: "v1".into(),
        plural: "namespaces".into(),
    };
    let aside = FormerObject {
        kind: "Secret".into(),
        name: "sh.helm.release.v1.web.v1".into(),
        uid: "s".into(),
    };
    let former = |objects| FormerRecord {
        tool: FormerTool::Helm,
        namespace: "shop".into(),
        name: "web".into(),
        objects,
        is_set_aside: true,
    };
    let annotation = AnnotationChange {
        namespace: "kube-system".into(),
        key: "addons.k8s.io/dns".into(),
        before: None,
        after: Some("{}".into()),
        nodes: Vec::new(),
        node_mark: String::new(),
    };
    let nothing = || InstallationPlan {
        closing: vec![ClosingStep::Restore(former(Vec::new()))],
        ..plan(Verb::Release)
    };
    let gives_back = InstallationPlan {
        closing: vec![ClosingStep::GiveBack(Deletion {
            target,
            uid: "n".into(),
            resource_version: String::new(),
            labels: BTreeMap::new(),
        })],
        ..nothing()
    };
    let restores = InstallationPlan {
        closing: vec![ClosingStep::Restore(former(vec![aside]))],
        ..nothing()
    };
    let records = InstallationPlan {
        closing: vec![ClosingStep::Annotate(annotation)],
        ..nothing()
    };
    let (options, turn, beginnings) = (options(), Mutex::new(()), Beginnings::new(&[]));
    let wanted = record(1, "shop.example");
    for (plan, skipped) in [
        (nothing(), None),
        (gives_back, Some("shop")),
        (restores, Some("sh.helm.release.v1.web.v1")),
        (records, Some("kube-system")),
    ] {
        let (cluster, asked) = fake::cluster(Vec::new());
        let journal = Journal::from_plan(&plan);
        let task = task(&wanted, &plan, &journal);
        let operation = RunningOperation {
            deadline: Instant::now(),
            ..operation(&cluster, task, &options, &turn, &beginnings)
        };
        let mut report = Report::default();
        operation.close(&mut report).await;
        let keys: Vec<&str> = report.skipped().map(|(key, _)| &*key.name).collect();
        assert_eq!(keys, Vec::from_iter(skipped));
        assert_eq!(report.is_done(), skipped.is_none());
        assert!(asked.lines().is_empty(), "{:?}", asked.lines());
    }
}

/// The server took the spec of the way back, and its answer was lost: the next try meets our own write.
#[tokio::test]
async fn a_lost_answer_does_not_end_the_way_back() {
    let (failed, former) = (record(2, "failed.example"), record(1, "former.example"));
    let ours = lock::new_operation(Verb::Upgrade, "me", None, jiff::Timestamp::UNIX_EPOCH);
    let found = found(3, "former.example", &ours);
    let (cluster, asked) = fake::cluster(vec![
        written(),
        conflict(),
        conflict(),
        answer(200, serde_json::to_value(&found).unwrap()),
        written(),
    ]);
    let begun = AddonInstallationStatus::default();
    let lock = Lock::acquire(&cluster, failed.clone(), begun, ours).await;
    let mut lock = lock.unwrap();
    let way = WayBack {
        wanted: former,
        plan: plan(Verb::Rollback),
        graph: Graph::default(),
        entry: None,
        outside: None,
    };
    let plan = plan(Verb::Upgrade);
    let journal = Journal::from_plan(&plan);
    let task = task(&failed, &plan, &journal);
    let (options, turn, beginnings) = (options(), Mutex::new(()), Beginnings::new(&[]));
    let operation = operation(&cluster, task, &options, &turn, &beginnings);
    operation.record_beginning(&way, &mut lock).await.unwrap();
    assert_eq!(lock.generation, Some(3), "{:?}", asked.lines());
    assert_eq!(lock.record.spec, way.wanted.spec);
}

/// The same where nothing of the operation was applied.
#[tokio::test]
async fn a_lost_answer_is_no_failure_to_restore_the_spec() {
    let (before, wanted) = (record(1, "before.example"), record(2, "wanted.example"));
    let ours = lock::new_operation(Verb::Upgrade, "me", None, jiff::Timestamp::UNIX_EPOCH);
    let restored = found(3, "before.example", &ours);
    let (cluster, _) = fake::cluster(vec![
        written(),
        conflict(),
        conflict(),
        answer(200, serde_json::to_value(&restored).unwrap()),
        written(),
    ]);
    let begun = AddonInstallationStatus::default();
    let lock = Lock::acquire(&cluster, wanted.clone(), begun, ours).await;
    let mut lock = lock.unwrap();
    let plan = plan(Verb::Upgrade);
    let journal = Journal::from_plan(&plan);
    let task = Task {
        fallback: Some(&before),
        ..task(&wanted, &plan, &journal)
    };
    let mut refused = refused();
    restore::spec(&cluster, &task, &mut lock, &mut refused).await;
    assert!(refused.spec_restored);
    assert_eq!(lock.generation, Some(3));
}
