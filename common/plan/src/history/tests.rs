use std::sync::Arc;

use common::api::catalogue::{CatalogueClass, Source};
use common::api::installation::AddonInstallationStatus;
use common::catalogue::Origin;
use common::catalogue::author::Author;

use super::*;

/// An entry of a catalogue.
pub(super) fn entry(version: &str, source: Value) -> CatalogueEntry {
    CatalogueEntry {
        addon: "web".to_owned(),
        description: None,
        support: None,
        class: CatalogueClass::Custom,
        deprecated: None,
        version: AddonVersion {
            version: version.to_owned(),
            source: serde_json::from_value::<Source>(source).unwrap(),
            ..AddonVersion::default()
        },
        origin: Arc::new(Origin::Catalogue {
            namespace: "kubectl-addons".to_owned(),
            name: "custom".to_owned(),
        }),
        base_url: None,
        registry: None,
        signature: None,
        place: "spec.addons[0].versions[0]".to_owned(),
        author: Author::default(),
    }
}

fn inline(version: &str) -> CatalogueEntry {
    entry(version, json!({"inline": {"manifest": "a: b"}}))
}

fn operation(version: &str, outcome: &str) -> HistoryEntry {
    HistoryEntry {
        verb: Verb::Upgrade.into(),
        installed: Installed {
            version: version.to_owned(),
            ..Installed::default()
        },
        outcome: outcome.into(),
    }
}

/// A revision of this version with one value.
fn revision(number: i64, version: &str, outcome: &str, replicas: u32) -> StoredRevision {
    let mut record = AddonInstallation::new("web", AddonInstallationSpec::default());
    record.spec.addon_ref.name = "web".to_owned();
    record.spec.values = Some(json!({"replicas": replicas}));
    let mut stored =
        StoredRevision::new(operation(version, outcome), &record, &inline(version), None);
    stored.number = number;
    stored.operation.installed.values_hash = replicas.to_string();
    stored
}

#[test]
fn a_revision_is_read_as_it_was_written() {
    let mut stored = revision(0, "1.0.0", "done", 1);
    stored.rollback_to = Some(2);
    stored.defaulted = Some("{}".to_owned());
    let data = stored.to_data().unwrap();
    let read: StoredRevision = serde_json::from_value(data).unwrap();
    assert_eq!(read, stored);
}

#[test]
fn what_is_too_large_is_kept_by_its_digest_or_not_at_all() {
    let mut stored = revision(0, "1.0.0", "done", 1);
    let manifest = "x".repeat(LARGEST);
    let large = entry("1.0.0", json!({"inline": {"manifest": manifest}}));
    stored.entry_digest = entry_digest(&large.version);
    stored.entry = Some(large);
    let data = stored.to_data().unwrap();
    let read: StoredRevision = serde_json::from_value(data).unwrap();
    assert_eq!((read.entry, read.entry_digest.len()), (None, 64));
    stored.spec.values = Some(json!({"text": manifest}));
    let RevisionTooLarge { bytes } = stored.to_data().unwrap_err();
    assert!(bytes > LARGEST);
}

