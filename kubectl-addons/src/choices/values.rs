//! Converts the flags about values into edits.

use std::path::Path;

use addons_operation::text::shell_word;
use addons_operation::{Edit, Edits, OperationError, VersionedName, set};
use anyhow::{Context as _, Result, ensure};
use common::api::installation::ObjectPatch;
use common::api::names::GROUP;
use common::patch::read_patches;
use common::values;
use common::values::set::{Assignment, Grammar, parse_assignments, parse_removals};
use serde_json::Value;

use crate::cli::values::{ValueChangeArgs, ValueEditArgs};
use crate::exit::UsageError;
use crate::input;

/// The largest file of `--set-file`, because an object of the cluster cannot hold more.
const MAX_BYTES: usize = 1 << 20;

/// Returns the edits of the flags for these add-ons. Later kinds win, as with helm: files, `--set-json`, `--set`, `--set-string`,
/// `--set-file`.
///
/// # Errors
/// A file cannot be read or is not a map, or an assignment is not valid or names another add-on.
pub fn parse_edits(typed: &ValueEditArgs, addons: &[String]) -> Result<Edits> {
    let mut edits = Vec::new();
    for path in &typed.files {
        let name = path.to_string_lossy();
        let bytes = input::read_input(path).with_context(|| format!("--values {name}"))?;
        if set::is_set(&bytes) {
            let usage = format!(
                "{name} has AddonInstallations and no values; to apply it: kubectl addons apply -f {}",
                shell_word(&name)
            );
            return Err(UsageError(usage).into());
        }
        let read = values::read(&bytes, &name)?;
        if is_catalogue(&read) {
            let usage = format!(
                "{name} is a catalogue and has no values; to use its add-ons: --channel {}",
                shell_word(&name)
            );
            return Err(UsageError(usage).into());
        }
        edits.push(Edit::Merge(read));
    }
    for flag in &typed.set_json {
        edits.push(if flag.trim_start().starts_with('{') {
            Edit::Merge(values::read(flag.as_bytes(), "--set-json")?)
        } else {
            parse_set(addons, "--set-json", Grammar::Json, flag)?
        });
    }
    for flag in &typed.set {
        edits.push(parse_set(addons, "--set", Grammar::Typed, flag)?);
    }
    for flag in &typed.set_string {
        edits.push(parse_set(addons, "--set-string", Grammar::Text, flag)?);
    }
    for flag in &typed.set_file {
        let mut edit = parse_set(addons, "--set-file", Grammar::Text, flag)?;
        if let Edit::Set(named) | Edit::SetOf(_, named) = &mut edit {
            for text in named.iter_mut().flat_map(Assignment::texts_mut) {
                *text = read_text(text).with_context(|| format!("--set-file {text}"))?;
            }
        }
        edits.push(edit);
    }
    let secrets = typed.values_from.iter().flatten().cloned();
    Ok(Edits {
        values: edits,
        former: None,
        values_from: (!typed.values_from.is_empty()).then(|| secrets.collect()),
        registry: typed.registry.clone(),
        skip_crds: typed.skip_crds,
        patches: parse_patches(&typed.patch)?,
        unpin: false,
    })
}

/// Reads the files of `--patch`; `None` if there are none. An empty name stands for no patch.
fn parse_patches(files: &[String]) -> Result<Option<Vec<ObjectPatch>>> {
    let mut all = Vec::new();
    for path in files.iter().filter(|path| !path.is_empty()) {
        let named = || format!("--patch {path}");
        let bytes = input::read_input(Path::new(path)).with_context(named)?;
        let text = String::from_utf8(bytes).ok().context("not UTF-8 text");
        all.extend(read_patches(&text.with_context(named)?).with_context(named)?);
    }
    Ok((!files.is_empty()).then_some(all))
}

/// Whether a document is a catalogue or a kops index, which `-f` of other commands reads.
fn is_catalogue(value: &Value) -> bool {
    let kind = value["kind"].as_str();
    let of_group = |version: &str| version.split('/').next() == Some(GROUP);
    match kind {
        Some("AddonCatalogue") => value["apiVersion"].as_str().is_some_and(of_group),
        Some("Addons") => value["spec"]["addons"].is_array(),
        _ => false,
    }
}

/// Returns the edits for existing installations: values are removed before others are set.
///
/// # Errors
/// Those of [`parse_edits`], or a path is not valid.
pub fn parse_changes(typed: &ValueChangeArgs, addons: &[String]) -> Result<Edits> {
    let mut edits = parse_edits(&typed.values, addons)?;
    let changes_values = !edits.values.is_empty() || edits.values_from.is_some();
    if addons.is_empty() && changes_values {
        let usage = "values belong to one installation: name those that they are for, as in \
                     kubectl addons upgrade NAME --set replicas=3";
        return Err(UsageError(usage.to_owned()).into());
    }
    let kept = [
        (edits.skip_crds.is_some(), "--skip-crds", ""),
        (edits.patches.is_some(), "--patch", " FILE"),
    ];
    if let Some((_, flag, value)) = kept.iter().find(|(given, ..)| *given && addons.is_empty()) {
        let usage = format!(
            "{flag} is kept in an installation: name those that it is for, as in kubectl addons upgrade NAME {flag}{value}"
        );
        return Err(UsageError(usage).into());
    }
    let mut unset = Vec::new();
    for flag in &typed.unset {
        let paths = parse_removals(flag).map_err(OperationError::from);
        unset.extend(paths.context("--unset")?);
    }
    let reset = typed.reset_values.then_some(Edit::Reset);
    let unset = (!unset.is_empty()).then_some(Edit::Unset(unset));
    edits.values.splice(0..0, reset.into_iter().chain(unset));
    Ok(edits)
}

