use std::sync::Mutex;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::fake::{self, FakeReply};
use super::*;
use addons_plan::readiness::blocker::Blocker;

fn key(kind: &str, name: &str) -> ObjectKey {
    let group = match kind {
        "Deployment" => "apps",
        "Job" => "batch",
        "Widget" => "x.y",
        _ => "",
    };
    ObjectKey {
        group: group.into(),
        kind: kind.into(),
        namespace: Some("web".into()),
        name: name.into(),
    }
}

fn deployment(name: &str, ready: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "generation": 1, "resourceVersion": "7"},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready, "availableReplicas": ready,
            "conditions": [{"type": "Available", "status": if ready > 0 {"True"} else {"False"}},
                {"type": "Progressing", "status": "True", "reason": if ready > 0 {"NewReplicaSetAvailable"} else {"ReplicaSetUpdated"}}]},
    })
}

/// The reported changes, as `NAME STATUS`.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Told {
    fn take(&self, event: Event) {
        if let Event::Waiting { key, readiness } = event {
            let line = format!("{} {:?}", key.name, readiness.status);
            self.0.lock().unwrap().push(line);
        }
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[test]
fn a_board_reports_only_changes_and_ends_when_nothing_is_pending() {
    let told = Told::default();
    let events = |event| told.take(event);
    let (a, b) = (key("Deployment", "a"), key("Deployment", "b"));
    let keys = BTreeMap::from([(&a, None), (&b, None)]);
    let mut board = Board::new(&keys, &events);
    let now = Timestamp::UNIX_EPOCH;
    let mut see = |seen| board.process(seen, now);
    assert!(!see(Observation::Listed(vec![
        deployment("a", 0),
        deployment("stranger", 0)
    ])));
    assert!(!see(Observation::Changed(deployment("a", 0))));
    assert!(!see(Observation::Changed(deployment("b", 1))));
    assert!(see(Observation::Changed(deployment("a", 1))));
    assert!(
        !see(Observation::Deleted(deployment("b", 1))),
        "ready, then gone, is not ready"
    );
    assert!(!see(Observation::Lost("cut".to_owned())));
    assert!(
        see(Observation::Listed(vec![
            deployment("a", 1),
            deployment("b", 1)
        ])),
        "made again, it counts again"
    );
    assert_eq!(
        told.lines(),
        [
            "b InProgress",
            "a InProgress",
            "b Current",
            "a Current",
            "b InProgress",
            "b Current"
        ]
    );
}

#[test]
fn a_blocker_stands_behind_the_words_until_it_is_over() {
    let told: Mutex<Vec<String>> = Mutex::default();
    let events = |event| {
        if let Event::Waiting { readiness, .. } = event {
            told.lock().unwrap().push(readiness.message);
        }
    };
    let a = key("Deployment", "a");
    let keys = BTreeMap::from([(&a, None)]);
    let mut board = Board::new(&keys, &events);
    let now = Timestamp::UNIX_EPOCH;
    board.process(Observation::Listed(vec![deployment("a", 0)]), now);
    assert!(board.next_to_search().is_none(), "no one looks at once");
    let blocker = || Some(Blocker::new("pod a-1", "ImagePullBackOff", "no such image"));
    board.record_blocker(&a, blocker(), now);
    board.record_blocker(&a, blocker(), now);
    board.process(Observation::Changed(deployment("a", 1)), now);
    assert_eq!(
        *told.lock().unwrap(),
        [
            "0/1 ready",
            "0/1 ready; pod a-1: ImagePullBackOff, no such image",
            "1/1 ready"
        ]
    );
}

#[test]
fn a_verdict_that_lacks_a_fact_is_not_reported_before_it_is_known() {
    let told = Told::default();
    let events = |event| told.take(event);
    let a = key("Widget", "a");
    let keys = BTreeMap::from([(&a, None)]);
    let mut board = Board::new(&keys, &events);
    let made = json!({"apiVersion": "x.y/v1", "kind": "Widget",
        "metadata": {"name": "a", "creationTimestamp": "1970-01-01T00:00:00Z"}});
    let seconds = |seconds| Timestamp::from_second(seconds).unwrap();
    assert!(!board.process(Observation::Listed(vec![made]), seconds(0)));
    assert_eq!(
        board.missing_needs(),
        BTreeSet::from([ContextNeed::HasStatus])
    );
    assert!(told.lines().is_empty());
    board.facts.learn_has_status("x.y", "Widget", true);
    assert!(!board.reassess(seconds(0)));
    assert!(!board.reassess(seconds(9)));
    assert!(board.reassess(seconds(10)), "time alone ends the wait");
    assert_eq!(told.lines(), ["a InProgress", "a Current"]);
}

#[test]
fn a_job_that_its_time_to_live_deletes_is_not_missed() {
    let job = |status: Value| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
            "spec": {"ttlSecondsAfterFinished": 0}, "status": status})
    };
    let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    for (seen, expected) in [
        // Its end is seen.
        (Observation::Deleted(job(complete)), "a Current"),
        // Its end fell between two watches.
        (Observation::Listed(Vec::new()), "a Current"),
        // Another client deleted it.
        (
            Observation::Deleted(job(json!({"active": 1}))),
            "a InProgress",
        ),
    ] {
        let told = Told::default();
        let events = |event| told.take(event);
        let a = key("Job", "a");
        let keys = BTreeMap::from([(&a, None)]);
        let mut board = Board::new(&keys, &events);
        let now = Timestamp::UNIX_EPOCH;
        assert!(!board.process(Observation::Listed(vec![job(json!({"active": 1}))]), now));
        let is_over = board.process(seen, now);
        assert_eq!(is_over, expected == "a Current");
        assert_eq!(told.lines().last().unwrap(), expected);
        if is_over {
            assert!(
                board.process(Observation::Listed(Vec::new()), now),
                "it stays done when it is still gone"
            );
        }
    }
}

