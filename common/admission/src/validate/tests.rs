//! Whole requests, as the API server sends them.

use serde_json::{Value, json};

use super::*;
use crate::fixtures::{
    addon, catalogue as catalogue_named, core, core_catalogue, core_installation, facts,
    installation_json, requester, rules_of, source,
};
use common::api::names::{BREAK_GLASS_GROUP, CORE_GROUP, DISTRIBUTOR_GROUP, FINALIZER_CORE_GUARD};
use common::api::policy::AddonPolicy;

/// The verdict on a review of our group.
fn judged(
    kind: &str,
    operation: &str,
    groups: &[&str],
    new: &Value,
    old: &Value,
    facts: &AdmissionFacts,
) -> Verdict {
    let group = if kind == "Namespace" { "" } else { GROUP };
    let review = json!({"request": {
        "uid": "u", "operation": operation, "name": "", "namespace": "kubectl-addons",
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": "x"},
        "userInfo": {"username": "jane", "groups": groups},
        "object": new, "oldObject": old,
    }});
    let bytes = serde_json::to_vec(&review).unwrap();
    validate(&ReviewRequest::from_slice(&bytes).unwrap(), facts)
}

fn known() -> AdmissionFacts {
    let web = json!({"name": "web", "versions": [{
        "version": "1.0.0", "source": source(),
        "template": {"method": "helm", "formSpec": [
            {"internalName": "replicas", "type": "number"},
            {"internalName": "admin.password", "required": true}]},
    }]});
    facts(vec![
        catalogue_named("platform", json!([web, addon("plain", &["1.0.0"])])),
        core_catalogue("core", json!([addon("coredns", &["1.0.0"])])),
    ])
}

/// A policy with `Enforce`.
fn policy(mut spec: Value) -> Arc<AddonPolicy> {
    spec["action"] = json!("Enforce");
    let spec = serde_json::from_value(spec).unwrap();
    Arc::new(AddonPolicy::new("p", spec))
}

fn web(more: Value) -> Value {
    installation_json("kubectl-addons", "web", json!({"name": "web"}), more)
}

#[test]
fn a_label_that_enrols_a_namespace_needs_a_right_where_it_is_written() {
    let named = |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
    let local = json!({"kubectl-addons.dev/cluster": "local"});
    let other = json!({"kubectl-addons.dev/cluster": "other"});
    let more = json!({"kubectl-addons.dev/cluster": "local", "a": "b"});
    let secret = |name: &str| json!({"kubectl-addons.dev/kubeconfig-secret": name});
    let none = json!({});
    for (operation, new, old, enrolled) in [
        ("CREATE", &local, &none, true),
        ("CREATE", &secret("k"), &none, true),
        ("CREATE", &secret(""), &none, true),
        ("CREATE", &other, &none, false),
        ("UPDATE", &local, &other, true),
        ("UPDATE", &local, &none, true),
        ("UPDATE", &more, &local, false),
        ("UPDATE", &other, &local, false),
        ("UPDATE", &secret("l"), &secret("k"), true),
        ("UPDATE", &secret("k"), &secret("k"), false),
        ("UPDATE", &none, &secret("k"), false),
        ("DELETE", &none, &local, false),
    ] {
        for name in ["a", "kube-system", "kubectl-addons-reconciler"] {
            let old = match operation {
                "CREATE" => json!(null),
                _ => named(name, old.clone()),
            };
            let review = json!({"request": {
                "uid": "u", "operation": operation, "name": name, "namespace": name,
                "kind": {"group": "", "version": "v1", "kind": "Namespace"},
                "resource": {"group": "", "version": "v1", "resource": "namespaces"},
                "userInfo": {"username": "jane"}, "object": named(name, new.clone()), "oldObject": old,
            }});
            let bytes = serde_json::to_vec(&review).unwrap();
            let request = ReviewRequest::from_slice(&bytes).unwrap();
            for (is_entitled, denied) in [(false, enrolled), (true, enrolled && name != "a")] {
                let verdict = validate_enrolment(&request, is_entitled);
                let code = verdict.denial().map(|denial| denial.code);
                assert_eq!(
                    code,
                    denied.then_some(403),
                    "{operation} {name} {new} {old}"
                );
            }
        }
    }
}

/// A namespace is denied unless it certainly enrols nothing.
#[test]
fn a_namespace_that_cannot_be_read_is_not_enrolled() {
    for (new, old) in [
        (json!({"metadata": 7}), json!({"metadata": {"name": "a"}})),
        (json!({"metadata": {"name": "a"}}), json!({"metadata": 7})),
        (json!({"metadata": {"name": "a"}}), json!(null)),
    ] {
        let review = json!({"request": {
            "uid": "u", "operation": "UPDATE", "name": "a",
            "kind": {"group": "", "version": "v1", "kind": "Namespace"},
            "resource": {"group": "", "version": "v1", "resource": "namespaces"},
            "userInfo": {"username": "jane"}, "object": new, "oldObject": old,
        }});
        let bytes = serde_json::to_vec(&review).unwrap();
        let request = ReviewRequest::from_slice(&bytes).unwrap();
        assert!(
            validate_enrolment(&request, true).denial().is_some(),
            "{new} {old}"
        );
    }
}

