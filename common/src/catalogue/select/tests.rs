//! Selection by both rule sets (semantics 3, 11).

use super::*;
use crate::api::catalogue::{Addon, AddonCatalogueSpec, AddonVersion, Constraints};
use crate::expression::profile::Profile;

/// An entry: version, id, hash and kubernetesVersion.
type Row = (&'static str, &'static str, &'static str, &'static str);

fn catalogue(rows: &[Row]) -> Catalogue {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let versions = rows.iter().map(|(version, id, hash, range)| AddonVersion {
        version: (*version).to_owned(),
        id: (*id).to_owned(),
        manifest_hash: some(hash),
        constraints: Constraints {
            kubernetes_version: some(range),
            ..Constraints::default()
        },
        ..AddonVersion::default()
    });
    let addon = Addon {
        name: "a".to_owned(),
        versions: versions.collect(),
        ..Addon::default()
    };
    let spec = AddonCatalogueSpec {
        addons: vec![addon],
        ..AddonCatalogueSpec::default()
    };
    let origin = Origin::Catalogue {
        namespace: "kubectl-addons".to_owned(),
        name: "main".to_owned(),
    };
    Catalogue::from_spec(&spec, origin)
}

fn facts(kubernetes: &str) -> ClusterVersions {
    ClusterVersions {
        kubernetes: Some(addons_versions::tolerant::parse_kubernetes(kubernetes).unwrap()),
        kkp: None,
        profile: None,
    }
}

const ANY: EntryRequest<'_> = EntryRequest {
    addon: "a",
    version: None,
    id: None,
    catalogue: None,
};

fn run(rows: &[Row], request: &EntryRequest<'_>, rules: SelectionRules) -> Selection {
    select(&catalogue(rows), request, &facts("v1.30.4-eks-1"), rules)
}

/// Returns the chosen entry, and why each other one was rejected.
#[track_caller]
fn check(rows: &[Row], rules: SelectionRules, expect: (SelectionRules, &str), rejections: &[&str]) {
    let selection = run(rows, &ANY, rules);
    let name = |entry: &CatalogueEntry| format!("{}/{}", entry.version.version, entry.version.id);
    let chosen = selection.chosen.as_ref().map_or("-".to_owned(), name);
    assert_eq!((selection.rules, chosen.as_str()), expect);
    let reasons = selection.rejections.iter();
    let reasons: Vec<String> = reasons
        .map(|rejection| format!("{}: {}", name(&rejection.entry), rejection.reason))
        .collect();
    assert_eq!(reasons, rejections);
}

#[test]
fn the_newest_version_that_fits_is_chosen() {
    check(
        &[
            ("1.9.0", "", "", ""),
            ("v1.10", "x", "", ">=1.30.0"),
            ("2.0.0", "", "", "<1.30.0"),
            ("2.1.0", "", "", "^1"),
            ("1.2.0", "", "", ""),
        ],
        SelectionRules::Auto,
        (SelectionRules::Documented, "v1.10/x"),
        &[
            "2.1.0/: kubernetesVersion \"^1\" cannot be read: \"^1\" has the unknown operator \"^\": \
             kops knows <, <=, >, >=, =, ==, != and !",
            "2.0.0/: kubernetesVersion <1.30.0 does not match 1.30.4",
            "1.9.0/: v1.10 is newer",
            "1.2.0/: v1.10 is newer",
        ],
    );
}

#[test]
fn unreadable_ranges_and_ties_are_warnings() {
    let rows = [
        ("1.0.0", "a", "", "^1"),
        ("v1", "b", "", ""),
        ("1.0.0+x", "c", "", ""),
    ];
    let warnings = run(&rows, &ANY, SelectionRules::Auto).warnings;
    assert_eq!(
        warnings,
        [
            "catalogue main: spec.addons[0].versions[0]: kubernetesVersion \"^1\" cannot be read: \"^1\" has the \
             unknown operator \"^\": kops knows <, <=, >, >=, =, ==, != and !",
            "a 1.0.0+x: 2 entries of this version fit; the last one is taken (catalogue main: \
             spec.addons[0].versions[2]); ask for an id, or give them different versions",
        ]
    );
}

#[test]
fn a_deprecated_version_is_chosen_only_where_no_other_fits() {
    let rows = [
        ("2.0.0", "", "", ""),
        ("1.9.0", "", "", ""),
        ("1.8.0", "", "", ""),
    ];
    let deprecation = || Deprecation {
        since: Some("2026-03-31".to_owned()),
        reason: "it loses data".to_owned(),
        successor: Some("b".to_owned()),
    };
    let why = "deprecated since 2026-03-31: it loses data; use b";
    for (deprecated, version, chosen, warned) in [
        (&[0][..], None, "1.9.0", false),
        (&[0, 1], None, "1.8.0", false),
        (&[0, 1, 2], None, "2.0.0", true),
        (&[0], Some("2"), "2.0.0", true),
    ] {
        let mut catalogue = catalogue(&rows);
        for index in deprecated {
            catalogue.entries[*index].deprecated = Some(deprecation());
        }
        let request = EntryRequest { version, ..ANY };
        let found = select(&catalogue, &request, &facts("1.30.4"), SelectionRules::Auto);
        assert_eq!(found.chosen.unwrap().version.version, chosen);
        let warning = warned.then(|| format!("a {chosen} is {why}"));
        assert_eq!(found.warnings, Vec::from_iter(warning));
        let reasons = found.rejections.iter().map(|one| one.reason.to_string());
        let told = reasons.filter(|reason| reason == why).count();
        assert_eq!(told, if warned { 0 } else { deprecated.len() });
    }
}

