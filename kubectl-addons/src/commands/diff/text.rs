//! Formats a comparison for people.

use std::fmt::Write as _;

use addons_plan::changes::{FieldChange, FieldOwner, ObjectChange, ObjectDiff};
use addons_plan::crd_safety::Breakage;
use common::api::installation::HelmRelease;
use common::manifest::key::ObjectKey;
use jiff::Timestamp;
use serde_json::Value;

use crate::words::dry_run::describe_unchecked_changes;
use crate::words::hint;
use common::age::age;

use super::InstallationDiff;

/// How many characters of a value are shown.
const MAX_CHARACTERS: usize = 60;
/// How many characters of a common prefix are shown before two long values differ.
const CONTEXT: usize = 10;

/// Formats one line per object and one per field. `is_one_of_several` puts the name before the summary, `wide` shortens nothing.
pub(super) fn render_diff(
    item: &InstallationDiff<'_>,
    is_one_of_several: bool,
    wide: bool,
    now: Timestamp,
) -> String {
    // Writing to a String cannot fail.
    let mut text = String::new();
    if let Some(namespace) = item.create_namespace {
        let _ = writeln!(text, "+ Namespace {namespace}");
    }
    for object in &item.objects {
        let mark = match object.change {
            ObjectChange::Added => '+',
            ObjectChange::Changed => '~',
            ObjectChange::Recreated => '±',
            ObjectChange::Refused => '!',
            ObjectChange::Unchanged => continue,
        };
        let diff = object.diff;
        let _ = writeln!(text, "{mark} {}", diff.key);
        if let Some(why) = &diff.recreated {
            let _ = writeln!(text, "    recreated: {why}");
        }
        if let Some(error) = &diff.error {
            let way_out = diff.remedy.as_ref().map(|remedy| {
                hint::indent_lines(&hint::object_hints(remedy, &diff.key, item.installation))
            });
            let _ = writeln!(text, "    {error}{}", way_out.unwrap_or_default());
        }
        add_fields(&mut text, diff, wide, now);
    }
    for yielded in item.yielded {
        let fields = yielded.fields.join(", ");
        let _ = writeln!(
            text,
            "  yielded   {}: {fields} (to take back: --conflicts take)",
            yielded.key
        );
    }
    for deletion in &item.pruned {
        let key = &deletion.target.key;
        match item.refused.iter().find(|refusal| refusal.key == *key) {
            Some(refusal) => {
                let _ = writeln!(text, "! {key}\n    {}", refusal.message);
            }
            None => {
                let _ = writeln!(text, "- {key}");
            }
        }
    }
    if let Some(namespace) = item.delete_namespace {
        let _ = writeln!(text, "- Namespace {namespace} (if nothing else is in it)");
    }
    for key in &item.released {
        let _ = writeln!(text, "  released  {key} (it existed before; it stays)");
    }
    for key in item.retained {
        let _ = writeln!(text, "  retained  {key}");
    }
    if let Some(HelmRelease { name, namespace }) = item.helm_release {
        let _ = writeln!(
            text,
            "  helm      Release {namespace}/{name} is not compared; look: kubectl addons render {}",
            item.addon
        );
    }
    add_record(&mut text, item);
    for migration in &item.migrations {
        let _ = writeln!(text, "  migrate   {migration}");
    }
    for breakage in item.breakages.iter().flat_map(Breakage::lines) {
        let _ = writeln!(text, "  warning   {breakage}");
    }
    for warning in item.warnings {
        let _ = writeln!(text, "  warning   {warning}");
    }
    text.push_str(&describe_unchecked_changes(
        item.objects.iter().map(|object| object.diff),
    ));
    if is_one_of_several {
        let _ = write!(text, "{}: ", item.installation.name);
    }
    let _ = writeln!(text, "{}", item.summary);
    text
}

/// Adds the changes of the record, and the version if no object differs.
fn add_record(text: &mut String, item: &InstallationDiff<'_>) {
    if let Some((from, to)) = item.version_change().filter(|_| !item.summary.differs()) {
        let _ = writeln!(text, "  version   {from} → {to}");
    }
    for change in &item.record {
        let _ = writeln!(text, "  record    {change}");
    }
}

/// Adds the changed fields, and the number of changed descriptions of a CRD.
fn add_fields(text: &mut String, diff: &ObjectDiff, wide: bool, now: Timestamp) {
    let folded = |field: &&FieldChange| !wide && is_description(&diff.key, field);
    let (descriptions, fields): (Vec<_>, Vec<_>) = diff.fields.iter().partition(folded);
    for field in fields {
        let _ = writeln!(text, "    {}", format_field(field, wide, now));
    }
    let _ = match descriptions.len() {
        0 => Ok(()),
        1 => writeln!(text, "    1 description changed"),
        count => writeln!(text, "    {count} descriptions changed"),
    };
}

