//! YAML: a document that was read is read again from its own JSON, and its line is one of the input.

use addons_tests::shared;
use common::manifest::yaml::{DuplicateKeys, YamlOptions, documents};
use serde_json::Value;

/// Parsers of YAML look for the `:` of a key in its first 1,024 characters; a longer key begins with `?`.
const LONGEST_KEY: usize = 1_000;

const TOKENS: &[&str] = &[
    "---\n",
    "...\n",
    "- ",
    "? ",
    ": ",
    ":\n  ",
    "&a ",
    "*a",
    "<<: *a\n",
    "!!str ",
    "!!binary ",
    "|-\n  ",
    ">+\n  ",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "\\x",
    "\\u12",
    "\t",
    "# ",
    "%YAML 1.1\n",
    "\u{feff}",
    "0o7",
    "1_0",
    ".inf",
    "~",
    "\r\n",
    "\u{85}",
];

#[test]
fn yaml() {
    let folder = shared::golden("yaml");
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .collect();
    files.sort();
    let mut seeds: Vec<Vec<u8>> = files
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .filter(|bytes| bytes.len() < 16 << 10)
        .collect();
    let key = "a".repeat(4_000);
    seeds.push(format!("? {key}\n: {{b: [1, {{? {key} : c}}]}}\n").into_bytes());
    super::mutant::run("fuzz::yaml", seeds, TOKENS, |bytes| {
        // A carriage return ends a line of YAML, too.
        let ends = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r'));
        let lines = ends.count() + 1;
        for duplicate_keys in [DuplicateKeys::Error, DuplicateKeys::LastWins] {
            let options = YamlOptions {
                duplicate_keys,
                ..YamlOptions::default()
            };
            for document in documents(bytes, &options).flatten() {
                assert!(document.line <= lines, "line {} of {lines}", document.line);
                let json = written(&document.value);
                let mut again = documents(json.as_bytes(), &options);
                let again = again.next().unwrap().unwrap();
                assert_eq!(again.value, document.value, "{json}");
            }
        }
    });
}

/// A value as JSON, with the sign that long keys need in YAML.
fn written(value: &Value) -> String {
    let join = |items: Vec<String>| items.join(",");
    match value {
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                let key = Value::from(key.as_str()).to_string();
                let value = written(value);
                match key.chars().count() > LONGEST_KEY {
                    true => format!("? {key} : {value}"),
                    false => format!("{key}:{value}"),
                }
            };
            format!("{{{}}}", join(fields.iter().map(field).collect()))
        }
        Value::Array(items) => format!("[{}]", join(items.iter().map(written).collect())),
        value => value.to_string(),
    }
}
