use serde_json::json;

use super::change::{CoreChange, list_changes, restored_record};
use super::*;
use common::api::installation::core_guard::{add_guard, is_guarded, is_released, released_record};
use common::api::installation::{AddonInstallation, AddonInstallationSpec};
use common::api::names::FINALIZER_CORE_GUARD;

const RULES: &str = r#"
- {name: cilium, when: cni == "cilium", addons: [{name: cilium}]}
- {name: canal, when: cni == "canal", addons: [{name: canal}, {name: flannel-cleanup}]}
- {name: all, when: "true", addons: [{name: dns, version: 1.2.0}]}
"#;

fn with_cni(cni: &str) -> Profile {
    Profile {
        cni: Some(cni.to_owned()),
        ..Profile::sample()
    }
}

fn names(set: &CoreSet) -> Vec<&str> {
    set.addons.keys().map(String::as_str).collect()
}

fn record(name: &str, core: bool) -> AddonInstallation {
    let spec = AddonInstallationSpec {
        core_addon: core,
        ..AddonInstallationSpec::default()
    };
    let mut record = AddonInstallation::new(name, spec);
    if core {
        add_guard(&mut record);
    }
    record
}

#[test]
fn a_fact_flips_exactly_the_rules_that_read_it() {
    let document = CoreDocument::read(Some(RULES), Some("[{name: extra}]")).unwrap();
    for (cni, expected) in [
        ("cilium", &["cilium", "dns", "extra"][..]),
        ("canal", &["canal", "dns", "extra", "flannel-cleanup"]),
        ("calico", &["dns", "extra"]),
    ] {
        let set = CoreSet::from_decisions(&decide(&document, &with_cni(cni))).unwrap();
        assert_eq!(names(&set), expected, "{cni}");
        assert_eq!(
            set.addons["dns"].1,
            [CoreAddonSource::Rule("all".to_owned())]
        );
        assert_eq!(set.addons["extra"].1, [CoreAddonSource::Custom]);
        assert_eq!(set.unmet.contains("canal"), cni != "canal");
    }
}

#[test]
fn what_is_not_known_is_never_none() {
    let document = CoreDocument::read(Some(RULES), Some("[]")).unwrap();
    let profile = Profile {
        cni: None,
        ..Profile::sample()
    };
    let unknown = CoreSet::from_decisions(&decide(&document, &profile)).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "ConfigMap core-addon-rules: data[rules.yaml]: rule cilium: when: cni of this cluster is not known; ConfigMap \
         addon-template-data states what cannot be read"
    );
    for (rules, addons, expected) in [
        (
            None,
            Some("[]"),
            "ConfigMap core-addon-rules: data[rules.yaml]: it is missing or empty",
        ),
        (
            Some("[]"),
            None,
            "ConfigMap custom-core-addons: data[addons.yaml]: it is missing",
        ),
        (
            Some("[]"),
            Some("# nothing\n"),
            "ConfigMap custom-core-addons: data[addons.yaml]: it is missing",
        ),
        (
            Some("[]"),
            Some("name: a"),
            "data[addons.yaml]: it is not one list",
        ),
        (
            Some("[]"),
            Some("[{name: a}]\n---\n[]"),
            "data[addons.yaml]: it is not one list",
        ),
        (
            Some("[]"),
            Some("[{nam: a}]"),
            "data[addons.yaml][0]: unknown field `nam`",
        ),
        (
            Some("[]"),
            Some("[{name: a, version: 1.10}]"),
            "data[addons.yaml][0]: invalid type",
        ),
        (
            Some("[]"),
            Some("[{name: a}, {name: a}]"),
            "data[addons.yaml][1].name: a is listed twice",
        ),
        (
            Some("[]"),
            Some("[{name: 'a"),
            "data[addons.yaml], line 1: ",
        ),
        (
            Some("[{name: r, when: 'true', addons: [{name: ''}]}]"),
            Some("[]"),
            "[0].addons[0].name: it is empty",
        ),
        (
            Some("[{name: '', when: 'true', addons: []}]"),
            Some("[]"),
            "data[rules.yaml][0].name: \"\" is not",
        ),
    ] {
        let unknown = CoreDocument::read(rules, addons).unwrap_err().to_string();
        assert!(unknown.contains(expected), "{unknown}");
    }
    let none = CoreDocument::read(Some("[]"), Some("[]")).unwrap();
    assert_eq!(
        CoreSet::from_decisions(&decide(&none, &profile)),
        Ok(CoreSet::default())
    );
}

