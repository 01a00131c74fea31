//! `tests/cases/helm/set.rs` compares this with helm itself.

use serde_json::json;

use super::*;

fn set(values: &mut Value, flag: &str, form: &[FormField]) -> Result<(), ValuesError> {
    apply_assignments(values, &parse_assignments(Grammar::Typed, flag)?, form)
}

fn words(error: &ValuesError) -> String {
    match error {
        ValuesError::Set { problem, .. } => format!("{error}: {problem}"),
        _ => error.to_string(),
    }
}

#[test]
fn assignments_change_what_is_there() {
    let before = json!({"a": {"b": 1}, "l": [1, {"x": 1}], "n": null});
    for (flag, after) in [
        (
            "a.c=2",
            json!({"a": {"b": 1, "c": 2}, "l": [1, {"x": 1}], "n": null}),
        ),
        (
            "l[1].y=2,l[0]=0",
            json!({"a": {"b": 1}, "l": [0, {"x": 1, "y": 2}], "n": null}),
        ),
        (
            "n.x=1,a=null",
            json!({"a": null, "l": [1, {"x": 1}], "n": {"x": 1}}),
        ),
        (
            "n[1]=x,l={}",
            json!({"a": {"b": 1}, "l": [""], "n": [null, "x"]}),
        ),
    ] {
        let mut values = before.clone();
        set(&mut values, flag, &[]).unwrap();
        assert_eq!(values, after, "{flag}");
    }
}

/// (flag, why it is refused).
#[test]
fn refused_flags_show_no_value_and_change_nothing() {
    let many = "path \"a[65536]\": the indices of these flags leave more than 65536 gaps in lists";
    let deep = format!("{}x=s3cret", "a.".repeat(31));
    let indices = format!("a{}=s3cret", "[0]".repeat(31));
    let after = "what follows its comma is not PATH=VALUE; write \\, for a comma in a value";
    let index = "an index is a number from 0 to 65536, as in a[0]";
    for (flag, message) in [
        ("a", "\"a\" has no value; write PATH=VALUE"),
        ("", "\"\" has no value; write PATH=VALUE"),
        ("a[0]", "\"a[0]\" has no value; write PATH=VALUE"),
        ("=s3cret", "path \"\": a key of the path is empty"),
        ("a..b=s3cret", "path \"a..b\": a key of the path is empty"),
        ("p=x,s3cret", &format!("path \"p\": {after}")),
        ("p=x,s3cret[=1", &format!("path \"p\": {after}")),
        ("p=x,,s3cret=1", &format!("path \"p\": {after}")),
        (
            "p={s3cret",
            "path \"p\": the list has no } at its end; write \\{ for a brace in a value",
        ),
        (
            "p=s3cret\\",
            "path \"p\": it ends in a backslash: write \\\\ for one, \\, for a comma, \\. for a dot",
        ),
        ("a[-1]=s3cret", &format!("path \"a[-1]\": {index}")),
        ("a[65537]=s3cret", &format!("path \"a[65537]\": {index}")),
        ("a[0=s3cret", &format!("path \"a[0\": {index}")),
        (
            "l[0]x=s3cret",
            "path \"l[0]x\": an index must be followed by =, a dot or another index",
        ),
        (
            "t.x=s3cret",
            "path \"t.x\": t is not a map, so nothing can be set in it",
        ),
        (
            "l.x=s3cret",
            "path \"l.x\": l is not a map, so nothing can be set in it",
        ),
        (
            "t[0]=s3cret",
            "path \"t[0]\": t is not a list, so it has no index",
        ),
        (
            "ok=1,l[0][0]=s3cret",
            "path \"l[0][0]\": l[0] is not a list, so it has no index",
        ),
        ("b[65536]=s3cret,a[65536]=s3cret", many),
        (
            &deep,
            &format!(
                "path {:?}: the path has more than 30 dots and indices",
                &deep[..63]
            ),
        ),
        (
            &indices,
            &format!(
                "path {:?}: the path has more than 30 dots and indices",
                &indices[..94]
            ),
        ),
    ] {
        let before = json!({"t": "text", "l": ["text"]});
        let mut values = before.clone();
        let error = set(&mut values, flag, &[]).unwrap_err();
        assert_eq!(words(&error), message, "{flag}");
        assert_eq!(values, before, "{flag}");
    }
}

#[test]
fn json_is_read_whole() {
    for (flag, expected) in [
        (
            "a.b={\"x\": [1, 2.5]} ,c[1]=\"y,z\"",
            json!({"a": {"b": {"x": [1, 2.5]}}, "c": [null, "y,z"]}),
        ),
        ("a=,b= 7 ,c=null", json!({"a": null, "b": 7, "c": null})),
    ] {
        let mut values = json!({});
        let assignments = parse_assignments(Grammar::Json, flag).unwrap();
        apply_assignments(&mut values, &assignments, &[]).unwrap();
        assert_eq!(values, expected, "{flag}");
    }
    for (flag, message) in [
        ("a=s3cret", "path \"a\": the value is not valid JSON"),
        ("a={\"s3cret\":", "path \"a\": the value is not valid JSON"),
        (
            "a=12345678901234567890",
            "path \"a\": a number of that size loses digits in the API server; write it in quotes",
        ),
    ] {
        let error = parse_assignments(Grammar::Json, flag).unwrap_err();
        assert_eq!(words(&error), message, "{flag}");
    }
}

#[test]
fn the_form_decides_the_type() {
    let form: Vec<FormField> = serde_json::from_value(json!([
        {"internalName": "port"},
        {"internalName": "spec.version", "type": "string"},
        {"internalName": "host\\.name", "type": "text-area"},
        {"internalName": "share", "type": "number"},
        {"internalName": "debug", "type": "boolean"},
    ]))
    .unwrap();
    for (flag, expected) in [
        ("port=8080", json!({"port": "8080"})),
        ("port=true", json!({"port": "true"})),
        ("port=+5", json!({"port": "+5"})),
        ("port=null", json!({"port": null})),
        ("spec.version=1.10", json!({"spec": {"version": "1.10"}})),
        (r"host\.name=1", json!({"host.name": "1"})),
        ("host.name=1", json!({"host": {"name": 1}})),
        ("share=1.5", json!({"share": 1.5})),
        ("share=7", json!({"share": 7})),
        // A value that does not fit is refused when values are validated.
        ("share=007", json!({"share": "007"})),
        (
            "share=12345678901234567890",
            json!({"share": "12345678901234567890"}),
        ),
        ("debug=TRUE", json!({"debug": true})),
        ("debug=yes", json!({"debug": "yes"})),
        ("port={1,2}", json!({"port": [1, 2]})),
        ("other=1.5", json!({"other": "1.5"})),
    ] {
        let mut values = json!({});
        set(&mut values, flag, &form).unwrap();
        assert_eq!(values, expected, "{flag}");
    }
}

#[test]
fn names_of_files_can_be_replaced() {
    let mut assignments = parse_assignments(Grammar::Text, "a=x,b={y,z}").unwrap();
    for text in assignments.iter_mut().flat_map(Assignment::texts_mut) {
        text.push('!');
    }
    let mut values = json!({});
    apply_assignments(&mut values, &assignments, &[]).unwrap();
    assert_eq!(values, json!({"a": "x!", "b": ["y!", "z!"]}));
}
