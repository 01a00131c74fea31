//! Admission: no bytes make it panic, defaults are filled once, duplicates are those of the definition.

#![expect(clippy::expect_used, reason = "a law that does not hold ends its test")]

use std::sync::Arc;

use addons_admission::mutate::defaults;
use addons_admission::review::{Response, ReviewRequest};
use addons_admission::rules::duplicates;
use addons_admission::{AdmissionFacts, mutate, validate};
use common::api::catalogue::{Addon, AddonCatalogue, AddonVersion};
use common::api::names::{ANNOTATION_DEFAULTED, API_VERSION, SYSTEM_NAMESPACE};
use common::catalogue::select::ClusterVersions;
use common::values::defaulted::{DefaultsRecord, user_values};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::law;

/// JSON with few keys, so that user and catalogue meet at the same paths; also keys that a pointer must escape.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        (-3i64..3).prop_map(|value| json!(value)),
        (-3i32..3).prop_map(|value| json!(f64::from(value))),
        "[a-c]{0,2}".prop_map(|value| json!(value)),
        vec(0..3i64, 0..3).prop_map(|value| json!(value)),
        Just(json!({})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| object(inner).boxed())
}

fn object(inner: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    btree_map(select(vec!["a", "b", "c/d", "e~f", ""]), inner, 0..4).prop_map(|map| json!(map))
}

/// Facts with one add-on `web` whose two versions have these values.
fn catalogue(first: &Value, second: &Value) -> AddonCatalogue {
    let version = |version: &str, values: &Value| {
        json!({"version": version, "values": values, "template": {"method": "go-template"},
            "source": {"inline": {"manifest": ""}}})
    };
    serde_json::from_value(json!({
        "apiVersion": API_VERSION, "kind": "AddonCatalogue",
        "metadata": {"name": "platform", "namespace": SYSTEM_NAMESPACE},
        "spec": {"addons": [{"name": "web", "versions": [
            version("1.0.0", first), version("2.0.0", second)]}]},
    }))
    .expect("a catalogue")
}

fn facts(first: &Value, second: &Value) -> AdmissionFacts {
    AdmissionFacts {
        catalogues: vec![Arc::new(catalogue(first, second).into())],
        cluster: ClusterVersions {
            kubernetes: Some(semver::Version::new(1, 36, 3)),
            kkp: None,
            profile: None,
        },
        ..AdmissionFacts::default()
    }
}

fn installation(version: &str, values: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "AddonInstallation",
        "metadata": {"name": "web", "namespace": SYSTEM_NAMESPACE},
        "spec": {"addonRef": {"name": "web", "version": version}, "values": values, "unknown": [1]},
    })
}

fn filled(object: &Value, facts: &AdmissionFacts) -> Value {
    let mut new = object.clone();
    json_patch::patch(&mut new, &defaults(object, None, facts).patch)
        .expect("the patch fits the object");
    new
}

/// The user's own values of a filled object.
fn own_values(object: &Value) -> Value {
    let record =
        DefaultsRecord::parse(object["metadata"]["annotations"][ANNOTATION_DEFAULTED].as_str());
    let none = serde_json::Map::new();
    json!(user_values(
        object["spec"]["values"].as_object().unwrap_or(&none),
        &record
    ))
}

/// The value as the API server gives it back: floats without a fraction are integers there.
fn as_stored(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => number
            .as_f64()
            .filter(|float| float.fract() == 0.0)
            .map_or_else(|| value.clone(), |float| json!(float as i64)),
        Value::Array(items) => items.iter().map(as_stored).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), as_stored(value)))
            .collect(),
        other => other.clone(),
    }
}

/// Objects that hold nothing but such objects are the same as nothing: they are filled and emptied again.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), without_empty(value)))
            .filter(|(_, value)| *value != json!({}))
            .collect(),
        other => other.clone(),
    }
}

/// A review that a server could send.
fn review(kind: &str, operation: &str, new: &Value, old: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": operation, "name": "", "namespace": SYSTEM_NAMESPACE,
        "kind": {"group": if kind == "Namespace" { "" } else { "kubectl-addons.dev" }, "version": "v1", "kind": kind},
        "resource": {"group": "g", "version": "v1", "resource": "r"},
        "userInfo": {"username": "jane", "groups": ["a"]}, "object": new, "oldObject": old,
    }})
}

/// Answers as the webhook does; a uid that could be read is echoed.
fn answered(bytes: &[u8], facts: &AdmissionFacts) {
    let Ok(request) = ReviewRequest::from_slice(bytes) else {
        return;
    };
    let judged = Response::from_verdict(&request, &validate::validate(&request, facts));
    assert_eq!(judged.uid(), request.uid);
    serde_json::to_vec(&judged).expect("an answer is JSON");
    let patch = mutate::mutate(&request, facts).patch;
    Response::patched(&request.uid, &patch).expect("a patch is JSON");
    let object = request
        .object
        .and_then(|object| serde_json::from_str::<Value>(object.get()).ok());
    if let Some(mut object) = object {
        json_patch::patch(&mut object, &patch).expect("the patch fits the object");
    }
}