/// Semantics 11.
#[test]
fn of_equal_versions_the_later_entry_wins() {
    let (a, b) = (("1.0.0", "a", "", ""), ("v1", "b", "", ""));
    check(
        &[a, b],
        SelectionRules::Auto,
        (SelectionRules::Documented, "v1/b"),
        &["1.0.0/a: the later entry with id b wins"],
    );
    check(
        &[b, a],
        SelectionRules::Auto,
        (SelectionRules::Documented, "1.0.0/a"),
        &["v1/b: the later entry with id a wins"],
    );
    let twice = [("1.0.0", "", "g", ""), ("1.0.0", "", "h", "")];
    check(
        &twice,
        SelectionRules::Auto,
        (SelectionRules::Documented, "1.0.0/"),
        &["1.0.0/: a later entry wins"],
    );
    let chosen = run(&twice, &ANY, SelectionRules::Auto).chosen.unwrap();
    assert_eq!(chosen.version.manifest_hash.as_deref(), Some("h"));
}

#[test]
fn table_t4_merging_is_independent_of_order() {
    let (low, high) = (
        ("1.0.0", "k8s-1.18", "", ">=1.18.0"),
        ("1.0.1", "k8s-1.18", "", ">=1.18.0"),
    );
    for rows in [[low, high], [high, low]] {
        check(
            &rows,
            SelectionRules::Auto,
            (SelectionRules::Documented, "1.0.1/k8s-1.18"),
            &["1.0.0/k8s-1.18: 1.0.1 is newer"],
        );
    }
}

#[test]
fn by_the_channels_rules_the_later_entry_wins_where_id_or_hash_differ() {
    let rows = [
        ("2.0.0", "a", "h", ""),
        ("1.0.0", "b", "h", ""),
        ("3.0.0", "b", "h", ""),
    ];
    check(
        &rows,
        SelectionRules::Channels,
        (SelectionRules::Channels, "1.0.0/b"),
        &[
            "3.0.0/b: an earlier entry with the same id and hash wins",
            "2.0.0/a: the later entry with id b wins",
        ],
    );
    // Hand-written indexes without id and hash: the first one, always.
    let rows = [("1.1.0", "", "", ""), ("1.4.0", "", "", "")];
    check(
        &rows,
        SelectionRules::Channels,
        (SelectionRules::Channels, "1.1.0/"),
        &["1.4.0/: an earlier entry with the same id and hash wins"],
    );
}

#[test]
fn auto_reads_versions_only_where_an_entry_that_fits_has_one() {
    let plain = ("", "a", "h", "");
    check(
        &[plain],
        SelectionRules::Auto,
        (SelectionRules::Channels, "/a"),
        &[],
    );
    let misfit = ("1.0.0", "b", "", "<1.30.0");
    check(
        &[plain, misfit],
        SelectionRules::Auto,
        (SelectionRules::Channels, "/a"),
        &["1.0.0/b: kubernetesVersion <1.30.0 does not match 1.30.4"],
    );
    let versioned = ("0.0.1", "b", "", "");
    check(
        &[versioned, plain],
        SelectionRules::Auto,
        (SelectionRules::Documented, "0.0.1/b"),
        &["/a: 0.0.1 is newer"],
    );
    check(
        &[versioned, ("junk", "c", "", "")],
        SelectionRules::Auto,
        (SelectionRules::Documented, "0.0.1/b"),
        &["junk/c: 0.0.1 is newer"],
    );
}

#[test]
fn only_what_is_asked_for() {
    let rows = [
        ("1.0.0", "a", "", ""),
        ("1.0.0", "b", "", ""),
        ("1.1.0", "b", "", ""),
    ];
    let chosen = |request: EntryRequest<'_>| {
        let chosen = run(&rows, &request, SelectionRules::Auto).chosen?;
        Some(format!("{} {}", chosen.version.version, chosen.version.id))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        chosen(EntryRequest {
            version: Some("v1"),
            ..ANY
        }),
        some("1.0.0 b")
    );
    assert_eq!(
        chosen(EntryRequest {
            id: Some("a"),
            ..ANY
        }),
        some("1.0.0 a")
    );
    assert_eq!(
        chosen(EntryRequest {
            version: Some(""),
            catalogue: Some("main"),
            ..ANY
        }),
        some("1.1.0 b")
    );
    assert_eq!(
        chosen(EntryRequest {
            catalogue: Some("other"),
            ..ANY
        }),
        None
    );
    assert_eq!(chosen(EntryRequest { addon: "b", ..ANY }), None);
    let rejections = run(
        &rows,
        &EntryRequest {
            version: Some("1.1"),
            ..ANY
        },
        SelectionRules::Auto,
    )
    .rejections;
    assert_eq!(
        rejections[0].reason.to_string(),
        "another version was asked for"
    );
}

