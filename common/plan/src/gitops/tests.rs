use serde_json::json;

use super::*;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn marks_name_what_applies_an_object() {
    for (labels, annotations, named) in [
        (map(&[]), map(&[]), &[][..]),
        (
            map(&[("app.kubernetes.io/instance", "web")]),
            map(&[(TRACKING_ID, "shop:apps/Deployment:shop/web")]),
            &["Argo CD application shop", "Argo CD application web"],
        ),
        (
            map(&[("argocd.argoproj.io/instance", "team_shop")]),
            map(&[(TRACKING_ID, "team_shop:/ConfigMap:shop/web")]),
            &["Argo CD application team/shop"],
        ),
        (
            map(&[
                ("app.kubernetes.io/instance", "web"),
                ("helm.toolkit.fluxcd.io/name", "web"),
                ("helm.toolkit.fluxcd.io/namespace", "flux"),
                ("kustomize.toolkit.fluxcd.io/name", "apps"),
                ("kustomize.toolkit.fluxcd.io/namespace", "flux"),
            ]),
            map(&[]),
            &[
                "Argo CD application web",
                "Flux Kustomization flux/apps",
                "Flux HelmRelease flux/web",
            ],
        ),
    ] {
        let found = GitOpsReconciler::from_marks(&labels, &annotations, ["argocd-controller"]);
        let words: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(words, named, "{labels:?}");
    }
}

/// Each chart of Helm sets the label that Argo CD once used.
#[test]
fn a_label_that_charts_set_names_no_application_by_itself() {
    let labels = BTreeMap::from([("app.kubernetes.io/instance".to_owned(), "web".to_owned())]);
    let annotated = |name: &str| BTreeMap::from([(name.to_owned(), "x".to_owned())]);
    let mut both = annotated(LAST_APPLIED);
    both.extend(annotated(HELM_NAME));
    for (annotations, manager, is_named) in [
        (BTreeMap::new(), "helm", false),
        (BTreeMap::new(), "argocd-controller", true),
        (BTreeMap::new(), "argocd-application-controller", true),
        (BTreeMap::new(), "kustomize-controller", false),
        (annotated(HELM_NAME), "helm", false),
        (annotated(LAST_APPLIED), "kubectl-client-side-apply", true),
        (both, "helm", false),
    ] {
        let found = GitOpsReconciler::from_marks(&labels, &annotations, [manager]);
        assert_eq!(!found.is_empty(), is_named, "{annotations:?} {manager}");
    }
}

/// A record with one field manager, and marks of all tools.
fn record(manager: &str, subresource: &str, fields: Value) -> AddonInstallation {
    let mut record = AddonInstallation::new("web", AddonInstallationSpec::default());
    let entry = json!({"manager": manager, "operation": "Apply", "subresource": subresource,
        "fieldsType": "FieldsV1", "fieldsV1": fields});
    let metadata = json!({
        "name": "web",
        "labels": {"app.kubernetes.io/instance": "web", "kustomize.toolkit.fluxcd.io/name": "apps",
            "kustomize.toolkit.fluxcd.io/namespace": "flux"},
        "annotations": {TRACKING_ID: "shop:kubectl-addons.dev/AddonInstallation:kubectl-addons/web"},
        "managedFields": [entry],
    });
    record.metadata = serde_json::from_value(metadata).unwrap();
    record
}

#[test]
fn the_manager_of_the_spec_says_which_mark_counts() {
    let spec = json!({"f:spec": {"f:addonRef": {"f:name": {}}}});
    for (manager, subresource, fields, by) in [
        (
            "argocd-controller",
            "",
            &spec,
            Some("Argo CD application shop"),
        ),
        (
            "argocd-application-controller",
            "",
            &spec,
            Some("Argo CD application shop"),
        ),
        (
            "kustomize-controller",
            "",
            &spec,
            Some("Flux Kustomization flux/apps"),
        ),
        // Its release is not named: the chart has lost its labels.
        ("helm-controller", "", &spec, Some("Flux")),
        ("kubectl-client-side-apply", "", &spec, None),
        ("kubectl-addons", "", &spec, None),
        ("argocd-controller", "status", &spec, None),
        (
            "argocd-controller",
            "",
            &json!({"f:metadata": {"f:labels": {}}}),
            None,
        ),
    ] {
        let owner = GitOpsOwner::from_record(&record(manager, subresource, fields.clone()));
        assert_eq!(owner.map(|owner| owner.by).as_deref(), by, "{manager}");
    }
}

