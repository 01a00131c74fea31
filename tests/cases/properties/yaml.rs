//! Nothing panics on any bytes; what is written as JSON is read back.

use addons_plan::readiness::assess;
use common::manifest::digest::digest;
use common::manifest::parse::{ManifestOptions, parse};
use common::manifest::yaml::{DuplicateKeys, FloatReading, YamlOptions, documents};
use proptest::prelude::*;
use serde_json::Value;

/// JSON as manifests hold it; floats and long integers are for the goldens.
pub(super) fn json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~]{0,8}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map("[a-z.~/]{1,3}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Pieces that YAML is made of, so that arbitrary input gets past the first character.
fn yamlish() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a: ",
        "b:",
        "- ",
        "? ",
        "\n",
        "\n  ",
        "\n    ",
        "---\n",
        "--- x",
        "...\n",
        "&a ",
        "*a",
        "<<: ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "'",
        "\"",
        "|\n",
        ">-\n",
        "!!int ",
        "!!binary ",
        "!x ",
        "#",
        "\t",
        "\r",
        "\u{feff}",
        "\u{2028}",
        "0644",
        "1e400",
        ".inf",
        "yes",
        "~",
        "é",
        "\\",
        "%YAML 1.2\n",
        "apiVersion: v1\n",
        "kind: List\n",
        "items:\n",
        "metadata: {name: a}\n",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn read_everything(bytes: &[u8]) {
    for duplicate_keys in [DuplicateKeys::Error, DuplicateKeys::LastWins] {
        let options = YamlOptions {
            duplicate_keys,
            floats: FloatReading::Text,
        };
        for document in documents(bytes, &options) {
            match document {
                Ok(document) => {
                    let _ = digest(&document.value);
                    let _ = assess(&document.value);
                }
                Err(error) => assert!(error.line > 0 && error.column > 0, "{error}"),
            }
        }
    }
    let _ = parse(bytes, "any", &ManifestOptions::default());
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_everything(&bytes);
    }

    #[test]
    fn arbitrary_yaml_does_not_panic(text in yamlish()) {
        read_everything(text.as_bytes());
    }

    #[test]
    fn json_is_read_as_it_is(value in json().prop_filter("a map or list", |value| value.is_object() || value.is_array())) {
        let text = value.to_string();
        let read: Vec<_> = documents(text.as_bytes(), &YamlOptions::default()).collect();
        // Control characters are refused; JSON escapes all of them but DEL and those beyond ASCII.
        if text.contains(|c: char| c.is_control() || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')) {
            prop_assert!(read[0].is_err());
        } else {
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!(&read[0].as_ref().unwrap().value, &value);
        }
    }
}
