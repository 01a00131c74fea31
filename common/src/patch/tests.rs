//! Tables of patches: what each of them makes of an object, and why it is refused.

use serde_json::json;

use super::*;
use crate::api::installation::PatchTarget;

fn manifests(objects: &[Value]) -> Vec<Manifest> {
    let objects = objects.iter();
    let manifests = objects.map(|object| Manifest {
        object: Arc::new(object.clone()),
        place: Default::default(),
    });
    manifests.collect()
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}, "finalizers": ["a.b/c"]},
        "spec": {"replicas": 1, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}, "template": {"spec": {
            "containers": [
                {"name": "main", "image": "web:1", "args": ["a", "b"], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                 "ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}, {"containerPort": 80}]},
                {"name": "side", "image": "side:1"},
            ],
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
        }}},
    })
}

fn custom() -> Value {
    json!({"apiVersion": "a.example/v1", "kind": "Till", "metadata": {"name": "till", "namespace": "other"},
        "spec": {"list": [{"name": "a"}, {"name": "b"}], "map": {"x": 1, "y": 2}}})
}

fn objects() -> Vec<Value> {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "web"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "annotations": {"a.b/kind": "tls"}}, "data": {"k": "czNjcmV0"}});
    vec![deployment(), custom(), role, secret]
}

/// A strategic merge patch of the Deployment's pod.
fn pod(spec: &str) -> ObjectPatch {
    ObjectPatch {
        target: None,
        patch: format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {{template: {{spec: {spec}}}}}\n"
        ),
    }
}

fn targeted(target: Value, patch: &str) -> ObjectPatch {
    ObjectPatch {
        target: serde_json::from_value(target).unwrap(),
        patch: patch.to_owned(),
    }
}

/// Applies patches to [`objects`].
fn apply(patches: &[ObjectPatch]) -> Result<(Vec<Value>, Vec<PatchedObject>), String> {
    let mut all = manifests(&objects());
    let compiled = Patches::compile(patches).map_err(|error| error.to_string())?;
    let patched = compiled.apply(&mut all, "shop");
    let patched = patched.map_err(|error| error.to_string())?;
    let objects = all.iter().map(|one| Value::clone(&one.object));
    Ok((objects.collect(), patched))
}

#[track_caller]
fn patched(patch: ObjectPatch) -> Value {
    let (objects, _) = apply(&[patch]).unwrap();
    objects.into_iter().next().unwrap()
}

#[test]
fn lists_of_pods_are_merged_by_their_keys() {
    for (patch, path, expected) in [
        (
            "{containers: [{name: side, image: 'side:2'}]}",
            "/containers/0",
            json!({"name": "side", "image": "side:2"}),
        ),
        // The items of the patch come first.
        (
            "{containers: [{name: new, image: n}]}",
            "/containers/0/name",
            json!("new"),
        ),
        (
            "{containers: [{name: new, image: n}]}",
            "/containers/1/name",
            json!("main"),
        ),
        (
            "{containers: [{name: new, image: n}], $setElementOrder/containers: [{name: main}, {name: side}, {name: new}]}",
            "/containers/2/name",
            json!("new"),
        ),
        (
            "{containers: [{name: side, $patch: delete}]}",
            "/containers/1",
            Value::Null,
        ),
        (
            "{containers: [{name: side, $patch: replace, image: x}]}",
            "/containers/0",
            json!({"name": "side", "image": "x"}),
        ),
        (
            "{containers: [{name: only, image: o}, {$patch: replace}]}",
            "/containers",
            json!([{"name": "only", "image": "o"}]),
        ),
        ("{volumes: [{$patch: delete}]}", "/volumes", Value::Null),
        (
            "{containers: [{name: main, env: [{name: B, value: '3'}, {name: C}]}]}",
            "/containers/0/env",
            json!([{"name": "B", "value": "3"}, {"name": "C"}, {"name": "A", "value": "1"}]),
        ),
        (
            "{containers: [{name: main, image: null}]}",
            "/containers/0/image",
            Value::Null,
        ),
        // A list of scalars, and one without a merge key.
        (
            "{containers: [{name: main, args: [c]}]}",
            "/containers/0/args",
            json!(["c"]),
        ),
        (
            "{containers: [{name: main, $deleteFromPrimitiveList/args: [a]}]}",
            "/containers/0/args",
            json!(["b"]),
        ),
        (
            "{tolerations: [{key: b}]}",
            "/tolerations",
            json!([{"key": "b"}]),
        ),
        (
            "{volumes: [{name: data, $retainKeys: [name, hostPath], hostPath: {path: /x}}]}",
            "/volumes",
            json!([{"name": "data", "hostPath": {"path": "/x"}}]),
        ),
        (
            "{containers: [{name: main, ports: [{containerPort: 53, protocol: UDP, name: dns}]}]}",
            "/containers/0/ports/0",
            json!({"containerPort": 53, "protocol": "UDP", "name": "dns"}),
        ),
        // A port without a protocol is the same as the one with it.
        (
            "{containers: [{name: main, ports: [{containerPort: 80, protocol: TCP}]}]}",
            "/containers/0/ports/0",
            json!({"containerPort": 80, "protocol": "TCP"}),
        ),
        (
            "{containers: [{name: main, ports: [{containerPort: 80, protocol: TCP}]}]}",
            "/containers/0/ports/3",
            Value::Null,
        ),
    ] {
        let object = patched(pod(patch));
        let spec = &object["spec"]["template"]["spec"];
        let found = spec.pointer(path).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{patch}");
    }
}

