use super::*;

const ROOT: &str = "/etc/kubernetes/addons";

fn file(path: &str, text: &str) -> DirectoryFile {
    DirectoryFile {
        path: path.to_owned(),
        content: Ok(text.as_bytes().to_vec()),
        is_changing: false,
    }
}

fn object(kind: &str, name: &str, label: &str) -> String {
    format!(
        "apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: kube-system, labels: {{{label}}}}}\n---\n"
    )
}

fn reconciled(name: &str) -> String {
    object(
        "ConfigMap",
        name,
        "addonmanager.kubernetes.io/mode: Reconcile",
    )
}

fn read(files: Vec<DirectoryFile>) -> Directory {
    super::read(ROOT, files, &DirectoryOptions::default())
}

fn names(addon: &DirectoryEntry) -> Vec<&str> {
    let objects = addon.manifests.iter();
    objects
        .map(|manifest| manifest.object["metadata"]["name"].as_str().unwrap())
        .collect()
}

fn problems(addon: &DirectoryEntry) -> String {
    let lines = addon.problems.iter();
    lines.map(|problem| format!("{problem}\n")).collect()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        kind: "ConfigMap".to_owned(),
        namespace: Some("kube-system".to_owned()),
        name: name.to_owned(),
        ..ObjectKey::default()
    }
}

#[test]
fn files_and_folders_are_addons() {
    let directory = read(vec![
        file("20-web/b.yaml", &reconciled("b")),
        file(
            "20-web/deep/a.json",
            "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\", \"labels\": {\"kubernetes.io/cluster-service\": \"true\"}}}",
        ),
        file("dns.yml", &(reconciled("dns") + &reconciled("dns-2"))),
        file("1password.yaml", &reconciled("one")),
        file(
            "alb_ssl.yaml",
            &format!(
                "apiVersion: v1\nkind: List\nitems:\n- {}",
                reconciled("alb").replace('\n', "\n  ").replace("---", "")
            ),
        ),
    ]);
    let rows = directory.addons.iter().map(|addon| {
        let (name, path) = (addon.name.as_str(), addon.path.strip_prefix(ROOT).unwrap());
        (name, path, addon.number, names(addon))
    });
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            ("1password", "/1password.yaml", None, vec!["one"]),
            ("20-web", "/20-web", Some(20), vec!["b", "a"]),
            ("alb_ssl", "/alb_ssl.yaml", None, vec!["alb"]),
            ("dns", "/dns.yml", None, vec!["dns", "dns-2"]),
        ]
    );
    assert_eq!(directory.addons[2].installation, "alb-ssl-886069e0");
    assert!(
        directory
            .addons
            .iter()
            .all(|addon| addon.problems.is_empty())
    );
}

#[test]
fn names_of_manifests() {
    for (name, expected) in [
        ("a.yaml", true),
        ("a.yml", true),
        ("a.json", true),
        (".a.yaml", false),
        ("..data", false),
        ("a.yaml.bak", false),
        ("a.yaml.in", false),
        ("README.md", false),
    ] {
        assert_eq!(is_manifest(name), expected, "{name}");
    }
}

#[test]
fn what_is_created_once_carries_the_mark() {
    let text = object(
        "Secret",
        "s",
        "addonmanager.kubernetes.io/mode: EnsureExists",
    );
    let directory = read(vec![file("a.yaml", &(text + &reconciled("c")))]);
    let marks = directory.addons[0]
        .manifests
        .iter()
        .map(|manifest| manifest.object["metadata"]["annotations"][ANNOTATION_APPLY].as_str());
    assert_eq!(marks.collect::<Vec<_>>(), [Some("create-only"), None]);
}

/// Objects that the addon-manager ignores are reported, and stay unchanged.
#[test]
fn unlabelled_objects_are_ignored_and_held() {
    let text = object("ConfigMap", "bare", "") + &reconciled("kept");
    let directory = read(vec![file("a.yaml", &text)]);
    let addon = &directory.addons[0];
    assert_eq!(names(addon), ["kept"]);
    let why = addon.reason_to_keep(&key("bare"), |_| false).unwrap();
    assert_eq!(
        why,
        format!("{ROOT}/a.yaml:1: it has no label addonmanager.kubernetes.io/mode")
    );
    assert_eq!(addon.reason_to_keep(&key("other"), |_| false), None);
    let options = DirectoryOptions {
        all: true,
        ..DirectoryOptions::default()
    };
    let all = super::read(ROOT, vec![file("a.yaml", &text)], &options);
    assert_eq!(names(&all.addons[0]), ["bare", "kept"]);
    assert!(all.addons[0].ignored.is_empty());
}

