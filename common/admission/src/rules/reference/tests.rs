//! References that cannot be resolved, or do not fit.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::*;
use crate::NamespaceFacts;
use crate::fixtures::{addon, catalogue, catalogue_object, core_catalogue, facts, source};
use crate::mutate::defaults;
use common::api::names::LABEL_DERIVED_FROM;
use common::catalogue::Catalogue;

fn known() -> AdmissionFacts {
    let narrow = |range: &str, version: &str| json!({"version": version, "source": source(), "constraints": {"k8sVersion": range}});
    facts(vec![
        catalogue(
            "platform",
            json!([
                addon("metrics-server", &["0.8.1", "0.9.0"]),
                {"name": "narrow", "versions": [narrow("<1.30.0", "1.0.0"), narrow(">=1.36.0", "1.1.0")]},
                {"name": "future", "versions": [narrow(">=1.99.0", "1.0.0")]},
                {"name": "by-id", "versions": [{"version": "", "id": "k8s-1.6", "source": source()}]},
            ]),
        ),
        catalogue("custom", json!([addon("prometheus", &["1.0.0"])])),
        catalogue_object(json!({
            "metadata": {"name": "beside", "namespace": "team"},
            "spec": {"addons": [addon("team-addon", &["3.0.0"])]},
        })),
    ])
}

fn resolved(
    reference: Value,
    namespace: &str,
    facts: &AdmissionFacts,
) -> Result<Option<String>, String> {
    let reference: AddonRef = serde_json::from_value(reference).unwrap();
    match resolve(&reference, namespace, facts) {
        Ok(choice) => Ok(choice.map(|choice| describe_version(&choice.chosen.unwrap().version))),
        Err(problem) => Err(problem.to_string()),
    }
}

#[test]
fn references_that_are_there_and_fit() {
    for (reference, namespace, expected) in [
        (
            json!({"name": "metrics-server"}),
            "kubectl-addons",
            Some("0.9.0"),
        ),
        (
            json!({"name": "metrics-server", "version": "v0.8.1"}),
            "kubectl-addons",
            Some("0.8.1"),
        ),
        (
            json!({"name": "metrics-server", "catalogue": "platform"}),
            "kubectl-addons",
            Some("0.9.0"),
        ),
        (
            json!({"name": "by-id", "id": "k8s-1.6"}),
            "kubectl-addons",
            Some("id k8s-1.6"),
        ),
        (json!({"name": "narrow"}), "kubectl-addons", Some("1.1.0")),
        (
            json!({"name": "x", "index": "https://x"}),
            "kubectl-addons",
            None,
        ),
        (
            json!({"name": "x", "directory": "/x"}),
            "kubectl-addons",
            None,
        ),
    ] {
        let got = resolved(reference.clone(), namespace, &known());
        assert_eq!(got, Ok(expected.map(str::to_owned)), "{reference}");
    }
}

#[test]
fn references_to_something_that_does_not_exist() {
    for (reference, namespace, expected) in [
        (
            json!({"name": "prometeus"}),
            "kubectl-addons",
            "spec.addonRef.name: no add-on named prometeus; did you mean prometheus (catalogue custom)?",
        ),
        (
            json!({"name": "dashboard"}),
            "kubectl-addons",
            "spec.addonRef.name: no add-on named dashboard",
        ),
        (
            json!({"name": "prometheus", "catalogue": "platform"}),
            "kubectl-addons",
            "spec.addonRef.name: no add-on named prometheus in catalogue platform; did you mean prometheus (catalogue custom)?",
        ),
        (
            json!({"name": "prometheus", "catalogue": "custm"}),
            "kubectl-addons",
            "spec.addonRef.catalogue: no catalogue named custm; did you mean custom?",
        ),
        (
            json!({"name": "team-addon", "catalogue": "beside"}),
            "kubectl-addons",
            "spec.addonRef.catalogue: no catalogue named beside",
        ),
        // A catalogue in the same namespace does not count either: commands and the loop read only the system namespace.
        (
            json!({"name": "team-addon", "catalogue": "beside"}),
            "team",
            "spec.addonRef.catalogue: no catalogue named beside",
        ),
        (
            json!({"name": "team-addon"}),
            "team",
            "spec.addonRef.name: no add-on named team-addon",
        ),
        (
            json!({"name": "metrics-server", "version": "0.7.0"}),
            "kubectl-addons",
            "spec.addonRef.version: metrics-server has no version 0.7.0; it has 0.9.0, 0.8.1",
        ),
        (
            json!({"name": "metrics-server", "id": "x"}),
            "kubectl-addons",
            "spec.addonRef.id: metrics-server has no id x; it has 0.9.0, 0.8.1",
        ),
    ] {
        assert_eq!(
            resolved(reference, namespace, &known()),
            Err(expected.to_owned())
        );
    }
}

