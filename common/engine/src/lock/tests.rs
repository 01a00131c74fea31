use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::fake::{self, FakeReply};
use super::*;
use addons_plan::choices::Choices;
use common::api::installation::InstallationPhase;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn held(renewed: &str) -> AddonInstallationStatus {
    let operation = OperationRecord {
        renewed_at: Time(at(renewed)),
        ..new_operation(
            Verb::Install,
            "eve@there (kubectl-addons, pid 1)",
            None,
            at("2026-01-01T12:00:00Z"),
        )
    };
    AddonInstallationStatus {
        operation: Some(operation),
        ..AddonInstallationStatus::default()
    }
}

#[test]
fn a_lock_is_free_when_its_holder_fell_silent() {
    let now = at("2026-01-01T12:01:00Z");
    let holder = || Availability::Held {
        holder: "eve@there (kubectl-addons, pid 1)".into(),
        since: "2026-01-01T12:00:00Z".into(),
    };
    for (status, steal, wanted) in [
        (None, false, Availability::Free),
        (
            Some(AddonInstallationStatus::default()),
            false,
            Availability::Free,
        ),
        (Some(held("2026-01-01T12:00:59Z")), false, holder()),
        (Some(held("2026-01-01T12:00:46Z")), false, holder()),
        (
            Some(held("2026-01-01T12:00:45Z")),
            false,
            Availability::Free,
        ),
        (Some(held("2026-01-01T12:00:59Z")), true, Availability::Free),
        // A holder whose clock is ahead is alive.
        (Some(held("2026-01-01T12:02:00Z")), false, holder()),
    ] {
        assert_eq!(
            availability(status.as_ref(), now, steal),
            wanted,
            "{status:?}"
        );
    }
}

fn stored(version: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "dns", "namespace": "a", "uid": "u", "resourceVersion": version},
        "spec": {"addonRef": {"name": "dns"}}, "status": status,
    })
}

fn record(version: &str) -> AddonInstallation {
    serde_json::from_value(stored(version, &json!({}))).unwrap()
}

fn answer(code: u16, body: Value) -> FakeReply {
    Some((code, &[], body))
}

fn conflict() -> FakeReply {
    answer(
        409,
        json!({"kind": "Status", "code": 409, "reason": "Conflict", "message": "changed"}),
    )
}

fn options(wait_for_lock: bool) -> ExecuteOptions {
    ExecuteOptions {
        holder: "me".into(),
        wait: false,
        timeout: Duration::from_secs(1),
        wait_for_lock,
        steal_lock: false,
        leave_namespaces: Default::default(),
        choices: Choices::default(),
    }
}

#[tokio::test]
async fn a_held_lock_is_an_error_without_waiting() {
    let (cluster, asked) = fake::cluster(Vec::new());
    let mut taken = record("1");
    taken.status = Some(held(&Timestamp::now().to_string()));
    let deadline = Instant::now() + Duration::from_secs(60);
    let error = wait_until_free(&cluster, taken, &options(false), deadline, &|_| {})
        .await
        .unwrap_err();
    assert!(matches!(error, EngineError::Locked { .. }), "{error}");
    assert!(asked.lines().is_empty());
}

#[tokio::test]
async fn lock_and_journal_are_one_write_and_its_lost_answer_is_recognised() {
    let ours = new_operation(Verb::Install, "me", None, at("2026-01-01T12:00:00Z"));
    let status = json!({"phase": "Progressing", "conditions": [], "operation": ours});
    let (cluster, asked) = fake::cluster(vec![conflict(), answer(200, stored("2", &status))]);
    let begun = AddonInstallationStatus {
        phase: Some(InstallationPhase::Progressing),
        ..AddonInstallationStatus::default()
    };
    let lock = Lock::acquire(&cluster, record("1"), begun, ours)
        .await
        .unwrap();
    assert_eq!(lock.record.resource_version().as_deref(), Some("2"));
    let path = "/apis/kubectl-addons.dev/v1alpha1/namespaces/a/addoninstallations/dns";
    let put = format!("PUT {path}/status?fieldValidation=Strict&fieldManager=kubectl-addons");
    assert_eq!(asked.lines(), [put, format!("GET {path}")]);
    assert_eq!(asked.body(0)["metadata"]["resourceVersion"], "1");
    assert_eq!(asked.body(0)["status"]["operation"]["holder"], "me");
}

#[tokio::test]
async fn the_faster_one_wins() {
    let ours = new_operation(Verb::Install, "me", None, at("2026-01-01T12:00:00Z"));
    let status = serde_json::to_value(held("2026-01-01T12:00:00Z")).unwrap();
    let (cluster, _) = fake::cluster(vec![conflict(), answer(200, stored("2", &status))]);
    let lost = Lock::acquire(
        &cluster,
        record("1"),
        AddonInstallationStatus::default(),
        ours,
    );
    assert!(lost.await.unwrap_err().is_conflict());
}

