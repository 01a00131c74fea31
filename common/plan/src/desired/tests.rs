use super::*;
use common::api::names::{
    ANNOTATION_APPLY, ANNOTATION_INSTALLATION, APPLY_CREATE_ONLY, LABEL_OWNER, owner_hash,
};
use common::manifest::kinds::KindInfo;

fn kinds() -> KindTable {
    let mut kinds = KindTable::default();
    for (api_version, kind, plural, namespaced, writable) in [
        ("v1", "ConfigMap", "configmaps", true, true),
        ("v1", "Secret", "secrets", true, true),
        ("v1", "Namespace", "namespaces", false, true),
        ("apps/v1", "Deployment", "deployments", true, true),
        (
            "authentication.k8s.io/v1",
            "TokenReview",
            "tokenreviews",
            false,
            false,
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            false,
            true,
        ),
    ] {
        let info = KindInfo {
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            namespaced,
            writable,
            has_status: false,
        };
        kinds.insert(&Gvk::new(api_version, kind), info);
    }
    kinds
}

fn manifests(objects: impl IntoIterator<Item = Value>) -> Vec<Manifest> {
    let numbered = objects.into_iter().zip(1..);
    let manifests = numbered.map(|(object, line)| Manifest {
        object: Arc::new(object),
        place: FilePosition {
            file: "m.yaml".to_owned(),
            line,
            column: 0,
        },
    });
    manifests.collect()
}

fn desired(manifests: Vec<Manifest>) -> Result<Desired, DesiredError> {
    let installation = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "till".to_owned(),
    };
    Desired::new(
        manifests,
        &DesiredContext {
            installation: &installation,
            target_namespace: "shop",
            kinds: &kinds(),
            mask: &SecretMask::default(),
        },
    )
}

fn named(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

fn till_crd() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tills.shop.example"},
        "spec": {"group": "shop.example", "scope": "Cluster", "names": {"kind": "Till", "plural": "tills"},
            "versions": [{"name": "v1", "served": true}, {"name": "v1beta1", "served": false}]}})
}

#[test]
fn namespaces_and_marks() {
    let mut elsewhere = named("v1", "ConfigMap", "elsewhere");
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    let mut empty = named("v1", "ConfigMap", "empty");
    empty["metadata"]["namespace"] = json!("");
    empty["metadata"]["labels"] = json!({"app": "x"});
    let mut cluster = named("v1", "Namespace", "other");
    cluster["metadata"]["namespace"] = json!("kube-system");
    let desired = desired(manifests([elsewhere, empty, cluster])).unwrap();

    let keys: Vec<String> = desired.objects.keys().map(ToString::to_string).collect();
    assert_eq!(
        keys,
        [
            "kube-system/ConfigMap elsewhere",
            "shop/ConfigMap empty",
            "Namespace other"
        ]
    );
    for (key, wanted) in &desired.objects {
        assert_eq!(ObjectKey::from_object(&wanted.object).as_ref(), Some(key));
        let metadata = &wanted.object["metadata"];
        assert_eq!(
            metadata["labels"][LABEL_OWNER],
            json!(owner_hash("kubectl-addons", "till"))
        );
        assert_eq!(
            metadata["annotations"][ANNOTATION_INSTALLATION],
            json!("kubectl-addons/till")
        );
        assert_eq!(wanted.digest.len(), 20);
    }
    assert_eq!(
        desired.warnings,
        ["m.yaml:3: Namespace other is cluster-scoped: metadata.namespace kube-system is left out"]
    );
    assert_eq!(
        desired.namespaces(),
        BTreeSet::from(["kube-system", "shop"])
    );
}

#[test]
fn kinds_of_definitions_in_the_set() {
    let set = manifests([named("shop.example/v1", "Till", "front"), till_crd()]);
    assert_eq!(
        needed_kinds(&set),
        BTreeSet::from([(
            "apiextensions.k8s.io".to_owned(),
            "CustomResourceDefinition".to_owned()
        )])
    );
    let desired = desired(set).unwrap();
    let till = desired
        .objects
        .values()
        .find(|object| object.target.key.kind == "Till")
        .unwrap();
    assert_eq!(till.target.plural, "tills");
    assert_eq!(till.target.key.namespace, None, "scope Cluster");
}