#[test]
fn the_last_earlier_revision_that_succeeded_with_another_state_is_the_target() {
    let done = |number, version, replicas| revision(number, version, "done", replicas);
    let failed = revision(4, "1.2.0", "Deployment web: timed out", 1);
    let (one, two, three) = (
        done(1, "1.0.0", 1),
        done(2, "1.0.0", 2),
        done(3, "1.1.0", 2),
    );
    let number = |all: &[&StoredRevision], asked: Option<i64>| {
        let all: Vec<StoredRevision> = all.iter().map(|one| (*one).clone()).collect();
        let asked = asked.map_or(RevisionRequest::Previous, RevisionRequest::Number);
        find_rollback_target(&all, &asked, false).map(|found| found.number)
    };
    assert_eq!(number(&[&failed, &three, &two], None), Ok(3));
    assert_eq!(number(&[&three, &two, &one], None), Ok(2));
    assert_eq!(number(&[&three, &two, &one], Some(1)), Ok(1));
    let mut again = three.clone();
    again.number = 4;
    again.spec.addon_ref.version = Some("1.1.0".to_owned());
    assert_eq!(number(&[&again, &three, &two], None), Ok(2), "only pinned");
    let mut adopted = three.clone();
    adopted.operation.installed.adopted = true;
    assert_eq!(
        number(&[&again, &adopted], None),
        Err(NoRevision::NoEarlier),
        "taken over in the same version"
    );
    let mut mirrored = again.clone();
    mirrored.operation.installed.registry = Some("mirror".to_owned());
    assert_eq!(
        number(&[&mirrored, &three, &two], None),
        Ok(2),
        "the catalogue decides where its images are"
    );
    assert_eq!(mirrored.changes_since(&again).fields, ["registry"]);
    assert_eq!(number(&[&three], None), Err(NoRevision::NoEarlier));
    assert_eq!(number(&[], Some(1)), Err(NoRevision::Nothing));
    let begun = |all: &[&StoredRevision]| {
        let all: Vec<StoredRevision> = all.iter().map(|one| (*one).clone()).collect();
        find_rollback_target(&all, &RevisionRequest::Previous, true).map(|found| found.number)
    };
    assert_eq!(
        begun(&[&three, &two]),
        Ok(3),
        "nothing is kept of what was interrupted"
    );
    assert_eq!(begun(&[&failed, &three]), Ok(3));
    assert_eq!(begun(&[&failed]), Err(NoRevision::NoEarlier));
    let unknown = number(&[&three, &two], Some(9)).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "revision 9 is not kept; revisions that are: 3, 2"
    );
}

#[test]
fn a_version_names_its_newest_revision_that_succeeded() {
    let all = [
        revision(5, "1.1.0", "Deployment web: timed out", 1),
        revision(4, "1.0.0", "done", 2),
        revision(3, "v1.1.0", "done", 1),
        revision(2, "1.2.0", "interrupted", 1),
        revision(1, "1.0.0", "done", 1),
    ];
    let number = |asked: &str| {
        let asked = RevisionRequest::Version(asked.to_owned());
        find_rollback_target(&all, &asked, false).map(|found| found.number)
    };
    assert_eq!(number("1.0.0"), Ok(4));
    assert_eq!(number("1.1"), Ok(3));
    assert_eq!(
        number("1.2.0").unwrap_err().to_string(),
        "no revision that succeeded with version 1.2.0 is kept; versions that are: 1.0.0 (revision 4), v1.1.0 (revision 3)"
    );
    let failed = &all[..1];
    let asked = RevisionRequest::Version("1.1.0".to_owned());
    let none = find_rollback_target(failed, &asked, false).unwrap_err();
    assert!(none.to_string().ends_with("versions that are: none"));
}

#[test]
fn what_is_installed_has_the_newest_revision_that_left_it() {
    let failed = revision(4, "1.0.0", "timed out", 1);
    let all = [
        failed,
        revision(3, "1.1.0", "done", 1),
        revision(2, "1.0.0", "done", 1),
    ];
    let found = |installed: &Installed| find_installed(&all, installed).map(|one| one.number);
    let by_others = Installed {
        by: "alice".to_owned(),
        ..all[2].operation.installed.clone()
    };
    assert_eq!(found(&by_others), Some(2));
    let other = Installed {
        values_hash: "2".to_owned(),
        ..by_others
    };
    assert_eq!(found(&other), None);
}

