use serde_json::json;

use super::*;

fn registry() -> Registry {
    "mirror.example.com/addons".parse().expect("a registry")
}

#[test]
fn images_of_pods_wherever_they_stand() {
    let object = json!({
        "spec": {"template": {"spec": {
            "initContainers": [{"image": "b:1"}],
            "containers": [{"image": "a:1"}, {"image": "a:1"}, {"image": ""}, {"name": "none"}, null],
            "volumes": [{"image": {"reference": "v:1"}}, {"emptyDir": {}}],
        }}},
        "x/y": [{"ephemeralContainers": [{"image": "c"}]}],
        "containers": "text",
        "image": "of something else",
    });
    assert_eq!(
        Vec::from_iter(find_images(&object)),
        ["a:1", "b:1", "c", "v:1"]
    );
}

#[test]
fn images_of_known_custom_resources() {
    let mut object = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "Prometheus",
        "spec": {
            "image": "quay.io/prometheus/prometheus:v3.0.0",
            "thanos": {"image": "quay.io/thanos/thanos:v0.36.0"},
            "containers": [{"image": "x"}],
        },
    });
    let names = [
        "quay.io/prometheus/prometheus:v3.0.0",
        "quay.io/thanos/thanos:v0.36.0",
        "x",
    ];
    assert_eq!(Vec::from_iter(find_images(&object)), names);
    assert_eq!(rewrite(&mut object, &registry()).count, 3);
    let moved = "mirror.example.com/addons/thanos/thanos:v0.36.0";
    assert_eq!(object.pointer("/spec/thanos/image"), Some(&json!(moved)));

    let task = json!({
        "apiVersion": "tekton.dev/v1",
        "kind": "Task",
        "spec": {"steps": [{"image": "a"}, {"image": "b"}], "image": "no field"},
    });
    assert_eq!(Vec::from_iter(find_images(&task)), ["a", "b"]);
    let other = json!({"apiVersion": "example.com/v1", "kind": "Task", "spec": {"steps": [{"image": "a"}]}});
    assert!(find_images(&other).is_empty());
}

#[test]
fn rewritten_in_place_and_once() {
    let mut object = json!({"spec": {"containers": [
        {"image": "nginx:1"},
        {"image": "mirror.example.com/addons/a/b"},
        {"image": "Not An Image"},
    ]}});
    let first = rewrite(&mut object, &registry());
    assert_eq!(first.count, 1);
    assert_eq!(first.doubts.len(), 1);
    assert!(
        first.doubts[0].starts_with("spec.containers.2.image: "),
        "{:?}",
        first.doubts
    );
    assert_eq!(
        object.pointer("/spec/containers/0/image"),
        Some(&json!("mirror.example.com/addons/library/nginx:1"))
    );
    let before = object.clone();
    assert_eq!(rewrite(&mut object, &registry()).count, 0);
    assert_eq!(object, before);
}

#[test]
fn images_elsewhere_are_doubts() {
    let mut object = json!({"spec": {"containers": [{
        "image": "mirror.example.com/addons/operator",
        "command": ["/manager", "docs.example.com/guide", "https://quay.io/a/b:c"],
        "args": [
            "--acme-http01-solver-image=quay.io/jetstack/cert-manager-acmesolver:v1.19.5",
            "--listen=10.0.0.1/8:80",
            "--probe=10.0.0.5:5000/tools/probe:1.0",
            "--peer=db:5432/users",
            "mirror:5000/tools/probe@sha256:b1eacc64f8aa5ffd3f6ba0b1eacc64f8aab1eacc64f8aa5ffd3f6ba0b1eacc64",
            "--mirror=mirror.example.com/addons/x:1",
        ],
        "env": [
            {"name": "IMAGES", "value": "3.5.0=quay.io/strimzi/kafka:0.38.0\n3.6.0=quay.io/strimzi/kafka:0.39.0"},
            {"name": "NODE", "valueFrom": {}},
        ],
    }]}});
    let before = object.clone();
    let rewritten = rewrite(&mut object, &registry());
    assert_eq!(object, before);
    let named = rewritten.doubts.iter().map(|doubt| {
        doubt
            .split_once(", which is not rewritten")
            .map_or("", |(named, _)| named)
    });
    assert_eq!(
        Vec::from_iter(named),
        [
            "spec.containers.0.args.0 names quay.io/jetstack/cert-manager-acmesolver:v1.19.5",
            "spec.containers.0.args.2 names 10.0.0.5:5000/tools/probe:1.0",
            "spec.containers.0.args.4 names mirror:5000/tools/probe@sha256:b1eacc64f8aa5ffd3f6ba0b1eacc64f8aab1eacc64f8aa5ffd3f6ba0b1eacc64",
            "spec.containers.0.env.0.value names quay.io/strimzi/kafka:0.38.0",
            "spec.containers.0.env.0.value names quay.io/strimzi/kafka:0.39.0",
        ]
    );
}