/// (text, whether the object in the default namespace is recorded, whether the object of that name in another namespace is kept)
#[test]
fn what_lost_its_namespace_is_not_pruned_at_once() {
    let bare = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
    let reconciled = "labels: {addonmanager.kubernetes.io/mode: Reconcile}";
    let labelled = bare.replace("name: x", &format!("name: x, {reconciled}"));
    let moved = labelled.replace("name: x", "name: x, namespace: other");
    let key = ObjectKey {
        namespace: Some("shop".to_owned()),
        ..key("x")
    };
    for (text, is_recorded, expected) in [
        (bare, false, true),
        (bare, true, true),
        (&labelled, false, true),
        (&labelled, true, false),
        (&moved, false, false),
        (&labelled.replace("name: x", "name: z"), false, false),
    ] {
        let directory = read(vec![file("a.yaml", text)]);
        let addon = &directory.addons[0];
        let why = addon.reason_to_keep(&key, |_| is_recorded);
        assert_eq!(why.is_some(), expected, "{text} {is_recorded} {why:?}");
    }
}

#[test]
fn a_bare_true_counts_as_text_with_a_warning() {
    let text = object("ConfigMap", "a", "kubernetes.io/cluster-service: true");
    let directory = read(vec![file("a.yaml", &text)]);
    assert_eq!(names(&directory.addons[0]), ["a"]);
    let warnings = &directory.addons[0].warnings;
    assert!(warnings[0].contains("put it in quotes"), "{warnings:?}");
    // Any other label is an error, as before.
    let other = object("ConfigMap", "a", "app: true");
    let directory = read(vec![file("a.yaml", &other)]);
    assert!(problems(&directory.addons[0]).contains("metadata.labels"));
}

/// (files, problems of the add-on `a`, whether it is left alone, whether it keeps an object that it does not define)
#[test]
fn what_cannot_be_read_holds_what_it_may_define() {
    let good = || file("a/good.yaml", &reconciled("good"));
    let unreadable = DirectoryFile {
        content: Err("permission denied".to_owned()),
        ..file("a/bad.yaml", "")
    };
    let changing = DirectoryFile {
        is_changing: true,
        ..file("a/late.yaml", &reconciled("late"))
    };
    for (bad, problem, left_alone) in [
        (unreadable, "bad.yaml: permission denied", false),
        (file("a/bad.yaml", ""), "bad.yaml: the file is empty", false),
        (file("a/bad.yaml", "a: [1"), "bad.yaml:1", false),
        (
            file("a/bad.yml", "cluster.name: es\n"),
            "no apiVersion",
            false,
        ),
        (changing, "late.yaml is still being written", true),
    ] {
        let directory = read(vec![good(), bad, file("b.yaml", &reconciled("b"))]);
        let (addon, other) = (&directory.addons[0], &directory.addons[1]);
        assert!(problems(addon).contains(problem), "{}", problems(addon));
        assert_eq!(addon.is_left_alone(), left_alone, "{problem}");
        assert!(names(addon).contains(&"good"), "{problem}");
        assert!(
            addon.reason_to_keep(&key("gone"), |_| false).is_some(),
            "{problem}"
        );
        assert!(
            other.problems.is_empty() && other.reason_to_keep(&key("gone"), |_| false).is_none()
        );
    }
    // A file of comments is a manifest without objects.
    let directory = read(vec![file("a.yaml", "# nothing\n")]);
    assert!(directory.addons[0].problems.is_empty());
    assert_eq!(
        directory.addons[0].reason_to_keep(&key("gone"), |_| false),
        None
    );
}

#[test]
fn two_files_of_one_basename_are_an_error() {
    let directory = read(vec![
        file("dns.yaml", &reconciled("a")),
        file("dns/b.yaml", &reconciled("b")),
        file("web.yaml", &reconciled("c")),
    ]);
    let [folder, single, web] = directory.addons.as_slice() else {
        panic!("{directory:#?}");
    };
    let expected =
        format!("{ROOT}/dns and {ROOT}/dns.yaml are two add-ons of one name: rename one of them\n");
    for addon in [folder, single] {
        assert_eq!(problems(addon), expected);
        assert!(addon.is_left_alone());
    }
    assert!(web.problems.is_empty());
    assert_eq!(directory.installations(), BTreeSet::from(["dns", "web"]));
}

#[test]
fn two_files_that_define_one_object_are_named() {
    let directory = read(vec![
        file("a.yaml", &(reconciled("x") + &reconciled("a"))),
        file("b/1.yaml", &reconciled("x")),
        file("b/2.yaml", &reconciled("b")),
    ]);
    let expected = format!(
        "kube-system/ConfigMap x is defined at {ROOT}/a.yaml:1 and at {ROOT}/b/1.yaml:1: \
         remove it from one of them; until then it stays as it is\n"
    );
    for (addon, rest) in directory.addons.iter().zip(["a", "b"]) {
        assert_eq!(problems(addon), expected);
        assert!(!addon.is_left_alone());
        assert_eq!(names(addon), [rest]);
        assert!(addon.reason_to_keep(&key("x"), |_| false).is_some());
        assert_eq!(addon.reason_to_keep(&key("y"), |_| false), None);
    }
    // Of the same text twice in one add-on, one stays.
    let twice = read(vec![
        file("a/1.yaml", &reconciled("x")),
        file("a/2.yaml", &reconciled("x")),
    ]);
    assert_eq!(names(&twice.addons[0]), ["x"]);
    assert!(twice.addons[0].problems.is_empty());
    assert_eq!(twice.addons[0].warnings.len(), 1);
    // Other text under the same name does not; no namespace means `default`.
    let bare = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: {addonmanager.kubernetes.io/mode: Reconcile}}\n";
    let named = bare.replace("{name: x,", "{name: x, namespace: default,");
    let other = read(vec![file("a/1.yaml", bare), file("a/2.yaml", &named)]);
    assert!(names(&other.addons[0]).is_empty());
    assert!(problems(&other.addons[0]).contains("1.yaml:1 and at"));
}

