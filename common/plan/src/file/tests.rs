use serde_json::{Value, json};

use super::*;

fn planned(change: &[(&str, Value)]) -> InstallationPlan {
    let key = |kind: &str, name: &str| json!({"group": "", "kind": kind, "namespace": "shop", "name": name});
    let target = |kind: &str, name: &str| json!({"key": key(kind, name), "version": "v1", "plural": format!("{}s", kind.to_lowercase())});
    let mut value = json!({
        "installation": {"namespace": "kube-system", "name": "web"},
        "addon": "web",
        "verb": "upgrade",
        "from": {"version": "1.0.0", "manifestHash": "aa"},
        "to": {"version": "1.1.0", "manifestHash": "bb", "valuesHash": "vv", "rules": "documented"},
        "entry": {"addon": "web", "origin": {"index": {"location": "file:///index.yaml"}},
            "place": "spec.addons[0].versions[0]", "digest": "e1"},
        "wanted": {"spec": {"addonRef": {"name": "web", "version": "1.1.0", "index": "file:///index.yaml"}}},
        "record": {"uid": "u0", "spec": "s1", "inventory": "i1", "operation": false},
        "steps": [
            {"target": target("ConfigMap", "a"), "action": "update", "digest": "d1", "policy": {"conflicts": "Take"}},
            {"target": target("Secret", "s"), "action": "refresh", "policy": {"conflicts": "Take"}}],
        "closing": [{"delete": {"turn": "identity", "deletion": {"target": target("ConfigMap", "old"), "uid": "u3"}}}],
        "retained": [key("PersistentVolumeClaim", "data")],
        "unchanged": [key("Deployment", "d")],
        "facts": {
            "live": [
                {"key": key("ConfigMap", "a"), "uid": "u1", "writes": "10", "owner": "o"},
                {"key": key("ConfigMap", "old"), "uid": "u3", "writes": "11", "owner": "o"},
                {"key": key("Deployment", "d"), "uid": "u2", "generation": 4, "owner": "o"}],
            "namespaces": ["shop"],
            "kinds": [{"group": "", "kind": "ConfigMap", "served": "v1/configmaps"},
                {"group": "example.test", "kind": "Thing"}]},
    });
    for (pointer, new) in change {
        match value.pointer_mut(pointer) {
            Some(place) => *place = new.clone(),
            None => {
                let (parent, field) = pointer.rsplit_once('/').unwrap();
                value.pointer_mut(parent).unwrap()[field] = new.clone();
            }
        }
    }
    serde_json::from_value(value).unwrap()
}

