//! `golden/yaml`: 133 inputs, and what the loader of Kubernetes (`sigs.k8s.io/yaml`) makes of them.

use addons_tests::shared;
use addons_tests::tally::Tally;
use common::manifest::yaml::DuplicateKeys::{self, Error, LastWins};
use common::manifest::yaml::{YamlOptions, documents};
use serde_json::Value;

/// Inputs that are read differently on purpose: name, strict or lenient, our answer, why.
const DECISIONS: &[(&str, DuplicateKeys, &[&str], &str)] = &[
    (
        "deep-flow",
        Error,
        &["error: "],
        "301 levels: depth is bounded, to what serde_json reads back",
    ),
    ("deep-flow", LastWins, &["error: "], "the same"),
    (
        "merge-key",
        Error,
        &[r#"{"base":{"a":1,"b":2},"x":{"a":1,"b":3}}"#],
        "a key after << overrides: that is what merge keys are for, and kubectl reads it so",
    ),
    (
        "merge-list",
        Error,
        &[r#"{"a":{"k":1,"x":"a"},"b":{"k":2,"true":"b"},"c":{"k":1,"true":"b","x":"a","z":"c"}}"#],
        "of a list of maps the first wins: the same",
    ),
    (
        "tag-binary-not-utf8",
        Error,
        &["error: "],
        "the original replaces bytes that are no text without a word",
    ),
    ("tag-binary-not-utf8", LastWins, &["error: "], "the same"),
];

/// Whether a document is what a line of the golden file says.
fn is_expected(line: &str, document: Result<&Value, ()>) -> bool {
    match (line.strip_prefix("error: "), document) {
        (Some(_), document) => document.is_err(),
        (None, Err(())) => false,
        (None, Ok(value)) => match serde_json::from_str::<Value>(line) {
            Ok(expected) => *value == expected,
            // Nested deeper than serde_json reads.
            Err(_) => serde_json::to_string(value).is_ok_and(|text| text == line),
        },
    }
}

#[test]
fn documents_are_those_of_the_original() {
    let mut tally = Tally::new("goldens::yaml::documents");
    let mut wrong = Vec::new();
    let mut used = 0;
    let mut inputs: Vec<_> = std::fs::read_dir(shared::golden("yaml"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    inputs.sort();
    assert_eq!(inputs.len(), 133);
    for input in inputs {
        let bytes = std::fs::read(&input).unwrap();
        let name = input.file_stem().unwrap().to_str().unwrap();
        for duplicate_keys in [Error, LastWins] {
            let options = YamlOptions {
                duplicate_keys,
                ..YamlOptions::default()
            };
            let read: Vec<_> = documents(&bytes, &options).collect();
            let is = |lines: &[&str]| {
                lines.len() == read.len()
                    && lines.iter().zip(&read).all(|(line, document)| {
                        is_expected(line, document.as_ref().map(|d| &d.value).map_err(|_| ()))
                    })
            };
            let strict = input.with_extension("strict.jsonl");
            let original = match duplicate_keys {
                Error if strict.exists() => strict,
                _ => input.with_extension("jsonl"),
            };
            let original = std::fs::read_to_string(original).unwrap();
            let mut expected: Vec<_> = original.lines().collect();
            if let Some((_, _, ours, _)) = DECISIONS
                .iter()
                .find(|(row, mode, _, _)| *row == name && *mode == duplicate_keys)
            {
                assert!(!is(&expected), "{name}: no decision is needed any more");
                expected = ours.to_vec();
                used += 1;
            }
            if !is(&expected) {
                wrong.push(format!(
                    "{name} ({duplicate_keys:?}): expected {expected:?}, got {read:?}"
                ));
            }
            tally.ran();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(used, DECISIONS.len(), "a decision names no input");
}