#[test]
fn deletion_of_core_is_denied_by_the_old_object_alone() {
    let old = serde_json::to_value(core_installation("coredns")).unwrap();
    let facts = known();
    for (groups, denied) in [
        (&["system:masters"][..], true),
        (&["system:serviceaccounts:kube-system"][..], true),
        (&[CORE_GROUP][..], true),
        (&[BREAK_GLASS_GROUP][..], false),
    ] {
        let verdict = judged(
            "AddonInstallation",
            "DELETE",
            groups,
            &json!(null),
            &old,
            &facts,
        );
        assert_eq!(verdict.denial().is_some(), denied, "{groups:?}");
        assert_eq!(verdict.lifted.is_empty(), denied);
    }
    // An object that cannot be read is guarded, too.
    for old in [
        json!(null),
        json!({"metadata": 7}),
        json!({"metadata": {}, "spec": {"coreAddon": "yes"}}),
    ] {
        let verdict = judged(
            "AddonInstallation",
            "DELETE",
            &[],
            &json!(null),
            &old,
            &facts,
        );
        assert_eq!(verdict.denial().unwrap().code, 403, "{old}");
        assert!(
            judged(
                "AddonInstallation",
                "DELETE",
                &[BREAK_GLASS_GROUP],
                &json!(null),
                &old,
                &facts
            )
            .denial()
            .is_none()
        );
    }
}

#[test]
fn values_are_judged_by_the_form_and_never_quoted() {
    let facts = known();
    let secret = json!([{"secretKeyRef": {"name": "s", "key": "k"}}]);
    for (more, fields) in [
        (
            json!({"values": {"admin": {"password": "hunter2"}}}),
            vec![],
        ),
        (
            json!({"values": {"admin": {"password": "hunter2"}, "replicas": "three"}}),
            vec!["spec.values.replicas"],
        ),
        (
            json!({"values": {"admin": {"password": 7}}}),
            vec!["spec.values.admin.password"],
        ),
        (json!({}), vec!["spec.values.admin.password"]),
        (json!({"valuesFrom": secret}), vec![]),
        (
            json!({"valuesFrom": secret, "values": {"replicas": "three"}}),
            vec!["spec.values.replicas"],
        ),
    ] {
        let verdict = judged(
            "AddonInstallation",
            "CREATE",
            &[],
            &web(more.clone()),
            &json!(null),
            &facts,
        );
        let found: Vec<&str> = verdict
            .problems
            .iter()
            .map(|problem| problem.field.as_str())
            .collect();
        assert_eq!(found, fields, "{more}");
        let text = verdict
            .denial()
            .map(|denial| denial.message)
            .unwrap_or_default();
        assert!(
            !text.contains("hunter2") && !text.contains("three"),
            "{text}"
        );
    }
    let plain = installation_json(
        "kubectl-addons",
        "plain",
        json!({"name": "plain"}),
        json!({"values": {"a": 1}}),
    );
    let verdict = judged(
        "AddonInstallation",
        "CREATE",
        &[],
        &plain,
        &json!(null),
        &facts,
    );
    assert_eq!(rules_of(&verdict), ["values"]);
}

#[test]
fn references_and_values_are_judged_only_when_semantics_4_says() {
    let facts = known();
    // The reference cannot be resolved any more, as after the deletion of the catalogue.
    let lost = |metadata: Value, more: Value| {
        let mut object = installation_json("kubectl-addons", "lost", json!({"name": "lost"}), more);
        for (key, value) in metadata.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        object
    };
    let old = lost(json!({"finalizers": ["f"]}), json!({}));
    for (new, denied) in [
        (lost(json!({}), json!({})), false),
        (lost(json!({"labels": {"a": "b"}}), json!({})), false),
        (lost(json!({}), json!({"suspend": true})), false),
        (lost(json!({}), json!({"values": {"a": 1}})), true),
        (
            lost(
                json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
                json!({"values": {"a": 1}}),
            ),
            false,
        ),
    ] {
        let verdict = judged("AddonInstallation", "UPDATE", &[], &new, &old, &facts);
        assert_eq!(verdict.denial().is_some(), denied, "{new}");
    }
    let verdict = judged(
        "AddonInstallation",
        "CREATE",
        &[],
        &old,
        &json!(null),
        &facts,
    );
    assert_eq!(rules_of(&verdict), ["unknown-addon"]);
}

