//! Reviews of changes that were read from upgrades of well-known add-ons.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::conflicts::Policy;
use crate::{Action, Step, Target};
use common::api::names::InstallationName;

fn key(group: &str, kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: None,
        name: name.to_owned(),
    }
}

fn field(path: &str, old: Value, new: Value) -> FieldChange {
    let side = |value: Value| Some(value).filter(|value| !value.is_null());
    FieldChange {
        path: path.to_owned(),
        old: side(old),
        new: side(new),
        owners: Vec::new(),
    }
}

/// A plan that applies these objects, with their changed fields. An object without them is new.
fn plan(objects: Vec<(ObjectKey, Value, Option<Vec<FieldChange>>)>) -> InstallationPlan {
    let name = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "web".to_owned(),
    };
    let mut plan = InstallationPlan::nothing(name, "web");
    plan.verb = Verb::Upgrade;
    for (key, object, fields) in objects {
        plan.steps.push(Step {
            target: Target {
                key: key.clone(),
                version: "v1".to_owned(),
                plural: String::new(),
            },
            action: match fields {
                Some(_) => Action::Update,
                None => Action::Create,
            },
            object: Arc::new(object),
            uid: None,
            digest: String::new(),
            seen: None,
            policy: Policy::default(),
        });
        plan.changed_fields
            .extend(fields.map(|fields| (key, fields)));
    }
    plan
}

fn review(objects: Vec<(ObjectKey, Value, Option<Vec<FieldChange>>)>) -> Review {
    let plan = plan(objects);
    Review::new(&plan, &plan.changes())
}

const RBAC: &str = "rbac.authorization.k8s.io";

#[test]
fn rights_are_compared_as_sets_whatever_the_rules_they_are_in() {
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    for (what, old, new, gained, lost) in [
        (
            "two rules become one",
            json!([
                rule(&[""], &["pods"], &["get"]),
                rule(&[""], &["services"], &["get"])
            ]),
            json!([rule(&[""], &["services", "pods"], &["get"])]),
            vec![],
            vec![],
        ),
        (
            "a verb more and a resource less",
            json!([rule(&["apps"], &["deployments", "replicasets"], &["get"])]),
            json!([rule(&["apps"], &["deployments"], &["get", "patch"])]),
            vec!["patch on deployments.apps"],
            vec!["get on replicasets.apps"],
        ),
        (
            "what a wildcard included is not gained",
            json!([rule(&["*"], &["*"], &["*"])]),
            json!([rule(&[""], &["secrets"], &["get"])]),
            vec![],
            vec!["everything on *.*"],
        ),
        (
            "secrets come before pods",
            json!([]),
            json!([
                rule(&[""], &["pods"], &["get", "list"]),
                rule(&[""], &["secrets"], &["get"])
            ]),
            vec!["get on secrets", "get, list on pods"],
            vec![],
        ),
        (
            "only one name",
            json!([]),
            json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["tls"]}]),
            vec!["get on secrets (only tls)"],
            vec![],
        ),
        (
            "a name of what was allowed anyway",
            json!([rule(&[""], &["secrets"], &["get"])]),
            json!([rule(&[""], &["secrets"], &["get"]),
                   {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["tls"]}]),
            vec![],
            vec![],
        ),
        (
            "a path",
            json!([]),
            json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]),
            vec!["get on /metrics"],
            vec![],
        ),
    ] {
        let role = key(RBAC, "ClusterRole", "web");
        let review = review(vec![(
            role,
            json!({"rules": new}),
            Some(vec![field("rules", old, new.clone())]),
        )]);
        let texts = |grants: &[rights::Grant]| grants.iter().map(ToString::to_string).collect();
        let (found_gained, found_lost): (Vec<String>, Vec<String>) = match review.rights.as_slice()
        {
            [] => (Vec::new(), Vec::new()),
            [change, ..] => (texts(&change.gained), texts(&change.lost)),
        };
        assert_eq!(found_gained, gained, "{what}");
        assert_eq!(found_lost, lost, "{what}");
        assert!(review.configuration.is_empty(), "{what}");
    }
}