#[test]
fn maps_are_merged_and_directives_apply() {
    let of = |patch: &str| patched(targeted(json!({"kind": "Deployment"}), patch));
    for (patch, path, expected) in [
        ("spec: {replicas: 3}", "/spec/replicas", json!(3)),
        ("spec: {replicas: null}", "/spec/replicas", Value::Null),
        (
            "spec: {strategy: {$retainKeys: [type], type: Recreate}}",
            "/spec/strategy",
            json!({"type": "Recreate"}),
        ),
        (
            "spec: {strategy: {$patch: replace, type: Recreate}}",
            "/spec/strategy",
            json!({"type": "Recreate"}),
        ),
        (
            "spec: {strategy: {$patch: delete}}",
            "/spec/strategy",
            Value::Null,
        ),
        (
            "metadata: {labels: {tier: front}}",
            "/metadata/labels",
            json!({"app": "web", "tier": "front"}),
        ),
        (
            "metadata: {finalizers: [d.e/f]}",
            "/metadata/finalizers",
            json!(["d.e/f", "a.b/c"]),
        ),
        (
            "spec: {new: {a: null, b: {c: 1}}}",
            "/spec/new",
            json!({"b": {"c": 1}}),
        ),
        // The name in a patch with a target is not compared, as in kustomize.
        (
            "{apiVersion: v1, kind: X, metadata: {name: any, namespace: x}}",
            "/metadata/name",
            json!("web"),
        ),
        ("{kind: X, metadata: null}", "/kind", json!("Deployment")),
        (
            "{$patch: replace, spec: {}}",
            "",
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}}),
        ),
    ] {
        let found = of(patch).pointer(path).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{patch}");
    }
}

#[test]
fn of_custom_resources_lists_are_replaced() {
    let patch = "spec: {list: [{name: c}], map: {x: null, z: {$patch: replace, w: 1}}}";
    let (objects, _) = apply(&[targeted(json!({"kind": "Till"}), patch)]).unwrap();
    let expected = json!({"list": [{"name": "c"}], "map": {"y": 2, "z": {"w": 1}}});
    assert_eq!(objects[1]["spec"], expected);
}

