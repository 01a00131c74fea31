//! From the flags about values to changes of values.

use std::path::Path;

use addons_operation::{Edit, Edits, OperationError};
use anyhow::{Context as _, Result, ensure};
use common::values::set::{Assignment, Grammar, parse, removals};
use common::{set, values};

use crate::cli::values::{Changes, Values};
use crate::input;
use crate::usage::Usage;
use crate::words::hint::word;

/// Largest file of `--set-file`: an object of the cluster takes no more.
const MAX_BYTES: usize = 1 << 20;

/// What the flags say. Later kinds win, as with helm: files, `--set-json`, `--set`, `--set-string`, `--set-file`.
///
/// # Errors
/// A file that cannot be read or is not a map; an assignment that cannot be read.
pub fn edits(typed: &Values) -> Result<Edits> {
    let mut edits = Vec::new();
    for path in &typed.files {
        let name = path.to_string_lossy();
        let bytes = input::read(path).with_context(|| format!("--values {name}"))?;
        if set::is_set(&bytes) {
            let usage = format!(
                "{name} has AddonInstallations and no values; to apply it: kubectl addons apply -f {}",
                word(&name)
            );
            return Err(Usage(usage).into());
        }
        edits.push(Edit::Merge(values::read(&bytes, &name)?));
    }
    for flag in &typed.set_json {
        edits.push(if flag.trim_start().starts_with('{') {
            Edit::Merge(values::read(flag.as_bytes(), "--set-json")?)
        } else {
            Edit::Set(assignments("--set-json", Grammar::Json, flag)?)
        });
    }
    let mut set = Vec::new();
    for flag in &typed.set {
        set.extend(assignments("--set", Grammar::Typed, flag)?);
    }
    for flag in &typed.set_string {
        set.extend(assignments("--set-string", Grammar::Text, flag)?);
    }
    for flag in &typed.set_file {
        let mut named = assignments("--set-file", Grammar::Text, flag)?;
        for text in named.iter_mut().flat_map(Assignment::texts_mut) {
            *text = read(text).with_context(|| format!("--set-file {text}"))?;
        }
        set.extend(named);
    }
    if !set.is_empty() {
        edits.push(Edit::Set(set));
    }
    Ok(Edits {
        values: edits,
        registry: typed.registry.clone(),
    })
}

/// What the flags say of an installation that exists: values are taken away before others are set.
///
/// # Errors
/// Those of [`edits`]; a path that cannot be read.
pub fn changes(typed: &Changes) -> Result<Edits> {
    let mut edits = edits(&typed.values)?;
    let mut unset = Vec::new();
    for flag in &typed.unset {
        let paths = removals(flag).map_err(OperationError::from);
        unset.extend(paths.context("--unset")?);
    }
    let reset = typed.reset_values.then_some(Edit::Reset);
    let unset = (!unset.is_empty()).then_some(Edit::Unset(unset));
    edits.values.splice(0..0, reset.into_iter().chain(unset));
    Ok(edits)
}

/// The assignments of a flag.
fn assignments(name: &str, grammar: Grammar, flag: &str) -> Result<Vec<Assignment>> {
    let assignments = parse(grammar, flag).map_err(OperationError::from);
    assignments.with_context(|| name.to_owned())
}

/// The text of a file.
fn read(path: &str) -> Result<String> {
    if path == "-" {
        let usage = "standard input is not read for a value; name a file".to_owned();
        return Err(Usage(usage).into());
    }
    let bytes = input::bounded(Path::new(path), MAX_BYTES)?;
    ensure!(
        bytes.len() <= MAX_BYTES,
        "the file has more than {} MiB, which is too much for a value",
        MAX_BYTES >> 20
    );
    String::from_utf8(bytes).ok().context("not UTF-8 text")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The order is that of helm's `MergeValues` (pkg/cli/values/options.go), not that of the command line.
    #[test]
    fn later_kinds_win() {
        let folder = std::env::temp_dir().join(format!("set-file-{}", std::process::id()));
        std::fs::write(&folder, "file\n").unwrap();
        let file = folder.to_string_lossy();
        let all = |flags: &[&str]| flags.iter().map(|flag| (*flag).to_owned()).collect();
        let typed = Values {
            set_file: all(&[&format!("e={file}")]),
            set_string: all(&["d=4,e=5"]),
            set: all(&["c=3,d=3", "d=4,e=4", "n=1"]),
            set_json: all(&["b=[2]", "{\"c\": 2, \"m\": {\"x\": 1}}", "m.y=2"]),
            ..Values::default()
        };
        let values = edits(&typed).unwrap().over(None, &[]).unwrap();
        std::fs::remove_file(&folder).unwrap();
        let expected =
            json!({"b": [2], "c": 3, "d": "4", "e": "file\n", "m": {"x": 1, "y": 2}, "n": 1});
        assert_eq!(values, expected);
    }

    /// As with helm's `--reset-values`, what is set in the same command stays.
    #[test]
    fn values_are_taken_away_before_others_are_set() {
        let all = |flags: &[&str]| flags.iter().map(|flag| (*flag).to_owned()).collect();
        let before = Some(json!({"a": {"b": 1, "c": 2}, "l": [1, 2], "d": 4}));
        for (unset, reset_values, set, after) in [
            (
                &["a.b", "l[0],d"][..],
                false,
                &[][..],
                json!({"a": {"c": 2}, "l": [2]}),
            ),
            (
                &["a"],
                false,
                &["a.x=1"],
                json!({"a": {"x": 1}, "l": [1, 2], "d": 4}),
            ),
            (&[], true, &["d=5"], json!({"d": 5})),
            (&[], true, &[], json!({})),
        ] {
            let typed = Changes {
                values: Values {
                    set: all(set),
                    ..Values::default()
                },
                unset: all(unset),
                reset_values,
            };
            let edits = changes(&typed).unwrap();
            assert_eq!(edits.over(before.clone(), &[]).unwrap(), after, "{typed:?}");
        }
        let typed = Changes {
            unset: all(&["a.b=s3cret"]),
            ..Changes::default()
        };
        let error = changes(&typed).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "--unset: value \"a.b\": only the path is named, without = and a value"
        );
    }

    #[test]
    fn files_are_texts_of_some_size() {
        for (file, expected) in [
            (
                "-",
                "--set-file -: standard input is not read for a value; name a file",
            ),
            (
                "/nowhere/x",
                "--set-file /nowhere/x: No such file or directory (os error 2)",
            ),
            (
                "/dev/zero",
                "--set-file /dev/zero: the file has more than 1 MiB, which is too much for a value",
            ),
        ] {
            let set_file = vec![format!("a={file}")];
            let typed = Values {
                set_file,
                ..Values::default()
            };
            let error = edits(&typed).unwrap_err();
            assert_eq!(format!("{error:#}"), expected);
        }
    }
}