/// A lock whose record has resourceVersion 1.
fn lock() -> Lock {
    let ours = new_operation(Verb::Install, "me", None, at("2026-01-01T12:00:00Z"));
    let mut record = record("1");
    let id = ours.id.clone();
    record.status = Some(AddonInstallationStatus {
        operation: Some(ours),
        ..AddonInstallationStatus::default()
    });
    Lock {
        generation: record.metadata.generation,
        record,
        id,
        renewed: Instant::now(),
    }
}

#[tokio::test]
async fn a_write_keeps_what_others_changed_while_the_lock_is_ours() {
    let mut lock = lock();
    let mut others = lock.record.clone();
    others.metadata.labels = Some([("team".to_owned(), "shop".to_owned())].into());
    others.metadata.resource_version = Some("2".into());
    let (cluster, asked) = fake::cluster(vec![
        conflict(),
        answer(200, serde_json::to_value(&others).unwrap()),
        answer(200, json!({"metadata": {"resourceVersion": "3"}})),
    ]);
    lock.write(&cluster, |status| {
        status.phase = Some(InstallationPhase::Ready)
    })
    .await
    .unwrap();
    assert_eq!(lock.record.resource_version().as_deref(), Some("3"));
    let last = asked.body(2);
    assert_eq!(last["metadata"]["labels"]["team"], "shop");
    assert_eq!(last["metadata"]["resourceVersion"], "2");
    assert_eq!(last["status"]["phase"], "Ready");
}

#[tokio::test]
async fn a_stolen_lock_is_not_written_over() {
    let mut lock = lock();
    let thief = serde_json::to_value(held("2026-01-01T12:00:00Z")).unwrap();
    let (cluster, asked) = fake::cluster(vec![conflict(), answer(200, stored("2", &thief))]);
    let error = lock.write(&cluster, |_| {}).await.unwrap_err();
    assert!(
        matches!(&error, EngineError::Locked { holder, .. } if holder.starts_with("eve")),
        "{error}"
    );
    assert_eq!(asked.lines().len(), 2, "nothing is written after the loss");
}

#[tokio::test]
async fn a_record_that_is_gone_ends_the_operation() {
    let mut lock = lock();
    let gone = answer(
        404,
        json!({"kind": "Status", "code": 404, "message": "not found", "details": {"name": "dns"}}),
    );
    let (cluster, _) = fake::cluster(vec![conflict(), gone]);
    let error = lock.write(&cluster, |_| {}).await.unwrap_err();
    assert!(
        matches!(
            error,
            EngineError::Stale {
                what: StaleReason::Uninstalled,
                ..
            }
        ),
        "{error}"
    );
}

fn ended() -> FakeReply {
    answer(200, json!({"kind": "Status", "status": "Success"}))
}

/// Trust 14: the deletion of a record is its last write, and like every other one only ours while the lock is.
#[tokio::test]
async fn a_record_is_deleted_only_while_our_operation_is_in_it() {
    let ours = lock();
    let mut others = ours.record.clone();
    others.metadata.resource_version = Some("2".into());
    let labelled = answer(200, serde_json::to_value(&others).unwrap());
    let (cluster, asked) = fake::cluster(vec![conflict(), labelled, ended()]);
    ours.delete(&cluster).await.unwrap();
    let options = asked.body(2);
    assert_eq!(options["preconditions"]["resourceVersion"], "2");

    let thief = serde_json::to_value(held("2026-01-01T12:00:00Z")).unwrap();
    let stolen = answer(200, stored("2", &thief));
    let (cluster, asked) = fake::cluster(vec![conflict(), stolen, ended()]);
    let error = lock().delete(&cluster).await.unwrap_err();
    assert!(matches!(error, EngineError::Locked { .. }), "{error}");
    assert_eq!(asked.lines().len(), 2, "nothing is deleted after the loss");
}

