use serde_json::json;

use super::*;
use common::api::fixtures;
use common::manifest::key::ObjectKey;

fn till() -> InstallationName {
    InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "till".to_owned(),
    }
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        kind: kind.to_owned(),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
        ..ObjectKey::default()
    }
}

/// A record with this status, created at noon.
fn record(status: Value) -> AddonInstallation {
    let reference = json!({"name": "till"});
    let mut object = fixtures::installation_json("kubectl-addons", "till", reference, json!({}));
    object["status"] = status;
    object["metadata"]["creationTimestamp"] = json!("2026-01-02T12:00:00Z");
    serde_json::from_value(object).unwrap()
}

#[test]
fn a_record_knows_what_its_last_operation_wrote() {
    let (early, late) = ("2026-01-02T10:00:00Z", "2026-01-02T13:00:00Z");
    let ended = |at: &str| json!([{"verb": "upgrade", "outcome": "done", "installed": {"at": at}}]);
    let operation = json!({
        "id": "1", "verb": "upgrade", "holder": "a", "startedAt": early, "renewedAt": early, "leaseSeconds": 15,
    });
    let group = json!([{"version": "v1", "kind": "ConfigMap", "objects": [{"name": "a"}]}]);
    for (status, expected) in [
        (json!(null), RecordCoverage::Blank),
        (json!({"phase": "Pending"}), RecordCoverage::Blank),
        (
            json!({"history": ended(early)}),
            RecordCoverage::Until(time(early)),
        ),
        // A failure wrote objects, too; what is installed is from before.
        (
            json!({"history": ended(late), "installed": {"at": early}}),
            RecordCoverage::Until(time(late)),
        ),
        // No history came along.
        (
            json!({"installed": {"at": late}}),
            RecordCoverage::Until(time(late)),
        ),
        // It was cut off: what it created is its own.
        (
            json!({"history": ended(early), "operation": operation}),
            RecordCoverage::Open,
        ),
        // Not from a backup: there is an inventory.
        (json!({"inventory": group}), RecordCoverage::Open),
    ] {
        let record = record(status);
        assert_eq!(
            RecordCoverage::from_record(Some(&record)),
            expected,
            "{record:?}"
        );
    }
    assert_eq!(RecordCoverage::from_record(None), RecordCoverage::Open);
}

/// Killed between the creation of the record and the lock, over objects that an earlier installation left.
#[test]
fn an_installation_that_only_created_its_record_is_continued() {
    let entry = |manager: &str, time: &str, fields: Value| json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields});
    let (noon, later) = ("2026-01-02T12:00:00Z", "2026-01-02T12:00:05Z");
    let spec = || json!({"f:spec": {}});
    let created = || entry(CLIENT, noon, spec());
    let held = || entry(CLIENT, later, json!({"f:metadata": {}}));
    for (what, entries, is_core, expected) in [
        ("cut off", vec![created()], false, RecordCoverage::Open),
        (
            "of a list",
            vec![entry(CLIENT, noon, json!(null))],
            false,
            RecordCoverage::Open,
        ),
        (
            "behind an admission that took its time",
            vec![entry(CLIENT, "2026-01-02T11:59:50Z", spec())],
            false,
            RecordCoverage::Open,
        ),
        (
            "a core record",
            vec![created()],
            true,
            RecordCoverage::Blank,
        ),
        (
            "by a tool",
            vec![entry("velero-server", noon, spec()), held()],
            false,
            RecordCoverage::Blank,
        ),
        (
            "with the entries of a backup",
            vec![entry(CLIENT, "2026-01-01T12:00:00Z", spec())],
            false,
            RecordCoverage::Blank,
        ),
        (
            "changed since",
            vec![entry(CLIENT, later, spec())],
            false,
            RecordCoverage::Blank,
        ),
        (
            "changed by others",
            vec![created(), entry("kubectl-edit", later, spec())],
            false,
            RecordCoverage::Blank,
        ),
        ("not known", Vec::new(), false, RecordCoverage::Blank),
    ] {
        let mut record = record(json!(null));
        record.metadata.managed_fields = serde_json::from_value(entries.into()).unwrap();
        record.spec.core_addon = is_core;
        assert_eq!(
            RecordCoverage::for_install(Some(&record)),
            expected,
            "{what}"
        );
        assert_eq!(
            RecordCoverage::from_record(Some(&record)),
            RecordCoverage::Blank,
            "{what}"
        );
    }
}

/// An object of the installation, written then.
fn ours(at: &str) -> LiveObject {
    LiveObject {
        owner: Some(owner_hash("kubectl-addons", "till")),
        last_written: Some(time(at)),
        ..LiveObject::default()
    }
}