#[test]
fn where_nothing_fits_the_newest_entry_says_what_would() {
    let rows = [
        ("1.0.0", "", "", "<1.20.0"),
        ("2.0.0", "", "", ">=1.31.0"),
        ("3.0.0", "", "", "^2"),
    ];
    let selection = run(&rows, &ANY, SelectionRules::Auto);
    assert!(selection.chosen.is_none());
    let newest = selection.newest_misfit().unwrap();
    assert_eq!(newest.entry.version.version, "2.0.0");
    assert_eq!(
        newest.reason.to_string(),
        "kubernetesVersion >=1.31.0 does not match 1.30.4"
    );
}

/// Semantics 3: every written constraint must match. Empty constraints and unknown versions match. Pre-releases are dropped.
#[test]
fn constraints() {
    let version = |text| Some(Version::parse(text).unwrap());
    let known = ClusterVersions {
        kubernetes: version("1.30.0-rc.1"),
        kkp: version("2.31.0-beta.0"),
        profile: None,
    };
    let unknown = ClusterVersions::default();
    let some = |text: &str| Some(text.to_owned());
    let rows = [
        (None, None, None, "-", "-"),
        (some(""), some(" "), some(""), "-", "-"),
        (
            some(">=1.30.0"),
            some(">=1.30, <1.31"),
            some("~2.31"),
            "-",
            "-",
        ),
        (some(">=1.30.0"), some(">1.30"), None, "k8sVersion", "-"),
        (
            some(">1.30.0"),
            some(">=1.30"),
            None,
            "kubernetesVersion",
            "-",
        ),
        (None, None, some("<2.31"), "kkpVersion", "-"),
        (None, None, some("2.31 ||"), "kkpVersion", "kkpVersion"),
    ];
    for (kubernetes_version, k8s_version, kkp_version, with_facts, without) in rows {
        let constraints = Constraints {
            kubernetes_version,
            k8s_version,
            kkp_version,
            ..Constraints::default()
        };
        for (facts, expect) in [(&known, with_facts), (&unknown, without)] {
            let field = match find_misfit(&constraints, facts) {
                None => "-",
                Some(
                    RejectionReason::DoesNotMatch { field, .. }
                    | RejectionReason::UnreadableRange { field, .. },
                ) => field,
                Some(other) => panic!("{other}"),
            };
            assert_eq!(field, expect, "{constraints:?}");
        }
    }
}

#[test]
fn an_entry_whose_expression_does_not_hold_is_rejected_with_the_facts() {
    let with = |expression: &str| Constraints {
        expression: Some(expression.to_owned()),
        ..Constraints::default()
    };
    let known = Profile {
        labels: None,
        provider: Some("gcp".to_owned()),
        cni: None,
        node_labels: None,
        version: None,
        ..Profile::sample()
    };
    let facts = ClusterVersions {
        profile: Some(Arc::new(known)),
        ..facts("1.36.3")
    };
    for (expression, expected) in [
        ("provider == 'gcp' && 'amd64' in architectures", None),
        ("", None),
        ("version.startsWith('1.36')", None),
        (
            "provider == 'aws' || 'arm64' in architectures",
            Some(
                "constraints.expression provider == 'aws' || 'arm64' in architectures is false: architectures are amd64, provider is gcp",
            ),
        ),
        (
            "'Certificate.cert-manager.io' in kinds",
            Some("constraints.expression 'Certificate.cert-manager.io' in kinds is false"),
        ),
        (
            "cni == 'cilium'",
            Some(
                "constraints.expression cni == 'cilium' has no result: cni of this cluster is not known; ConfigMap \
                 addon-template-data states what cannot be read",
            ),
        ),
        (
            "'gpu' in nodeLabels",
            Some(
                "constraints.expression 'gpu' in nodeLabels has no result: nodeLabels of this cluster is not known; \
                 reading it needs the right to list nodes",
            ),
        ),
        (
            "region == 'eu'",
            Some(
                "constraints.expression region == 'eu' has no result: region is not a fact of clusters; ",
            ),
        ),
    ] {
        let misfit = find_misfit(&with(expression), &facts);
        assert!(misfit.iter().all(RejectionReason::is_misfit));
        let found = misfit.map(|it| it.to_string()).unwrap_or_default();
        assert_eq!(
            found.is_empty(),
            expected.is_none(),
            "{expression}: {found}"
        );
        assert!(
            found.starts_with(expected.unwrap_or_default()),
            "{expression}: {found}"
        );
        // Where no fact was read, every expression matches, as every range does.
        let unread = ClusterVersions::default();
        assert_eq!(find_misfit(&with(expression), &unread), None);
    }
}