#[test]
fn operations_are_those_of_json_6902() {
    let of = |patch: &str| {
        patched(targeted(
            json!({"name": "web", "kind": "Deployment"}),
            patch,
        ))
    };
    for (patch, path, expected) in [
        (
            "[{op: add, path: /spec/template/spec/tolerations/-, value: {key: b}}]",
            "/spec/template/spec/tolerations",
            json!([{"key": "a", "operator": "Exists"}, {"key": "b"}]),
        ),
        (
            "- op: test\n  path: /spec/replicas\n  value: 1\n- op: replace\n  path: /spec/replicas\n  value: 2\n",
            "/spec/replicas",
            json!(2),
        ),
        (
            "[{op: remove, path: /spec/strategy}]",
            "/spec/strategy",
            Value::Null,
        ),
        (
            "[{op: move, from: /spec/replicas, path: /spec/min}]",
            "/spec/min",
            json!(1),
        ),
        (
            "[{op: copy, from: /metadata/labels/app, path: /metadata/labels/a~1b}]",
            "/metadata/labels",
            json!({"app": "web", "a/b": "web"}),
        ),
    ] {
        let found = of(patch).pointer(path).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{patch}");
    }
}

#[test]
fn targets_are_those_of_kustomize() {
    for (target, expected) in [
        (json!({}), vec!["web", "till", "web", "key"]),
        (json!({"kind": "Deployment"}), vec!["web"]),
        (json!({"kind": "Deploy"}), vec![]),
        (json!({"kind": "Deploy.*|Secret"}), vec!["web", "key"]),
        (json!({"group": "apps", "version": "v1"}), vec!["web"]),
        (json!({"group": "a.example"}), vec!["till"]),
        (json!({"name": "w.*"}), vec!["web", "web"]),
        (json!({"namespace": "other"}), vec!["till"]),
        (json!({"namespace": "shop", "kind": "Secret"}), vec!["key"]),
        (json!({"labelSelector": "app in (web)"}), vec!["web"]),
        (json!({"annotationSelector": "a.b/kind=tls"}), vec!["key"]),
    ] {
        let patch = "metadata: {labels: {new: x}}";
        let found = apply(&[targeted(target.clone(), patch)]);
        let names = found.map(|(_, patched)| {
            let names = patched.into_iter().map(|one| one.object.name);
            names.collect::<Vec<_>>()
        });
        assert_eq!(names.unwrap_or_default(), expected, "{target}");
    }
}

#[test]
fn each_patch_says_what_it_changed() {
    let (objects, patched) = apply(&[
        pod("{tolerations: [{key: b}, {key: c}], containers: [{name: main, image: 'web:2'}]}"),
        targeted(
            json!({"kind": "Secret"}),
            "{data: {k: eA==}, metadata: {annotations: {a.b/kind: x}}}",
        ),
        targeted(json!({"kind": "ClusterRole"}), "$patch: delete"),
        targeted(json!({"kind": "Till"}), "{}"),
    ])
    .unwrap();
    assert_eq!(objects.len(), 3);
    let found: Vec<_> = patched
        .iter()
        .map(|one| {
            (
                one.patch,
                one.object.to_string(),
                one.fields.join(" "),
                one.deleted,
                one.warn_secret().is_some(),
            )
        })
        .collect();
    let row = |patch, object: &str, fields: &str, deleted, shows| {
        (patch, object.to_owned(), fields.to_owned(), deleted, shows)
    };
    assert_eq!(
        found,
        [
            row(
                0,
                "Deployment web",
                "spec.template.spec.containers[0].image spec.template.spec.tolerations",
                false,
                false
            ),
            row(
                1,
                "Secret key",
                "data.k metadata.annotations[a.b/kind]",
                false,
                true
            ),
            row(2, "ClusterRole web", "", true, false),
            row(3, "other/Till till", "", false, false),
        ]
    );
}