#[test]
fn a_record_of_a_list_keeps_who_has_set_its_spec() {
    let spec = json!({"f:spec": {"f:addonRef": {"f:name": {}}}});
    let label = json!({"f:metadata": {"f:labels": {}}});
    let kept = |manager: &str, subresource: &str, fields: &Value| {
        let mut record = record(manager, subresource, fields.clone());
        let before = GitOpsOwner::from_record(&record);
        keep_spec_writers(record.metadata.managed_fields.as_mut().unwrap());
        assert_eq!(GitOpsOwner::from_record(&record), before, "{manager}");
        let managers = record.metadata.managed_fields.unwrap();
        let with_fields = |one: &ManagedFieldsEntry| one.fields_v1.is_some();
        managers.first().map(with_fields)
    };
    assert_eq!(kept("argocd-controller", "", &spec), Some(true));
    assert_eq!(kept("kubectl-addons", "", &spec), Some(false));
    assert_eq!(kept("kubectl-addons", "status", &spec), None);
    assert_eq!(kept("argocd-controller", "", &label), None);
}

#[test]
fn what_git_sets_is_told_from_what_it_leaves_to_others() {
    let fields = json!({"f:spec": {
        "f:addonRef": {"f:name": {}, "f:version": {}},
        "f:values": {".": {}, "f:spec": {"f:replicas": {}}, "f:list": {}},
        "f:valuesFrom": {},
    }});
    let owner = GitOpsOwner::from_record(&record("argocd-controller", "", fields)).unwrap();
    for (path, is_set) in [
        ("addonRef.version", true),
        ("addonRef.id", false),
        ("values.spec.replicas", true),
        ("values.spec.host", false),
        ("values.spec", true),
        ("values.list.0", true),
        ("valuesFrom", true),
        ("conflicts", false),
    ] {
        let parts: Vec<String> = path.split('.').map(str::to_owned).collect();
        assert_eq!(owner.sets(&parts), is_set, "{path}");
    }
}

/// Who creates an object by client-side apply also owns what the server fills in.
#[test]
fn what_client_side_apply_has_sent_is_what_git_sets() {
    let fields = json!({"f:spec": {".": {}, "f:addonRef": {"f:name": {}}, "f:conflicts": {}}});
    let mut record = record("argocd-controller", "", fields);
    let annotations = record.metadata.annotations.get_or_insert_default();
    let applied =
        json!({"spec": {"addonRef": {"name": "web"}, "values": {"spec": {"replicas": 1}}}});
    annotations.insert(LAST_APPLIED.to_owned(), applied.to_string());
    for (operation, path, is_set) in [
        ("Update", "addonRef.name", true),
        ("Update", "conflicts", false),
        ("Update", "values.spec.replicas", true),
        ("Update", "values.spec.host", false),
        ("Apply", "conflicts", true),
        ("Apply", "values.spec.replicas", false),
    ] {
        for entry in record.metadata.managed_fields.iter_mut().flatten() {
            entry.operation = Some(operation.to_owned());
        }
        let parts: Vec<String> = path.split('.').map(str::to_owned).collect();
        let owner = GitOpsOwner::from_record(&record).unwrap();
        assert_eq!(owner.sets(&parts), is_set, "{operation} {path}");
    }
}

#[test]
fn edits_are_named_by_their_paths() {
    let spec = |values: Value, suspend| AddonInstallationSpec {
        values: Some(values),
        suspend,
        ..AddonInstallationSpec::default()
    };
    let found = |from, to| -> Vec<String> {
        let found = diff_specs(&from, &to).into_iter();
        found.map(|path| path.join(".")).collect()
    };
    let before = json!({"a": 1, "b": {"c": [1, 2]}, "gone": true});
    let after = json!({"a": 1, "b": {"c": [1], "new": {}}});
    assert_eq!(
        found(spec(before.clone(), false), spec(after, true)),
        ["suspend", "values.b.c", "values.b.new", "values.gone"]
    );
    assert!(found(spec(before.clone(), true), spec(before, true)).is_empty());
}

/// Deleted as they are, they delete the objects.
#[test]
fn what_applies_an_object_is_suspended_by_its_own_field() {
    let flux = map(&[
        ("kustomize.toolkit.fluxcd.io/name", "apps"),
        ("kustomize.toolkit.fluxcd.io/namespace", "flux"),
    ]);
    let argo = map(&[(INSTANCE, "shop")]);
    for (labels, namespace, command) in [
        (
            flux,
            Some("flux"),
            r#"kubectl patch kustomization.kustomize.toolkit.fluxcd.io apps -n flux --type=merge -p '{"spec":{"suspend":true}}'"#,
        ),
        (
            argo,
            None,
            r#"kubectl patch application.argoproj.io shop -n NAMESPACE --type=merge -p '{"metadata":{"finalizers":null},"spec":{"syncPolicy":{"automated":null}}}'"#,
        ),
    ] {
        let named = GitOpsReconciler::from_marks(&labels, &BTreeMap::new(), []);
        let live = LiveReconciler {
            reconciler: named.into_iter().next().unwrap(),
            namespace: namespace.map(str::to_owned),
            is_seen: true,
        };
        assert_eq!(live.suspend_command(), command);
    }
}