fn target() -> Target {
    Target {
        key: key("Deployment", "a"),
        version: "v1".to_owned(),
        plural: "deployments".to_owned(),
    }
}

fn list(version: &str, items: Value) -> FakeReply {
    let body =
        json!({"kind": "DeploymentList", "metadata": {"resourceVersion": version}, "items": items});
    Some((200, &[], body))
}

fn event(kind: &str, object: Value) -> FakeReply {
    Some((200, &[], json!({"type": kind, "object": object})))
}

fn status(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "no", "code": code})
}

/// Runs a wait for one Deployment against these responses; returns what is pending, what was reported, and the requests (`list`,
/// `watch VERSION`).
async fn run(
    replies: Vec<FakeReply>,
    seconds: u64,
) -> (Vec<(ObjectKey, Readiness)>, Vec<String>, Vec<String>) {
    let (cluster, asked) = fake::cluster(replies);
    let told = Told::default();
    let events = |event| told.take(event);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let pending = wait(
        &cluster,
        &[WaitTarget::new(target(), &HealthChecks::default())],
        deadline,
        &events,
    )
    .await;
    let asked = asked
        .lines()
        .into_iter()
        .map(|line| match line.split_once("resourceVersion=") {
            Some((_, version)) => format!("watch {version}"),
            None => "list".to_owned(),
        });
    (pending, told.lines(), asked.collect())
}