#[test]
fn an_error_names_its_place_and_no_value() {
    let web = || json!({"name": "web", "kind": "Deployment"});
    let deep = format!("[{}]", "{op: move, from: /spec/template, path: /spec/a}, {op: add, path: /spec/template, value: {}}, {op: move, from: /spec/a, path: /spec/template/a},".repeat(130));
    for (patch, expected) in [
        (
            targeted(json!({"kind": "Deployment", "name": "wbe"}), "{}"),
            "the installation's spec.patches[0].target: no object matches kind=Deployment, name=wbe; nearest: Deployment web",
        ),
        (
            targeted(
                json!({"kind": "Deploymnet", "labelSelector": "app=x"}),
                "{}",
            ),
            "the installation's spec.patches[0].target: no object matches kind=Deploymnet, labelSelector=app=x; nearest: Deployment web",
        ),
        (
            targeted(json!({"name": "nothing-of-this"}), "{}"),
            "the installation's spec.patches[0].target: no object matches name=nothing-of-this; nearest: Deployment web, other/Till till, ClusterRole web",
        ),
        (
            ObjectPatch {
                target: None,
                patch: "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: web}}"
                    .to_owned(),
            },
            "the installation's spec.patches[0].patch: no object matches group=apps, version=v1beta1, kind=Deployment, name=web; nearest: Deployment web",
        ),
        (
            targeted(web(), "- {op: test, path: /spec/replicas, value: s3cret}"),
            "the installation's spec.patches[0]: Deployment web: operation 1 (test /spec/replicas): the value is another one",
        ),
        (
            targeted(
                web(),
                "- {op: add, path: /spec/a, value: 1}\n- {op: add, path: /spec/nodes/-, value: s3cret}",
            ),
            "the installation's spec.patches[0]: Deployment web: operation 2 (add /spec/nodes/-): the path does not exist in the object",
        ),
        (
            targeted(web(), "- {op: move, path: /spec/x, from: /spec/y}"),
            "the installation's spec.patches[0]: Deployment web: operation 1 (move /spec/x): its from does not exist in the object",
        ),
        (
            targeted(
                web(),
                "- {op: replace, path: /metadata/name, value: s3cret}",
            ),
            "the installation's spec.patches[0]: Deployment web: it changes metadata.name, and a patch must not turn an object into another one",
        ),
        (
            targeted(
                web(),
                "- {op: add, path: /metadata/namespace, value: kube-system}",
            ),
            "the installation's spec.patches[0]: Deployment web: it changes metadata.namespace, and a patch must not turn an object into another one",
        ),
        (
            targeted(web(), "- {op: set, path: /a, value: s3cret}"),
            "the installation's spec.patches[0].patch: operation 1 is not one of JSON 6902: it has an op (add, remove, replace, move, copy or test), a path, and \
             a value or a from where the op needs one",
        ),
        (
            ObjectPatch {
                target: None,
                patch: "[{op: remove, path: /a}]".to_owned(),
            },
            "the installation's spec.patches[0].patch: JSON 6902 operations name no object: add a target",
        ),
        (
            ObjectPatch {
                target: None,
                patch: "{kind: Deployment}".to_owned(),
            },
            "the installation's spec.patches[0].patch: without a target, a patch names its object with apiVersion, kind and metadata.name",
        ),
        (
            targeted(web(), "a: [s3cret"),
            "the installation's spec.patches[0].patch: line 1, column 4: cannot be read as YAML: unclosed bracket '['",
        ),
        (
            targeted(web(), "a: 1\n---\nb: 1\n"),
            "the installation's spec.patches[0].patch: a patch is one document: a list of JSON 6902 operations, or a map, which is merged into the object",
        ),
        (
            targeted(json!({"name": "("}), "{}"),
            "the installation's spec.patches[0].target.name: it is not a regular expression",
        ),
        (
            targeted(json!({"labelSelector": "a is b"}), "{}"),
            "the installation's spec.patches[0].target.labelSelector: it is not a selector, such as app=web,tier!=db",
        ),
        (
            pod("{containers: [{image: s3cret}]}"),
            "the installation's spec.patches[0]: Deployment web: spec.template.spec.containers: every item of this list needs its merge key, name",
        ),
        (
            pod("{containers: [{name: main, ports: [{containerPort: 53}]}]}"),
            "the installation's spec.patches[0]: Deployment web: spec.template.spec.containers.ports: several items could be meant; set all of containerPort, protocol",
        ),
        (
            pod("{tolerations: [{key: a, $patch: delete}]}"),
            "the installation's spec.patches[0]: Deployment web: spec.template.spec.tolerations: the items of this list have no merge key, so it is replaced as a \
             whole; remove an item with a JSON 6902 operation",
        ),
        (
            pod("{$patch: s3cret}"),
            "the installation's spec.patches[0]: Deployment web: spec.template.spec: $patch is delete, merge or replace",
        ),
        (
            pod("{$retainKeys: s3cret}"),
            "the installation's spec.patches[0]: Deployment web: spec.template.spec: $retainKeys takes a list",
        ),
        (
            targeted(web(), &deep),
            "the installation's spec.patches[0]: Deployment web: the object nests more than 127 levels deep with it",
        ),
    ] {
        let error = apply(std::slice::from_ref(&patch)).unwrap_err();
        assert_eq!(error, expected, "{}", patch.patch);
    }
}

