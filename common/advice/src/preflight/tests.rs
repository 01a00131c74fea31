use serde_json::{Value, json};

use super::*;
use common::api::catalogue::AddonCatalogue;

/// The cluster of these tests, and the release to which it is upgraded.
fn clusters(now: &str, then: &str) -> UpgradeClusters {
    let facts = |version: &str| ClusterVersions {
        kubernetes: Some(version.parse().unwrap()),
        kkp: None,
        profile: None,
    };
    UpgradeClusters {
        now: facts(now),
        then: facts(then),
    }
}

/// A catalogue with one add-on, `web`: versions and their Kubernetes ranges.
fn catalogue(versions: &[(&str, &str)]) -> Catalogue {
    let versions = versions.iter().map(|(version, range)| {
        json!({"version": version, "constraints": {"kubernetesVersion": range},
            "source": {"inline": {"manifest": "{}"}}})
    });
    let versions: Vec<Value> = versions.collect();
    let object: AddonCatalogue = serde_json::from_value(json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "c", "namespace": "kubectl-addons"},
        "spec": {"addons": [{"name": "web", "versions": versions}]},
    }))
    .unwrap();
    Catalogue::from_objects(&[object])
}

/// `web` with this version installed, and one object of each API.
fn record(version: &str, apis: &[(&str, &str, &str)]) -> AddonInstallation {
    let groups = apis.iter().map(|(group, version, kind)| {
        json!({"group": group, "version": version, "kind": kind, "namespace": "shop",
            "objects": [{"name": "one", "state": "owned"}]})
    });
    let groups: Vec<Value> = groups.collect();
    serde_json::from_value(json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "web", "namespace": "kubectl-addons"},
        "spec": {"addonRef": {"name": "web"}},
        "status": {"installed": {"version": version}, "inventory": groups},
    }))
    .unwrap()
}

fn judged(
    record: &AddonInstallation,
    catalogue: &Catalogue,
    clusters: &UpgradeClusters,
) -> PreflightFinding {
    check_installation(
        record,
        Some(Ok(catalogue)),
        &BTreeMap::new(),
        clusters,
        SelectionRules::Auto,
        &Lifecycle::default(),
    )
}

#[test]
fn a_range_decides_and_names_the_version_that_helps() {
    let clusters = clusters("1.34.2", "1.36.0");
    let installed = record("1.0.0", &[]);
    for (others, verdict, remedy) in [
        (vec![("1.0.0", ">=1.30.0")], PreflightVerdict::Fits, None),
        (
            vec![("1.0.0", "<1.36.0")],
            PreflightVerdict::DoesNotFit,
            None,
        ),
        (
            vec![("1.0.0", "<1.36.0"), ("1.1.0", ">=1.30.0")],
            PreflightVerdict::DoesNotFit,
            Some(UpgradeRemedy::Before("1.1.0".to_owned())),
        ),
        (
            vec![("1.0.0", "<1.36.0"), ("2.0.0", ">=1.35.0")],
            PreflightVerdict::DoesNotFit,
            Some(UpgradeRemedy::After("2.0.0".to_owned())),
        ),
        (
            vec![("1.0.0", "<1.36.0"), ("1.1.0", ""), ("2.0.0", ">=1.35.0")],
            PreflightVerdict::DoesNotFit,
            Some(UpgradeRemedy::Before("1.1.0".to_owned())),
        ),
        // An older one would be a downgrade.
        (
            vec![("1.0.0", "<1.36.0"), ("0.9.0", "")],
            PreflightVerdict::DoesNotFit,
            None,
        ),
        (vec![("2.0.0", "")], PreflightVerdict::Unknown, None),
    ] {
        let found = judged(&installed, &catalogue(&others), &clusters);
        assert_eq!(
            (found.verdict, found.remedy),
            (verdict, remedy),
            "{others:?}"
        );
    }
}

