//! A changed field in one line: path, old and new value, and who owns it.

use addons_plan::changes::{FieldChange, FieldOwner};
use common::age::age;
use common::text::shorten;
use jiff::Timestamp;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// How many characters of a value are shown.
const MAX_CHARACTERS: usize = 60;
/// How many characters of a common prefix are shown before two long values differ.
const CONTEXT: usize = 10;
/// The most changed lines of a text that are shown, unless everything is.
const MAX_TEXT_LINES: usize = 10;
/// How many characters of a changed line of a text are shown.
const MAX_LINE: usize = 120;
/// The most characters of a value in a list of fields.
const MAX_NAMED_VALUE: usize = 24;
/// The most bytes of both texts together that are compared line by line.
const MAX_COMPARED: usize = 1 << 20;

/// Formats a field in one line, or a changed text of several lines as its changed lines. `full` shortens nothing.
pub fn format_field(field: &FieldChange, full: bool, now: Timestamp) -> Vec<String> {
    let text = match (&field.old, &field.new) {
        (Some(Value::String(old)), Some(Value::String(new))) => changed_lines(old, new),
        _ => None,
    };
    let Some(text) = text else {
        return vec![format_line(field, full, now)];
    };
    let most = if full { usize::MAX } else { MAX_TEXT_LINES };
    let rest = text.len().saturating_sub(most);
    let owners = describe_owners(field, now);
    let mut lines = vec![format!("{}{owners}", field.path)];
    lines.extend(text.into_iter().take(most).map(|line| match full {
        true => format!("  {line}"),
        false => format!("  {}", shorten(line, MAX_LINE)),
    }));
    lines.extend(more_lines(rest).map(|line| format!("  {line}")));
    lines
}

/// `and 2 more lines`, if any are left out.
pub fn more_lines(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("and 1 more line".to_owned()),
        count => Some(format!("and {count} more lines")),
    }
}

/// Returns the lines that differ, with `-` and `+`; `None` if a text has only one line, or is too long.
fn changed_lines(old: &str, new: &str) -> Option<Vec<String>> {
    let is_one_line = |text: &str| !text.trim_end_matches('\n').contains('\n');
    if is_one_line(old) && is_one_line(new) || old.len() + new.len() > MAX_COMPARED {
        return None;
    }
    let diff = TextDiff::from_lines(old, new);
    let lines = diff.iter_all_changes().filter_map(|change| {
        let mark = match change.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        let line = change.value().trim_end_matches(['\n', '\r']);
        Some(format!("{mark} {line}").trim_end().to_owned())
    });
    Some(lines.collect())
}

/// Formats a field for a list in one line: `replicas 2 → 3`, `+ resources.limits`, or only its path if a value is long.
pub fn name_field(field: &FieldChange) -> String {
    const WITHIN: [&str; 3] = ["spec.template.spec.", "spec.template.", "spec."];
    let path = field.path.as_str();
    let within = WITHIN.iter().find_map(|prefix| path.strip_prefix(prefix));
    let path = within.unwrap_or(path);
    let sides = [field.old.as_ref(), field.new.as_ref()];
    let [old, new] = sides.map(format_value);
    let is_short = |text: &str| text.chars().count() <= MAX_NAMED_VALUE;
    let named = match (&field.old, &field.new) {
        (None, _) => format!("+ {path}"),
        (_, None) => format!("- {path}"),
        _ if old != new && is_short(&old) && is_short(&new) => format!("{path} {old} → {new}"),
        _ => path.to_owned(),
    };
    let owners: Vec<&str> = field.owners.iter().map(|it| it.manager.as_str()).collect();
    match owners.as_slice() {
        [] => named,
        owners => format!("{named} (now owned by {})", owners.join(" and ")),
    }
}

fn format_line(field: &FieldChange, full: bool, now: Timestamp) -> String {
    let (old, new) = (
        format_value(field.old.as_ref()),
        format_value(field.new.as_ref()),
    );
    // A masked value that changed looks the same.
    let same = if old == new { " (another value)" } else { "" };
    let (old, new) = if full {
        (old, new)
    } else {
        shorten_both(&old, &new)
    };
    let owners = describe_owners(field, now);
    format!("{:<46} {old} → {new}{same}{owners}", field.path)
}

fn describe_owners(field: &FieldChange, now: Timestamp) -> String {
    let owners: Vec<String> = field
        .owners
        .iter()
        .map(|owner| describe_owner(owner, now))
        .collect();
    match owners.join(" and ") {
        none if none.is_empty() => none,
        owners => format!("   now owned by {owners}"),
    }
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
                field(Some(json!("")), Some(json!("a\tb")), Vec::new()),
                r#""" → "a\tb""#.to_owned(),
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
                [format!("{:<46} {expected}", "spec.a")]
            );
        }
    }

    fn text_change(old: &str, new: &str) -> FieldChange {
        FieldChange {
            path: "data.config".to_owned(),
            old: Some(json!(old)),
            new: Some(json!(new)),
            owners: Vec::new(),
        }
    }

    #[test]
    fn a_text_is_shown_by_the_lines_that_differ() {
        let now = Timestamp::UNIX_EPOCH;
        let change = text_change("a: 1\nb: 2\nc: 3\n", "a: 1\nb: 4\nc: 3\nd: 5\n");
        assert_eq!(
            format_field(&change, false, now),
            ["data.config", "  - b: 2", "  + b: 4", "  + d: 5"]
        );
        let many = "x\n".repeat(MAX_TEXT_LINES + 2);
        let change = text_change("", &many);
        let lines = format_field(&change, false, now);
        assert_eq!(lines.len(), MAX_TEXT_LINES + 2);
        assert_eq!(lines.last().unwrap(), "  and 2 more lines");
        assert_eq!(format_field(&change, true, now).len(), MAX_TEXT_LINES + 3);
    }

    #[test]
    fn fields_of_a_list() {
        let field = |path: &str, old: Option<Value>, new: Option<Value>| FieldChange {
            path: path.to_owned(),
            old,
            new,
            owners: Vec::new(),
        };
        let long = "x".repeat(MAX_NAMED_VALUE + 1);
        for (field, expected) in [
            (
                field("spec.replicas", Some(json!(2)), Some(json!(3))),
                "replicas 2 → 3",
            ),
            (
                field("spec.template.spec.hostNetwork", None, Some(json!(true))),
                "+ hostNetwork",
            ),
            (field("data.a", Some(json!("b")), None), "- data.a"),
            (
                field("data.a", Some(json!("b")), Some(json!(long))),
                "data.a",
            ),
            (
                field("data.a", Some(json!("***")), Some(json!("***"))),
                "data.a",
            ),
        ] {
            assert_eq!(name_field(&field), expected);
        }
        let mut owned = field("spec.replicas", Some(json!(2)), Some(json!(3)));
        owned.owners.push(FieldOwner {
            manager: "kubectl-scale".to_owned(),
            since: None,
        });
        assert_eq!(
            name_field(&owned),
            "replicas 2 → 3 (now owned by kubectl-scale)"
        );
    }
}
