//! YAML: a document that was read is read again from its own JSON, and its line is one of the input.

use addons_tests::shared;
use common::manifest::yaml::{DuplicateKeys, YamlOptions, documents};

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
    let seeds: Vec<Vec<u8>> = files
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .filter(|bytes| bytes.len() < 16 << 10)
        .collect();
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
                let json = document.value.to_string();
                let mut again = documents(json.as_bytes(), &options);
                let again = again.next().unwrap().unwrap();
                assert_eq!(again.value, document.value, "{json}");
            }
        }
    });
}
