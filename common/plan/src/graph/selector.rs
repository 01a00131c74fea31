//! Label selectors, evaluated before all labels are known.

use serde_json::Value;

use super::template::{list_items, read_text};

/// The value of a label, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelLookup<'a> {
    /// It has this value.
    Value(&'a str),
    /// It is missing.
    Missing,
    /// Its value is unknown.
    Unknown,
}

/// Whether a selector matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SelectorMatch {
    /// It does not match.
    No,
    /// It depends on unknown labels.
    Perhaps,
    /// It matches.
    Yes,
}

/// A label selector. Without requirements, it matches everything.
#[derive(Debug, Default)]
pub(super) struct WebhookSelector<'a> {
    requirements: Vec<SelectorRequirement<'a>>,
}

#[derive(Debug)]
struct SelectorRequirement<'a> {
    key: &'a str,
    operator: &'a str,
    values: Vec<&'a str>,
}

impl<'a> WebhookSelector<'a> {
    /// Reads a selector from a field that may be missing.
    pub fn new(selector: Option<&'a Value>) -> Self {
        let Some(selector) = selector else {
            return Self::default();
        };
        let equal = selector.get("matchLabels").and_then(Value::as_object);
        let equal = equal.into_iter().flatten().filter_map(|(key, value)| {
            Some(SelectorRequirement {
                key,
                operator: "In",
                values: vec![value.as_str()?],
            })
        });
        let expressions = list_items(selector, "/matchExpressions").filter_map(|expression| {
            Some(SelectorRequirement {
                key: read_text(expression, "/key")?,
                operator: read_text(expression, "/operator")?,
                values: list_items(expression, "/values")
                    .filter_map(Value::as_str)
                    .collect(),
            })
        });
        Self {
            requirements: equal.chain(expressions).collect(),
        }
    }

    /// Evaluates the selector. `label` looks up a label.
    pub fn evaluate<'l>(&self, label: impl Fn(&str) -> LabelLookup<'l>) -> SelectorMatch {
        let verdicts = self.requirements.iter().map(|requirement| {
            let has = |value: &str| requirement.values.contains(&value);
            let yes = match (label(requirement.key), requirement.operator) {
                (LabelLookup::Unknown, _) => return SelectorMatch::Perhaps,
                (LabelLookup::Value(value), "In") => has(value),
                (LabelLookup::Value(value), "NotIn") => !has(value),
                (LabelLookup::Value(_), operator) => operator != "DoesNotExist",
                (LabelLookup::Missing, operator) => !matches!(operator, "In" | "Exists"),
            };
            if yes {
                SelectorMatch::Yes
            } else {
                SelectorMatch::No
            }
        });
        verdicts.min().unwrap_or(SelectorMatch::Yes)
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
            (json!({}), SelectorMatch::Yes),
            (json!({"matchLabels": {"a": "1"}}), SelectorMatch::Yes),
            (json!({"matchLabels": {"a": "2"}}), SelectorMatch::No),
            (json!({"matchLabels": {"gone": "1"}}), SelectorMatch::No),
            (
                json!({"matchLabels": {"a": "1", "u": "1"}}),
                SelectorMatch::Perhaps,
            ),
            (
                json!({"matchLabels": {"a": "2", "u": "1"}}),
                SelectorMatch::No,
            ),
            (
                selector(json!({"key": "a", "operator": "In", "values": ["2", "1"]})),
                SelectorMatch::Yes,
            ),
            (
                selector(json!({"key": "a", "operator": "NotIn", "values": ["1"]})),
                SelectorMatch::No,
            ),
            (
                selector(json!({"key": "gone", "operator": "NotIn", "values": ["1"]})),
                SelectorMatch::Yes,
            ),
            (
                selector(json!({"key": "a", "operator": "Exists"})),
                SelectorMatch::Yes,
            ),
            (
                selector(json!({"key": "gone", "operator": "Exists"})),
                SelectorMatch::No,
            ),
            (
                selector(json!({"key": "a", "operator": "DoesNotExist"})),
                SelectorMatch::No,
            ),
            (
                selector(json!({"key": "gone", "operator": "DoesNotExist"})),
                SelectorMatch::Yes,
            ),
            (
                selector(json!({"key": "u", "operator": "DoesNotExist"})),
                SelectorMatch::Perhaps,
            ),
        ];
        for (selector, expect) in rows {
            let verdict = WebhookSelector::new(Some(&selector)).evaluate(|key| match key {
                "a" => LabelLookup::Value("1"),
                "u" => LabelLookup::Unknown,
                _ => LabelLookup::Missing,
            });
            assert_eq!(verdict, expect, "{selector}");
        }
    }
}