/// (what moved, the list).
#[test]
fn everything_that_moved_is_listed() {
    let live = |fields: Value| {
        let mut live = planned(&[]).facts.live;
        let mut value = json!(live.remove(2));
        for (name, new) in fields.as_object().unwrap() {
            value[name] = new.clone();
        }
        ("/facts/live/2", value)
    };
    let is = |expected: &str| vec![expected.to_owned()];
    let unhurt = json!({"names": [], "count": 0});
    let breakage = json!({
        "definition": {"group": "apiextensions.k8s.io", "kind": "CustomResourceDefinition", "name": "things.example.test"},
        "kind": "Thing", "impossible": [], "changes": ["field spec.a goes away"],
        "loses": unhurt, "invalid": unhurt, "unseen": null});
    let rows = [
        (vec![], vec![]),
        (vec![("/warnings", json!(["x"]))], is("kube-system/web: not in the plan: x")),
        // Nothing else names it.
        (vec![("/unchanged", json!([]))], is("kube-system/web: another plan would be made")),
        (vec![("/requires", json!([{"namespace": "shop", "name": "db"}]))], is("kube-system/web: another plan would be made")),
        (vec![("/record", Value::Null)], is("installation kube-system/web: it is gone")),
        (vec![("/record/uid", json!("u9"))],
            is("installation kube-system/web: it is another one with the same name, created later")),
        (vec![("/record/spec", json!("s2"))], is("installation kube-system/web: its spec, labels or annotations changed")),
        (vec![("/record/inventory", json!("i2")), ("/record/operation", json!(true))], vec![
            "installation kube-system/web: its inventory changed: another client installed or upgraded it".to_owned(),
            "installation kube-system/web: an operation is in progress, or was interrupted".to_owned()]),
        (vec![("/entry/digest", json!("e2")), ("/to/manifestHash", json!("0123456789abcdef0123456789abcdef"))], vec![
            "web in index file:///index.yaml, spec.addons[0].versions[0]: the entry changed".to_owned(),
            "installation kube-system/web: manifestHash bb → 0123456789ab…".to_owned()]),
        (vec![("/to/registry", json!("mirror.example.test"))],
            is("installation kube-system/web: private registry none → mirror.example.test")),
        (vec![("/wanted/spec/values", json!({"a": 1}))],
            is("kube-system/web: defaults changed: another spec would be recorded")),
        (vec![("/facts/kinds/1/served", json!("v1/things"))], is("kind Thing of example.test: the cluster serves it now")),
        (vec![("/facts/kinds/0/served", Value::Null)], is("kind ConfigMap: the cluster no longer serves it")),
        (vec![("/facts/kinds/0/served", json!("v2/configmaps"))],
            is("kind ConfigMap: served as v1/configmaps, now as v2/configmaps")),
        (vec![("/facts/namespaces", json!([]))], is("Namespace shop: it is gone")),
        (vec![("/facts/namespaces", json!(["shop", "web"]))], is("Namespace web: it is there now")),
        (vec![live(json!({"generation": 5}))], is("shop/Deployment d: edited: generation 4 → 5")),
        (vec![live(json!({"uid": "u8", "generation": 1}))], is("shop/Deployment d: it was deleted and made again")),
        (vec![live(json!({"owner": null}))], is("shop/Deployment d: its owner label o → none")),
        (vec![live(json!({"terminating": true}))], is("shop/Deployment d: it is being deleted")),
        // What follows from it is not told again.
        (vec![("/facts/live/0/writes", json!("12")), ("/steps/0/action", json!("restore"))],
            is("shop/ConfigMap a: edited by another client")),
        (vec![("/steps/0/digest", json!("d2"))], is("shop/ConfigMap a: other content would be applied")),
        (vec![("/steps/0/action", json!("restore"))], is("shop/ConfigMap a: it would be applied in another way")),
        (vec![("/steps", json!([]))], vec![
            "shop/ConfigMap a: it would no longer be applied".to_owned(),
            "shop/Secret s: it would no longer be applied".to_owned()]),
        (vec![("/closing", json!([]))], is("shop/ConfigMap old: it would no longer be deleted")),
        (vec![("/retained", json!([]))], is("shop/PersistentVolumeClaim data: it would no longer be retained")),
        (vec![("/breakages", json!([breakage]))],
            is("kube-system/web: not accepted: CustomResourceDefinition things.example.test: field spec.a goes away")),
        (vec![("/createNamespace", json!("web"))], is("kube-system/web: another namespace would be created")),
    ];
    for (change, expected) in rows {
        let now = planned(&change);
        let found: Vec<String> = moved(&planned(&[]), &now)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected, "{change:?}");
    }
    let (with, without) = (planned(&[]), planned(&[("/record", Value::Null)]));
    assert_eq!(moved(&without, &with).len(), 1, "a record that appeared");
    let mut fewer = planned(&[]);
    fewer.facts.live.remove(1);
    let lines =
        |then, now| -> Vec<String> { moved(then, now).iter().map(ToString::to_string).collect() };
    assert_eq!(lines(&with, &fewer), ["shop/ConfigMap old: it is gone"]);
    assert_eq!(
        lines(&fewer, &with),
        ["shop/ConfigMap old: it is there now"]
    );
}

fn file() -> PlanFile {
    PlanFile {
        api_version: "kubectl-addons.dev/v1alpha9".to_owned(),
        kind: KIND.to_owned(),
        tool: "kubectl-addons 0.1.0".to_owned(),
        cluster: PlanFileCluster {
            namespace: "kube-system".to_owned(),
            uid: "u".to_owned(),
            version: "v1.36.3".to_owned(),
        },
        choices: Choices::default(),
        defines: false,
        namespaces: Vec::new(),
        installations: vec![planned(&[])],
        graph: Graph::default(),
        changes: Vec::new(),
    }
}

#[test]
fn a_file_is_read_as_it_was_written() {
    let (value, digest) = write(&file()).unwrap();
    assert!(
        digest.starts_with("sha256:") && digest.len() == 71,
        "{digest}"
    );
    let bytes = serde_json::to_vec_pretty(&value).unwrap();
    assert_eq!(json!(read(&bytes, None).unwrap()), json!(file()));
}

