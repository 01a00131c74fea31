use serde_json::{Value, json};

use super::super::fake::{self, Reply};
use super::*;
use common::api::installation::Phase;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn held(renewed: &str) -> AddonInstallationStatus {
    let operation = Operation {
        renewed_at: Time(at(renewed)),
        ..operation(
            "install",
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

fn answer(code: u16, body: Value) -> Reply {
    Some((code, &[], body))
}

fn conflict() -> Reply {
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
    let ours = operation("install", "me", None, at("2026-01-01T12:00:00Z"));
    let status = json!({"phase": "Progressing", "conditions": [], "operation": ours});
    let (cluster, asked) = fake::cluster(vec![conflict(), answer(200, stored("2", &status))]);
    let begun = AddonInstallationStatus {
        phase: Some(Phase::Progressing),
        ..AddonInstallationStatus::default()
    };
    let lock = Lock::acquire(&cluster, record("1"), begun, ours)
        .await
        .unwrap();
    assert_eq!(lock.record.resource_version().as_deref(), Some("2"));
    let path = "/apis/kubectl-addons.dev/v1alpha1/namespaces/a/addoninstallations/dns";
    let put = format!("PUT {path}/status?fieldManager=kubectl-addons");
    assert_eq!(asked.lines(), [put, format!("GET {path}")]);
    assert_eq!(asked.body(0)["metadata"]["resourceVersion"], "1");
    assert_eq!(asked.body(0)["status"]["operation"]["holder"], "me");
}

#[tokio::test]
async fn the_faster_one_wins() {
    let ours = operation("install", "me", None, at("2026-01-01T12:00:00Z"));
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
    let ours = operation("install", "me", None, at("2026-01-01T12:00:00Z"));
    let mut record = record("1");
    let id = ours.id.clone();
    record.status = Some(AddonInstallationStatus {
        operation: Some(ours),
        ..AddonInstallationStatus::default()
    });
    Lock {
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
    lock.write(&cluster, |status| status.phase = Some(Phase::Ready))
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
