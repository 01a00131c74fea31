//! Semantics 14.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::NamespaceFacts;
use crate::fixtures::{core, core_installation, facts, installation, requester};
use common::api::names::ANNOTATION_RELEASED;

fn namespace(metadata: Value) -> GuardMarks {
    let mut all = json!({"name": "kubectl-addons", "labels": {LABEL_HOLDS_CORE: "true"}});
    for (key, value) in metadata.as_object().unwrap() {
        all[key] = value.clone();
    }
    GuardMarks {
        metadata: serde_json::from_value(all).unwrap(),
        ..GuardMarks::default()
    }
}

fn holding(names: &[&str]) -> AdmissionFacts {
    let mut facts = facts(vec![]);
    facts.installations = names
        .iter()
        .map(|name| Arc::new(core_installation(name).into()))
        .collect();
    let web = installation("kubectl-addons", "web", json!({"name": "web"}), json!({}));
    facts.installations.push(Arc::new(web.into()));
    facts
}

#[test]
fn a_namespace_that_holds_core_is_not_deleted_unless_its_cluster_is() {
    let deleting = json!({"annotations": {ANNOTATION_CLUSTER_DELETING: "true"}});
    let not_deleting = json!({"annotations": {ANNOTATION_CLUSTER_DELETING: "false"}});
    // Its objects are created in another namespace, which has no record.
    let of_core = |home: &str, more: Value| {
        let mut spec = more;
        spec["coreAddon"] = json!(true);
        installation(home, "coredns", json!({"name": "coredns"}), spec)
    };
    let into = |home: &str| {
        let mut facts = facts(vec![]);
        let object = of_core(home, json!({"targetNamespace": "other"}));
        facts.installations = vec![Arc::new(object.into())];
        facts
    };
    // One of its objects is in this namespace, and its target is another one.
    let with_object = |home: &str| {
        let mut facts = facts(vec![]);
        let mut object = of_core(home, json!({}));
        let group =
            json!({"version": "v1", "kind": "ConfigMap", "namespace": "other", "objects": []});
        object.status = serde_json::from_value(json!({"inventory": [group]})).unwrap();
        facts.installations = vec![Arc::new(object.into())];
        facts
    };
    let mut released = holding(&["coredns"]);
    let mut free = core_installation("coredns");
    free.metadata.annotations = Some([(ANNOTATION_RELEASED.to_owned(), MARKED.to_owned())].into());
    released.installations = vec![Arc::new(free.into())];
    let mut marked = holding(&["coredns"]);
    let facts_of = NamespaceFacts {
        cluster_deleting: true,
        ..NamespaceFacts::default()
    };
    marked
        .namespaces
        .insert("kubectl-addons".to_owned(), facts_of);
    for (old, facts, denied) in [
        (namespace(json!({})), holding(&["coredns"]), true),
        (namespace(json!({})), holding(&[]), false),
        (
            namespace(json!({"name": "other"})),
            holding(&["coredns"]),
            false,
        ),
        (
            namespace(json!({"name": "other"})),
            into("kubectl-addons"),
            true,
        ),
        // The target is a namespace of the other cluster.
        (namespace(json!({"name": "other"})), into("remote"), false),
        (
            namespace(json!({"name": "other"})),
            with_object("kubectl-addons"),
            true,
        ),
        (
            namespace(json!({"name": "other"})),
            with_object("remote"),
            false,
        ),
        (namespace(deleting), holding(&["coredns"]), false),
        (namespace(not_deleting), holding(&["coredns"]), true),
        (namespace(json!({})), marked, false),
        (namespace(json!({})), released, false),
    ] {
        assert_eq!(deletion(&old, &facts).is_some(), denied, "{old:?}");
    }
    assert_eq!(
        deletion(&namespace(json!({})), &holding(&["kube-proxy", "coredns"]))
            .unwrap()
            .to_string(),
        "namespace kubectl-addons holds 2 core add-ons of this cluster (coredns, kube-proxy); a member of the \
         core group releases them first: kubectl addons core release coredns kube-proxy -n kubectl-addons; or, if the cluster itself is being deleted: \
         kubectl annotate namespace kubectl-addons kubectl-addons.dev/cluster-deleting=true"
    );
}