/// Every field except two, including fields that are added later.
#[test]
fn policies_judge_every_change_but_a_suspension_and_the_fate_of_objects() {
    let mut facts = known();
    facts.policies = vec![policy(json!({"installers": {"groups": ["ops"]}}))];
    let of = |more: Value| {
        let reference = json!({"name": "plain"});
        installation_json("kubectl-addons", "plain", reference, more)
    };
    let plain = of(json!({}));
    for (old, new, judged) in [
        (&plain, of(json!({"suspend": true})), false),
        (&plain, of(json!({"deletionPolicy": "Orphan"})), false),
        (&of(json!({"suspend": true})), plain.clone(), true),
        (
            &plain,
            of(json!({"registry": "registry.example.test"})),
            true,
        ),
        (&plain, of(json!({"serviceAccountName": "other"})), true),
        (&plain, of(json!({"conflicts": "Yield"})), true),
        (&plain, of(json!({"reconcile": "Ensure"})), true),
        (&plain, of(json!({"skipCRDs": true})), true),
        (&plain, of(json!({"createNamespace": false})), true),
        (&plain, of(json!({"targetNamespace": "shop"})), true),
        (&of(json!({"registry": "a.test"})), plain.clone(), true),
    ] {
        for groups in [&["devs"][..], &["ops"]] {
            let verdict = judged_as(groups, &new, old, &facts);
            let denied = judged && groups == ["devs"];
            let expected: &[&str] = if denied { &["policy-installer"] } else { &[] };
            assert_eq!(rules_of(&verdict), expected, "{old} {new}");
        }
    }
}

fn judged_as(groups: &[&str], new: &Value, old: &Value, facts: &AdmissionFacts) -> Verdict {
    judged("AddonInstallation", "UPDATE", groups, new, old, facts)
}

/// A registry can be changed while the catalogue does not exist. Only the policies check it then.
#[test]
fn what_does_not_change_is_not_denied_again() {
    let of =
        |more: Value| installation_json("kubectl-addons", "lost", json!({"name": "lost"}), more);
    let facts = known();
    let registry = of(json!({"registry": "registry.example.test"}));
    let verdict = judged_as(&[], &registry, &of(json!({})), &facts);
    assert_eq!(verdict, Verdict::default());
    let values = of(json!({"values": {"a": 1}}));
    let verdict = judged_as(&[], &values, &of(json!({})), &facts);
    assert_eq!(rules_of(&verdict), ["unknown-addon"]);
}

/// It is not known which of several versions is installed in another cluster. One possible version is enough.
#[test]
fn every_version_that_may_be_meant_is_judged() {
    let number = |version: &str, field: &str| {
        json!({"version": version, "source": source(), "template": {"method": "helm",
            "formSpec": [{"internalName": field, "type": "number"}]}})
    };
    let versions = json!([number("1.0.0", "a"), number("2.0.0", "b")]);
    let one = json!({"name": "one", "support": "Customer", "versions": versions});
    let mut facts = facts(vec![catalogue_named("c", json!([one]))]);
    let there = crate::NamespaceFacts {
        remote: true,
        ..Default::default()
    };
    facts.namespaces.insert("team".to_owned(), there);
    let rules = |values: Value, facts: &AdmissionFacts| -> Vec<String> {
        let more = json!({"values": values});
        let object = installation_json("team", "one", json!({"name": "one"}), more);
        let typed: AddonInstallation = serde_json::from_value(object).unwrap();
        let verdict = validate_installation(&typed, None, &requester(&[]), facts);
        let fields = verdict.problems.iter().map(|problem| problem.field.clone());
        fields.collect()
    };
    assert_eq!(rules(json!({"a": 1, "b": 1}), &facts), [""; 0]);
    assert_eq!(rules(json!({"a": 1, "b": "x"}), &facts), [""; 0]);
    assert_eq!(rules(json!({"a": "x", "b": 1}), &facts), [""; 0]);
    let both = rules(json!({"a": "x", "b": "x"}), &facts);
    assert_eq!(both, ["spec.values.b"], "those of the newest version");
    facts.policies = vec![policy(json!({"allowed": {"supportClasses": ["Optional"]}}))];
    assert_eq!(rules(json!({}), &facts), ["spec.addonRef.name"]);
}

