use serde_json::{Value, json};

use super::*;
use crate::choices::Choices;
use crate::continuation::NextCommand;
use crate::readiness::{Readiness, ReadinessStatus};

fn record(status: Value) -> AddonInstallation {
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"addonRef": {"name": "web", "catalogue": "team"}},
        "status": status,
    });
    serde_json::from_value(record).unwrap()
}

fn raised(r#type: &str) -> Value {
    json!([{"type": r#type, "status": "True", "reason": "Noted", "message": "as noted",
        "lastTransitionTime": "1970-01-01T00:00:00Z"}])
}

fn stands(
    record: &AddonInstallation,
    health: &Health,
    offered: Option<&OfferedCatalogues<'_>>,
) -> Standing {
    let facts = StandingFacts {
        health,
        offered,
        other: None,
        now: Timestamp::UNIX_EPOCH,
    };
    assess_standing(record, &facts)
}

fn judged(status: Value, health: &Health, offered: Option<&OfferedCatalogues<'_>>) -> String {
    stands(&record(status), health, offered).to_string()
}

/// Of a Deployment that does not exist.
fn gone() -> ObjectHealth {
    let key = json!({"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"});
    ObjectHealth {
        key: serde_json::from_value(key).unwrap(),
        readiness: None,
        planned: false,
        blocker: None,
        edited: false,
        waited: true,
        release: None,
        yielded: Vec::new(),
    }
}

#[test]
fn a_failed_operation_says_what_it_was_and_what_is_not_ready() {
    let ended =
        json!([{"verb": "upgrade", "installed": {"version": "1.2.0"}, "outcome": "timed out"}]);
    let failed = json!({"phase": "Failed", "history": ended});
    let broken = Health {
        objects: vec![gone(), gone()],
        ..Health::default()
    };
    let mut refused = failed.clone();
    refused["conditions"] = raised(STALLED);
    refused["conditions"][0]["message"] = json!("it is invalid");
    let uncreated = ObjectHealth {
        planned: true,
        ..gone()
    };
    let uncreated = Health {
        objects: vec![uncreated],
        ..Health::default()
    };
    let all_is_there = Health::default();
    for (status, health, expected) in [
        (
            json!({"phase": "Ready"}),
            &broken,
            "Degraded: Deployment web is gone and 1 more",
        ),
        (
            failed.clone(),
            &broken,
            "Failed: upgrade to 1.2.0: Deployment web is gone and 1 more",
        ),
        (
            json!({"phase": "Failed"}),
            &broken,
            "Failed: Deployment web is gone and 1 more",
        ),
        (
            refused.clone(),
            &broken,
            "Failed: upgrade to 1.2.0: Deployment web is gone and 1 more",
        ),
        (
            refused,
            &uncreated,
            "Failed: upgrade to 1.2.0: it is invalid",
        ),
        (
            failed.clone(),
            &uncreated,
            "Failed: upgrade to 1.2.0: Deployment web does not exist yet",
        ),
        (failed, &all_is_there, "Failed: upgrade to 1.2.0"),
        (json!({"phase": "Ready"}), &all_is_there, "Ready"),
        (json!({}), &all_is_there, "Pending"),
    ] {
        assert_eq!(judged(status.clone(), health, None), expected, "{status}");
    }
}

/// (objects that cannot be read, of how many, whether another one is gone)
#[test]
fn what_cannot_be_read_is_neither_broken_nor_ready() {
    let unread = || ObjectHealth {
        readiness: Some(Readiness {
            status: ReadinessStatus::Unknown,
            message: "cannot be read: not allowed".to_owned(),
        }),
        ..gone()
    };
    for (objects, judged_of, expected) in [
        (
            vec![unread()],
            2,
            "Ready: Deployment web cannot be read: not allowed",
        ),
        (
            vec![unread()],
            1,
            "Unknown: Deployment web cannot be read: not allowed",
        ),
        (
            vec![unread(), unread()],
            2,
            "Unknown: Deployment web cannot be read: not allowed and 1 more",
        ),
        (
            vec![unread(), gone()],
            2,
            "Degraded: Deployment web is gone",
        ),
    ] {
        let health = Health {
            objects,
            assessed: judged_of,
            older: None,
            unseen: None,
        };
        assert_eq!(judged(json!({"phase": "Ready"}), &health, None), expected);
    }
}