/// Values in the place of any node of a review.
fn scramble(value: &mut Value, at: &mut usize, with: &Value) {
    if *at == 0 {
        *value = with.clone();
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| scramble(item, at, with)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|item| scramble(item, at, with)),
        _ => {}
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Entries of one or two names with few versions and ids.
fn entries() -> impl Strategy<Value = Vec<(bool, &'static str, &'static str)>> {
    let version = select(vec!["1", "v1", "1.0.0+x", "1.0.0-rc.1", "2", "", "odd.one"]);
    vec(
        (any::<bool>(), version, select(vec!["", "", "x", "y"])),
        0..12,
    )
}

/// Semantics 2, word by word.
fn duplicates_of(a: &(bool, &str, &str), b: &(bool, &str, &str)) -> bool {
    let canonical = |version: &str| match version {
        "1" | "v1" | "1.0.0+x" => "1.0.0".to_owned(),
        other => other.to_owned(),
    };
    let ids_differ = !a.2.is_empty() && !b.2.is_empty() && a.2 != b.2;
    a.0 == b.0 && canonical(a.1) == canonical(b.1) && !ids_differ
}

fn law<S: Strategy>(
    name: &'static str,
    strategy: S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    law::law(name, law::cases(500, 50_000), strategy, test);
}

#[test]
fn defaults_are_filled_once_and_the_users_values_stay() {
    let name = "properties::admission filled once";
    law(
        name,
        (object(tree()), object(tree())),
        |(user, catalogue)| {
            let facts = facts(&catalogue, &json!({}));
            let first = filled(&installation("1.0.0", &user), &facts);
            prop_assert!(defaults(&first, None, &facts).patch.0.is_empty(), "{first}");
            // The API server writes 1.0 as 1; that is no edit.
            let stored = as_stored(&first);
            prop_assert!(
                defaults(&stored, None, &facts).patch.0.is_empty(),
                "{stored}"
            );
            prop_assert_eq!(&first["spec"]["unknown"], &json!([1]));
            prop_assert_eq!(without_empty(&own_values(&first)), without_empty(&user));
            Ok(())
        },
    );
}

#[test]
fn another_version_leaves_nothing_of_the_first_and_all_of_the_users() {
    let name = "properties::admission another version";
    let strategy = (object(tree()), object(tree()), object(tree()));
    law(name, strategy, |(user, one, two)| {
        let facts = facts(&one, &two);
        // An empty object of the user's cannot be told from one that is empty again.
        let user = without_empty(&user);
        let mut object = filled(&installation("1.0.0", &user), &facts);
        object["spec"]["addonRef"]["version"] = json!("2.0.0");
        let upgraded = filled(&object, &facts);
        let fresh = filled(&installation("2.0.0", &user), &facts);
        prop_assert_eq!(
            without_empty(&upgraded["spec"]["values"]),
            without_empty(&fresh["spec"]["values"])
        );
        prop_assert_eq!(without_empty(&own_values(&upgraded)), without_empty(&user));
        Ok(())
    });
}

#[test]
fn duplicates_are_those_of_the_definition() {
    law("properties::admission duplicates", entries(), |entries| {
        let mut expected = Vec::new();
        let mut kept: Vec<&(bool, &str, &str)> = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            if kept.iter().any(|earlier| duplicates_of(earlier, entry)) {
                expected.push(format!("spec.addons[{i}].versions[0]"));
            } else {
                kept.push(entry);
            }
        }
        let mut catalogue = catalogue(&json!({}), &json!({}));
        let addon = |(first, version, id): &(bool, &str, &str)| Addon {
            name: if *first { "a" } else { "b" }.to_owned(),
            versions: vec![AddonVersion {
                version: (*version).to_owned(),
                id: (*id).to_owned(),
                ..AddonVersion::default()
            }],
            ..Addon::default()
        };
        catalogue.spec.addons = entries.iter().map(addon).collect();
        let found: Vec<String> = duplicates::find_inside(&catalogue)
            .into_iter()
            .map(|problem| problem.field)
            .collect();
        prop_assert_eq!(found, expected);
        Ok(())
    });
}

#[test]
fn no_bytes_make_it_panic() {
    let strategy = vec(any::<u8>(), 0..256);
    law("properties::admission any bytes", strategy, |bytes| {
        answered(&bytes, &facts(&json!({}), &json!({})));
        Ok(())
    });
}

#[test]
fn no_review_makes_it_panic() {
    let strategy = (
        select(vec![
            "AddonCatalogue",
            "AddonInstallation",
            "Namespace",
            "Pod",
        ]),
        select(vec!["CREATE", "UPDATE", "DELETE", "CONNECT"]),
        any::<Index>(),
        tree(),
        any::<Index>(),
        object(tree()),
    );
    let name = "properties::admission any review";
    law(
        name,
        strategy,
        |(kind, operation, which, with, cut, user)| {
            let (first, second) = (json!({"a": 1}), json!({"b": {"c/d": [1]}}));
            let facts = facts(&first, &second);
            let object = match kind {
                "AddonCatalogue" => json!(catalogue(&first, &second)),
                _ => installation("1", &user),
            };
            let mut review = review(kind, operation, &object, &object);
            answered(review.to_string().as_bytes(), &facts);
            let mut at = which.index(count(&review));
            scramble(&mut review, &mut at, &with);
            let text = review.to_string();
            answered(text.as_bytes(), &facts);
            answered(&text.as_bytes()[..cut.index(text.len())], &facts);
            Ok(())
        },
    );
}
