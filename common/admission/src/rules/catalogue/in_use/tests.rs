use serde_json::json;

use super::*;
use crate::NamespaceFacts;
use crate::fixtures::{addon, catalogue, core_installation, facts, installation, texts};
use common::api::catalogue::CatalogueClass;
use common::api::names::{ANNOTATION_RELEASED, SYSTEM_NAMESPACE};

#[test]
fn an_entry_in_use_by_core_is_kept_and_others_are_warnings() {
    let old = catalogue(
        "platform",
        json!([addon("coredns", &["1.0.0", "1.1.0"]), addon("web", &["2"])]),
    );
    let spare = catalogue("spare", json!([addon("coredns", &["1.1.0"])]));
    let mut going = spare.clone();
    going.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let pinned = |version: &str, catalogue: Option<&str>| {
        let mut core = core_installation("coredns");
        core.spec.addon_ref.version = Some(version.to_owned());
        core.spec.addon_ref.catalogue = catalogue.map(str::to_owned);
        core
    };
    let user = installation("kubectl-addons", "web", json!({"name": "web"}), json!({}));
    let foreign = installation(
        "x",
        "coredns",
        json!({"name": "coredns", "index": "https://x"}),
        json!({"coreAddon": true}),
    );
    let without = |version: &str| {
        let mut new = old.clone();
        new.spec.addons[0]
            .versions
            .retain(|entry| entry.version != version);
        Some(new)
    };
    // installed add-ons, remaining entries, other catalogues, problems, warnings
    for (who, new, others, problems, warnings) in [
        (pinned("v1.0.0", None), without("1.0.0"), vec![], 1, 0),
        (pinned("v1.0.0", None), without("1.1.0"), vec![], 0, 0),
        (
            pinned("1.1.0", None),
            without("1.1.0"),
            vec![spare.clone()],
            0,
            0,
        ),
        (pinned("1.1.0", None), without("1.1.0"), vec![going], 1, 0),
        (
            pinned("1.1.0", Some("platform")),
            without("1.1.0"),
            vec![spare.clone()],
            1,
            0,
        ),
        (
            pinned("1.1.0", Some("spare")),
            without("1.1.0"),
            vec![spare],
            0,
            0,
        ),
        (core_installation("coredns"), without("1.1.0"), vec![], 0, 0),
        (core_installation("coredns"), None, vec![], 1, 0),
        (foreign, None, vec![], 0, 0),
        (user, None, vec![], 0, 1),
    ] {
        let mut facts = facts(others);
        facts
            .catalogues
            .push(std::sync::Arc::new(old.clone().into()));
        facts.installations.push(std::sync::Arc::new((&who).into()));
        let mut verdict = Verdict::default();
        check_removal(new.as_ref(), &old, &facts, &mut verdict);
        assert_eq!(
            (verdict.problems.len(), verdict.warnings.len()),
            (problems, warnings),
            "{:?} {verdict:?}",
            who.spec.addon_ref
        );
        nothing_is_held_in_a_namespace_that_is_deleted(new.as_ref(), &old, facts);
    }
}

fn nothing_is_held_in_a_namespace_that_is_deleted(
    new: Option<&AddonCatalogue>,
    old: &AddonCatalogue,
    mut facts: AdmissionFacts,
) {
    let going = NamespaceFacts {
        terminating: true,
        ..NamespaceFacts::default()
    };
    facts.namespaces.insert(SYSTEM_NAMESPACE.to_owned(), going);
    let mut verdict = Verdict::default();
    check_removal(new, old, &facts, &mut verdict);
    assert_eq!(verdict, Verdict::default());
}

#[test]
fn a_removal_depends_on_what_was_created_just_now() {
    let old = catalogue(
        "platform",
        json!([addon("coredns", &["1.0.0", "1.1.0"]), addon("web", &["2"])]),
    );
    let changed = |change: &dyn Fn(&mut AddonCatalogue)| {
        let mut new = old.clone();
        change(&mut new);
        Some(new)
    };
    let more = addon("more", &["1"]);
    let more = catalogue("more", json!([more])).spec.addons.remove(0);
    for (new, is_removal) in [
        (None, true),
        (changed(&|_| {}), false),
        (changed(&|new| new.spec.addons.push(more.clone())), false),
        (changed(&|new| new.spec.addons.reverse()), false),
        (changed(&|new| new.spec.addons.truncate(1)), true),
        (
            changed(&|new| new.spec.addons[0].versions.truncate(1)),
            true,
        ),
    ] {
        let unseen = |facts: &AdmissionFacts| {
            let mut verdict = Verdict::default();
            check_removal(new.as_ref(), &old, facts, &mut verdict);
            (verdict.unseen, verdict.problems.len())
        };
        let expected = is_removal.then_some(UnseenDependency::Users);
        assert_eq!(unseen(&facts(vec![])), (expected, 0));
    }
    // Nothing is looked up for a request that is denied anyway.
    let mut known = facts(vec![]);
    known.installations = vec![std::sync::Arc::new(core_installation("coredns").into())];
    let mut verdict = Verdict::default();
    check_removal(None, &old, &known, &mut verdict);
    assert_eq!((verdict.unseen, verdict.problems.len()), (None, 1));
}