#[test]
fn the_label_stays_while_it_is_true() {
    let held = namespace(json!({}));
    let bare = namespace(json!({"labels": {}}));
    let going = json!({"labels": {}, "deletionTimestamp": "2026-01-01T00:00:00Z"});
    let deleting =
        namespace(json!({"labels": {}, "annotations": {ANNOTATION_CLUSTER_DELETING: "true"}}));
    for (new, facts, who, denied) in [
        (&bare, holding(&["coredns"]), requester(&[]), true),
        (
            &namespace(json!({"labels": {LABEL_HOLDS_CORE: "x"}})),
            holding(&["coredns"]),
            requester(&[]),
            true,
        ),
        (&held, holding(&["coredns"]), requester(&[]), false),
        (&bare, holding(&[]), requester(&[]), false),
        (&bare, holding(&["coredns"]), core(), false),
        // A mark that the same request sets does not count yet.
        (&deleting, holding(&["coredns"]), requester(&[]), true),
        (
            &namespace(going),
            holding(&["coredns"]),
            requester(&[]),
            false,
        ),
    ] {
        assert_eq!(
            guarded_label(new, &held, &who, &facts).is_some(),
            denied,
            "{new:?}"
        );
    }
}

#[test]
fn labels_by_which_a_namespace_stands_for_a_cluster_stay_as_well() {
    for label in [LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET] {
        let old = namespace(json!({"labels": {label: "local"}}));
        for (new, denied) in [
            (json!({"labels": {}}), true),
            (json!({"labels": {label: "other"}}), true),
            (json!({"labels": {label: "local", "a": "b"}}), false),
        ] {
            let new = namespace(new);
            let facts = holding(&["coredns"]);
            let problem = guarded_label(&new, &old, &requester(&[]), &facts);
            assert_eq!(problem.is_some(), denied, "{new:?}");
        }
    }
}

#[test]
fn the_version_of_kkp_stays_while_a_namespace_holds_core() {
    let with = |version: &str| namespace(json!({"annotations": {ANNOTATION_KKP_VERSION: version}}));
    let bare = namespace(json!({}));
    for (new, old, facts, who, denied) in [
        (
            with("2.29"),
            with("2.28"),
            holding(&["coredns"]),
            requester(&[]),
            true,
        ),
        (
            with("2.29"),
            bare.clone(),
            holding(&["coredns"]),
            requester(&[]),
            true,
        ),
        (
            bare,
            with("2.28"),
            holding(&["coredns"]),
            requester(&[]),
            true,
        ),
        (
            with("2.28"),
            with("2.28"),
            holding(&["coredns"]),
            requester(&[]),
            false,
        ),
        (
            with("2.29"),
            with("2.28"),
            holding(&["coredns"]),
            core(),
            false,
        ),
        (
            with("2.29"),
            with("2.28"),
            holding(&[]),
            requester(&[]),
            false,
        ),
    ] {
        let problem = guarded_label(&new, &old, &who, &facts);
        assert_eq!(problem.is_some(), denied, "{new:?}");
    }
}

#[test]
fn only_the_core_group_marks_a_namespace_as_going_with_its_cluster() {
    let with =
        |value: &str| namespace(json!({"annotations": {ANNOTATION_CLUSTER_DELETING: value}}));
    let (bare, marked, other) = (namespace(json!({})), with("true"), with("false"));
    for (new, old, who, denied) in [
        (&marked, None, requester(&[]), true),
        (&marked, Some(&bare), requester(&[]), true),
        (&marked, Some(&other), requester(&["system:masters"]), true),
        (&marked, Some(&marked), requester(&[]), false),
        (&marked, Some(&bare), core(), false),
        (&other, Some(&bare), requester(&[]), false),
        (&bare, Some(&marked), requester(&[]), false),
    ] {
        let problem = deleting_mark(new, old, &who, &facts(vec![]));
        assert_eq!(problem.is_some(), denied, "{new:?}");
    }
}
