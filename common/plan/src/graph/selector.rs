//! Label selectors, evaluated before all labels are known.

use serde_json::Value;

use super::template::{list, text};

/// The value of a label, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label<'a> {
    /// It has this value.
    Value(&'a str),
    /// It is missing.
    Missing,
    /// Its value is unknown.
    Unknown,
}

/// Whether a selector matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// It does not match.
    No,
    /// It depends on unknown labels.
    Perhaps,
    /// It matches.
    Yes,
}

/// A label selector. Without requirements, it matches everything.
#[derive(Debug, Default)]
pub(super) struct Selector<'a> {
    requirements: Vec<Requirement<'a>>,
}

#[derive(Debug)]
struct Requirement<'a> {
    key: &'a str,
    operator: &'a str,
    values: Vec<&'a str>,
}

impl<'a> Selector<'a> {
    /// Reads a selector from a field that may be missing.
    pub fn new(selector: Option<&'a Value>) -> Self {
        let Some(selector) = selector else {
            return Self::default();
        };
        let equal = selector.get("matchLabels").and_then(Value::as_object);
        let equal = equal.into_iter().flatten().filter_map(|(key, value)| {
            Some(Requirement {
                key,
                operator: "In",
                values: vec![value.as_str()?],
            })
        });
        let expressions = list(selector, "/matchExpressions").filter_map(|expression| {
            Some(Requirement {
                key: text(expression, "/key")?,
                operator: text(expression, "/operator")?,
                values: list(expression, "/values")
                    .filter_map(Value::as_str)
                    .collect(),
            })
        });
        Self {
            requirements: equal.chain(expressions).collect(),
        }
    }

    /// Evaluates the selector. `label` looks up a label.
    pub fn verdict<'l>(&self, label: impl Fn(&str) -> Label<'l>) -> Verdict {
        let verdicts = self.requirements.iter().map(|requirement| {
            let has = |value: &str| requirement.values.contains(&value);
            let yes = match (label(requirement.key), requirement.operator) {
                (Label::Unknown, _) => return Verdict::Perhaps,
                (Label::Value(value), "In") => has(value),
                (Label::Value(value), "NotIn") => !has(value),
                (Label::Value(_), operator) => operator != "DoesNotExist",
                (Label::Missing, operator) => !matches!(operator, "In" | "Exists"),
            };
            if yes { Verdict::Yes } else { Verdict::No }
        });
        verdicts.min().unwrap_or(Verdict::Yes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_unknown_decides_nothing() {
        let selector = |expression: Value| json!({"matchExpressions": [expression]});
        let rows = [
            (json!({}), Verdict::Yes),
            (json!({"matchLabels": {"a": "1"}}), Verdict::Yes),
            (json!({"matchLabels": {"a": "2"}}), Verdict::No),
            (json!({"matchLabels": {"gone": "1"}}), Verdict::No),
            (
                json!({"matchLabels": {"a": "1", "u": "1"}}),
                Verdict::Perhaps,
            ),
            (json!({"matchLabels": {"a": "2", "u": "1"}}), Verdict::No),
            (
                selector(json!({"key": "a", "operator": "In", "values": ["2", "1"]})),
                Verdict::Yes,
            ),
            (
                selector(json!({"key": "a", "operator": "NotIn", "values": ["1"]})),
                Verdict::No,
            ),
            (
                selector(json!({"key": "gone", "operator": "NotIn", "values": ["1"]})),
                Verdict::Yes,
            ),
            (
                selector(json!({"key": "a", "operator": "Exists"})),
                Verdict::Yes,
            ),
            (
                selector(json!({"key": "gone", "operator": "Exists"})),
                Verdict::No,
            ),
            (
                selector(json!({"key": "a", "operator": "DoesNotExist"})),
                Verdict::No,
            ),
            (
                selector(json!({"key": "gone", "operator": "DoesNotExist"})),
                Verdict::Yes,
            ),
            (
                selector(json!({"key": "u", "operator": "DoesNotExist"})),
                Verdict::Perhaps,
            ),
        ];
        for (selector, expect) in rows {
            let verdict = Selector::new(Some(&selector)).verdict(|key| match key {
                "a" => Label::Value("1"),
                "u" => Label::Unknown,
                _ => Label::Missing,
            });
            assert_eq!(verdict, expect, "{selector}");
        }
    }
}