#[test]
fn what_the_catalogues_offer_now_outweighs_what_a_loop_noted() {
    let health = Health::default();
    let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": ""}}});
    let spec = json!({"addons": [{"name": "web", "versions": [version]}]});
    let team = [AddonCatalogue::new(
        "team",
        serde_json::from_value(spec).unwrap(),
    )];
    let here = OfferedCatalogues {
        catalogues: &team,
        entries: Arc::new(Catalogue::from_objects(&team)),
    };
    let nowhere = OfferedCatalogues {
        catalogues: &[],
        entries: Arc::default(),
    };
    let at = |version: &str, conditions: Value| json!({"phase": "Ready", "installed": {"version": version}, "conditions": conditions});
    let noted = raised(UNLISTED);
    for (status, offered, expected) in [
        (at("1.0.0", noted.clone()), None, "Unlisted: as noted"),
        (at("1.0.0", noted.clone()), Some(&here), "Ready"),
        (
            at("2.0.0", json!([])),
            Some(&here),
            "Unlisted: catalogue team no longer has web 2.0.0",
        ),
        (
            at("1.0.0", noted),
            Some(&nowhere),
            "Orphaned: catalogue team no longer exists",
        ),
        (
            at("1.0.0", raised(CONTESTED)),
            Some(&here),
            "Contested: as noted",
        ),
    ] {
        assert_eq!(
            judged(status.clone(), &health, offered),
            expected,
            "{status}"
        );
    }
}

/// The one table of what records, objects and facts of a cluster come to.
#[test]
fn how_an_installation_stands() {
    let ready = |status| ObjectHealth {
        readiness: Some(Readiness {
            status,
            message: "1/2 ready".to_owned(),
        }),
        ..gone()
    };
    let of = |objects: Vec<ObjectHealth>| Health {
        assessed: objects.len(),
        objects,
        older: None,
        unseen: None,
    };
    let of_config_map = |status| {
        let mut object = ready(status);
        (object.key.group, object.key.kind) = (String::new(), "ConfigMap".to_owned());
        object.waited = false;
        object
    };
    let well = || of(vec![ready(ReadinessStatus::Current)]);
    let installed =
        json!({"phase": "Ready", "observedGeneration": 2, "installed": {"version": "1.0.0"}});
    let with = |field: &str, value: Value| {
        let mut status = installed.clone();
        status[field] = value;
        status
    };
    let operation = json!({"id": "1", "verb": "upgrade", "holder": "me", "startedAt": "1970-01-01T00:00:00Z",
        "renewedAt": "1970-01-01T00:00:00Z", "leaseSeconds": 15});
    for (generation, spec, status, health, expected) in [
        (2, json!({}), installed.clone(), well(), "Ready"),
        (2, json!({}), json!({}), well(), "Pending"),
        (
            2,
            json!({"suspend": true}),
            installed.clone(),
            well(),
            "Suspended",
        ),
        (
            2,
            json!({}),
            with("operation", operation),
            well(),
            "Progressing: upgrade by me",
        ),
        // Objects are not as they should be.
        (
            2,
            json!({}),
            installed.clone(),
            of(vec![ready(ReadinessStatus::InProgress), gone()]),
            "Degraded: Deployment web 1/2 ready and 1 more",
        ),
        (
            2,
            json!({"suspend": true}),
            installed.clone(),
            of(vec![ready(ReadinessStatus::Failed)]),
            "Degraded: Deployment web 1/2 ready",
        ),
        (
            2,
            json!({}),
            installed.clone(),
            of(vec![of_config_map(ReadinessStatus::Terminating)]),
            "Degraded: ConfigMap web 1/2 ready",
        ),
        // Nothing waits for it.
        (
            2,
            json!({}),
            installed.clone(),
            of(vec![of_config_map(ReadinessStatus::InProgress)]),
            "Ready",
        ),
        // The spec was changed, by whomever; a record that does not say which one was installed is not judged by it.
        (
            3,
            json!({}),
            installed.clone(),
            well(),
            "Pending: its spec was changed and is not applied",
        ),
        (
            3,
            json!({}),
            with("observedGeneration", Value::Null),
            well(),
            "Ready",
        ),
        (
            3,
            json!({}),
            with("conditions", raised(STALLED)),
            well(),
            "Stalled: as noted",
        ),
        (
            3,
            json!({}),
            with("phase", json!("Failed")),
            well(),
            "Failed",
        ),
        (
            2,
            json!({}),
            with("conditions", raised(NEEDS_CONFIRMATION)),
            well(),
            "NeedsConfirmation: as noted",
        ),
        (
            2,
            json!({}),
            with("conditions", raised(WAITING)),
            well(),
            "Waiting: as noted",
        ),
        (
            3,
            json!({}),
            with("conditions", raised(WAITING)),
            well(),
            "Pending: as noted",
        ),
        (
            2,
            json!({}),
            with("conditions", raised(DRIFTED)),
            well(),
            "Ready: as noted",
        ),
    ] {
        let mut record = record(status.clone());
        record.metadata.generation = Some(generation);
        record.spec.suspend = spec["suspend"] == true;
        let found = stands(&record, &health, None);
        assert_eq!(found.to_string(), expected, "{generation} {spec} {status}");
        // What waits for an upgrade says so.
        let waits = found.state == StandingState::Pending;
        let upgrade = Continuation {
            command: NextCommand::Upgrade(None),
            choices: Choices::default(),
        };
        assert_eq!(found.continuation, waits.then_some(upgrade));
    }
}