#[test]
fn all_conditions_together_are_bounded() {
    let rules = |count: usize| {
        let when = "labels.exists(a, labels.exists(b, a == b))";
        let rules: Vec<_> = (0..count)
            .map(|at| serde_json::json!({"name": at.to_string(), "when": when, "addons": []}))
            .collect();
        CoreDocument::read(Some(&serde_json::json!(rules).to_string()), Some("[]"))
    };
    assert!(rules(2).is_ok(), "{:?}", rules(2));
    let error = rules(100).unwrap_err().to_string();
    assert!(error.contains("steps, and 5000000 are allowed"), "{error}");
    let long = format!("[] # {}", "x".repeat(1 << 20));
    let error = CoreDocument::read(Some(&long), Some("[]")).unwrap_err();
    assert!(error.to_string().contains("1048576 are allowed"));
}

#[test]
fn two_that_want_different_things_of_an_addon_are_an_error() {
    let rules = "[{name: r, when: 'true', addons: [{name: dns, version: 1.0.0}]}]";
    let same = CoreDocument::read(Some(rules), Some("[{name: dns, version: 1.0.0}]")).unwrap();
    let set = CoreSet::from_decisions(&decide(&same, &Profile::sample())).unwrap();
    assert_eq!(set.addons["dns"].1.len(), 2);
    let other = CoreDocument::read(Some(rules), Some("[{name: dns}]")).unwrap();
    let unknown = CoreSet::from_decisions(&decide(&other, &Profile::sample())).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "core add-on dns: rule r and ConfigMap custom-core-addons differ in version, catalogue, digest or values"
    );
}

#[test]
fn records_follow_the_set() {
    let document = CoreDocument::read(Some(RULES), Some("[]")).unwrap();
    let set = CoreSet::from_decisions(&decide(&document, &with_cni("cilium"))).unwrap();
    let (dns, canal) = (record("dns", true), record("canal", true));
    let (taken, other) = (record("cilium", false), record("shop", false));
    let mut by_hand = record("by-hand", true);
    by_hand.metadata.finalizers = None;
    let mut suspended = record("suspended", true);
    suspended.spec.suspend = true;
    let found = list_changes(&set, &[&dns, &canal, &taken, &other, &by_hand, &suspended]);
    let [
        CoreChange::Taken { record: not_ours },
        CoreChange::Keep { record: kept, .. },
        CoreChange::Release {
            record: dropped,
            is_unmet: true,
        },
    ] = found.as_slice()
    else {
        panic!("{found:?}");
    };
    let names = [not_ours, kept, dropped].map(|record| record.metadata.name.as_deref());
    assert_eq!(names, [Some("cilium"), Some("dns"), Some("canal")]);
    assert_eq!(list_changes(&set, &[]).len(), 2, "both are created");
    // No rule has it any more: that is what those say who write rules.
    let (gone, none) = (record("gone", true), CoreSet::default());
    for (set, expected) in [(&set, &gone), (&none, &canal)] {
        let found = list_changes(set, &[expected]);
        let released = found.iter().find_map(|change| match change {
            CoreChange::Release { record, is_unmet } => Some((*record, *is_unmet)),
            _ => None,
        });
        assert_eq!(released, Some((expected, false)));
    }
}

