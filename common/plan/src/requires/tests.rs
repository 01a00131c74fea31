use super::*;

fn requirement(name: &str, version: &str) -> Requirement {
    Requirement {
        name: name.to_owned(),
        version: (!version.is_empty()).then(|| version.to_owned()),
    }
}

fn candidate<'a>(
    addon: &'a str,
    version: &'a str,
    requires: &'a [Requirement],
) -> AddonCandidate<'a> {
    AddonCandidate {
        installation: addon,
        addon,
        version,
        requires,
    }
}

fn present<'a>(
    addon: &'a str,
    version: &'a str,
    requires: &'a [Requirement],
) -> PresentInstallation<'a> {
    PresentInstallation {
        installation: addon,
        addon,
        version,
        requires,
        ready: true,
        is_believed: true,
    }
}

fn none() -> BTreeMap<String, Vec<String>> {
    BTreeMap::new()
}

#[test]
fn required_addons_of_the_command_come_first() {
    let (base, more) = (
        [requirement("base", ">=1.2")],
        [requirement("base", ""), requirement("mid", "")],
    );
    let candidates = [
        candidate("top", "1", &more),
        candidate("base", "v1.3", &[]),
        candidate("mid", "", &base),
    ];
    let order = resolve_order(&candidates, &[], &none()).unwrap();
    assert_eq!(order.first, [vec![1, 2], vec![], vec![1]]);
    assert_eq!(order.unready, []);
}

#[test]
fn what_is_installed_is_enough_unless_the_command_changes_it() {
    let requires = [requirement("base", "<2.0.0")];
    let top = candidate("top", "1", &requires);
    let there = [present("base", "1.9.0", &[])];
    assert!(resolve_order(&[top], &there, &none()).unwrap().first[0].is_empty());
    let upgraded = [top, candidate("base", "2.0.0", &[])];
    assert_eq!(
        resolve_order(&upgraded, &there, &none())
            .unwrap_err()
            .to_string(),
        "top 1 requires base <2.0.0, found 2.0.0"
    );
    // Another installation of it stays as it is.
    let second = PresentInstallation {
        installation: "second",
        ..there[0]
    };
    assert!(resolve_order(&upgraded, &[second], &none()).is_ok());
}

#[test]
fn a_requirement_that_is_not_ready_is_reported() {
    let requires = [requirement("base", "")];
    let top = candidate("top", "1", &requires);
    let unready = PresentInstallation {
        ready: false,
        ..present("base", "", &[])
    };
    assert_eq!(
        resolve_order(&[top], &[unready], &none()).unwrap().unready[0].to_string(),
        "top requires base: base is installed, but not ready"
    );
    let other = PresentInstallation {
        installation: "other",
        ready: true,
        ..unready
    };
    assert_eq!(
        resolve_order(&[top], &[unready, other], &none())
            .unwrap()
            .unready,
        []
    );
}

#[test]
fn every_problem_is_a_sentence() {
    let available = BTreeMap::from([(
        "base".to_owned(),
        ["1.9.0", "odd", "1.10.0", "2.0.0-rc.1", "2.1.0"]
            .map(str::to_owned)
            .to_vec(),
    )]);
    let rows: [(&str, &str, &[&str], &str); 5] = [
        (
            "base",
            "<2",
            &[],
            "top 1 requires base <2, which is not installed",
        ),
        (
            "base",
            "<2",
            &["2.1.0", ""],
            "top 1 requires base <2, found 2.1.0, one without a version",
        ),
        (
            "base",
            "",
            &[],
            "top 1 requires base, which is not installed",
        ),
        (
            "gone",
            ">1",
            &[],
            "top 1 requires gone >1, which is not installed",
        ),
        (
            "base",
            ">",
            &["1"],
            "top 1 requires base in versions that cannot be read: \">\" ends in an operator: a version must follow >; correct the catalogue",
        ),
    ];
    for (name, constraint, there, expect) in rows {
        let requires = [requirement(name, constraint)];
        let there: Vec<PresentInstallation<'_>> = there
            .iter()
            .map(|version| present(name, version, &[]))
            .collect();
        let error =
            resolve_order(&[candidate("top", "1", &requires)], &there, &available).unwrap_err();
        assert_eq!(error.to_string(), expect);
    }
}

#[test]
fn cycles_are_named() {
    let (a, b) = ([requirement("b", "")], [requirement("c", "")]);
    let c = [requirement("b", "")];
    let candidates = [
        candidate("a", "1", &a),
        candidate("b", "1", &b),
        candidate("c", "1", &c),
    ];
    assert_eq!(
        resolve_order(&candidates, &[], &none())
            .unwrap_err()
            .to_string(),
        "these add-ons require each other: b → c → b; remove one of these requirements from the catalogue"
    );
    let own = [requirement("a", "")];
    let error = resolve_order(&[candidate("a", "1", &own)], &[], &none()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("a 1 requires a, which is not installed")
    );
}

#[test]
fn dependents_of_what_is_removed_are_listed() {
    let (any, two) = (
        [requirement("base", "")],
        [requirement("base", ">=2"), requirement("x", "")],
    );
    let remaining = [
        present("web", "1", &two),
        present("api", "1", &any),
        PresentInstallation {
            installation: "old",
            ..present("base", "1.0.0", &[])
        },
    ];
    let expect = Dependent {
        installation: "web".to_owned(),
        requires: "base".to_owned(),
        constraint: Some(">=2".to_owned()),
    };
    assert_eq!(find_dependents(&["base"], &remaining), [expect]);
    assert_eq!(find_dependents(&["base"], &remaining[..2]).len(), 2);
    assert_eq!(find_dependents(&["web"], &remaining), []);
}

/// Semantics 13: a record elsewhere says nothing to whom it is not believed, neither that something is there nor what it needs.
#[test]
fn records_of_other_namespaces_are_not_believed() {
    let requires = [requirement("base", "")];
    let top = |installation| AddonCandidate {
        installation,
        ..candidate("top", "1", &requires)
    };
    let base = |is_believed| PresentInstallation {
        installation: "shop/base",
        is_believed,
        ..present("base", "1", &[])
    };
    for (installation, is_believed, is_met) in [
        ("system/top", true, true),
        ("shop/top", false, true),
        ("system/top", false, false),
        ("other/top", false, false),
    ] {
        let met = resolve_order(&[top(installation)], &[base(is_believed)], &none()).is_ok();
        assert_eq!(met, is_met, "{installation} {is_believed}");
    }
}