/// Parses the assignments of a flag: `PATH=VALUE`, or `ADDON:PATH=VALUE` for one of several add-ons.
fn parse_set(addons: &[String], name: &str, grammar: Grammar, flag: &str) -> Result<Edit> {
    let (addon, rest) = split_scope(addons, name, flag)?;
    let assignments = parse_assignments(grammar, rest).map_err(OperationError::from);
    let assignments = assignments.with_context(|| name.to_owned())?;
    Ok(match addon {
        Some(addon) => Edit::SetOf(addon, assignments),
        None => Edit::Set(assignments),
    })
}

/// Splits off the add-on of an assignment. With several add-ons, the text before the first colon is an add-on. With one, it may be part of
/// the key, as helm parses it.
fn split_scope<'a>(
    addons: &[String],
    name: &str,
    flag: &'a str,
) -> Result<(Option<String>, &'a str)> {
    let mut is_escaped = false;
    let end = flag.find(|c: char| {
        let ends = !is_escaped && matches!(c, ':' | '=');
        is_escaped = !is_escaped && c == '\\';
        ends
    });
    let Some((addon, rest)) = end.and_then(|end| {
        let (addon, rest) = flag.split_at(end);
        Some((addon, rest.strip_prefix(':')?))
    }) else {
        return Ok((None, flag));
    };
    if addons
        .iter()
        .any(|typed| VersionedName::parse(typed).name == addon)
    {
        return Ok((Some(addon.to_owned()), rest));
    }
    match addons {
        [] | [_] => Ok((None, flag)),
        _ => Err(UsageError(format!(
            "{name} {addon}: the command names no add-on {addon}; a colon in a key is written \\:"
        ))
        .into()),
    }
}

/// Reads a text file.
fn read_text(path: &str) -> Result<String> {
    if path == "-" {
        let usage = "standard input is not read for a value; name a file".to_owned();
        return Err(UsageError(usage).into());
    }
    let bytes = input::read_bounded(Path::new(path), MAX_BYTES)?;
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
        let typed = ValueEditArgs {
            set_file: all(&[&format!("e={file}")]),
            set_string: all(&["d=4,e=5"]),
            set: all(&["c=3,d=3", "d=4,e=4", "n=1"]),
            set_json: all(&["b=[2]", "{\"c\": 2, \"m\": {\"x\": 1}}", "m.y=2"]),
            ..ValueEditArgs::default()
        };
        let values = parse_edits(&typed, &[])
            .unwrap()
            .apply_to(None, &[])
            .unwrap();
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
            let typed = ValueChangeArgs {
                values: ValueEditArgs {
                    set: all(set),
                    ..ValueEditArgs::default()
                },
                unset: all(unset),
                reset_values,
            };
            let edits = parse_changes(&typed, &["web".to_owned()]).unwrap();
            assert_eq!(
                edits.apply_to(before.clone(), &[]).unwrap(),
                after,
                "{typed:?}"
            );
        }
        let typed = ValueChangeArgs {
            unset: all(&["a.b=s3cret"]),
            ..ValueChangeArgs::default()
        };
        let error = parse_changes(&typed, &["web".to_owned()]).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "--unset: path \"a.b\": give only the path, without = and a value"
        );
    }

    #[test]
    fn a_value_for_one_of_several() {
        let all = |flags: &[&str]| flags.iter().map(|flag| (*flag).to_owned()).collect();
        let addons: Vec<String> = all(&["web@1.0.0", "dns.addons.k8s.io"]);
        let typed = ValueEditArgs {
            set: all(&["a=1", "web:a=2", "dns.addons.k8s.io:b.c=3,d=x:y", "e\\:f=4"]),
            set_json: all(&["web:l=[1]"]),
            ..ValueEditArgs::default()
        };
        let typed = parse_edits(&typed, &addons).unwrap();
        for (name, expected) in [
            ("web", json!({"a": 2, "l": [1], "e:f": 4})),
            (
                "dns.addons.k8s.io",
                json!({"a": 1, "b": {"c": 3}, "d": "x:y", "e:f": 4}),
            ),
        ] {
            assert_eq!(
                typed.for_name(name).apply_to(None, &[]).unwrap(),
                expected,
                "{name}"
            );
        }
        let set = |flag: &str, addons: &[String]| {
            let typed = ValueEditArgs {
                set: all(&[flag]),
                ..ValueEditArgs::default()
            };
            parse_edits(&typed, addons)
                .map(|edits| edits.for_name("web").apply_to(None, &[]).unwrap())
        };
        let error = set("wep:a=s3cret", &addons).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--set wep: the command names no add-on wep; a colon in a key is written \\:"
        );
        // As helm reads it.
        for addons in [&addons[..1], &[]] {
            assert_eq!(set("a:b=1", addons).unwrap(), json!({"a:b": 1}));
        }
    }

    #[test]
    fn catalogues_and_indexes_are_not_values() {
        let of = |kind, version| json!({"apiVersion": version, "kind": kind, "spec": {}});
        let index = json!({"kind": "Addons", "spec": {"addons": []}});
        for (value, expected) in [
            (of("AddonCatalogue", "kubectl-addons.dev/v1alpha1"), true),
            (index, true),
            (of("AddonCatalogue", "example.org/v1"), false),
            (of("Addons", "v1"), false),
            (json!({"kind": "DaemonSet"}), false),
        ] {
            assert_eq!(is_catalogue(&value), expected, "{value}");
        }
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
            let typed = ValueEditArgs {
                set_file,
                ..ValueEditArgs::default()
            };
            let error = parse_edits(&typed, &[]).unwrap_err();
            assert_eq!(format!("{error:#}"), expected);
        }
    }
}