#[test]
fn a_file_of_a_fleet_is_read_as_it_was_written() {
    let places = [
        FleetClusterSource::Context("a".into()),
        FleetClusterSource::Namespace("b".into()),
    ];
    let clusters = places
        .into_iter()
        .map(|at| ClusterPlan { at, plan: file() });
    let fleet = FleetPlan::new(clusters.collect());
    let (value, _) = write(&fleet).unwrap();
    assert_eq!(value["clusters"][0]["at"], json!({"context": "a"}));
    let bytes = value.to_string().into_bytes();
    assert_eq!(json!(read(&bytes, None).unwrap()), json!(fleet));
    let changed = value
        .to_string()
        .replace("\"context\":\"a\"", "\"context\":\"c\"");
    let error = read(changed.as_bytes(), None).unwrap_err().to_string();
    assert!(error.starts_with("its digest is sha256:"), "{error}");
}

/// (bytes, the beginning of the error).
#[test]
fn bad_files_are_one_clear_error() {
    let (value, _) = write(&file()).unwrap();
    let text = value.to_string();
    let mut unknown = value.clone();
    unknown["later"] = json!(1);
    unknown["digest"] = Value::Null;
    let resealed = |mut value: Value| {
        value.as_object_mut().unwrap().remove("digest");
        let digest = format!(
            "sha256:{}",
            common::manifest::digest::sha256_canonical(&value)
        );
        value["digest"] = json!(digest);
        value.to_string()
    };
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for (bytes, expected) in [
        (String::new(), "line 1, column 0: it is not valid JSON"),
        (
            text.get(..text.len() / 2).unwrap().to_owned(),
            "line 1, column ",
        ),
        (deep, "lists and maps nest 10000 levels deep"),
        (" ".repeat(LARGEST + 1), "it has more than 16 MiB"),
        (
            "[]".to_owned(),
            "it is something without apiVersion and kind, not",
        ),
        (
            r#"{"apiVersion": "v1", "kind": "Pod"}"#.to_owned(),
            "it is v1 Pod, not",
        ),
        (
            text.replace("dev/v1alpha9", "dev/v1alpha1"),
            "it is an AddonPlan of version kubectl-addons.dev/v1alpha1, and this program reads kubectl-addons.dev/v1alpha9",
        ),
        (text.replace("\"d1\"", "\"d2\""), "its digest is sha256:"),
        (
            text.replace("\"digest\":\"sha256:", "\"digest\":\"md5:"),
            "its digest is md5:",
        ),
        (unknown.to_string(), "its digest is missing"),
        (resealed(unknown), "it cannot be read as a plan"),
    ] {
        let error = read(bytes.as_bytes(), None).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// A digest of its own protects nothing from whoever edits the file: the one that was reviewed comes from elsewhere.
#[test]
fn only_the_expected_plan_is_read() {
    let (value, digest) = write(&file()).unwrap();
    let bytes = value.to_string().into_bytes();
    assert!(read(&bytes, Some(&digest)).is_ok());
    let other = format!("sha256:{}", "0".repeat(64));
    let error = read(&bytes, Some(&other)).unwrap_err();
    assert!(matches!(error, FileError::NotExpected { .. }), "{error}");
    assert_eq!(expected(&digest), Ok(digest.clone()));
    for wrong in [
        "",
        "sha256:",
        "sha256:12",
        digest.trim_start_matches("sha256:"),
    ] {
        assert!(expected(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn changes_that_the_server_would_not_make_are_listed() {
    let change = |name: &str, new: &str| -> ObjectDiff {
        let key = json!({"group": "", "kind": "ConfigMap", "namespace": "shop", "name": name});
        let field =
            json!({"path": "data.key", "new": new, "owners": [{"manager": "m", "since": new}]});
        let change = json!({"key": key, "action": "update", "created": false, "fields": [field]});
        serde_json::from_value(change).unwrap()
    };
    let mut then = file();
    then.changes = vec![change("a", "1"), change("random", "1")];
    then.installations[0].generated = [then.changes[1].key.clone()].into();
    let lines = |now: &[ObjectDiff]| -> Vec<String> {
        let moved = moved_changes(&then, now);
        moved.iter().map(ToString::to_string).collect()
    };
    let shown = "other changes would be made than the plan shows";
    let none: [String; 0] = [];
    assert_eq!(lines(&[change("random", "2"), change("a", "1")]), none);
    let of_a = format!("shop/ConfigMap a: {shown}");
    assert_eq!(
        lines(&[change("random", "2"), change("a", "2")]),
        std::slice::from_ref(&of_a)
    );
    let of_both = [of_a, format!("shop/ConfigMap random: {shown}")];
    assert_eq!(lines(&[]), of_both);
}
