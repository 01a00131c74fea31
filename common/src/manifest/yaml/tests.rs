use serde_json::json;

use super::*;

fn read(text: &str) -> Vec<YamlDocument> {
    documents(text.as_bytes(), &YamlOptions::default())
        .collect::<Result<_, _>>()
        .unwrap()
}

fn error(text: impl AsRef<[u8]>) -> YamlError {
    documents(text.as_ref(), &YamlOptions::default())
        .find_map(Result::err)
        .unwrap()
}

/// Text, number of documents. kops counts empty texts as documents, Kubernetes does not.
#[test]
fn streams_are_cut_at_separator_lines() {
    for (text, count) in [
        ("", 0),
        ("a", 1),
        ("a\n", 1),
        ("a\r\n", 1),
        ("a\nb\n", 1),
        ("a\r\nb\r\n", 1),
        ("a\n---\nb", 2),
        ("a\r\n---\r\nb", 2),
        ("a\n\n---\n\nb", 2),
        ("a\r\n\r\n---\r\n\r\nb", 2),
        ("---\na\n---\n", 1),
        ("a\n...\nb\n", 2),
    ] {
        assert_eq!(read(text).len(), count, "{text:?}");
    }
}

#[test]
fn documents_and_items_know_their_lines() {
    let documents = read("# one\n\na: 1\n---\n# two\nkind: List\nitems:\n- a: 1\n\n- b: 2\n---\n");
    let lines: Vec<_> = documents.iter().map(|document| document.line).collect();
    assert_eq!(lines, [3, 6]);
    assert_eq!(documents[1].item_lines, [8, 10]);
}

#[test]
fn errors_name_line_and_column_of_the_whole_stream() {
    for (text, line, column) in [
        ("a: 1\n---\nb: [1\n---\nc: 1\n", 3, 4),
        ("a: 1\r\n---\r\nb: 1\r\nb: 2\r\n", 4, 1),
        ("a: 1\n---\n\nx:\n  é: .inf\n", 5, 6),
        ("a: 1\n--- b\n", 2, 4),
        ("a: 1\n---\nb: é\u{1}\n", 3, 5),
        ("a: 1\n---\n- x\n- {a: b}: c\n", 4, 3),
        ("a: {{ .x }}\n", 1, 5),
    ] {
        let error = error(text);
        assert_eq!(
            (error.line, error.column),
            (line, column),
            "{text:?}: {error}"
        );
    }
    assert_eq!(error(b"a: 1\n---\nb: \xff\n").line, 3);
}

#[test]
fn a_document_with_an_error_does_not_hide_the_next_one() {
    let read: Vec<_> = documents(b"a: [\n---\nb: 1\n", &YamlOptions::default()).collect();
    assert!(read[0].is_err());
    assert_eq!(read[1].as_ref().unwrap().value, json!({"b": 1}));
}

#[test]
fn a_repeated_key_names_both_places() {
    assert_eq!(
        error("a: 1\n---\nm:\n  k: 1\n  \"k\": 2\n").to_string(),
        "line 5, column 3: key \"k\" is already set on line 4, column 3: keep one of them"
    );
    assert_eq!(
        error("b: &b {a: 1}\nx:\n  a: 2\n  <<: *b\n").to_string(),
        "line 4, column 3: the merge key replaces \"a\" of line 3, column 3: put << first"
    );
    assert_eq!(
        error("b: &b {a: 1}\nx: {<<: *b, a: 2, a: 3}\n").problem,
        YamlProblem::DuplicateKey {
            key: "a".into(),
            first_line: 2,
            first_column: 13
        }
    );
    let lenient = YamlOptions {
        duplicate_keys: DuplicateKeys::LastWins,
        ..YamlOptions::default()
    };
    let read = documents(b"a: 1\na: 2\n", &lenient).next().unwrap();
    assert_eq!(read.unwrap().value, json!({"a": 2}));
}

#[test]
fn floats_can_stay_text() {
    let options = YamlOptions {
        floats: FloatReading::Text,
        ..YamlOptions::default()
    };
    let text = b"a: 1.0\nb: 1.10\nc: 1\nd: .inf\n1.50: x\n";
    let read = documents(text, &options).next().unwrap().unwrap();
    assert_eq!(
        read.value,
        json!({"a": "1.0", "b": "1.10", "c": 1, "d": ".inf", "1.5": "x"})
    );
}

#[test]
fn json_is_read_with_its_own_escapes() {
    let read = read("{\n\t\"a\": \"x\\/y\\ud83d\\ude00\",\n\t\"b\": [1.5, null]\n}\n");
    assert_eq!(read[0].value, json!({"a": "x/y😀", "b": [1.5, null]}));
}

#[test]
fn float_keys_are_written_as_go_writes_them() {
    for (key, written) in [
        ("1.50", "1.5"),
        ("1e5", "100000"),
        ("1e6", "1e+06"),
        ("1.5e-7", "1.5e-07"),
        ("0.0001", "0.0001"),
        ("-2.5e10", "-2.5e+10"),
    ] {
        assert_eq!(read(&format!("{key}: x"))[0].value, json!({written: "x"}));
    }
}

#[test]
fn reserved_keys_are_refused_however_they_are_written() {
    let key = "$serde_json::private::RawValue";
    for text in [
        format!("{key}: '1'"),
        format!("a: [{{\"{key}\": '1'}}]"),
        "\"\\x24serde_json::private::RawValue\": '1'".to_owned(),
        format!("a: &k {key}\n*k : '1'"),
    ] {
        assert_eq!(error(text).problem, YamlProblem::ReservedKey);
    }
    assert_eq!(read(&format!("a: {key}"))[0].value, json!({"a": key}));
}

#[test]
fn what_is_read_is_bounded() {
    let deep = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let deepest = &read(&deep(MAX_DEPTH))[0].value;
    let again: Value = serde_json::from_str(&deepest.to_string()).unwrap();
    assert_eq!(again, *deepest);
    assert_eq!(error(deep(MAX_DEPTH + 1)).problem, YamlProblem::TooDeep);
    let many = format!("a: &a [{}]\nb: [{}]", "x,".repeat(1000), "*a,".repeat(300));
    assert_eq!(error(many).problem, YamlProblem::TooManyCopies);
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a,".repeat(20));
    assert_eq!(error(long).problem, YamlProblem::TooManyCopies);
}

/// go-yaml and libyaml accept it, and controller-gen wrote it: `addon-manager/release-1.30/volumesnapshots` of the corpus.
#[test]
fn quoted_text_needs_no_indentation() {
    let text = "a:\n  b: 'one\n  two\n\n  it''s\nfour'\n  c: \"x\n  y\\\n  z \\\" w\"\n  d: 1\n";
    assert_eq!(
        read(text)[0].value,
        json!({"a": {"b": "one two\nit's four", "c": "x yz \" w", "d": 1}})
    );
    let wrong = error(format!("{text}  e: 'v\n  w' x\n"));
    assert_eq!((wrong.line, wrong.column), (12, 6));
    assert!(matches!(
        error("a:\n  b: 'one\n  two\n").problem,
        YamlProblem::Syntax(_)
    ));
}