#[test]
fn what_is_being_deleted_offers_nothing() {
    let mut facts = known();
    let reference = || json!({"name": "metrics-server"});
    assert!(resolved(reference(), "kubectl-addons", &facts).is_ok());
    let deleted: Time = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    for catalogue in &mut facts.catalogues {
        let mut going = CatalogueFacts::clone(catalogue);
        going.metadata.deletion_timestamp = Some(deleted.clone());
        *catalogue = going.into();
    }
    assert_eq!(
        resolved(reference(), "kubectl-addons", &facts),
        Err("spec.addonRef.name: no add-on named metrics-server".to_owned())
    );
    let mut objects = [catalogue("platform", json!([addon("web", &["1.0.0"])]))];
    assert_eq!(Catalogue::from_objects(&objects).entries.len(), 1);
    objects[0].metadata.deletion_timestamp = Some(deleted);
    assert!(Catalogue::from_objects(&objects).entries.is_empty());
}

#[test]
fn what_a_catalogue_lost_to_another_is_not_chosen() {
    let versions = |names: &[&str]| json!([addon("web", names)]);
    let older = catalogue("a", versions(&["1.0.0"]));
    let younger = catalogue("b", versions(&["v1", "0.9.0"]));
    let custom = catalogue("c", json!([addon("dns", &["9.0.0"])]));
    let core = core_catalogue("d", json!([addon("dns", &["1.0.0"])]));
    // Without creation times, the first by name counts as the older one.
    for order in [[0, 1, 2, 3], [3, 2, 1, 0]] {
        let all = [&older, &younger, &custom, &core];
        let facts = facts(order.map(|at| all[at].clone()).into());
        for (reference, expected) in [
            (json!({"name": "web"}), "1.0.0"),
            (json!({"name": "web", "version": "0.9.0"}), "0.9.0"),
            (json!({"name": "dns"}), "1.0.0"),
        ] {
            let found = resolved(reference, "kubectl-addons", &facts);
            assert_eq!(found, Ok(Some(expected.to_owned())));
        }
        let gone = json!({"name": "dns", "version": "9.0.0"});
        assert!(resolved(gone, "kubectl-addons", &facts).is_err());
        let held = "spec.addonRef.catalogue: catalogue a holds web v1, which catalogue b lists as well: \
                    refer to catalogue a";
        for (reference, namespace, expected) in [
            (
                json!({"name": "web", "catalogue": "a"}),
                "kubectl-addons",
                Ok(Some("1.0.0")),
            ),
            (
                json!({"name": "web", "catalogue": "b"}),
                "kubectl-addons",
                Err(held),
            ),
            (
                json!({"name": "web", "catalogue": "b", "version": "1.0.0"}),
                "team",
                Err(held),
            ),
            (
                json!({"name": "web", "catalogue": "b", "version": "0.9.0"}),
                "kubectl-addons",
                Ok(Some("0.9.0")),
            ),
        ] {
            let found = resolved(reference.clone(), namespace, &facts);
            let expected = expected
                .map(|it| it.map(str::to_owned))
                .map_err(str::to_owned);
            assert_eq!(found, expected, "{reference}");
        }
    }
}

/// A catalogue by reference may hold an entry that a younger catalogue lists: its versions are not known here.
#[test]
fn what_a_catalogue_by_reference_may_hold_is_not_judged() {
    let web = || json!([addon("web", &["1.0.0"])]);
    let by_reference = |name: &str| {
        catalogue_object(json!({
            "metadata": {"name": name, "namespace": "kubectl-addons"},
            "spec": {
                "from": {"url": {"manifest": "https://example.org/c.yaml"}, "digest": format!("sha256:{}", "0".repeat(64))},
                "addons": [{"name": "web", "versions": []}],
            },
        }))
    };
    let named = || json!({"name": "web", "catalogue": "m"});
    for (other, expected) in [("a", None), ("z", Some("1.0.0"))] {
        let facts = facts(vec![catalogue("m", web()), by_reference(other)]);
        assert!(facts.catalogues.iter().any(|it| it.refers_to("web")));
        let found = resolved(named(), "kubectl-addons", &facts);
        assert_eq!(found, Ok(expected.map(str::to_owned)), "{other}");
    }
}

/// In a cluster that pushes its catalogues to itself, each entry exists twice.
#[test]
fn a_copy_of_what_a_source_has_is_no_second_candidate() {
    let mut copy = catalogue("copy", json!([addon("web", &["1.0.0", "2.0.0"])]));
    copy.metadata.labels = Some([(LABEL_DERIVED_FROM.to_owned(), "x".to_owned())].into());
    let source = catalogue("source", json!([addon("web", &["1.0.0"])]));
    let facts = facts(vec![copy, source]);
    for (version, expected) in [("1.0.0", Some("1.0.0")), ("2.0.0", Some("2.0.0"))] {
        let pinned = json!({"name": "web", "version": version});
        let found = resolved(pinned, "team", &facts);
        assert_eq!(found, Ok(expected.map(str::to_owned)));
    }
}