#[test]
fn a_rollback_that_was_interrupted_goes_on_while_its_version_is_asked_for() {
    let kept = [
        revision(2, "1.1.0", "done", 1),
        revision(1, "1.0.0", "done", 1),
    ];
    let mut record = AddonInstallation::new("web", AddonInstallationSpec::default());
    record.spec.addon_ref.version = Some("1.0.0".to_owned());
    let operation = |verb: &str| {
        let target = json!({"version": "1.0.0", "valuesHash": "of another Secret"});
        let operation = json!({"id": "a", "verb": verb, "holder": "b", "leaseSeconds": 15, "target": target,
            "startedAt": "2026-01-01T00:00:00Z", "renewedAt": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({"operation": operation})).unwrap()
    };
    record.status = Some(operation("rollback"));
    let target = interrupted_rollback_target(&record).unwrap();
    assert_eq!(
        find_by_content(&kept, target).map(|one| one.number),
        Some(1)
    );
    let goes_on =
        |record: &AddonInstallation| find_interrupted_rollback(&kept, record).map(|one| one.number);
    assert_eq!(goes_on(&record), Some(1));
    assert!(!is_interrupted(&record));
    record.spec.addon_ref.version = Some("1.1.0".to_owned());
    assert_eq!(interrupted_rollback_target(&record), None);
    assert_eq!(goes_on(&record), None);
    record.spec.addon_ref.version = Some("1.0.0".to_owned());
    record.status = Some(operation("upgrade"));
    assert!(interrupted_rollback_target(&record).is_none() && is_interrupted(&record));
}

#[test]
fn a_spec_that_comes_back_is_pinned_and_keeps_what_never_changes() {
    let mut stored = revision(1, "1.0.0", "done", 1);
    stored.spec.target_namespace = Some("then".to_owned());
    let now = AddonInstallationSpec {
        core_addon: true,
        target_namespace: Some("shop".to_owned()),
        values: Some(json!({"replicas": 9})),
        ..AddonInstallationSpec::default()
    };
    let mut version = inline("1.0.0").version;
    version.id = "k8s-1.36".to_owned();
    let spec = stored.spec_to_restore(&now, &version);
    assert_eq!(spec.addon_ref.version.as_deref(), Some("1.0.0"));
    assert_eq!(spec.addon_ref.id.as_deref(), Some("k8s-1.36"));
    assert_eq!(spec.values, Some(json!({"replicas": 1})));
    assert!(spec.core_addon);
    assert_eq!(spec.target_namespace.as_deref(), Some("shop"));
    stored.spec.addon_ref.version = Some("1.0.0".to_owned());
    let spec = stored.spec_to_restore(&now, &version);
    assert_eq!(spec.addon_ref.id, None, "the id was left open");
}

#[test]
fn what_was_installed_from_a_branch_or_a_tag_comes_from_there_again() {
    let mut stored = revision(1, "1.0.0", "done", 1);
    let hash = "a".repeat(64);
    stored.operation.installed.manifest_hash.clone_from(&hash);
    let git = json!({"git": {"remote": "https://h/r", "ref": {"branch": "main"}}});
    let docker = json!({"docker": {"image": "h:5000/i:latest"}});
    for (source, resolved, expected) in [
        (
            git,
            "c0ffee",
            json!({"git": {"remote": "https://h/r", "ref": {"commit": "c0ffee"}}}),
        ),
        (
            docker,
            "sha256:1",
            json!({"docker": {"image": "h:5000/i@sha256:1"}}),
        ),
    ] {
        stored.entry = Some(entry("1.0.0", source));
        stored.operation.installed.resolved = Some(resolved.to_owned());
        let version = stored.entry_as_installed().unwrap().version;
        assert_eq!(json!(version.source), expected);
        assert_eq!(version.manifest_hash.as_ref(), Some(&hash));
    }
    stored.entry = None;
    assert_eq!(stored.entry_as_installed(), None);
    // We write none that holds its manifest.
    stored.entry = Some(inline("1.0.0"));
    assert_eq!(stored.entry_as_installed(), None);
}

#[test]
fn changes_are_named_by_version_and_fields() {
    let (old, new) = (
        revision(1, "1.0.0", "done", 1),
        revision(2, "1.1.0", "done", 2),
    );
    let changes = new.changes_since(&old);
    let expected = RevisionChanges {
        version: true,
        manifest: false,
        fields: vec!["values.replicas".to_owned()],
    };
    assert_eq!(changes, expected);
    let mut bare = old.clone();
    bare.spec.values = None;
    assert_eq!(new.changes_since(&bare), expected);
    let mut nested = old.clone();
    nested.spec.values = Some(json!({"replicas": 1, "pod": {"labels": {"a": "b"}, "none": {}}}));
    for changes in [nested.changes_since(&old), old.changes_since(&nested)] {
        assert_eq!(changes.fields, ["values.pod.labels.a", "values.pod.none"]);
    }
    let mut same = old.clone();
    same.operation.installed.manifest_hash = "b".repeat(64);
    same.spec.addon_ref.version = Some("1.0.0".to_owned());
    let expected = RevisionChanges {
        manifest: true,
        ..RevisionChanges::default()
    };
    assert_eq!(same.changes_since(&old), expected);
}

#[test]
fn a_repair_and_the_same_failure_make_no_revision() {
    let done = |verb: &str| HistoryEntry {
        verb: verb.into(),
        ..operation("1.0.0", "done")
    };
    for (last, now, is_same_spec, expected) in [
        (done("upgrade"), done("upgrade"), true, true),
        (done("install"), done("upgrade"), true, true),
        (done("rollback"), done("upgrade"), true, true),
        (done("upgrade"), done("rollback"), true, false),
        (done("upgrade"), done("upgrade"), false, false),
        (done("upgrade"), operation("1.1.0", "done"), true, false),
        (
            done("upgrade"),
            operation("1.0.0", "timed out"),
            true,
            false,
        ),
        (
            operation("1.0.0", "timed out"),
            operation("1.0.0", "refused"),
            false,
            true,
        ),
        (
            operation("1.0.0", "timed out"),
            done("upgrade"),
            true,
            false,
        ),
        (
            HistoryEntry {
                verb: Verb::Uninstall.into(),
                ..operation("1.0.0", "timed out")
            },
            operation("1.0.0", "timed out"),
            true,
            false,
        ),
    ] {
        assert_eq!(
            is_repeated(&last, &now, is_same_spec),
            expected,
            "{last:?}, then {now:?}"
        );
    }
}

#[test]
fn the_oldest_go_but_for_the_last_one_that_succeeded() {
    let all = |count: i64, done: &[i64]| {
        let numbers = (1..=count).rev();
        let numbers = numbers.map(|number| (number, done.contains(&number)));
        select_surplus(numbers.collect())
    };
    assert_eq!(all(10, &[10]), [0_i64; 0]);
    assert_eq!(all(12, &[12, 1]), [1, 2]);
    assert_eq!(all(12, &[1]), [2, 3]);
    assert_eq!(all(11, &[]), [1]);
}

#[test]
fn a_rollback_holds_until_the_spec_changes() {
    let back = |version| HistoryEntry {
        verb: Verb::Rollback.into(),
        ..operation(version, "done")
    };
    let upgrade = |version| operation(version, "done");
    for (history, generation, expected) in [
        (vec![back("1.0.0"), upgrade("1.1.0")], 2, true),
        (vec![back("1.0.0"), upgrade("1.1.0")], 3, false),
        (vec![upgrade("1.0.0"), back("1.0.0")], 2, true),
        (vec![upgrade("1.1.0"), back("1.0.0")], 2, false),
        (vec![upgrade("1.0.0")], 2, false),
        (vec![], 2, false),
    ] {
        let mut record = AddonInstallation::new("web", AddonInstallationSpec::default());
        record.metadata.generation = Some(generation);
        record.status = Some(AddonInstallationStatus {
            observed_generation: Some(2),
            installed: history.first().map(|one| one.installed.clone()),
            history,
            ..AddonInstallationStatus::default()
        });
        assert_eq!(
            is_held_by_rollback(&record),
            expected,
            "{:?}",
            record.status
        );
    }
}
