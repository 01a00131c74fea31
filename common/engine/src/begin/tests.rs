use addons_plan::Verb;

use super::*;
use common::api::installation::{
    AddonInstallationSpec, AddonInstallationStatus, Installed, InventoryGroup,
};
use common::api::names::InstallationName;

fn installed(version: &str) -> Installed {
    Installed {
        version: version.into(),
        ..Installed::default()
    }
}

/// A plan to version 2 that changes nothing.
fn plan() -> InstallationPlan {
    InstallationPlan {
        verb: Verb::Upgrade,
        to: Some(installed("2")),
        ..InstallationPlan::nothing(
            InstallationName {
                namespace: "a".into(),
                name: "dns".into(),
            },
            "dns",
        )
    }
}

fn record(version: &str, phase: InstallationPhase) -> AddonInstallation {
    let mut record = AddonInstallation::new("dns", AddonInstallationSpec::default());
    record.metadata.generation = Some(1);
    record.metadata.resource_version = Some("1".into());
    record.status = Some(AddonInstallationStatus {
        installed: Some(Installed {
            by: "eve".into(),
            ..installed(version)
        }),
        phase: Some(phase),
        ..AddonInstallationStatus::default()
    });
    record
}

#[test]
fn nothing_is_written_where_all_is_as_wanted() {
    let wanted = record("2", InstallationPhase::Ready);
    assert!(is_done(&wanted, &wanted, &plan()));
    for changed in [
        record("1", InstallationPhase::Ready),
        record("2", InstallationPhase::Failed),
        record("2", InstallationPhase::Progressing),
    ] {
        assert!(
            !is_done(&changed, &changed, &plan()),
            "{:?}",
            changed.status
        );
    }
    let mut other_spec = record("2", InstallationPhase::Ready);
    other_spec.spec.suspend = true;
    assert!(!is_done(&wanted, &other_spec, &plan()));
    for (observed, done) in [(1, true), (0, false)] {
        let mut patched = record("2", InstallationPhase::Ready);
        if let Some(status) = &mut patched.status {
            status.observed_generation = Some(observed);
        }
        assert_eq!(is_done(&patched, &patched, &plan()), done, "{observed}");
    }
    let mut cut_off = record("2", InstallationPhase::Ready);
    if let Some(status) = &mut cut_off.status {
        status.operation = Some(lock::new_operation(
            Verb::Upgrade,
            "eve",
            None,
            jiff::Timestamp::UNIX_EPOCH,
        ));
    }
    assert!(!is_done(&cut_off, &cut_off, &plan()));
}

#[test]
fn what_others_did_makes_a_plan_stale_or_needless() {
    let known = record("1", InstallationPhase::Ready);
    assert_eq!(stale_reason(&known, &known), None);

    let mut noise = known.clone();
    noise.metadata.resource_version = Some("7".into());
    noise.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    assert_eq!(
        stale_reason(&known, &noise),
        None,
        "a label is not a reason"
    );

    let upgraded = record("2", InstallationPhase::Ready);
    assert!(stale_reason(&known, &upgraded).is_some());
    let mut busy = plan();
    busy.create_namespace = Some("web".into());
    assert!(!busy.is_empty());
    assert!(
        is_done(&upgraded, &known, &busy),
        "another client did what this plan wants"
    );
    assert!(!is_done(
        &record("3", InstallationPhase::Ready),
        &known,
        &busy
    ));

    let mut inventory = known.clone();
    if let Some(status) = &mut inventory.status {
        status.inventory.push(InventoryGroup::default());
    }
    assert!(stale_reason(&known, &inventory).is_some());

    let mut spec = known.clone();
    spec.metadata.generation = Some(2);
    assert_eq!(stale_reason(&known, &spec), Some(StaleReason::SpecChanged));
}

/// Who wrote a record follows from the write: it is no reason for one, and is kept only where the writer decides nothing.
#[test]
fn the_writer_stays_where_nothing_is_judged() {
    let with = |writer: Option<&str>, registry: Option<&str>| {
        let mut record = AddonInstallation::new("web", AddonInstallationSpec::default());
        record.spec.registry = registry.map(str::to_owned);
        record.metadata.annotations =
            writer.map(|writer| [(ANNOTATION_WRITTEN_BY.to_owned(), writer.to_owned())].into());
        record
    };
    let stored = with(Some("anna"), None);
    for (wanted, is_different, written) in [
        (with(None, None), false, Some("anna")),
        (with(None, Some("r")), true, None),
        (with(Some("jane"), Some("r")), true, Some("jane")),
    ] {
        assert_eq!(needs_write(&wanted, &stored), is_different);
        let next = with_spec(&wanted, &stored);
        let found = next.annotations().get(ANNOTATION_WRITTEN_BY);
        assert_eq!(found.map(String::as_str), written);
    }
}

/// A reconciler sets its finalizer while others plan: that changes nothing for them, and they do not take it away.
#[test]
fn the_finalizer_of_a_reconciler_is_left_to_it() {
    let with = |finalizers: &[&str]| {
        let mut record = AddonInstallation::new("web", Default::default());
        let finalizers: Vec<String> = finalizers.iter().map(|one| (*one).to_owned()).collect();
        record.metadata.finalizers = (!finalizers.is_empty()).then_some(finalizers);
        record
    };
    for (wanted, stored, is_different, written) in [
        (
            &[][..],
            &[FINALIZER_UNINSTALL][..],
            false,
            &[FINALIZER_UNINSTALL][..],
        ),
        (&[FINALIZER_UNINSTALL], &[], false, &[]),
        (
            &["other"],
            &[FINALIZER_UNINSTALL],
            true,
            &["other", FINALIZER_UNINSTALL],
        ),
        (&[], &["other"], true, &[]),
    ] {
        let (wanted, stored) = (with(wanted), with(stored));
        assert_eq!(needs_write(&wanted, &stored), is_different);
        assert_eq!(with_spec(&wanted, &stored).finalizers(), written);
    }
}
