use super::*;
use crate::lock;
use addons_plan::inventory::{ApplyAnswer, InventoryItem};
use common::api::installation::{Installed, InventoryObject, ObjectState};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        kind: "ConfigMap".into(),
        namespace: Some("web".into()),
        name: name.into(),
        ..ObjectKey::default()
    }
}

fn inventory(items: &[(&str, ObjectState, &str, &str)]) -> Inventory {
    let item = |(name, state, uid, digest): &(&str, ObjectState, &str, &str)| {
        let object = InventoryObject {
            name: (*name).into(),
            state: *state,
            uid: (*uid).into(),
            digest: (*digest).into(),
            ..InventoryObject::default()
        };
        let version = "v1".into();
        (key(name), InventoryItem { version, object })
    };
    Inventory {
        objects: items.iter().map(item).collect(),
    }
}

use ObjectState::{Owned, Planned};

/// `old` is deleted, `kept` is updated, `new` and `foreign` are created.
fn plan() -> InstallationPlan {
    InstallationPlan {
        verb: Verb::Upgrade,
        to: Some(Installed {
            version: "2".into(),
            ..Installed::default()
        }),
        union: inventory(&[
            ("foreign", Planned, "", ""),
            ("kept", Owned, "k", "d1"),
            ("new", Planned, "", ""),
            ("old", Owned, "o", "d1"),
        ]),
        exact: inventory(&[
            ("foreign", Owned, "", "d2"),
            ("kept", Owned, "k", "d2"),
            ("new", Owned, "", "d2"),
        ]),
        ..InstallationPlan::nothing(
            InstallationName {
                namespace: "a".into(),
                name: "web".into(),
            },
            "web",
        )
    }
}

/// The union inventory after `new` was created, `foreign` found, `kept` updated and, with `pruned`, `old` deleted.
fn recorded(pruned: bool) -> Inventory {
    let plan = plan();
    let mut recorded = plan.union.clone();
    for (name, uid, created) in [
        ("new", "n", true),
        ("foreign", "f", false),
        ("kept", "k", false),
    ] {
        let answer = ApplyAnswer {
            created,
            uid: uid.into(),
            generation: None,
            resource_version: "9".into(),
            fields: String::new(),
            only_recorded: false,
        };
        recorded.record_applied(
            &key(name),
            &plan.exact.objects[&key(name)],
            &answer,
            Vec::new(),
        );
    }
    if pruned {
        recorded.remove(&key("old"));
    }
    recorded
}

fn decided() -> Choices {
    Choices {
        allow_breakage: true,
        ..Choices::default()
    }
}

fn ended(recorded: &Inventory, ending: &OperationEnding) -> AddonInstallationStatus {
    let now = Timestamp::UNIX_EPOCH;
    let mut status = begin_status(None, &plan(), &decided(), now);
    status.operation = Some(lock::new_operation(Verb::Upgrade, "me", None, now));
    end_status(&mut status, &plan(), recorded, ending, Some(3), "me", now);
    status
}

fn lines(status: &AddonInstallationStatus) -> Vec<String> {
    let objects = status.inventory.iter().flat_map(|group| &group.objects);
    objects
        .map(|object| {
            format!(
                "{} {:?} {} {}",
                object.name, object.state, object.uid, object.digest
            )
        })
        .collect()
}

