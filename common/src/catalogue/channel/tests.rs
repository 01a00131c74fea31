//! The behaviour of kops with an index, row by row, and cases that kops leaves open.

use super::*;

const LOCATION: &str = "https://example.com/addons/addon.yaml";

fn read(text: &str) -> KopsIndex {
    parse(text.as_bytes(), LOCATION).unwrap()
}

#[track_caller]
fn refuses(text: &str, expect: &str) {
    let error = parse(text.as_bytes(), LOCATION).unwrap_err();
    let expect = format!("{LOCATION}{expect}");
    assert_eq!(error.to_string(), expect);
}

fn entry(text: &str) -> AddonVersion {
    let channel = read(&format!(
        "kind: Addons\nmetadata: {{name: x}}\nspec:\n  addons:\n  - {text}\n"
    ));
    channel.spec.addons[0].versions[0].clone()
}

#[test]
fn an_index_becomes_a_catalogue() {
    let channel = read(
        "kind: Addons
metadata: {name: example}
spec:
  addons:
  - {name: a, version: 1.0.0, manifest: a/1.yaml, id: k8s-1.6, kubernetesVersion: '>=1.6.0'}
  - {manifest: b.yaml, namespace: monitoring, selector: null, needsPKI: yes, needsRollingUpdate: all}
  - name: a
    version: 1.1.0
    manifest: a/2.yaml
    manifestHash: abc
    selector: {k8s-addon: a, ID: 7}
    prune: {kinds: [{kind: Secret, labelSelector: x=y, namespaces: [kube-system]}]}
",
    );
    assert_eq!(channel.warnings, Vec::<String>::new());
    assert_eq!(channel.name, "example");
    assert_eq!(channel.spec.base_url.as_deref(), Some(LOCATION));
    let [a, example] = &channel.spec.addons[..] else {
        panic!("{:?}", channel.spec.addons)
    };
    assert_eq!((a.name.as_str(), example.name.as_str()), ("a", "example"));
    let [first, second] = &a.versions[..] else {
        panic!("{:?}", a.versions)
    };
    assert_eq!((&*first.version, &*second.version), ("1.0.0", "1.1.0"));
    assert_eq!(first.id, "k8s-1.6");
    assert_eq!(
        first.constraints.kubernetes_version.as_deref(),
        Some(">=1.6.0")
    );
    assert_eq!(first.default_namespace.as_deref(), Some("kube-system"));
    assert_eq!(first.source.url.as_ref().unwrap().manifest, "a/1.yaml");
    assert_eq!(second.manifest_hash.as_deref(), Some("abc"));
    let selector = second.selector.as_ref().unwrap();
    assert_eq!((&*selector["k8s-addon"], &*selector["ID"]), ("a", "7"));
    let kind = &second.prune.as_ref().unwrap().kinds[0];
    assert_eq!(
        (&*kind.group, &*kind.kind, kind.namespaces.len()),
        ("", "Secret", 1)
    );
    let other = &example.versions[0];
    assert_eq!(other.default_namespace.as_deref(), Some("monitoring"));
    assert_eq!(other.needs_rolling_update.as_deref(), Some("all"));
    assert!(other.needs_pki && other.selector.is_none());
}

#[test]
fn unquoted_versions_keep_their_text() {
    for (written, expect) in [
        ("1.0", "1.0"),
        ("1.10", "1.10"),
        ("1", "1"),
        ("'1.0'", "1.0"),
    ] {
        assert_eq!(
            entry(&format!("{{manifest: m, version: {written}}}")).version,
            expect
        );
    }
}

#[test]
fn field_names_may_have_any_case() {
    let text = "kind: Addons\nSpec:\n  addons:\n  - {Name: a, manifest: m, kubernetesversion: '>=1.8.0'}\n";
    let channel = read(text);
    let constraints = &channel.spec.addons[0].versions[0].constraints;
    assert_eq!(constraints.kubernetes_version.as_deref(), Some(">=1.8.0"));
    let warnings = [
        "Spec is read as spec: write it so",
        "Spec.addons[0].Name is read as name: write it so",
        "Spec.addons[0].kubernetesversion is read as kubernetesVersion: write it so",
    ];
    assert_eq!(channel.warnings, warnings);
    let both = entry("{manifest: right, Manifest: wrong}");
    assert_eq!(both.source.url.unwrap().manifest, "right");
}

/// T1b: such ranges skip the entry with a warning.
#[test]
fn an_unreadable_range_is_a_warning() {
    for range in [">=1.6", "^1.6.0", ">=1.4.0,<1.6.0", ">=v1.6.0"] {
        let channel = read(&format!(
            "kind: Addons\nspec: {{addons: [{{name: a, manifest: m, kubernetesVersion: '{range}'}}]}}"
        ));
        let [warning] = &channel.warnings[..] else {
            panic!("{:?}", channel.warnings)
        };
        let place =
            "spec.addons[0] (a): it fits no cluster, as its kubernetesVersion cannot be read: ";
        assert!(
            warning.starts_with(place) && warning.contains(range),
            "{warning}"
        );
    }
}