/// Whether a field only describes another in the schema of a CRD, which has hundreds of them.
pub fn is_description(key: &ObjectKey, field: &FieldChange) -> bool {
    let is_text = |side: &Option<Value>| side.as_ref().is_none_or(Value::is_string);
    key.kind == "CustomResourceDefinition"
        && field.path.contains(".openAPIV3Schema.")
        && field.path.ends_with(".description")
        && is_text(&field.old)
        && is_text(&field.new)
}

fn format_field(field: &FieldChange, wide: bool, now: Timestamp) -> String {
    let (old, new) = (
        format_value(field.old.as_ref()),
        format_value(field.new.as_ref()),
    );
    // A masked value that changed looks the same.
    let same = if old == new { " (another value)" } else { "" };
    let (old, new) = if wide {
        (old, new)
    } else {
        shorten_both(&old, &new)
    };
    let owners: Vec<String> = field
        .owners
        .iter()
        .map(|owner| describe_owner(owner, now))
        .collect();
    let owners = match owners.join(" and ") {
        none if none.is_empty() => none,
        owners => format!("   now owned by {owners}"),
    };
    format!("{:<46} {old} → {new}{same}{owners}", field.path)
}

/// Formats an owner: `kubectl-scale (3m ago)`.
fn describe_owner(owner: &FieldOwner, now: Timestamp) -> String {
    let since = owner.since.as_ref().and_then(|since| since.parse().ok());
    match since {
        Some(since) => format!("{} ({} ago)", owner.manager, age(since, now)),
        None => owner.manager.clone(),
    }
}

/// Formats a value in one line.
pub fn format_value(value: Option<&Value>) -> String {
    match value {
        None => "(none)".to_owned(),
        Some(Value::String(text)) if !text.is_empty() && !text.contains(char::is_control) => {
            text.clone()
        }
        Some(value) => value.to_string(),
    }
}

/// Shortens two values to the part that shows their difference.
fn shorten_both(old: &str, new: &str) -> (String, String) {
    let long = |text: &str| text.chars().count() > MAX_CHARACTERS;
    if !long(old) && !long(new) {
        return (old.to_owned(), new.to_owned());
    }
    let pairs = old.chars().zip(new.chars());
    let common = pairs.take_while(|(one, other)| one == other).count();
    let skip = if common > MAX_CHARACTERS / 2 {
        common - CONTEXT
    } else {
        0
    };
    let cut = |text: &str| {
        let head = if skip > 0 { "…" } else { "" };
        let tail = if text.chars().count() > skip + MAX_CHARACTERS {
            "…"
        } else {
            ""
        };
        let body: String = text.chars().skip(skip).take(MAX_CHARACTERS).collect();
        format!("{head}{body}{tail}")
    };
    (cut(old), cut(new))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_in_one_line_each() {
        let now: Timestamp = "2026-11-01T00:05:00Z".parse().unwrap();
        let owner = |manager: &str, since: Option<&str>| FieldOwner {
            manager: manager.to_owned(),
            since: since.map(str::to_owned),
        };
        let field = |old: Option<Value>, new: Option<Value>, owners: Vec<FieldOwner>| FieldChange {
            path: "spec.a".to_owned(),
            old,
            new,
            owners,
        };
        let long = "0123456789".repeat(8);
        for (field, expected) in [
            (
                field(
                    Some(json!(2)),
                    Some(json!(3)),
                    vec![
                        owner("kubectl-scale", Some("2026-11-01T00:00:00Z")),
                        owner("hpa", None),
                    ],
                ),
                "2 → 3   now owned by kubectl-scale (5m ago) and hpa".to_owned(),
            ),
            (
                field(None, Some(json!("x")), Vec::new()),
                "(none) → x".to_owned(),
            ),
            (
                field(Some(json!("")), Some(json!("a\nb")), Vec::new()),
                r#""" → "a\nb""#.to_owned(),
            ),
            (
                field(Some(json!("***")), Some(json!("***")), Vec::new()),
                "*** → *** (another value)".to_owned(),
            ),
            (
                field(
                    Some(json!(format!("{long}a"))),
                    Some(json!(format!("{long}b"))),
                    Vec::new(),
                ),
                "…0123456789a → …0123456789b".to_owned(),
            ),
        ] {
            assert_eq!(
                format_field(&field, false, now),
                format!("{:<46} {expected}", "spec.a")
            );
        }
    }
}