/// Trust 9: requests that hang do not delay the renewal, which carries what they have done before.
#[tokio::test]
async fn a_renewal_waits_for_nothing_and_carries_the_progress() {
    let written = || answer(200, json!({"metadata": {"resourceVersion": "2"}}));
    let (cluster, asked) = fake::cluster(vec![written(), None, written()]);
    let _busy = cluster.permits.acquire_many(4).await.unwrap();
    let name = record::name(&record("1"));
    let mut plan = addons_plan::InstallationPlan::nothing(name, "dns");
    let key = super::super::namespace::key("shop");
    let planned = addons_plan::inventory::InventoryItem::planned("shop", "v1");
    plan.union.objects.insert(key.clone(), planned.clone());
    plan.exact.objects.insert(key.clone(), planned);
    let journal = Journal::from_plan(&plan);
    let mut lock = lock();
    let keeping = async {
        let lost = lock.keep_renewed(&cluster, &journal).await;
        panic!("the lock is lost: {lost}")
    };
    let working = async {
        sleep(LEASE / RENEWALS + FIRST_PAUSE).await;
        let answer = addons_plan::inventory::ApplyAnswer {
            created: true,
            uid: "u1".into(),
            ..Default::default()
        };
        journal.record_applied(&plan, &key, &answer, &[]);
        sleep(LEASE / RENEWALS + FIRST_PAUSE).await;
    };
    tokio::select! {
        () = keeping => {}
        () = working => {}
    }
    let object =
        |request: usize| asked.body(request)["status"]["inventory"][0]["objects"][0].clone();
    assert_eq!(object(0)["state"], "planned");
    assert_eq!(object(2)["uid"], "u1");
}

/// An API server under load answers late, a dead connection never does; both are survived, and the slow answer counts.
#[tokio::test]
async fn a_slow_answer_and_a_dead_connection_lose_no_lock() {
    let late = |delay: &'static [(&'static str, &'static str)]| {
        let written = json!({"metadata": {"resourceVersion": "2"}});
        Some((200, delay, written))
    };
    let never = late(&[(fake::LATE, "60000")]);
    let slow = late(&[(fake::LATE, "4000")]);
    let prompt = late(&[]);
    for replies in [vec![never.clone(), prompt], vec![slow, never]] {
        let (cluster, asked) = fake::cluster(replies);
        let mut lock = lock();
        let before = lock.renewed;
        let journal = Journal::default();
        let renewing = lock.renew(&cluster, &journal);
        tokio::time::timeout(LEASE - MARGIN, renewing)
            .await
            .expect("in time")
            .expect("renewed");
        assert!(lock.renewed > before);
        assert_eq!(lock.record.resource_version().as_deref(), Some("2"));
        let lines = asked.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(asked.body(0), asked.body(1), "one write, sent twice");
    }
}

#[test]
fn a_holder_stops_before_another_clock_says_that_it_is_silent() {
    // Both clocks are wrong, and the time of the renewal is cut to whole seconds.
    let renewed = at("2026-01-01T12:00:00.999Z");
    let error = SignedDuration::from_millis(Clock::ERROR.try_into().unwrap());
    let written = Timestamp::from_second((renewed - error).as_second()).unwrap();
    let stops = renewed + SignedDuration::try_from(LEASE - MARGIN).unwrap();
    let status = held(&written.to_string());
    let found = availability(Some(&status), stops + error, false);
    assert!(matches!(found, Availability::Held { .. }), "{found:?}");
}

/// The server of a large installation is busy with its objects: those that follow wait until the renewal is answered.
#[tokio::test]
async fn a_late_renewal_holds_back_what_would_delay_it_further() {
    let written = json!({"metadata": {"resourceVersion": "2"}});
    let late = Some((200, &[(fake::LATE, "2500")][..], written.clone()));
    let version = answer(200, json!({"gitVersion": "v1.36.3"}));
    let (cluster, asked) = fake::cluster(vec![late, version]);
    let mut lock = lock();
    let journal = Journal::default();
    let renewing = lock.renew(&cluster, &journal);
    let working = async {
        sleep(BUSY_AFTER + FIRST_PAUSE).await;
        let begun = Instant::now();
        cluster.kubernetes_version().await.unwrap();
        begun.elapsed()
    };
    let (renewed, waited) = tokio::join!(renewing, working);
    renewed.expect("renewed");
    assert_eq!(asked.lines().len(), 2, "{:?}", asked.lines());
    assert!(
        waited > Duration::from_secs(1),
        "it waited {waited:?} alone"
    );
}

/// Work between two phases may take longer than a lease.
#[tokio::test]
async fn what_takes_long_is_done_under_a_lock_that_is_renewed() {
    let written = answer(200, json!({"metadata": {"resourceVersion": "2"}}));
    let (cluster, asked) = fake::cluster(vec![written]);
    let mut lock = lock();
    lock.renewed = Instant::now() - (LEASE - MARGIN) / 2;
    let before = lock.renewed;
    let journal = Journal::default();
    let work = sleep(FIRST_PAUSE);
    lock.run_renewing(&cluster, &journal, work)
        .await
        .expect("kept");
    assert!(lock.renewed > before);
    assert_eq!(asked.lines().len(), 1);
}
