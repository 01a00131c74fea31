use serde_json::{Value, json};

use super::*;

const KEY: &str = "$serde_json::private::RawValue";
/// The stack of the threads that validate reviews, which belong to actix and tokio.
const STACK: usize = 2 << 20;

fn nested(levels: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

/// Maps with the reserved key, each in the text of the one around it.
fn keyed(times: usize) -> String {
    (0..times).fold(nested(100), |inner, _| json!({ KEY: inner }).to_string())
}

#[test]
fn reserved_keys_are_found_however_they_are_written() {
    for (text, is_refused) in [
        (json!({KEY: "1"}).to_string(), true),
        (json!({"a": [{"b": 1, KEY: {}}]}).to_string(), true),
        (
            r#"{"\u0024serde_json::private::RawValue" : "1"}"#.into(),
            true,
        ),
        (r#"{"$serde_json::private::Number":"1"}"#.into(), true),
        (r#"{"$serde\u005fjson::private::RawValue":1}"#.into(), true),
        // Not a key.
        (json!({"a": KEY}).to_string(), false),
        (json!([KEY, format!("\"{KEY}\":1")]).to_string(), false),
        (r#"{"a\\":"b\"","c":"\\"}"#.into(), false),
        ("".into(), false),
        (r#"{"a"#.into(), false),
    ] {
        let checked = check(text.as_bytes(), MAX_DEPTH);
        assert_eq!(checked == Err(BoundsError::Key), is_refused, "{text}");
        assert_eq!(
            from_str::<Value>(&text).is_ok(),
            !is_refused && text.len() > 3,
            "{text}"
        );
    }
}

#[test]
fn what_is_read_is_bounded() {
    let deepest = nested(MAX_DEPTH);
    assert_eq!(check(deepest.as_bytes(), MAX_DEPTH), Ok(()));
    assert!(from_str::<Value>(&deepest).is_ok());
    let deeper = nested(MAX_DEPTH + 1);
    let refused = BoundsError::Depth {
        levels: MAX_DEPTH + 1,
        most: MAX_DEPTH,
    };
    assert_eq!(check(deeper.as_bytes(), MAX_DEPTH), Err(refused));
    let error = from_slice::<Value>(deeper.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), refused.to_string());
    let many = format!("[{}0]", "0,".repeat(MAX_NODES));
    assert_eq!(check(many.as_bytes(), MAX_DEPTH), Err(BoundsError::Nodes));
    // Brackets in texts do not count.
    assert_eq!(check(br#"["[[[[\"[[[["]"#, 1), Ok(()));
}

#[test]
fn one_object_of_a_list_says_nothing_of_the_others() {
    let text = format!(
        r#"{{"metadata":null,"items":[{{"metadata":{{"name":"a"}}}},{{"kind":"Thing","metadata":{{"name":"b","namespace":"c"}},"spec":{}}}]}}"#,
        nested(5000)
    );
    let list = read_list::<Option<String>>(text.as_bytes()).unwrap();
    let items = list.items;
    assert!(from_str::<Value>(items[0].get()).is_ok());
    assert!(from_str::<Value>(items[1].get()).is_err());
    assert_eq!(ObjectName::read(items[1].get()).to_string(), "Thing c/b");
    let none = super::read_list::<Option<String>>(br#"{"items":null}"#).unwrap();
    assert!(none.items.is_empty());
}

#[test]
fn what_is_one_of_many_is_reduced_to_its_metadata() {
    let whole = r#"{"metadata":{"name":"a"},"spec":1}"#;
    let read = read_object(whole).unwrap();
    assert_eq!(
        (reduced_reason(&read), read["spec"].clone()),
        (None, json!(1))
    );
    let entry = |fields: &str| format!(r#"{{"manager":"m","fieldsV1":{fields}}}"#);
    let managers = [entry("{}"), entry(&nested(200))].join(",");
    let text = format!(
        r#"{{"kind":"Thing","metadata":{{"name":"a","uid":"u","finalizers":["f"],"labels":{{"l":"1"}},"managedFields":[{managers}]}},"spec":{}}}"#,
        nested(200)
    );
    let read = read_object(&text).unwrap();
    assert!(
        reduced_reason(&read).unwrap().contains("levels deep"),
        "{read}"
    );
    assert_eq!(read["metadata"]["finalizers"], json!(["f"]));
    assert_eq!(read["metadata"]["labels"]["l"], "1");
    let managers = read["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers.len(), 1);
    assert!(read.get("spec").is_none());
    assert!(read_object("{").is_err());
}

/// The stack does not grow with the input. The frames of a test build are larger than those of a release.
#[test]
#[expect(
    clippy::disallowed_types,
    reason = "a thread has the stack that is measured"
)]
fn no_text_uses_up_a_stack() {
    let work = || {
        for text in [
            nested(MAX_DEPTH),
            nested(200_000),
            "[".repeat(1_000_000),
            keyed(1),
            keyed(12),
        ] {
            let _ = from_str::<Value>(&text);
            let _ = from_slice::<Value>(text.as_bytes());
            let _ = read_outline::<ObjectName>(text.as_bytes());
            let _ = read_object(&text);
            let _ = read_list::<Option<String>>(text.as_bytes());
            let inside = format!(r#"{{"metadata":{{"name":"a"}},"items":[{text}]}}"#);
            let _ = read_list::<Option<String>>(inside.as_bytes());
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn what_looks_like_a_node_inside_of_a_text_is_none() {
    for (text, levels, count) in [
        ("", 9, 1),
        ("1", 9, 1),
        ("[1,2,{\"a\":[]}]", 9, 6),
        ("[1,2,{\"a\":[1,2]}]", 1, 4),
        (r#"{"a,[{":"\",,,","b\\":1}"#, 9, 3),
        (r#"["\\",1]"#, 9, 3),
        ("{}", 9, 2),
        (r#"{"a": [1, 2], "b": "[,{"}"#, usize::MAX, 5),
        (r#""a\"[,""#, usize::MAX, 1),
        (r#"{"items":[{},{}]}"#, usize::MAX, 6),
    ] {
        assert_eq!(count_nodes(text.as_bytes(), levels), count, "{text}");
    }
}