/// Versions and fields that kops refuses.
#[test]
fn bad_entries_are_named() {
    let index = |entry: &str| {
        format!("kind: Addons\nspec:\n  addons:\n  - {{name: a, manifest: m}}\n  - {entry}\n")
    };
    refuses(
        &index("{name: testaddon, manifest: m, version: 1.0-kops}"),
        ": spec.addons[1] (testaddon): version \"1.0-kops\" is not a valid version: \
         a pre-release or build needs three numbers before it, as in 1.0.0-rc.1",
    );
    refuses(
        &index(""),
        ": spec.addons[1]: the list item is empty: write the entry or remove its dash",
    );
    refuses(
        &index("{name: coredns}"),
        ": spec.addons[1] (coredns): it has no manifest: set a URL, or a path relative to the index",
    );
    refuses(
        &index("{manifest: m}"),
        ": spec.addons[1]: it has no name, and metadata.name is missing too: set one of them",
    );
    refuses(
        &index("{name: a/b, manifest: m}"),
        ": spec.addons[1] (a/b): the name \"a/b\" cannot be an annotation key: use at most 63 letters, digits, \
         '.', '_' and '-', with a letter or digit at both ends",
    );
    let longest = "a".repeat(63);
    assert_eq!(
        read(&index(&format!("{{name: {longest}, manifest: m}}")))
            .spec
            .addons
            .len(),
        2
    );
    let long = parse(
        index(&format!("{{name: {longest}a, manifest: m}}")).as_bytes(),
        LOCATION,
    );
    assert!(matches!(
        long,
        Err(ChannelError::Entry {
            problem: EntryProblem::Name { .. },
            ..
        })
    ));
    refuses(
        &index("{name: b, manifest: [m]}"),
        ": spec.addons[1] (b): manifest must be text",
    );
    refuses(
        &index("junk"),
        ": spec.addons[1]: the list item must be a map",
    );
    refuses(
        "kind: Addons\nspec: {addons: {}}",
        ": spec.addons must be a list",
    );
    refuses("- a", ": the document must be a map, such as kind: Addons");
}

#[test]
fn table_t6_the_first_document_decides() {
    let index = "kind: Addons\nmetadata: {name: example}\nspec:\n  addons:\n  - {name: example.addons.k8s.io, manifest: m}\n";
    let other = index.replace("example", "other");
    let channel = read(&format!("{index}---\n{other}"));
    assert_eq!(channel.name, "example");
    assert_eq!(channel.spec.addons.len(), 1);
    assert_eq!(channel.spec.addons[0].name, "example.addons.k8s.io");
    // Later documents are not even read.
    assert_eq!(read(&format!("{index}---\nnot: [valid")).name, "example");

    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: Deployment\n";
    let one = read(manifest);
    let [addon] = &one.spec.addons[..] else {
        panic!("{:?}", one.spec.addons)
    };
    // sha256 of LOCATION and of the trimmed manifest, by sha256sum.
    assert_eq!(addon.name, "manifest-e016ac6af8f9");
    let version = &addon.versions[0];
    assert_eq!(version.source.url.as_ref().unwrap().manifest, LOCATION);
    assert_eq!(
        version.manifest_hash.as_deref(),
        Some("b0b3123444e4fd9cc680cc7dd9d6f8953f2859384007062db41b6729972d4764")
    );
    let two = read(&manifest.replace("name: a", "name: b"));
    assert_eq!(two.spec.addons[0].name, addon.name);
    assert_ne!(
        two.spec.addons[0].versions[0].manifest_hash,
        version.manifest_hash
    );
    // kind Addons of another group is not an index.
    let foreign = read(&format!("apiVersion: x/v1\n{index}"));
    assert!(foreign.spec.addons[0].name.starts_with("manifest-"));
    assert_eq!(read(&format!("apiVersion: ''\n{index}")).name, "example");

    for text in ["", "\n  \n", "# nothing to see here\n", "---\n---\n"] {
        assert_eq!(read(text).spec.addons, [], "{text:?}");
    }

    let error = parse(b"not: [valid", LOCATION).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{LOCATION} is neither an index nor a manifest")
    );
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.starts_with("line 1, column "), "{source}");
}

/// T9: the namespace of the record.
#[test]
fn table_t9_entries_without_namespace_are_of_kube_system() {
    assert_eq!(
        entry("{manifest: m}").default_namespace.as_deref(),
        Some("kube-system")
    );
    assert_eq!(
        entry("{manifest: m, namespace: default}")
            .default_namespace
            .as_deref(),
        Some("default")
    );
}

/// T11, as far as an index sees it: however documents are separated, the first one is the index.
#[test]
fn table_t11_documents_are_split() {
    let index =
        "kind: Addons\nmetadata:\n  name: example\nspec:\n  addons:\n  - {name: a, manifest: m}";
    for rest in [
        "",
        "\n",
        "\r\n",
        "\n---\nb: 1",
        "\r\n---\r\nb: 1",
        "\n\n---\n\nb: 1\n",
        "\r\n\r\n---\r\n\r\nb: 1\r\n",
        "\n--- # comment\nb: 1\n",
    ] {
        let text = format!("{index}{rest}");
        assert_eq!(read(&text).spec.addons.len(), 1, "{text:?}");
        assert_eq!(
            read(&format!("# licence\n---\n{text}")).name,
            "example",
            "{text:?}"
        );
    }
}