#[test]
fn what_was_edited_is_restored() {
    let wanted = record("dns", true);
    let mut stored = wanted.clone();
    stored.spec.target_namespace = Some("kube-system".to_owned());
    stored.spec.service_account_name = Some("deployer".to_owned());
    assert_eq!(restored_record(&stored, &wanted), None);
    let mut edited = stored.clone();
    edited.metadata.finalizers = None;
    edited.spec.values = Some(json!({"replicas": 0}));
    edited = released_record(&edited).unwrap();
    assert_eq!(released_record(&edited), None);
    let again = restored_record(&edited, &wanted).unwrap();
    assert_eq!(again.spec, stored.spec);
    assert_eq!(
        again.metadata.finalizers,
        Some(vec![FINALIZER_CORE_GUARD.to_owned()])
    );
    assert!(!is_released(&again) && is_guarded(&again));
    edited.spec.suspend = true;
    assert_eq!(
        restored_record(&edited, &wanted),
        None,
        "a person suspended it"
    );
}

#[test]
fn the_waves_of_a_change_are_read_strictly() {
    use super::document::read_rollout;
    use super::rollout::{CoreRollout, DEFAULT};
    use crate::fleet::RolloutSettings;
    use std::time::Duration;

    assert_eq!(read_rollout(None), Ok(DEFAULT));
    assert_eq!(read_rollout(Some(" ")), Ok(DEFAULT));
    let written =
        "{canary: 2, first: [b, a], maxUnavailable: 25%, soak: 1m30s, deadline: 2h, failures: 0}";
    let expected = CoreRollout {
        rollout: RolloutSettings {
            canaries: 2,
            max_unavailable: "25%".parse().ok(),
            soak: Duration::from_secs(90),
        },
        first: vec!["b".to_owned(), "a".to_owned()],
        deadline: Duration::from_secs(7200),
        failures: 0,
    };
    assert_eq!(read_rollout(Some(written)), Ok(expected));
    let read = read_rollout(Some("maxUnavailable: 3")).unwrap();
    assert_eq!(read.rollout.max_unavailable, "3".parse().ok());
    for (text, problem) in [
        ("[]", "data[rollout]: it is not one map"),
        ("canaries: 1", "data[rollout]: unknown field `canaries`"),
        ("maxUnavailable: 0", "data[rollout].maxUnavailable: it is"),
        ("soak: 5", "data[rollout]: invalid type"),
        ("soak: -5m", "data[rollout].soak: \"-5m\" is not a duration"),
        (
            "soak: soon",
            "data[rollout].soak: \"soon\" is not a duration",
        ),
        (
            "deadline: late",
            "data[rollout].deadline: \"late\" is not a duration",
        ),
        (
            "canary: 1\n---\ncanary: 2",
            "data[rollout]: it is not one map",
        ),
    ] {
        let error = read_rollout(Some(text)).unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}

#[test]
fn the_list_is_for_the_clusters_that_it_means() {
    let list = r#"
- {name: every}
- {name: prod, clusters: {env: prod}}
- {name: here, clusters: {kubernetes.io/metadata.name: kubectl-addons}}
"#;
    let document = CoreDocument::read(Some("[]"), Some(list)).unwrap();
    let home = ("kubernetes.io/metadata.name", "kubectl-addons");
    for (is_home, label, expected) in [
        (false, ("env", "prod"), &["every", "prod"][..]),
        (false, ("env", "lab"), &["every"]),
        // Of the cluster with the list, only what names it.
        (true, home, &["here"]),
    ] {
        let profile = Profile {
            is_home,
            labels: Some([(label.0.to_owned(), label.1.to_owned())].into()),
            ..Profile::sample()
        };
        let set = CoreSet::from_decisions(&decide(&document, &profile)).unwrap();
        assert_eq!(names(&set), expected, "{label:?}");
        // What is listed for others is not released by itself where it was installed before.
        assert_eq!(set.unmet.contains("every"), is_home);
    }
    for (list, problem) in [
        ("[{name: a, clusters: {}}]", "[0].clusters: it is empty"),
        ("[{name: a, clusters: prod}]", "[0].clusters: invalid type"),
        ("[{name: a, cluster: {}}]", "[0]: unknown field `cluster`"),
    ] {
        let error = CoreDocument::read(Some("[]"), Some(list)).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}