#[test]
fn a_record_that_is_deleted_is_uninstalled_unless_that_is_blocked() {
    let mut record = record(json!({"phase": "Ready"}));
    record.metadata.deletion_timestamp =
        serde_json::from_value(json!("1970-01-01T00:00:00Z")).unwrap();
    let said = |record: &AddonInstallation| stands(record, &Health::default(), None).to_string();
    assert_eq!(said(&record), "Uninstalling");
    let conditions = serde_json::from_value(raised(DELETION_BLOCKED)).unwrap();
    record.status.get_or_insert_default().conditions = conditions;
    assert_eq!(said(&record), "Uninstalling: as noted");
}

/// A cluster that was not read says nothing of its objects: neither that they are ready, nor that they are not.
#[test]
fn a_cluster_that_is_not_read_leaves_what_was_last_known() {
    let health = |unseen| Health {
        unseen: Some(unseen),
        ..Health::default()
    };
    let lost = || health(UnseenCluster::Lost("it does not answer".to_owned()));
    let with = |reason: &str| {
        let mut status = json!({"phase": "Ready", "conditions": raised(STALLED)});
        status["conditions"][0]["reason"] = json!(reason);
        status
    };
    let ready = json!({"phase": "Ready"});
    let failed = json!({"phase": "Failed"});
    for (status, health, expected) in [
        (
            &ready,
            lost(),
            "Unknown: Ready when last seen; it does not answer",
        ),
        (
            &with("ClusterUnreachable"),
            lost(),
            "Unknown: Ready until 0s ago; it does not answer",
        ),
        (
            &with("Denied"),
            lost(),
            "Unknown: Ready when last seen; it does not answer",
        ),
        (&failed, lost(), "Failed"),
        (
            &ready,
            health(UnseenCluster::NotAllowed),
            "Ready: as recorded",
        ),
        (
            &with("Denied"),
            health(UnseenCluster::NotAllowed),
            "Stalled: as noted",
        ),
    ] {
        assert!(!health.is_well());
        assert_eq!(judged(status.clone(), &health, None), expected);
    }
}