#[test]
fn guards_hold_for_what_is_going_and_for_what_cannot_be_read() {
    let facts = known();
    let mut old = serde_json::to_value(core_installation("coredns")).unwrap();
    old["metadata"]["finalizers"] = json!([FINALIZER_CORE_GUARD]);
    old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    let verdict = judged("AddonInstallation", "UPDATE", &[], &new, &old, &facts);
    assert_eq!(rules_of(&verdict), ["guard-finalizer"]);
    assert!(
        judged(
            "AddonInstallation",
            "UPDATE",
            &[CORE_GROUP],
            &new,
            &old,
            &facts
        )
        .denial()
        .is_none()
    );
    // The same object of an unknown schema: guarded, and otherwise deletable.
    for object in [&mut old, &mut new] {
        object["spec"]["reconcile"] = json!("Sometimes");
    }
    let verdict = judged("AddonInstallation", "UPDATE", &[], &new, &old, &facts);
    assert_eq!(rules_of(&verdict), ["guard-finalizer"]);
    assert!(
        judged(
            "AddonInstallation",
            "UPDATE",
            &[CORE_GROUP],
            &new,
            &old,
            &facts
        )
        .denial()
        .is_none()
    );
    new["spec"]["suspend"] = json!(true);
    let verdict = judged(
        "AddonInstallation",
        "UPDATE",
        &[CORE_GROUP],
        &new,
        &old,
        &facts,
    );
    assert_eq!(rules_of(&verdict), ["unreadable"]);
}

#[test]
fn all_problems_of_a_catalogue_stand_in_one_denial() {
    let new = json!({
        "metadata": {"name": "custom", "namespace": "kubectl-addons"},
        "spec": {"addons": [
            addon("a", &["1.0.0", "v1"]),
            {"name": "b", "versions": [{"version": "1", "source": source(), "constraints": {"k8sVersion": ">="}}]},
            addon("plain", &["1"]),
            addon("coredns", &["7"]),
        ]},
    });
    let facts = known();
    let verdict = judged("AddonCatalogue", "CREATE", &[], &new, &json!(null), &facts);
    assert_eq!(
        rules_of(&verdict),
        ["constraint", "duplicate", "duplicate", "core-name"]
    );
    let denial = verdict.denial().unwrap();
    assert_eq!(denial.code, 422);
    assert!(
        denial.message.starts_with("4 problems: spec.addons[1]"),
        "{}",
        denial.message
    );
    // Metadata of an invalid object can be changed, and it can be deleted.
    let verdict = judged("AddonCatalogue", "UPDATE", &[], &new, &new, &facts);
    assert_eq!(verdict, Verdict::default());
    assert_eq!(
        judged("AddonCatalogue", "DELETE", &[], &json!(null), &new, &facts).denial(),
        None
    );
}

/// A foreign finalizer may block its deletion for ever.
#[test]
fn a_catalogue_that_is_being_deleted_is_judged_like_any_other() {
    let old = json!({
        "metadata": {"name": "custom", "namespace": "kubectl-addons", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"addons": [addon("plain-2", &["1.0.0"])]},
    });
    let mut new = old.clone();
    new["spec"] = json!({"class": "Core", "addons": [addon("coredns", &["99.0.0"])]});
    let facts = known();
    let verdict = judged("AddonCatalogue", "UPDATE", &[], &new, &old, &facts);
    assert_eq!(rules_of(&verdict), ["class-core"]);
}

#[test]
fn copies_are_outside_the_duplicate_rule() {
    let copy = json!({
        "metadata": {"name": "platform", "namespace": "cluster-1", "labels": {"kubectl-addons.dev/derived-from": "platform"}},
        "spec": {"addons": [addon("plain", &["1.0.0", "v1"])]},
    });
    let facts = known();
    let verdict = judged(
        "AddonCatalogue",
        "CREATE",
        &[DISTRIBUTOR_GROUP],
        &copy,
        &json!(null),
        &facts,
    );
    assert_eq!(verdict, Verdict::default());
    let verdict = judged("AddonCatalogue", "CREATE", &[], &copy, &json!(null), &facts);
    assert_eq!(rules_of(&verdict), ["derived-mark"]);
}

#[test]
fn typed_callers_get_the_same_words() {
    let facts = known();
    let raw = web(json!({"values": {"replicas": "three"}}));
    let typed: AddonInstallation = serde_json::from_value(raw.clone()).unwrap();
    assert_eq!(
        validate_installation(&typed, None, &requester(&[]), &facts),
        judged(
            "AddonInstallation",
            "CREATE",
            &[],
            &raw,
            &json!(null),
            &facts
        )
    );
    let class = core_catalogue("other", json!([addon("b", &["1"])]));
    assert_eq!(
        validate_catalogue(&class, None, &core(), &facts),
        Verdict::default()
    );
    assert_eq!(
        rules_of(&validate_catalogue_deletion(
            &class,
            &requester(&[]),
            &facts
        )),
        ["class-core"]
    );
}

#[test]
fn what_is_not_ours_is_allowed() {
    let facts = known();
    for kind in ["Pod", "AddonPolicy"] {
        assert_eq!(
            judged(kind, "DELETE", &[], &json!(null), &json!(null), &facts),
            Verdict::default()
        );
    }
    assert_eq!(
        judged(
            "Namespace",
            "CREATE",
            &[],
            &json!({"metadata": {}}),
            &json!(null),
            &facts
        ),
        Verdict::default()
    );
}