#[test]
fn subjects_that_get_and_lose_a_role() {
    let subject = |name: &str| json!({"kind": "ServiceAccount", "namespace": "shop", "name": name});
    let (old, new) = (
        json!([subject("a"), subject("b")]),
        json!([subject("c"), subject("b")]),
    );
    let object = json!({"roleRef": {"kind": "ClusterRole", "name": "admin"}, "subjects": new});
    let binding = key(RBAC, "RoleBinding", "web");
    let review = review(vec![(
        binding,
        object,
        Some(vec![field("subjects", old, new)]),
    )]);
    let [change] = review.rights.as_slice() else {
        panic!("{:?}", review.rights);
    };
    assert_eq!(change.bound_role.as_deref(), Some("ClusterRole admin"));
    assert_eq!(change.bound, ["ServiceAccount shop/c"]);
    assert_eq!(change.unbound, ["ServiceAccount shop/a"]);
}

#[test]
fn a_new_role_is_named_only_for_what_is_powerful() {
    let rules = json!([
        {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["list"]},
        {"apiGroups": ["example.test"], "resources": ["things"], "verbs": ["*"]},
    ]);
    let harmless = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let binding = |role: &str| {
        json!({"roleRef": {"kind": "ClusterRole", "name": role},
               "subjects": [{"kind": "User", "name": "jane"}]})
    };
    let review = review(vec![
        (key(RBAC, "ClusterRole", "a"), json!({"rules": rules}), None),
        (
            key(RBAC, "ClusterRole", "b"),
            json!({"rules": harmless}),
            None,
        ),
        (
            key(RBAC, "ClusterRoleBinding", "a"),
            binding("cluster-admin"),
            None,
        ),
        (key(RBAC, "ClusterRoleBinding", "b"), binding("view"), None),
    ]);
    let named: Vec<&str> = review
        .rights
        .iter()
        .map(|it| it.key.name.as_str())
        .collect();
    assert_eq!(named, ["a", "a"]);
    let [role, binding] = review.rights.as_slice() else {
        panic!("{:?}", review.rights);
    };
    assert_eq!(role.gained.len(), 1);
    assert_eq!(role.gained[0].to_string(), "list on secrets");
    assert_eq!(binding.bound, ["User jane"]);
}

#[test]
fn marks_are_counted_and_restart_pods_only_in_templates() {
    let version = "metadata.labels[\"app.kubernetes.io/version\"]";
    let chart = "metadata.labels[\"helm.sh/chart\"]";
    let checksum = "spec.template.metadata.annotations[\"checksum/config\"]";
    let marks = |paths: &[&str]| {
        let fields = paths.iter();
        Some(
            fields
                .map(|path| field(path, json!("1"), json!("2")))
                .collect(),
        )
    };
    let objects = vec![
        (
            key("", "ConfigMap", "marks"),
            json!({}),
            marks(&[version, chart]),
        ),
        (
            key("apps", "Deployment", "restarted"),
            json!({}),
            marks(&[version, checksum]),
        ),
        (
            key("", "ConfigMap", "owner"),
            json!({}),
            marks(&["metadata.labels.team"]),
        ),
        (key("", "ConfigMap", "same"), json!({}), Some(Vec::new())),
    ];
    let plan = plan(objects);
    let changes = plan.changes();
    let review = Review::new(&plan, &changes);
    assert_eq!(
        review.marks,
        MarkCount {
            fields: 4,
            objects: 2
        }
    );
    let [workload] = review.workloads.as_slice() else {
        panic!("{:?}", review.workloads);
    };
    assert!(workload.restarts && workload.fields.is_empty());
    let named: Vec<&str> = review
        .configuration
        .iter()
        .map(|it| it.key.name.as_str())
        .collect();
    assert_eq!(named, ["owner"]);
    let counts = crate::changes::Counts::of(&plan, &changes);
    assert_eq!(
        (counts.changed, counts.relabelled, counts.unchanged),
        (2, 1, 1)
    );
    assert!(counts.differs());
}

#[test]
fn labels_of_an_application_are_marks_except_in_pod_templates() {
    for (path, expected) in [
        ("metadata.labels[\"app.kubernetes.io/instance\"]", true),
        ("metadata.labels.version", true),
        ("metadata.labels.team", false),
        ("metadata.annotations[\"meta.helm.sh/release-name\"]", true),
        (
            "spec.template.metadata.labels[\"app.kubernetes.io/instance\"]",
            false,
        ),
        ("spec.template.metadata.labels.version", false),
        (
            "spec.template.metadata.annotations[\"checksum/config\"]",
            true,
        ),
        ("spec.selector.matchLabels.app", false),
        ("data.version", false),
    ] {
        assert_eq!(is_mark(path), expected, "{path}");
    }
}

