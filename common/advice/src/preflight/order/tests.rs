use serde_json::json;

use super::*;
use crate::preflight::ReleaseConstraint;

/// An installed add-on.
fn record(name: &str, version: &str) -> AddonInstallation {
    serde_json::from_value(json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": name, "namespace": "kubectl-addons"},
        "spec": {"addonRef": {"name": name}},
        "status": {"phase": "Ready", "installed": {"version": version}},
    }))
    .unwrap()
}

/// The result for an add-on whose next version has these requirements.
fn finding(
    remedy: Option<UpgradeRemedy>,
    verdict: PreflightVerdict,
    requires: &[(&str, &str)],
) -> PreflightFinding {
    let requires = requires.iter().map(|(name, version)| Requirement {
        name: (*name).to_owned(),
        version: Some((*version).to_owned()).filter(|it| !it.is_empty()),
    });
    PreflightFinding {
        verdict,
        constraint: ReleaseConstraint::Allows,
        remedy,
        requires: requires.collect(),
        deprecated: None,
        apis: Vec::new(),
        writers: Vec::new(),
    }
}

fn before(version: &str, requires: &[(&str, &str)]) -> PreflightFinding {
    let remedy = Some(UpgradeRemedy::Before(version.to_owned()));
    finding(remedy, PreflightVerdict::DoesNotFit, requires)
}

fn after(version: &str, requires: &[(&str, &str)]) -> PreflightFinding {
    let remedy = Some(UpgradeRemedy::After(version.to_owned()));
    finding(remedy, PreflightVerdict::DoesNotFit, requires)
}

/// The order of some add-ons in version 1.0.0: names before, after, blocked, and unmet requirements.
fn ordered(found: &[(&str, PreflightFinding)]) -> (String, String, String, Vec<String>) {
    let records: Vec<_> = found
        .iter()
        .map(|(name, _)| record(name, "1.0.0"))
        .collect();
    let found: Vec<_> = records
        .iter()
        .zip(found.iter().map(|(_, one)| one))
        .collect();
    let all: Vec<_> = records.iter().collect();
    let order = upgrade_order(&found, &all, "kubectl-addons");
    let names = |upgrades: &[AddonUpgrade]| {
        let names = upgrades
            .iter()
            .map(|upgrade| upgrade.installation.name.as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    let blocked: Vec<_> = order.blocked.iter().map(|one| one.name.as_str()).collect();
    (
        names(&order.before),
        names(&order.after),
        blocked.join(" "),
        order.unmet,
    )
}

#[test]
fn what_is_required_comes_first_on_each_side_of_the_cluster() {
    let found = [
        ("app", before("2.0.0", &[("db", ""), ("fits", "1.0.0")])),
        ("db", before("2.0.0", &[("disk", ">=1.0.0")])),
        ("disk", before("1.5.0", &[])),
        ("fits", finding(None, PreflightVerdict::Fits, &[])),
        (
            "late",
            after("3.0.0", &[("later", ">=3.0.0"), ("db", ">=2.0.0")]),
        ),
        ("later", after("3.1.0", &[])),
        ("never", finding(None, PreflightVerdict::DoesNotFit, &[])),
        ("unread", finding(None, PreflightVerdict::Unknown, &[])),
    ];
    let expected = ("disk db app", "later late", "never");
    let (before, after, blocked, unmet) = ordered(&found);
    assert_eq!((&*before, &*after, &*blocked), expected);
    assert_eq!(unmet, Vec::<String>::new());
}

#[test]
fn what_nothing_meets_is_said() {
    let (_, _, _, unmet) = ordered(&[
        ("app", before("2.0.0", &[("db", ">=2.0.0")])),
        ("db", finding(None, PreflightVerdict::Fits, &[])),
    ]);
    let [unmet] = unmet.try_into().unwrap();
    assert!(
        unmet.contains("app 2.0.0") && unmet.contains("db"),
        "{unmet}"
    );
    // The required add-on is upgraded later, so it does not have that version yet.
    let (_, _, _, unmet) = ordered(&[
        ("app", before("2.0.0", &[("db", ">=2.0.0")])),
        ("db", after("2.0.0", &[])),
    ]);
    assert_eq!(unmet.len(), 1, "{unmet:?}");
}

#[test]
fn those_that_require_each_other_end_the_search() {
    let (before, _, _, unmet) = ordered(&[
        ("a", before("2.0.0", &[("b", "")])),
        ("b", before("2.0.0", &[("a", "")])),
    ]);
    assert_eq!(before, "a b");
    assert_eq!(unmet.len(), 1, "{unmet:?}");
}