#[test]
fn an_api_that_is_removed_decides_and_one_that_is_deprecated_does_not() {
    let any = catalogue(&[("1.0.0", ""), ("1.1.0", "")]);
    let installed = record(
        "1.0.0",
        &[
            ("policy", "v1beta1", "PodDisruptionBudget"),
            ("apps", "v1", "Deployment"),
            ("cert-manager.io", "v1", "Issuer"),
        ],
    );
    let before = judged(&installed, &any, &clusters("1.22.0", "1.24.0"));
    assert_eq!(before.verdict, PreflightVerdict::Fits);
    assert_eq!(before.remedy, None, "nothing has to be mended");
    let [deprecated] = before.apis.as_slice() else {
        panic!("{:?}", before.apis);
    };
    assert!(matches!(deprecated.fate, ApiFate::Deprecated { .. }));
    let after = judged(&installed, &any, &clusters("1.22.0", "1.25.0"));
    assert_eq!(after.verdict, PreflightVerdict::DoesNotFit);
    assert_eq!(
        after.remedy,
        Some(UpgradeRemedy::Before("1.1.0".to_owned()))
    );
    let [removed] = after.apis.as_slice() else {
        panic!("{:?}", after.apis);
    };
    assert_eq!(
        (removed.api.kind.as_str(), removed.objects),
        ("PodDisruptionBudget", 1)
    );
    let later = judged(&installed, &any, &clusters("1.36.0", "1.99.0"));
    assert_eq!(
        later.verdict,
        PreflightVerdict::DoesNotFit,
        "it stays removed"
    );
}

#[test]
fn beyond_what_is_known_nothing_fits() {
    let any = catalogue(&[("1.0.0", "")]);
    let later = clusters("1.36.0", "1.99.0");
    let builtin = record("1.0.0", &[("apps", "v1", "Deployment")]);
    assert_eq!(
        judged(&builtin, &any, &later).verdict,
        PreflightVerdict::Unknown
    );
    let custom = record("1.0.0", &[("cert-manager.io", "v1", "Issuer")]);
    assert_eq!(
        judged(&custom, &any, &later).verdict,
        PreflightVerdict::Fits
    );
}

#[test]
fn what_cannot_be_read_is_unknown_and_a_directory_has_no_constraints() {
    let installed = record("1.0.0", &[]);
    let now = clusters("1.34.0", "1.36.0");
    let judged = |origin| {
        let none = BTreeMap::new();
        check_installation(
            &installed,
            origin,
            &none,
            &now,
            SelectionRules::Auto,
            &Lifecycle::default(),
        )
    };
    let unread = judged(Some(Err("no such host".to_owned())));
    assert_eq!(unread.verdict, PreflightVerdict::Unknown);
    assert_eq!(
        unread.constraint,
        ReleaseConstraint::Unknown("no such host".to_owned())
    );
    assert_eq!(judged(None).verdict, PreflightVerdict::Fits);
}

#[test]
fn writers_are_named_and_decide_nothing() {
    let any = catalogue(&[("1.0.0", "")]);
    let installed = record("1.0.0", &[("policy", "v1", "PodDisruptionBudget")]);
    let key = ObjectKey {
        group: "policy".to_owned(),
        kind: "PodDisruptionBudget".to_owned(),
        namespace: Some("shop".to_owned()),
        name: "one".to_owned(),
    };
    let writer = |manager: &str, api_version: &str| ApiWriter {
        manager: manager.to_owned(),
        api_version: api_version.to_owned(),
    };
    let all = vec![
        writer("old-operator", "policy/v1beta1"),
        writer("controller", "policy/v1"),
        writer(&field_manager("kubectl-addons", "web"), "policy/v1beta1"),
    ];
    let found = check_installation(
        &installed,
        Some(Ok(&any)),
        &BTreeMap::from([(key, all)]),
        &clusters("1.34.0", "1.36.0"),
        SelectionRules::Auto,
        &Lifecycle::default(),
    );
    assert_eq!(found.verdict, PreflightVerdict::Fits);
    let [trace] = found.writers.as_slice() else {
        panic!("{:?}", found.writers);
    };
    assert_eq!(trace.managers, ["old-operator"]);
    assert!(matches!(trace.fate, ApiFate::Removed { .. }));
}
