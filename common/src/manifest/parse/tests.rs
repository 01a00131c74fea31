use super::*;

fn read(text: &str) -> ParsedManifests {
    parse(text.as_bytes(), "m.yaml", &ManifestOptions::default()).unwrap()
}

fn error(text: &str) -> String {
    parse(text.as_bytes(), "m.yaml", &ManifestOptions::default())
        .unwrap_err()
        .to_string()
}

fn names(parsed: &ParsedManifests) -> Vec<String> {
    parsed
        .manifests
        .iter()
        .map(|manifest| {
            let key = ObjectKey::from_object(&manifest.object).unwrap();
            format!("{} {key}", manifest.place)
        })
        .collect()
}

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

#[test]
fn lists_are_replaced_by_their_items() {
    let parsed = read(
        "# head\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n\
         - {apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: inner, namespace: web}}]}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleList\nitems: [{metadata: {name: r}}]\n---\n\
         apiVersion: v1\nkind: List\nitems: null\n---\n\
         apiVersion: x.y/v1\nkind: AllowList\nmetadata: {name: w}\nitems: [1]\n",
    );
    assert_eq!(
        names(&parsed),
        [
            "m.yaml:6 Secret s",
            "m.yaml:9 web/ConfigMap inner",
            "m.yaml:13 Role r",
            "m.yaml:19 AllowList w",
        ]
    );
    assert_eq!(
        parsed.manifests[2].object["apiVersion"],
        "rbac.authorization.k8s.io/v1"
    );
}

#[test]
fn what_is_no_cluster_object_is_named_and_left_out() {
    let kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n";
    let parsed = read(&format!("{kustomization}---\n{CONFIG_MAP}---\n# nothing\n"));
    assert_eq!(names(&parsed), ["m.yaml:4 ConfigMap a"]);
    assert_eq!(parsed.warnings.len(), 1);
    assert!(parsed.warnings[0].starts_with("m.yaml:1: a Kustomization"));
    let nameless = b"resources: [x.yaml]\n";
    let parsed = parse(
        nameless,
        "base/kustomization.yaml",
        &ManifestOptions::default(),
    )
    .unwrap();
    assert_eq!((parsed.manifests.len(), parsed.warnings.len()), (0, 1));
    assert!(parse(nameless, "x.yaml", &ManifestOptions::default()).is_err());
}

#[test]
fn a_repeated_object_is_dropped_and_a_different_one_is_an_error() {
    let parsed = read(&format!("{CONFIG_MAP}---\n{CONFIG_MAP}"));
    assert_eq!(names(&parsed), ["m.yaml:1 ConfigMap a"]);
    assert_eq!(
        parsed.warnings,
        ["m.yaml:5: ConfigMap a is the same as at m.yaml:1 and is left out"]
    );
    assert_eq!(
        error(&format!("{CONFIG_MAP}---\n{CONFIG_MAP}data: {{x: y}}\n")),
        "m.yaml:5: ConfigMap a is already at m.yaml:1 and differs: keep one of them"
    );
    let elsewhere = CONFIG_MAP.replace("name: a", "name: a, namespace: web");
    assert_eq!(
        read(&format!("{CONFIG_MAP}---\n{elsewhere}"))
            .manifests
            .len(),
        2
    );
}