/// A later version must not move an installation that kubectl creates.
#[test]
fn the_target_namespace_is_known_where_all_entries_agree() {
    let version = |version: &str, namespace: &str| json!({"version": version, "defaultNamespace": namespace, "source": source()});
    for (second, expected) in [("shop", Some("shop")), ("store", None)] {
        let versions = json!([version("1.0.0", "shop"), version("2.0.0", second)]);
        let facts = facts(vec![catalogue(
            "a",
            json!([{"name": "web", "versions": versions}]),
        )]);
        let reference: AddonRef = serde_json::from_value(json!({"name": "web"})).unwrap();
        assert_eq!(target_namespace(&reference, &facts), expected);
        let installation =
            json!({"metadata": {"name": "web"}, "spec": {"addonRef": {"name": "web"}}});
        let patch = defaults(&installation, Some("team"), &facts).patch;
        let target = patch
            .0
            .iter()
            .any(|one| *one.path() == "/spec/targetNamespace");
        assert_eq!(target, expected.is_some());
    }
}

#[test]
fn fit_is_judged_on_this_cluster_only() {
    let pinned = json!({"name": "narrow", "version": "1.0.0"});
    assert_eq!(
        resolved(pinned.clone(), "kubectl-addons", &known()),
        Err("spec.addonRef: narrow 1.0.0 does not fit this cluster \
             (1.0.0: k8sVersion <1.30.0 does not match 1.36.3)"
            .to_owned())
    );
    assert_eq!(
        resolved(json!({"name": "future"}), "kubectl-addons", &known()),
        Err("spec.addonRef: no version of future fits this cluster \
             (1.0.0: k8sVersion >=1.99.0 does not match 1.36.3)"
            .to_owned())
    );
    // A namespace without a mark stands for another cluster, whose version is not known here.
    assert_eq!(
        resolved(pinned.clone(), "team", &known()),
        Ok(Some("1.0.0".to_owned()))
    );
    // It is not known either which of several versions fits that cluster. It is known that a version does not exist.
    for reference in [
        json!({"name": "narrow"}),
        json!({"name": "metrics-server", "catalogue": "platform"}),
    ] {
        assert_eq!(resolved(reference, "team", &known()), Ok(None));
    }
    assert_eq!(
        resolved(json!({"name": "prometheus"}), "team", &known()),
        Ok(Some("1.0.0".to_owned()))
    );
    let absent = json!({"name": "narrow", "version": "2.0.0"});
    assert!(resolved(absent, "team", &known()).is_err());
    let mut local = known();
    let marks = NamespaceFacts {
        local: true,
        ..NamespaceFacts::default()
    };
    local.namespaces.insert("team".to_owned(), marks);
    assert!(resolved(pinned, "team", &local).is_err());
}

#[test]
fn what_was_installed_before_comes_back_without_its_catalogue() {
    let had = |version: &str, outcome: &str| json!({"verb": "upgrade", "installed": {"version": version}, "outcome": outcome});
    let mut old = AddonInstallation::new("a", Default::default());
    old.status = serde_json::from_value(json!({
        "installed": {"version": "2.0.0", "id": "x"}, "conditions": [],
        "history": [had("1.1.0", "done"), had("1.2.0", "timed out")],
    }))
    .unwrap();
    let facts = known();
    for (reference, expected) in [
        (json!({"name": "prometheus", "version": "1.1.0"}), true),
        (json!({"name": "prometheus", "version": "1.2.0"}), false),
        (json!({"name": "prometheus", "version": "3.0.0"}), false),
        (json!({"name": "prometheus", "id": "x"}), true),
        (json!({"name": "gone", "version": "2.0.0"}), true),
        (
            json!({"name": "a", "version": "1.1.0", "catalogue": "gone"}),
            true,
        ),
        (json!({"name": "gone"}), false),
    ] {
        let reference: AddonRef = serde_json::from_value(reference).unwrap();
        let problem = resolve(&reference, "kubectl-addons", &facts).unwrap_err();
        let warning = warn_rolled_back(&reference, Some(&old), &problem);
        assert_eq!(warning.is_some(), expected, "{reference:?}: {warning:?}");
        assert_eq!(warn_rolled_back(&reference, None, &problem), None);
    }
    let narrow = json!({"name": "future", "version": "1.0.0"});
    let narrow: AddonRef = serde_json::from_value(narrow).unwrap();
    let problem = resolve(&narrow, "kubectl-addons", &facts).unwrap_err();
    old.status = serde_json::from_value(json!({
        "conditions": [], "history": [had("1.0.0", "done")],
    }))
    .unwrap();
    let warning = warn_rolled_back(&narrow, Some(&old), &problem);
    assert_eq!(warning, None, "it does not fit");
}