/// A definition takes the place of what the cluster serves of its kind, unless it is only created.
#[test]
fn a_version_that_a_definition_of_the_set_stops_serving_is_not_served() {
    let mut kinds = kinds();
    let info = KindInfo {
        plural: "tills".to_owned(),
        singular: "till".to_owned(),
        namespaced: false,
        writable: true,
        has_status: false,
    };
    for kind in ["Till", "Cart"] {
        kinds.insert(&Gvk::new("shop.example/v1beta1", kind), info.clone());
    }
    let served = |crd: &Value| {
        let mut kinds = kinds.clone();
        kinds.apply_definition(crd);
        let has = |version: &str, kind: &str| {
            kinds
                .get(&Gvk::new(&format!("shop.example/{version}"), kind))
                .is_some()
        };
        [
            has("v1", "Till"),
            has("v1beta1", "Till"),
            has("v1beta1", "Cart"),
        ]
    };
    let mut crd = till_crd();
    assert_eq!(served(&crd), [true, false, true]);
    crd["metadata"]["annotations"] = json!({ANNOTATION_APPLY: APPLY_CREATE_ONLY});
    assert_eq!(served(&crd), [true, true, true]);
}

#[test]
fn secrets_and_create_only() {
    let mut once = named("v1", "ConfigMap", "once");
    once["metadata"]["annotations"] = json!({ANNOTATION_APPLY: APPLY_CREATE_ONLY});
    let mut not = named("v1", "ConfigMap", "not");
    not["metadata"]["annotations"] = json!({ANNOTATION_APPLY: "something"});
    let desired = desired(manifests([once, not, named("v1", "Secret", "key")])).unwrap();
    let facts: Vec<_> = desired
        .objects
        .values()
        .map(|o| {
            (
                o.target.key.name.as_str(),
                o.create_only,
                o.digest.is_empty(),
            )
        })
        .collect();
    assert_eq!(
        facts,
        [
            ("not", false, false),
            ("once", true, false),
            ("key", false, true)
        ]
    );
}

#[test]
fn every_problem_at_once() {
    let mut other = named("v1", "ConfigMap", "a");
    other["data"] = json!({"k": "v"});
    let set = manifests([
        named("v1", "ConfigMap", "a"),
        named("v1", "ConfigMap", "a"),
        other,
        named("extensions/v1beta1", "Ingress", "old"),
        named("apps/v1beta2", "Deployment", "old"),
        named("shop.example/v1beta1", "Till", "front"),
        named("cert-manager.io/v1", "Issuer", "ca"),
        named("authentication.k8s.io/v1", "TokenReview", "who"),
        json!({"kind": "ConfigMap"}),
        till_crd(),
    ]);
    let expected = [
        "m.yaml:3: shop/ConfigMap a is already at m.yaml:1, with other content; remove one of them",
        "m.yaml:4: Ingress old: the cluster does not serve Ingress in extensions/v1beta1; \
         choose a version of the add-on that fits this Kubernetes version",
        "m.yaml:5: Deployment old: the cluster does not serve Deployment in apps/v1beta2; it is served as apps/v1",
        "m.yaml:6: Till front: the cluster does not serve Till in shop.example/v1beta1; it is served as shop.example/v1",
        "m.yaml:7: Issuer ca: the cluster does not serve Issuer in cert-manager.io/v1; its CustomResourceDefinition is \
         neither in the cluster nor in the manifest: install the add-on that defines it first",
        "m.yaml:8: TokenReview who: a TokenReview is a question to the API server and cannot be installed; \
         take it out of the manifest",
        "m.yaml:9: an object needs apiVersion, kind and metadata.name",
    ];
    let mut reversed = set.clone();
    reversed.reverse();
    assert_eq!(desired(set).unwrap_err().to_string(), expected.join("\n"));
    assert_eq!(
        desired(reversed).unwrap_err().to_string(),
        expected.join("\n")
    );
}

#[test]
fn what_only_the_server_writes_is_left_out() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "status": {"phase": "x"}, "metadata": {
        "name": "copied", "uid": "u", "resourceVersion": "1", "creationTimestamp": null, "managedFields": [],
        "generation": 2, "labels": {"app": "x"}}});
    let desired = desired(manifests([object])).unwrap();
    let (_, copied) = desired.objects.first_key_value().unwrap();
    let metadata = copied.object["metadata"].as_object().unwrap();
    let fields: Vec<&str> = metadata.keys().map(String::as_str).collect();
    assert_eq!(fields, ["annotations", "labels", "name", "namespace"]);
    assert!(copied.object.get("status").is_none());
}