#[test]
fn errors_name_field_and_place() {
    for (text, message) in [
        (
            "\n- a\n",
            "m.yaml:2: a list where a Kubernetes object is expected",
        ),
        ("kind: X\n", "m.yaml:1: the object has no apiVersion"),
        (
            "apiVersion: v1\nkind: ''\n",
            "m.yaml:1: the object has no kind",
        ),
        (
            "apiVersion: 1\nkind: X\n",
            "m.yaml:1: apiVersion is a number where text is expected: put it in quotes",
        ),
        (
            "apiVersion: v1\nkind: X\n",
            "m.yaml:1: the object has no metadata.name",
        ),
        (
            "apiVersion: v1\nkind: X\nmetadata: [a]\n",
            "m.yaml:1: metadata is a list where a map is expected",
        ),
        (
            "apiVersion: v1\nkind: X\nmetadata: {name: y}\n",
            "m.yaml:1: metadata.name is a boolean where text is expected: put it in quotes",
        ),
        (
            "apiVersion: v1\nkind: X\nmetadata: {name: a/../b}\n",
            "m.yaml:1: metadata.name \"a/../b\" is not a valid object name: it is empty or has a / or % in it",
        ),
        (
            "apiVersion: v1\nkind: X\nmetadata: {name: a, labels: {v: 1.10}}\n",
            "m.yaml:1: metadata.labels[\"v\"] is a number where text is expected: put it in quotes",
        ),
        (
            "apiVersion: v1\nkind: Job\nmetadata: {generateName: a-}\n",
            "m.yaml:1: the Job has generateName: it would be a new object each time; give it a metadata.name",
        ),
        (
            "apiVersion: v1\nkind: [\n",
            "m.yaml:2:7: cannot be read as YAML",
        ),
        (
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: X\n  metadata: {name: a}\n- text\n",
            "m.yaml:7: text where a Kubernetes object is expected",
        ),
    ] {
        assert_eq!(error(text), message, "{text}");
    }
}

#[test]
fn limits_hold() {
    let limits = ManifestOptions {
        bytes: 100,
        objects: 1,
        ..ManifestOptions::default()
    };
    let two = format!(
        "{CONFIG_MAP}---\n{}",
        CONFIG_MAP.replace("name: a", "name: b")
    );
    assert_eq!(
        parse(two.as_bytes(), "m.yaml", &limits).unwrap_err(),
        ManifestError::TooLong {
            file: "m.yaml".into(),
            bytes: two.len(),
            limit: 100
        }
    );
    let limits = ManifestOptions {
        bytes: 1000,
        objects: 1,
        ..ManifestOptions::default()
    };
    let error = parse(two.as_bytes(), "m.yaml", &limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "m.yaml:5: more than 1 objects in one manifest: split it into several add-ons"
    );
}

/// The directory controller of KKP: warn and keep the last, unless asked to be strict; two objects in one document are not a repeated key.
#[test]
fn a_repeated_key_is_a_warning_unless_an_object_would_be_lost() {
    let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: '1'\n  k: '2'\n";
    let parsed = parse(twice.as_bytes(), "m.yaml", &ManifestOptions::default()).unwrap();
    assert_eq!(
        parsed.warnings,
        [
            "m.yaml:6:3: key \"k\" is already set on line 5, column 3: keep one of them; the last one counts"
        ]
    );
    assert_eq!(parsed.manifests[0].object["data"]["k"], "2");
    let strict = ManifestOptions {
        duplicate_keys: DuplicateKeys::Error,
        ..ManifestOptions::default()
    };
    assert!(parse(twice.as_bytes(), "m.yaml", &strict).is_err());
    let no_separator = format!("{CONFIG_MAP}{CONFIG_MAP}");
    assert!(
        parse(
            no_separator.as_bytes(),
            "m.yaml",
            &ManifestOptions::default()
        )
        .is_err()
    );
    let and_broken = format!("{twice}---\na: [\n");
    let error = parse(and_broken.as_bytes(), "m.yaml", &ManifestOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("m.yaml:6:3"), "{error}");
}

#[test]
fn files_of_one_add_on_share_their_keys() {
    let other = CONFIG_MAP.replace("name: a", "name: b");
    let file = |name, bytes| ManifestFile { name, bytes };
    let files = [
        file("a.yaml", CONFIG_MAP.as_bytes()),
        file("b.yaml", other.as_bytes()),
        file("c.yaml", CONFIG_MAP.as_bytes()),
    ];
    let parsed = parse_files(files, &ManifestOptions::default()).unwrap();
    let places: Vec<String> = parsed
        .manifests
        .iter()
        .map(|manifest| manifest.place.to_string())
        .collect();
    assert_eq!(places, ["a.yaml:1", "b.yaml:1"]);
    assert_eq!(parsed.warnings.len(), 1);
}