#[test]
fn images_are_joined_over_the_objects_that_use_them() {
    let path = "spec.template.spec.containers[web].image";
    let deployment = |name: &str| key("apps", "Deployment", name);
    let image = || Some(vec![field(path, json!("web:1"), json!("web:2"))]);
    let pod = json!({"spec": {"template": {"spec": {"initContainers": [{"name": "init", "image": "init:1"}]}}}});
    let sidecar = field(
        "spec.template.spec.containers[log]",
        Value::Null,
        json!({"name": "log", "image": "log:1"}),
    );
    let review = review(vec![
        (deployment("a"), json!({}), image()),
        (deployment("b"), json!({}), image()),
        (deployment("c"), pod, None),
        (deployment("d"), json!({}), Some(vec![sidecar])),
    ]);
    let found: BTreeMap<(Option<&str>, Option<&str>), Vec<&str>> = review
        .images
        .iter()
        .map(|image| {
            let users = image.objects.iter().map(|key| key.name.as_str()).collect();
            ((image.old.as_deref(), image.new.as_deref()), users)
        })
        .collect();
    let expected = [
        ((Some("web:1"), Some("web:2")), vec!["a", "b"]),
        ((None, Some("init:1")), vec!["c"]),
        ((None, Some("log:1")), vec!["d"]),
    ];
    assert_eq!(found, BTreeMap::from(expected));
    // An image has its own line; the container that is new is a change of its object as well.
    let of = |name: &str| {
        let found = review.workloads.iter().find(|it| it.key.name == name);
        found.unwrap()
    };
    assert!(of("a").restarts && of("a").fields.is_empty());
    assert_eq!(of("d").fields.len(), 1);
}

#[test]
fn pods_of_on_delete_sets_stay() {
    let object = json!({"spec": {"updateStrategy": {"type": "OnDelete"}}});
    let change = field("spec.template.spec.hostPID", Value::Null, json!(true));
    let review = review(vec![(
        key("apps", "DaemonSet", "a"),
        object,
        Some(vec![change]),
    )]);
    assert!(!review.workloads[0].restarts);
}

#[test]
fn definitions_are_counted_by_fields_of_their_objects() {
    let definition = key(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "things.example.test",
    );
    let schema = "spec.versions[v1].schema.openAPIV3Schema";
    let fields = vec![
        field(
            &format!("{schema}.properties.spec.properties.new"),
            Value::Null,
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string"}}}}),
        ),
        field(
            &format!("{schema}.properties.spec.properties.old"),
            json!({"type": "string"}),
            Value::Null,
        ),
        field(
            &format!("{schema}.properties.spec.properties.size.maximum"),
            json!(3),
            json!(5),
        ),
        field(
            &format!("{schema}.properties.spec.description"),
            json!("a"),
            json!("b"),
        ),
        field("spec.versions[v2]", Value::Null, json!({"name": "v2"})),
        field(
            "metadata.annotations[\"controller-gen.kubebuilder.io/version\"]",
            json!("1"),
            json!("2"),
        ),
    ];
    let review = review(vec![(definition, json!({}), Some(fields))]);
    let [change] = review.definitions.as_slice() else {
        panic!("{:?}", review.definitions);
    };
    assert_eq!(
        (
            change.added,
            change.removed,
            change.altered,
            change.descriptions
        ),
        (3, 1, 1, 1)
    );
    assert_eq!(change.new_versions, ["v2"]);
    assert_eq!(
        change.describe(),
        "v2 new, 3 fields added, 1 field removed, 1 altered"
    );
    assert_eq!(review.marks.fields, 1);
    assert!(review.configuration.is_empty());
}

#[test]
fn fields_of_schemas() {
    for (path, expected) in [
        (
            "spec.versions[v1].schema.openAPIV3Schema.properties.spec.properties.steps.items.properties.delay",
            Some(("v1", "spec.steps[].delay", None)),
        ),
        (
            "spec.versions[v1].schema.openAPIV3Schema.properties.spec.properties.size.maximum",
            Some(("v1", "spec.size", Some("maximum"))),
        ),
        ("spec.versions[v1].served", None),
        ("spec.scope", None),
    ] {
        let found = definition::SchemaField::parse(path);
        let found = found.as_ref().map(|field| {
            (
                field.version.as_str(),
                field.field.as_str(),
                field.schema_keyword.as_deref(),
            )
        });
        assert_eq!(found, expected, "{path}");
    }
}
