use serde_json::json;

use super::*;

/// An object with one annotation: its errors and warnings, as text.
fn of(annotation: &str, value: &str) -> (Vec<String>, Vec<String>) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "n", "annotations": {annotation: value, "helm.sh/hook": "pre-install"}}});
    let key = ObjectKey::from_object(&object).unwrap();
    let remarks = check_annotations(&key, &object);
    let errors = remarks.errors.iter().map(ToString::to_string);
    (errors.collect(), remarks.warnings)
}

#[test]
fn what_the_tool_refuses_is_refused() {
    let rows = [
        (
            "config.kubernetes.io/depends-on",
            "apps/Deployment",
            "names no object at \"apps/Deployment\": write GROUP/KIND/NAME",
        ),
        (
            "config.kubernetes.io/depends-on",
            "",
            "names no object at \"\"",
        ),
        (
            "config.kubernetes.io/depends-on",
            "/Namespace/n,",
            "names no object at \"\"",
        ),
        (
            "config.kubernetes.io/depends-on",
            "apps/ns/n/Deployment/w",
            "names no object",
        ),
        (
            "config.kubernetes.io/depends-on",
            "/namespaces/n/ConfigMap/a",
            "names the object itself",
        ),
        (
            "kapp.k14s.io/change-group",
            "",
            "is not a valid name of a change group",
        ),
        (
            "kapp.k14s.io/change-group",
            "Upper.test/x",
            "is not a valid name of a change group",
        ),
        (
            "kapp.k14s.io/change-group.2",
            "a b",
            "is not a valid name of a change group",
        ),
        (
            "kapp.k14s.io/change-group",
            "{pod}",
            "has the unknown placeholder {pod}",
        ),
        (
            "kapp.k14s.io/change-group",
            "{crd-kind}",
            "has the placeholder {crd-kind}, which the object does not have",
        ),
        (
            "kapp.k14s.io/change-rule",
            "upsert after upserting",
            "is not a valid change rule: write (upsert|delete)",
        ),
        (
            "kapp.k14s.io/change-rule",
            "upsert  after upserting x",
            "is not a valid change rule",
        ),
        (
            "kapp.k14s.io/change-rule.x",
            "update after upserting x",
            "is not a valid change rule",
        ),
        (
            "kapp.k14s.io/change-rule",
            "delete after deleting /",
            "has \"/\", which is not a valid name",
        ),
    ];
    for (annotation, value, problem) in rows {
        let (errors, warnings) = of(annotation, value);
        let expect = format!("annotation {annotation}: {value:?} {problem}");
        assert!(
            matches!(&errors[..], [error] if error.starts_with(&expect)),
            "{annotation} {value}: {errors:?}"
        );
        assert_eq!(warnings, [""; 0], "{annotation} {value}");
    }
}

#[test]
fn what_the_tool_overlooks_is_a_warning() {
    let rows = [
        (
            "argocd.argoproj.io/sync-wave",
            "one",
            "\"one\" is not a whole number and counts as 0",
        ),
        (
            "argocd.argoproj.io/sync-wave",
            " 1",
            "\" 1\" is not a whole number and counts as 0",
        ),
        (
            "helm.sh/hook-weight",
            "1.5",
            "\"1.5\" is not a whole number and counts as 0",
        ),
    ];
    for (annotation, value, problem) in rows {
        let (errors, warnings) = of(annotation, value);
        assert_eq!(errors, [""; 0]);
        assert_eq!(warnings, [format!("annotation {annotation}: {problem}")]);
    }
}

#[test]
fn what_is_well_formed_is_not_talked_about() {
    for (annotation, value) in [
        ("argocd.argoproj.io/sync-wave", "-10"),
        ("argocd.argoproj.io/hook", "Sync"),
        ("helm.sh/hook-weight", "5"),
        (
            "config.kubernetes.io/depends-on",
            "apps/namespaces/n/Deployment/w , /Namespace/n",
        ),
        ("kapp.k14s.io/change-group", "{kind}-{name}.{namespace}"),
        ("kapp.k14s.io/change-group.{}", "apps.e.test/etcd"),
        (
            "kapp.k14s.io/change-rule",
            "delete before upserting apps.e.test/etcd",
        ),
        ("kapp.k14s.io/change-ruler", "anything"),
    ] {
        assert_eq!(
            of(annotation, value),
            (vec![], vec![]),
            "{annotation} {value}"
        );
    }
}