/// (kind, whether the directory defines it for the cluster, whether both are one object)
#[test]
fn an_object_of_the_cluster_is_the_same_with_and_without_a_namespace() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: pools.shop.example, \
        labels: {addonmanager.kubernetes.io/mode: Reconcile}}\nspec: {group: shop.example, names: {kind: Pool}, scope: Cluster}\n";
    for (api_version, kind, is_defined, is_same) in [
        ("rbac.authorization.k8s.io/v1", "ClusterRole", false, true),
        ("shop.example/v1", "Pool", true, true),
        ("shop.example/v1", "Pool", false, false),
        ("v1", "ConfigMap", false, false),
    ] {
        let with = |namespace: &str| {
            format!(
                "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x, {namespace}labels: {{addonmanager.kubernetes.io/mode: Reconcile}}}}\n"
            )
        };
        let mut files = vec![
            file("a.yaml", &with("")),
            file("b.yaml", &with("namespace: shop, ")),
        ];
        files.extend(is_defined.then(|| file("definition.yaml", definition)));
        let directory = read(files);
        let [a, b, ..] = directory.addons.as_slice() else {
            panic!("{directory:?}");
        };
        for addon in [a, b] {
            let is_named = problems(addon).contains("is defined at");
            assert_eq!(
                (is_named, addon.manifests.is_empty()),
                (is_same, is_same),
                "{kind}"
            );
        }
    }
}

#[test]
fn what_is_gone() {
    let names = ["a", "b", "c", "d"];
    let of = |files: &[&str]| {
        let files = files.iter().map(|path| file(path, "a: ["));
        find_removed(&read(files.collect()), names)
    };
    for (files, expected, is_most) in [
        (
            &["a.yaml", "b.yaml", "c.yaml", "d.yaml"][..],
            &[][..],
            false,
        ),
        (&["a.yaml", "b/x.yaml", "e.yaml"], &["c", "d"], false),
        (&["a.yaml"], &["b", "c", "d"], true),
        (&[], &["a", "b", "c", "d"], true),
    ] {
        let found = of(files);
        let expected: Vec<String> = expected.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(
            (found.names.clone(), found.total),
            (expected, 4),
            "{files:?}"
        );
        assert_eq!(found.is_majority(), is_most, "{files:?}");
    }
    assert!(!RemovedInstallations::default().is_majority());
}

/// A change of a file changes the digest, and so does a file that cannot be read any more.
#[test]
fn digests() {
    let of = |files: Vec<DirectoryFile>| read(files).addons[0].digest.clone();
    let one = of(vec![file("a/1.yaml", &reconciled("x"))]);
    assert_eq!(one, of(vec![file("a/1.yaml", &reconciled("x"))]));
    let unreadable = DirectoryFile {
        content: Err("gone".to_owned()),
        ..file("a/1.yaml", "")
    };
    for other in [
        vec![file("a/1.yaml", &reconciled("y"))],
        vec![file("a/2.yaml", &reconciled("x"))],
        vec![unreadable],
    ] {
        assert_ne!(one, of(other));
    }
}

#[test]
fn a_digest_is_of_names_and_contents_and_of_nothing_half_done() {
    let base = digest_files(&[file("a.yaml", "a"), file("b.yaml", "b")]);
    assert_eq!(base.as_deref().map(str::len), Some(16));
    let unreadable = DirectoryFile {
        content: Err("no".to_owned()),
        ..file("b.yaml", "")
    };
    assert!(digest_files(&[]).is_some_and(|empty| Some(empty) != base));
    for (files, is_whole) in [
        (vec![file("a.yaml", "a")], true),
        (vec![file("a.yaml", "a"), file("c.yaml", "b")], true),
        (vec![file("a.yaml", "b"), file("b.yaml", "a")], true),
        (vec![file("a.yaml", "a"), file("b.yaml", " \n")], false),
        (vec![file("a.yaml", "a"), unreadable], false),
    ] {
        let other = digest_files(&files);
        assert_eq!(other.is_some(), is_whole, "{files:?}");
        assert_ne!(other, base, "{files:?}");
    }
    let changing = DirectoryFile {
        is_changing: true,
        ..file("a.yaml", "a")
    };
    assert_eq!(digest_files(&[changing]), None);
}