#[test]
fn numbers_and_sizes_are_bounded() {
    let one = |length: usize| targeted(json!({}), &format!("a: {}", "x".repeat(length)));
    let error = Patches::compile(&vec![one(1); 65]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the installation's spec.patches: there are 65 patches, and 64 are allowed"
    );
    let error = Patches::compile(&[one(MAX_BYTES)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the installation's spec.patches: 65539 bytes are too many, 65536 are allowed"
    );
    let many = |count, name: &str| format!("[{}]", vec![name; count].join(", "));
    let (a, b, c) = (many(100, "x"), many(100, "*a"), many(10, "*b"));
    let aliases = format!("a: &a {a}\nb: &b {b}\nc: {c}\n");
    let error = Patches::compile(&[targeted(json!({}), &aliases)]).unwrap_err();
    assert!(error.to_string().contains("262144 are allowed"), "{error}");
    let pattern = "(a{200}){200}".to_owned();
    let error = Patches::compile(&[targeted(json!({"name": pattern}), "{}")]).unwrap_err();
    assert_eq!(error.problem, PatchProblem::Pattern);
    // Each operation doubles what the former one left.
    let copies = "- {op: copy, from: /spec, path: /spec/a}\n".repeat(100);
    let error = apply(&[targeted(json!({"kind": "Deployment"}), &copies)]).unwrap_err();
    assert!(
        error.contains("copies make the object too large"),
        "{error}"
    );
}

#[test]
fn files_hold_patches_as_a_kustomization_does() {
    let strategic = "# one\napiVersion: v1\nkind: Secret\nmetadata: {name: key}\n";
    let listed = "patches:\n- target: {kind: Secret, labelSelector: a=b}\n  patch: |\n    - {op: remove, path: /data}\n";
    let read = read_patches(&format!("{strategic}---\n{listed}---\n# nothing\n")).unwrap();
    let expected = [
        ObjectPatch {
            target: None,
            patch: strategic.to_owned(),
        },
        ObjectPatch {
            target: Some(PatchTarget {
                kind: Some("Secret".to_owned()),
                label_selector: Some("a=b".to_owned()),
                ..PatchTarget::default()
            }),
            patch: "- {op: remove, path: /data}\n".to_owned(),
        },
    ];
    assert_eq!(read, expected);
    let entry = "patches[0] has a patch, as text, and perhaps a target (group, version, kind, name, namespace, labelSelector, \
                 annotationSelector); files (path) and options are not read";
    for (text, expected) in [
        ("", "there is no patch in it: write objects with the fields to change, or a list under patches:".to_owned()),
        ("patches: [{path: a.yaml}]", format!("document 1: {entry}")),
        ("patches: [{patch: '{}', target: {kid: A}}]", format!("document 1: {entry}")),
        ("---\na: [\n", "document 2: line 1, column 4: cannot be read as YAML: unclosed bracket '['".to_owned()),
    ] {
        assert_eq!(read_patches(text).unwrap_err().to_string(), expected);
    }
}
