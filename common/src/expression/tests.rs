use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::profile::Profile;
use super::*;

fn evaluate(text: &str, profile: &Profile) -> Result<bool, ExpressionError> {
    profile.evaluate(&profile::compile(text)?)
}

#[test]
fn conditions_have_an_answer_or_say_why_not() {
    let zones = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    let profile = Profile {
        labels: Some(BTreeMap::from([("stage".to_owned(), "prod".to_owned())])),
        node_labels: Some(BTreeMap::from([("zone".to_owned(), zones)])),
        ..Profile::sample()
    };
    for (when, holds) in [
        ("true", true),
        ("provider == 'aws' && namespace == 'sample'", true),
        ("labels['stage'] == 'prod'", true),
        ("'zone' in labels && labels['zone'] == 'a'", false),
        ("labels.exists(label, label.startsWith('st'))", true),
        ("!semver(version).isLessThan(semver('1.36.0'))", true),
        ("cni in ['canal', 'calico']", false),
        ("'arm64' in architectures", false),
        ("'gpu' in nodeLabels", false),
        ("nodeLabels['zone'].size() > 1", true),
        (
            "nodeLabels.exists(key, nodeLabels[key].exists(value, value == 'b'))",
            true,
        ),
        ("'Deployment.apps' in kinds", true),
        (
            "kinds.exists(kind, kind.endsWith('.cert-manager.io'))",
            false,
        ),
        ("sets.contains(architectures, ['amd64'])", true),
    ] {
        assert_eq!(evaluate(when, &profile), Ok(holds), "{when}");
    }
    let deep = "(".repeat(17);
    let costly = "[1].all(a, [1].all(b, [1].all(c, a == b && b == c)))";
    let long = "'a' == 'a' || ".repeat(80);
    for (when, expected) in [
        ("cni ==", "it is not a CEL expression: "),
        ("", "it is not a CEL expression: "),
        (
            "region == 'eu'",
            "region is not a fact of clusters; these are: namespace, labels",
        ),
        ("cni == 'canal' && region == 'eu'", "region is not a fact"),
        ("cni", "it is neither true nor false"),
        ("nonsense(cni)", "there is no function nonsense"),
        // The sample does not evaluate the right side.
        (
            "cni == 'canal' && nonsense(cni)",
            "there is no function nonsense",
        ),
        // No label is missing here: the evaluation fails in every cluster.
        (
            "version > 1 || labels.size() > 0",
            "a value does not have the type that it needs",
        ),
        ("semver('labels').major() == 1", "semver() fails"),
        ("{'labels': 1}.a == 1", "a does not exist"),
        ("Type{a: 1} == Type{a: 1}", "no types are defined"),
        ("labels.?tier.hasValue()", "it is not a CEL expression: "),
        (&deep, "more than 16 brackets"),
        (costly, "more than 2 comprehensions"),
        (&long, "1120 bytes; 1000 are allowed"),
    ] {
        let error = profile::compile(when).unwrap_err().to_string();
        assert!(error.contains(expected), "{when}: {error}");
    }
}

/// Few comprehensions, and more time or memory than any machine has.
#[test]
fn what_a_condition_costs_is_counted_before_it_is_evaluated() {
    let conditions = [
        // Each doubles what the one before it wrote.
        format!("[[1]]{}.size() == 1", ".map(a, a + a)".repeat(60)),
        format!(
            "['a'].all(a, a{} == '')",
            ".replace('a', 'aaaa')".repeat(20)
        ),
        "'a'.matches('(a{1000}){1000}') && ".repeat(20) + "true",
        "[1].all(lists, lists.range(1000000000).size() > 1)".to_owned(),
    ];
    for when in conditions {
        let error = profile::compile(&when).unwrap_err().to_string();
        let expected = "steps, and 1000000 are allowed: write shorter lists";
        assert!(error.contains(expected), "{when}: {error}");
    }
    // As long as they may be, and within the bounds.
    let ones = "1,".repeat(220) + "1";
    let loops = format!("[{ones}].all(a, [{ones}].all(b, a == b))");
    for deepest in [loops, "!".repeat(994) + "true", "1+".repeat(490) + "1 > 0"] {
        assert!(profile::compile(&deepest).is_ok(), "{deepest}");
    }
}

#[test]
fn what_an_object_costs_is_counted_with_its_size() {
    let twice = Expression::compile("status.a.all(x, status.a.all(y, x != y || x == y))").unwrap();
    for (count, is_ok) in [(10, true), (2_000, false)] {
        let object = json!({"status": {"a": vec![0; count]}});
        let holds = twice.evaluate(object.as_object().unwrap());
        assert_eq!(holds.is_ok(), is_ok, "{holds:?}");
    }
    // What is not read does not count.
    let deep =
        json!({"metadata": {"generation": 2, "managedFields": vec![vec![vec![0; 100]; 100]; 50]}});
    let one = Expression::compile("metadata.generation == 2").unwrap();
    assert_eq!(one.evaluate(deep.as_object().unwrap()), Ok(true));
}

#[test]
fn an_error_repeats_no_value() {
    let secret = json!({"data": {"token": "hunter2"}});
    for text in [
        "data.token > 1",
        "semver(data.token).major() > 1",
        "data.token + 1 == 2",
        "data.tokens == ''",
    ] {
        let error = Expression::compile(text)
            .unwrap()
            .evaluate(secret.as_object().unwrap());
        let error = error.unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn what_clusters_have_is_bounded_before_it_is_read() {
    let mut profile = Profile::sample();
    profile.provider = Some("x".repeat(300));
    for label in 0..65 {
        let labels = profile.labels.get_or_insert_default();
        labels.insert(label.to_string(), String::new());
    }
    for (when, fact) in [
        (
            "provider == 'aws'",
            Some("provider of this cluster is too large"),
        ),
        ("'a' in labels", Some("labels of this cluster is too large")),
        ("cni == 'cilium'", None),
    ] {
        let error = evaluate(when, &profile).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(
            error.starts_with(fact.unwrap_or_default()),
            "{when}: {error}"
        );
        assert_eq!(error.is_empty(), fact.is_none(), "{when}: {error}");
    }
}