#[test]
fn an_object_that_is_newer_makes_a_record_old() {
    let (recorded, newer) = ("2026-01-02T10:00:00Z", "2026-01-02T10:01:01Z");
    let until = RecordCoverage::Until(time(recorded));
    let map = key("ConfigMap", "a");
    let controlled = LiveObject {
        controlled_by: Some(crate::snapshot::Controller::default()),
        ..ours(newer)
    };
    let theirs = LiveObject {
        owner: Some("0123456789abcdef".to_owned()),
        ..ours(newer)
    };
    let copied = LiveObject {
        last_written: None,
        ..ours(newer)
    };
    let kept = LiveObject {
        keep: Some("keep".to_owned()),
        ..ours(newer)
    };
    let created_once = LiveObject {
        create_only: true,
        ..ours(newer)
    };
    for (what, memory, key, live, is_older) in [
        ("newer", until, &map, ours(newer), true),
        ("as old", until, &map, ours(recorded), false),
        (
            "within the margin",
            until,
            &map,
            ours("2026-01-02T10:01:00Z"),
            false,
        ),
        ("cut off", RecordCoverage::Open, &map, ours(newer), false),
        ("of a controller", until, &map, controlled, false),
        ("of another installation", until, &map, theirs, false),
        (
            "a copy by another client",
            until,
            &map,
            copied.clone(),
            false,
        ),
        ("kept, and newer", until, &map, kept.clone(), true),
        (
            "not recorded",
            RecordCoverage::Blank,
            &map,
            ours(recorded),
            true,
        ),
        (
            "a copy, not recorded",
            RecordCoverage::Blank,
            &map,
            copied,
            false,
        ),
        (
            "kept by an uninstallation",
            RecordCoverage::Blank,
            &map,
            kept,
            false,
        ),
        (
            "created once",
            RecordCoverage::Blank,
            &map,
            created_once,
            false,
        ),
        (
            "a volume",
            RecordCoverage::Blank,
            &key("PersistentVolumeClaim", "a"),
            ours(recorded),
            false,
        ),
    ] {
        let live = [(key.clone(), live)];
        for is_asked in [true, false] {
            let mut snapshot = Snapshot::default();
            let found = if is_asked {
                &mut snapshot.live
            } else {
                &mut snapshot.unrequested
            };
            found.extend(live.clone());
            let older = find_outdated(&till(), memory, &snapshot, &Claims::default());
            assert_eq!(older.is_some(), is_older, "{what}: {older:?}");
        }
    }
}

#[test]
fn what_another_installation_has_recorded_says_nothing() {
    let until = RecordCoverage::Until(time("2026-01-02T10:00:00Z"));
    let map = key("ConfigMap", "a");
    let snapshot = Snapshot {
        live: [(map.clone(), ours("2026-01-02T11:00:00Z"))].into(),
        ..Snapshot::default()
    };
    let mut claims = Claims::default();
    assert!(find_outdated(&till(), until, &snapshot, &claims).is_some());
    claims.objects.insert(map, till());
    assert!(find_outdated(&till(), until, &snapshot, &claims).is_none());
}

#[test]
fn the_object_that_was_written_last_is_named() {
    let until = RecordCoverage::Until(time("2026-01-02T10:00:00Z"));
    let snapshot = Snapshot {
        live: [
            (key("ConfigMap", "a"), ours("2026-01-02T11:00:00Z")),
            (key("ConfigMap", "b"), ours("2026-01-02T12:00:00Z")),
        ]
        .into(),
        ..Snapshot::default()
    };
    let older = find_outdated(&till(), until, &snapshot, &Claims::default()).unwrap();
    assert_eq!(
        older.to_string(),
        "the record of kubectl-addons/till is older than the cluster: its last operation ended at 2026-01-02T10:00:00Z, and \
         shop/ConfigMap b was written at 2026-01-02T12:00:00Z, and 1 object more"
    );
}

#[test]
fn the_time_of_our_own_manager_counts() {
    let manager = field_manager("kubectl-addons", "till");
    let entry = |manager: &str, subresource: Option<&str>, time: &str| {
        let mut entry = json!({"manager": manager, "time": time});
        if let Some(subresource) = subresource {
            entry["subresource"] = json!(subresource);
        }
        entry
    };
    let object = json!({"metadata": {"managedFields": [
        entry(&manager, None, "2026-01-02T10:00:00Z"),
        entry(&manager, Some("status"), "2026-01-02T11:00:00Z"),
        entry("kubectl-edit", None, "2026-01-02T12:00:00Z"),
    ]}});
    assert_eq!(
        last_written(&object, &till()),
        Some(time("2026-01-02T10:00:00Z"))
    );
    assert_eq!(last_written(&json!({"metadata": {}}), &till()), None);
}