fn condition_of(status: &AddonInstallationStatus, r#type: &str) -> String {
    let found = status
        .conditions
        .iter()
        .find(|known| known.r#type == r#type);
    found.map_or_else(String::new, |known| {
        format!("{} {}", known.status, known.reason)
    })
}

#[test]
fn an_operation_begins_with_everything_that_was_or_will_be_ours() {
    let status = begin_status(None, &plan(), &decided(), Timestamp::UNIX_EPOCH);
    assert_eq!(status.choices, decided().to_record());
    assert_eq!(
        lines(&status),
        [
            "foreign Planned  ",
            "kept Owned k d1",
            "new Planned  ",
            "old Owned o d1"
        ]
    );
    assert_eq!(status.phase, Some(InstallationPhase::Progressing));
    assert_eq!(condition_of(&status, "Progressing"), "True Upgrading");
    assert_eq!(status.installed, None, "not before it ended well");
}

/// Whoever began it does not tell how it ended; a failure that repeats itself has two lines, whatever ended it.
#[test]
fn an_interrupted_operation_is_remembered_by_the_next_one() {
    let now = Timestamp::from_second(100).unwrap();
    let target = Installed {
        version: "2.0.0".to_owned(),
        ..Installed::default()
    };
    let mut stored = AddonInstallationStatus::default();
    for count in [1, 2, 2] {
        let target = Some(target.clone());
        stored.operation = Some(lock::new_operation(Verb::Upgrade, "ann", target, now));
        stored = begin_status(Some(&stored), &plan(), &Choices::default(), now);
        assert_eq!(stored.history.len(), count);
    }
    let line = &stored.history[0];
    let installed = &line.installed;
    assert_eq!(
        (&line.verb, &line.outcome),
        (&"upgrade".into(), &RecordedOutcome::Interrupted)
    );
    assert_eq!((&*installed.version, &*installed.by), ("2.0.0", "ann"));
    // What was not locked was not interrupted.
    stored.operation = None;
    assert_eq!(
        begin_status(Some(&stored), &plan(), &Choices::default(), now)
            .history
            .len(),
        2
    );
}

#[test]
fn a_release_waits_until_an_operation_removes_the_installation() {
    let now = Timestamp::UNIX_EPOCH;
    for (verb, reason, is_asked) in [
        (Verb::Upgrade, conditions::CORE_RELEASE, true),
        (Verb::Uninstall, conditions::CORE_RELEASE, false),
        (Verb::Upgrade, "PruneLimit", false),
    ] {
        let asked = new_condition(
            conditions::NEEDS_CONFIRMATION,
            "True",
            reason,
            String::new(),
            now,
        );
        let stored = AddonInstallationStatus {
            conditions: vec![asked],
            ..AddonInstallationStatus::default()
        };
        let plan = InstallationPlan { verb, ..plan() };
        let status = begin_status(Some(&stored), &plan, &Choices::default(), now);
        assert_eq!(status.choices, None);
        let still = conditions::find_raised(&status.conditions, conditions::NEEDS_CONFIRMATION);
        assert_eq!(still.is_some(), is_asked, "{verb:?} {reason}");
    }
}

#[test]
fn a_done_operation_leaves_the_exact_inventory() {
    let status = ended(&recorded(true), &done(true));
    assert_eq!(
        lines(&status),
        [
            "foreign Preexisting f d2",
            "kept Owned k d2",
            "new Owned n d2"
        ]
    );
    assert_eq!(
        (status.phase, status.operation.is_none()),
        (Some(InstallationPhase::Ready), true)
    );
    assert_eq!(
        status.installed.map(|installed| installed.version),
        Some("2".into())
    );
    assert_eq!(status.observed_generation, Some(3));
    assert_eq!(status.history.len(), 1);
    assert_eq!(status.choices, None, "it need not be continued");
}

#[test]
fn a_failed_operation_forgets_nothing() {
    let ending = OperationEnding::Failed {
        reason: "Failed",
        message: "web/ConfigMap kept: no".into(),
    };
    let status = ended(&recorded(false), &ending);
    assert_eq!(
        lines(&status),
        [
            "foreign Preexisting f d2",
            "kept Owned k d2",
            "new Owned n d2",
            "old Owned o d1"
        ]
    );
    assert_eq!(
        (status.phase, status.operation.is_none()),
        (Some(InstallationPhase::Failed), true)
    );
    assert_eq!(condition_of(&status, "Ready"), "False Failed");
    assert_eq!(condition_of(&status, "Stalled"), "True Failed");
    assert_eq!((status.installed, status.observed_generation), (None, None));
    assert_eq!(
        status.history[0].outcome.to_string(),
        "web/ConfigMap kept: no"
    );
    assert_eq!(status.choices, decided().to_record());
}

#[test]
fn without_waiting_the_status_is_not_ready() {
    let status = ended(&recorded(true), &done(false));
    assert_eq!(status.phase, Some(InstallationPhase::Installed));
    assert_eq!(condition_of(&status, "Ready"), "Unknown NotWaited");
}

/// Ends an operation of this verb twelve times, each with a version.
fn ended_often(
    status: &mut AddonInstallationStatus,
    verb: Verb,
    ending: &OperationEnding,
    version: impl Fn(u8) -> String,
) {
    for number in 0..12 {
        let mut plan = plan();
        plan.verb = verb;
        if let Some(to) = &mut plan.to {
            to.version = version(number);
        }
        let inventory = Inventory::default();
        let now = Timestamp::from_second(number.into()).unwrap();
        end_status(status, &plan, &inventory, ending, None, "me", now);
    }
}

fn done(waited: bool) -> OperationEnding {
    let kept = BTreeSet::new();
    OperationEnding::Done { waited, kept }
}

fn verbs(status: &AddonInstallationStatus) -> Vec<String> {
    let lines = status.history.iter();
    lines.map(|one| one.verb.to_string()).collect()
}

#[test]
fn the_history_is_bounded() {
    let mut status = AddonInstallationStatus::default();
    ended_often(&mut status, Verb::Upgrade, &done(true), |number| {
        format!("1.{number}.0")
    });
    assert_eq!(status.history.len(), 10);
}

#[test]
fn repairs_push_nothing_out_of_the_history() {
    let mut status = AddonInstallationStatus::default();
    let same = |_| "1.0.0".to_owned();
    ended_often(&mut status, Verb::Rollback, &done(true), same);
    let line = status.history.clone();
    ended_often(&mut status, Verb::Upgrade, &done(true), same);
    assert_eq!(status.history, line);
    assert_eq!(verbs(&status), ["rollback"]);
}

#[test]
fn a_failure_that_repeats_itself_has_two_lines() {
    let mut status = AddonInstallationStatus::default();
    let same = |_| "1.0.0".to_owned();
    ended_often(&mut status, Verb::Rollback, &done(true), same);
    let failed = OperationEnding::Failed {
        reason: "Failed",
        message: "web/ConfigMap web: no".to_owned(),
    };
    ended_often(&mut status, Verb::Upgrade, &failed, same);
    assert_eq!(verbs(&status), ["upgrade", "upgrade", "rollback"]);
    let at = |line: &HistoryEntry| line.installed.at.as_ref().map(|at| at.0.as_second());
    let times: Vec<_> = status.history.iter().map(at).collect();
    assert_eq!(times, [Some(11), Some(0), Some(0)]);
}