#[test]
fn a_core_installation_that_may_be_deleted_holds_nothing() {
    let old = catalogue("platform", json!([addon("coredns", &["1.0.0"])]));
    let core = core_installation("coredns");
    let mut released = core.clone();
    let mark = (ANNOTATION_RELEASED.to_owned(), "true".to_owned());
    released.metadata.annotations = Some([mark].into());
    let mut going = released.clone();
    going.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    for (who, problems, warnings) in [(core, 1, 0), (released, 0, 1), (going, 0, 0)] {
        let mut facts = facts(vec![]);
        facts.installations.push(std::sync::Arc::new(who.into()));
        let mut verdict = Verdict::default();
        check_removal(None, &old, &facts, &mut verdict);
        let found = (verdict.problems.len(), verdict.warnings.len());
        assert_eq!(found, (problems, warnings), "{verdict:?}");
    }
}

#[test]
fn one_sentence_for_an_entry_names_a_few_installations() {
    let old = catalogue("platform", json!([addon("web", &["1.0.0"])]));
    let mut facts = facts(vec![]);
    for (count, core, warnings) in [
        (
            1,
            "",
            "web is removed while kubectl-addons/web-0 is installed from it: that stays, but can no longer be upgraded",
        ),
        (
            5,
            "",
            "web is removed while kubectl-addons/web-0, kubectl-addons/web-1, kubectl-addons/web-2 and 2 more are installed \
                 from it: they stay, but can no longer be upgraded",
        ),
        (
            1,
            "web is in use by the core installation kubectl-addons/web-0; release or upgrade that first",
            "",
        ),
        (
            4,
            "web is in use by the core installations kubectl-addons/web-0, kubectl-addons/web-1, kubectl-addons/web-2 and 1 more; \
             release or upgrade them first",
            "",
        ),
    ] {
        // In any order.
        let users = (0..count).rev().map(|i| {
            let more = json!({"coreAddon": !core.is_empty()});
            let user = installation(
                SYSTEM_NAMESPACE,
                &format!("web-{i}"),
                json!({"name": "web"}),
                more,
            );
            std::sync::Arc::new(user.into())
        });
        facts.installations = users.collect();
        let mut verdict = Verdict::default();
        check_removal(None, &old, &facts, &mut verdict);
        assert_eq!(texts(&verdict.problems).concat(), core);
        assert_eq!(verdict.warnings.concat(), warnings);
    }
}

#[test]
fn what_a_deletion_needs_is_read_of_any_catalogue() {
    let read = |object: serde_json::Value| AddonCatalogue::read_names(&object.to_string());
    let of_another_release = json!({
        "metadata": {"name": "a"},
        "spec": {"class": "Core", "addons": [{"name": "web", "support": "None", "versions": [
            {"version": "1", "id": "x", "template": {"method": "kustomize"}}]}]},
    });
    let catalogue = read(of_another_release).unwrap();
    assert_eq!(catalogue.spec.class, CatalogueClass::Core);
    let addon = &catalogue.spec.addons[0];
    let version = &addon.versions[0];
    let found = (
        addon.name.as_str(),
        version.version.as_str(),
        version.id.as_str(),
    );
    assert_eq!(found, ("web", "1", "x"));
    assert!(read(json!({"metadata": {}})).is_ok());
    assert!(read(json!({"metadata": {}, "spec": {"class": 7}})).is_err());
}

#[test]
fn what_is_not_known_of_installations_is_said() {
    let old = catalogue("platform", json!([addon("web", &["1.0.0", "1.1.0"])]));
    let mut new = old.clone();
    new.spec.addons[0].versions.remove(0);
    let mut facts = facts(vec![]);
    facts.are_incomplete = true;
    for (left, warnings) in [(Some(&new), 1), (None, 1), (Some(&old), 0)] {
        let mut verdict = Verdict::default();
        check_removal(left, &old, &facts, &mut verdict);
        assert_eq!(verdict.warnings.len(), warnings, "{verdict:?}");
    }
}
