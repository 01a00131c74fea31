//! Defaulted values follow the catalogue, edited ones are the user's (semantics 10).

use serde_json::json;

use super::*;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Fills, and returns the values and the recorded pointers.
fn filled(
    current: Value,
    record: &DefaultsRecord,
    defaults: Value,
) -> (Value, Vec<String>, DefaultsRecord) {
    let filled = fill_defaults(&map(current), record, map(defaults)).unwrap();
    let pointers = filled.record.0.keys().cloned().collect();
    (Value::Object(filled.values), pointers, filled.record)
}

#[test]
fn missing_paths_are_filled_and_recorded_by_leaf() {
    // user's values, defaults, result, recorded
    for (current, defaults, values, pointers) in [
        (json!({}), json!({}), json!({}), vec![]),
        (
            json!({}),
            json!({"a": {"b": 1, "c": [1, 2]}}),
            json!({"a": {"b": 1, "c": [1, 2]}}),
            vec!["/a/b", "/a/c"],
        ),
        (
            json!({"a": {"b": 2}}),
            json!({"a": {"b": 1, "c": 3}}),
            json!({"a": {"b": 2, "c": 3}}),
            vec!["/a/c"],
        ),
        (
            json!({"a": "text"}),
            json!({"a": {"b": 1}}),
            json!({"a": "text"}),
            vec![],
        ),
        (
            json!({"a": null}),
            json!({"a": 1}),
            json!({"a": null}),
            vec![],
        ),
        (
            json!({"a": [1]}),
            json!({"a": [2, 3]}),
            json!({"a": [1]}),
            vec![],
        ),
        (
            json!({"a": {}}),
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 1}}),
            vec!["/a/b"],
        ),
        (
            json!({}),
            json!({"a": {}, "b": null}),
            json!({"a": {}, "b": null}),
            vec!["/a", "/b"],
        ),
        (
            json!({}),
            json!({"a/b": {"c~d": 1}}),
            json!({"a/b": {"c~d": 1}}),
            vec!["/a~1b/c~0d"],
        ),
        (json!({}), json!({"a": 1.0}), json!({"a": 1}), vec!["/a"]),
    ] {
        let (got, recorded, _) = filled(
            current.clone(),
            &DefaultsRecord::default(),
            defaults.clone(),
        );
        assert_eq!(
            (got, recorded),
            (values, pointers.into_iter().map(str::to_owned).collect()),
            "{current} {defaults}"
        );
    }
}

#[test]
fn what_is_ours_follows_and_what_was_edited_stays() {
    let (first, _, record) = filled(
        json!({"own": 1}),
        &DefaultsRecord::default(),
        json!({"a": {"b": 1, "c": 2}, "d": 3}),
    );
    // how the user changed the values, new defaults, result, recorded
    for (edit, defaults, values, pointers) in [
        (
            first.clone(),
            json!({"a": {"b": 9, "c": 2}, "d": 3}),
            json!({"own": 1, "a": {"b": 9, "c": 2}, "d": 3}),
            vec!["/a/b", "/a/c", "/d"],
        ),
        (
            first.clone(),
            json!({"d": 3}),
            json!({"own": 1, "d": 3}),
            vec!["/d"],
        ),
        (
            first.clone(),
            json!({"d": {"e": 1}}),
            json!({"own": 1, "d": {"e": 1}}),
            vec!["/d/e"],
        ),
        (
            json!({"own": 1, "a": {"b": 7, "c": 2}, "d": 3}),
            json!({"a": {"b": 9}}),
            json!({"own": 1, "a": {"b": 7}}),
            vec![],
        ),
        (
            json!({"own": 1, "a": {"c": 2}, "d": 3}),
            json!({"a": {"b": 9}}),
            json!({"own": 1, "a": {"b": 9}}),
            vec!["/a/b"],
        ),
        (
            json!({"a": "mine"}),
            json!({"a": {"b": 9}, "own": 2}),
            json!({"a": "mine", "own": 2}),
            vec!["/own"],
        ),
        (
            json!({"own": 1, "a": {"b": 1, "c": 2, "x": {}}, "d": 3}),
            json!({}),
            json!({"own": 1, "a": {"x": {}}}),
            vec![],
        ),
    ] {
        let (got, recorded, _) = filled(edit.clone(), &record, defaults.clone());
        assert_eq!(
            (got, recorded),
            (values, pointers.into_iter().map(str::to_owned).collect()),
            "{edit} {defaults}"
        );
    }
    assert_eq!(
        Value::Object(user_values(&map(first), &record)),
        json!({"own": 1})
    );
}

#[test]
fn a_number_keeps_its_digest_on_the_way_through_the_api_server() {
    for (written, stored) in [
        (json!(1.0), json!(1)),
        (json!(-3.0), json!(-3)),
        (json!(1e3), json!(1000)),
        (json!([1.0, {"a": 2.0}]), json!([1, {"a": 2}])),
        (json!(0.5), json!(0.5)),
        (json!(1e300), json!(1e300)),
    ] {
        assert_eq!(digest(&written), digest(&stored), "{written}");
        assert_eq!(to_stored(written), stored);
    }
    assert_ne!(digest(&json!(1)), digest(&json!("1")));
}

#[test]
fn an_unreadable_record_is_none_and_a_too_long_one_is_not_begun() {
    for text in ["", "null", "[]", "{\"a\": 1}", "{"] {
        assert_eq!(
            DefaultsRecord::parse(Some(text)),
            DefaultsRecord::default(),
            "{text}"
        );
    }
    let many: Map<String, Value> = (0..10_000)
        .map(|i| (format!("key-{i}"), json!(i)))
        .collect();
    assert_eq!(
        fill_defaults(&Map::new(), &DefaultsRecord::default(), many),
        None
    );
    let mut deep = json!(1);
    for _ in 0..120 {
        deep = json!({ "a": deep });
    }
    assert_eq!(
        fill_defaults(&Map::new(), &DefaultsRecord::default(), map(deep)),
        None
    );
}

#[test]
fn differences_are_as_deep_and_few_as_possible() {
    let mut operations = Vec::new();
    let root = PointerBuf::from_tokens(["spec", "values"]);
    let old = json!({"same": {"x": 1}, "gone": 1, "a": {"b": 1, "c/d": 2}, "list": [1, 2]});
    let new = json!({"same": {"x": 1}, "a": {"b": 1, "c/d": 3, "e": {"f": 1}}, "list": [1, 2, 3]});
    append_difference(&root, &map(old), &map(new), &mut operations);
    assert_eq!(
        serde_json::to_value(&operations).unwrap(),
        json!([
            {"op": "remove", "path": "/spec/values/gone"},
            {"op": "replace", "path": "/spec/values/a/c~1d", "value": 3},
            {"op": "add", "path": "/spec/values/a/e", "value": {"f": 1}},
            {"op": "replace", "path": "/spec/values/list", "value": [1, 2, 3]},
        ])
    );
}