#[test]
fn deep_objects_are_searched_without_end() {
    let mut object = json!({"containers": [{"image": "x"}]});
    for _ in 0..1000 {
        object = json!({"a": object});
    }
    assert!(find_images(&object).is_empty());
}

/// Sidecars that a controller adds later, and caches of images: an image outside of a container is reported, and one in a Secret is not
/// shown.
#[test]
fn images_in_configuration_are_doubts() {
    let token = BASE64_STANDARD.encode("image: quay.io/secret/agent:1");
    let rows = [
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {
                "queue-sidecar-image": "gcr.example.org/queue:1.0",
                "hostless-image": "team/queue:v1.0",
                "path": "team/queue:v1.0",
                "_example": "image: gcr.example.org/example:1",
                "template": "# image: gcr.example.org/old:1\nspec:\n  image: \"gcr.example.org/proxy:1\"\nagain: gcr.example.org/proxy:1",
            }}),
            &[
                "data.hostless-image names team/queue:v1.0",
                "data.queue-sidecar-image names gcr.example.org/queue:1.0",
                "data.template names gcr.example.org/proxy:1",
            ][..],
        ),
        (
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": token}, "stringData": {"b": "quay.io/secret/agent:2"}}),
            &["data.a names an image", "stringData.b names an image"],
        ),
        (
            json!({"apiVersion": "a.example/v1", "kind": "Thing", "metadata": {"annotations": {"x": "quay.io/a/b:1"}},
                "spec": {"agent": {"containers": [{"image": "quay.io/a/c:1", "args": ["a/d:1.0"]}]}, "sidecar": "quay.io/a/e:1"}}),
            &[
                "spec.agent.containers.0.args.0 names a/d:1.0",
                "spec.sidecar names quay.io/a/e:1",
            ],
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"note": "quay.io/a/b:1", "template": {"spec": {"containers": [
                {"args": ["--engine-image", "longhornio/longhorn-engine:v1.9.2", "a/b:80", "/var/x:1.0"]}]}}}}),
            &["spec.template.spec.containers.0.args.1 names longhornio/longhorn-engine:v1.9.2"],
        ),
    ];
    for (mut object, expected) in rows {
        let before = object.clone();
        let doubts = rewrite(&mut object, &registry()).doubts;
        let mut named: Vec<&str> = doubts
            .iter()
            .map(|doubt| {
                doubt
                    .split_once(", which is not")
                    .map_or("", |(named, _)| named)
            })
            .collect();
        named.sort_unstable();
        assert_eq!(named, expected);
        let containers = "/spec/agent/containers";
        assert!(object == before || object.pointer(containers).is_some());
    }
}

#[test]
fn images_that_knative_pulls_in_advance() {
    let image = json!({"apiVersion": "caching.internal.knative.dev/v1alpha1", "kind": "Image", "spec": {"image": "gcr.example.org/queue:1"}});
    assert_eq!(
        Vec::from_iter(find_images(&image)),
        ["gcr.example.org/queue:1"]
    );
}
