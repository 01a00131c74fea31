//! Reads fields and conditions of live objects, tolerating any content.

use jiff::Timestamp;
use serde_json::Value;

use common::text::shorten;

/// The longest server message that a message shows in full, in characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// Returns the field at a path.
pub(super) fn field<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}

/// Returns the string at a path; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    field(object, path).and_then(Value::as_str).unwrap_or("")
}

/// Returns the whole number at a path; some controllers write it as a string (helm#32615).
pub(super) fn number(object: &Value, path: &[&str]) -> Option<i64> {
    match field(object, path)? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Whether a path holds `true`.
pub(super) fn is_true(object: &Value, path: &[&str]) -> bool {
    field(object, path) == Some(&Value::Bool(true))
}

/// A condition of the status.
#[derive(Clone, Copy)]
pub(super) struct StatusCondition<'a>(&'a Value);

/// Finds the condition of a type.
pub(super) fn find_condition<'a>(object: &'a Value, kind: &str) -> Option<StatusCondition<'a>> {
    find_conditions(object).find(|condition| condition.kind() == kind)
}

/// Returns the conditions.
pub(super) fn find_conditions(object: &Value) -> impl Iterator<Item = StatusCondition<'_>> {
    let all = field(object, &["status", "conditions"]).and_then(Value::as_array);
    all.into_iter().flatten().map(StatusCondition)
}

impl<'a> StatusCondition<'a> {
    /// Returns its type.
    pub(super) fn kind(self) -> &'a str {
        text(self.0, &["type"])
    }

    pub(super) fn is_true(self) -> bool {
        text(self.0, &["status"]) == "True"
    }

    pub(super) fn is_false(self) -> bool {
        text(self.0, &["status"]) == "False"
    }

    pub(super) fn reason(self) -> &'a str {
        text(self.0, &["reason"])
    }

    pub(super) fn message(self) -> &'a str {
        text(self.0, &["message"])
    }

    /// Returns when it last changed.
    pub(super) fn since(self) -> Option<Timestamp> {
        text(self.0, &["lastTransitionTime"]).parse().ok()
    }

    /// Returns the generation that it describes, if it has one.
    pub(super) fn observed_generation(self) -> Option<i64> {
        number(self.0, &["observedGeneration"])
    }

    /// Formats `REASON, MESSAGE`, as far as they exist.
    pub(super) fn why(self) -> String {
        join_reason(self.reason(), self.message())
    }
}

/// Formats `REASON, MESSAGE` for a terminal: on one line, short, without control characters.
pub(super) fn join_reason(reason: &str, message: &str) -> String {
    let message = message.trim().lines().next().unwrap_or_default();
    let mut joined = match (reason, message) {
        ("", "") => "no reason given".to_owned(),
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}, {message}"),
    };
    joined.retain(|c| !c.is_control());
    shorten(joined, MAX_MESSAGE_CHARS)
}