/// However a watch ends, the next one continues from there; after an expired resourceVersion it lists again.
#[tokio::test]
async fn a_wait_survives_its_watches() {
    let unready = || list("5", json!([deployment("a", 0)]));
    let ready = || event("MODIFIED", deployment("a", 1));
    for (replies, expected) in [
        // Closed by the server, after an event and after none.
        (
            vec![unready(), event("MODIFIED", deployment("a", 0)), ready()],
            vec!["list", "watch 5", "watch 7"],
        ),
        // Interrupted.
        (
            vec![unready(), None, ready()],
            vec!["list", "watch 5", "watch 5"],
        ),
        // Refused for a while.
        (
            vec![
                unready(),
                Some((500, &[], status(500))),
                Some((429, &[], status(429))),
                ready(),
            ],
            vec!["list", "watch 5", "watch 5", "watch 5"],
        ),
        // Too old, as a response and as an event.
        (
            vec![unready(), Some((410, &[], status(410))), unready(), ready()],
            vec!["list", "watch 5", "list", "watch 5"],
        ),
        (
            vec![
                unready(),
                event("ERROR", status(410)),
                list("9", json!([deployment("a", 1)])),
            ],
            vec!["list", "watch 5", "list"],
        ),
        // Deleted and created again.
        (
            vec![
                unready(),
                event("DELETED", deployment("a", 0)),
                event("ADDED", deployment("a", 0)),
                ready(),
            ],
            vec!["list", "watch 5", "watch 7", "watch 7"],
        ),
        // A server that fails at the first list.
        (
            vec![Some((500, &[], status(500))), unready(), ready()],
            vec!["list", "list", "watch 5"],
        ),
    ] {
        let (pending, told, asked) = run(replies, 30).await;
        assert_eq!(pending, []);
        assert_eq!(told.last().unwrap(), "a Current");
        assert_eq!(asked, expected);
    }
}

#[tokio::test]
async fn a_wait_ends_whatever_the_server_does() {
    // It is never seen again.
    let (pending, _, _) = run(vec![list("5", json!([deployment("a", 0)]))], 1).await;
    let (_, readiness) = &pending[0];
    assert_eq!(readiness.status, ReadinessStatus::InProgress);
    assert!(
        readiness.message.contains("cannot be seen"),
        "{}",
        readiness.message
    );
    // We may not watch.
    let message =
        "deployments.apps is forbidden: User \"bob\" cannot list resource \"deployments\"";
    let forbidden = json!({"kind": "Status", "status": "Failure", "message": message, "code": 403});
    let (pending, _, asked) = run(vec![Some((403, &[], forbidden))], 30).await;
    assert_eq!(pending[0].1.status, ReadinessStatus::Unknown);
    assert_eq!(asked, ["list"]);
}

/// Someone deletes it, and nothing of the operation creates it again.
#[tokio::test]
async fn what_is_deleted_while_it_is_waited_for_fails_at_once() {
    let mut replies = vec![
        list("5", json!([deployment("a", 0)])),
        event("DELETED", deployment("a", 0)),
    ];
    replies.extend((0..50).map(|_| event("BOOKMARK", deployment("b", 0))));
    let begun = Instant::now();
    let (pending, told, _) = run(replies, 60).await;
    let (_, readiness) = &pending[0];
    assert_eq!(readiness.status, ReadinessStatus::Failed);
    assert_eq!(readiness.message, "was deleted while it was waited for");
    assert_eq!(told.last().unwrap(), "a Failed");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_health_check_decides_about_the_objects_that_it_is_for() {
    let check = json!([{"apiVersion": "x.y/v1", "kind": "Widget",
        "failed": "status.phase == 'Broken'", "current": "status.phase == 'Up'"}]);
    let checks = HealthChecks::compile(&serde_json::from_value::<Vec<_>>(check).unwrap());
    let told = Told::default();
    let events = |event| told.take(event);
    let (a, b, c) = (key("Widget", "a"), key("Widget", "b"), key("Widget", "c"));
    // Another add-on has `c`, and no check for the kind.
    let of_check = |key: &ObjectKey| checks.find(key).cloned();
    let keys = BTreeMap::from([(&a, of_check(&a)), (&b, of_check(&b)), (&c, None)]);
    let mut board = Board::new(&keys, &events);
    let now = Timestamp::UNIX_EPOCH;
    let widget = |name: &str, phase: &str| json!({"apiVersion": "x.y/v1", "kind": "Widget", "metadata": {"name": name}, "status": {"phase": phase}});
    let mut see = |seen| board.process(seen, now);
    let all = vec![
        widget("a", "Coming"),
        widget("b", "Coming"),
        widget("c", "Coming"),
    ];
    assert!(!see(Observation::Listed(all)));
    assert!(!see(Observation::Changed(widget("a", "Up"))));
    assert!(see(Observation::Changed(widget("b", "Broken"))));
    assert_eq!(
        told.lines(),
        [
            "a InProgress",
            "b InProgress",
            "c Current",
            "a Current",
            "b Failed"
        ]
    );
}
