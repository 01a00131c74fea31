//! Which objects a patch changes: those that its target selects, or the one that it names.

use std::collections::BTreeMap;

use regex_lite::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::error::PatchProblem;
use crate::api::installation::PatchTarget;
use crate::api::policy::{LabelOperator, LabelRequirement, NamespaceSelector};
use crate::manifest::key::{Gvk, ObjectKey};

/// The maximum size of a compiled pattern, in bytes.
const MAX_PATTERN: usize = 64 << 10;

/// The objects that a patch changes.
#[derive(Debug)]
pub(super) enum PatchScope {
    /// The objects that these requirements select.
    Selected(Box<SelectedObjects>),
    /// The object that the patch names.
    Named {
        /// Its kind.
        kind: Gvk,
        /// Its name.
        name: String,
        /// Its namespace; `None` for that of the installation.
        namespace: Option<String>,
    },
}

/// The requirements of a target.
#[derive(Debug)]
pub(super) struct SelectedObjects {
    group: Option<Regex>,
    version: Option<Regex>,
    kind: Option<Regex>,
    name: Option<Regex>,
    namespace: Option<Regex>,
    labels: NamespaceSelector,
    annotations: NamespaceSelector,
    /// The target as it was written, for messages.
    written: PatchTarget,
}

impl PatchScope {
    /// Compiles a target.
    ///
    /// # Errors
    /// A field is not a regular expression or a selector; with its name.
    pub(super) fn compile(written: &PatchTarget) -> Result<Self, (&'static str, PatchProblem)> {
        let pattern = |field, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => {
                let mut whole = RegexBuilder::new(&format!("^(?:{text})$"));
                let whole = whole.size_limit(MAX_PATTERN).build();
                whole.map(Some).map_err(|_| (field, PatchProblem::Pattern))
            }
        };
        let selector = |field, text: &Option<String>| {
            let text = text.as_deref().unwrap_or_default();
            parse_selector(text).ok_or((field, PatchProblem::Selector))
        };
        Ok(Self::Selected(Box::new(SelectedObjects {
            group: pattern("group", &written.group)?,
            version: pattern("version", &written.version)?,
            kind: pattern("kind", &written.kind)?,
            name: pattern("name", &written.name)?,
            namespace: pattern("namespace", &written.namespace)?,
            labels: selector("labelSelector", &written.label_selector)?,
            annotations: selector("annotationSelector", &written.annotation_selector)?,
            written: written.clone(),
        })))
    }

    /// Returns the object that a merge patch names.
    pub(super) fn named(patch: &Map<String, Value>) -> Option<Self> {
        let metadata = patch.get("metadata")?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        Some(Self::Named {
            kind: Gvk::new(
                patch.get("apiVersion")?.as_str()?,
                patch.get("kind")?.as_str()?,
            ),
            name: text(metadata.get("name"))?,
            namespace: text(metadata.get("namespace")),
        })
    }

    /// Whether the object is changed. One that names no namespace counts as in `namespace`.
    pub(super) fn matches(&self, object: &Value, namespace: &str) -> bool {
        let (Some(kind), Some(key)) = (Gvk::of(object), ObjectKey::from_object(object)) else {
            return false;
        };
        let of_object = key.namespace.as_deref().unwrap_or(namespace);
        let selected = match self {
            Self::Named {
                kind: wanted,
                name,
                namespace: named,
            } => {
                let named = named.as_deref().unwrap_or(namespace);
                return kind == *wanted && key.name == *name && of_object == named;
            }
            Self::Selected(selected) => selected,
        };
        let patterns = [
            (&selected.group, kind.group.as_str()),
            (&selected.version, &kind.version),
            (&selected.kind, &kind.kind),
            (&selected.name, &key.name),
            (&selected.namespace, of_object),
        ];
        let mut patterns = patterns.into_iter();
        patterns.all(|(pattern, text)| pattern.as_ref().is_none_or(|one| one.is_match(text)))
            && selected.labels.selects(&read_map(object, "labels"))
            && selected
                .annotations
                .selects(&read_map(object, "annotations"))
    }

    /// Returns the field of a patch that says which object it changes.
    pub(super) fn field(&self) -> &'static str {
        match self {
            Self::Selected(_) => "target",
            Self::Named { .. } => "patch",
        }
    }

    /// Returns the kind and the name that were asked for, to find similar ones.
    pub(super) fn wanted(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Self::Named { kind, name, .. } => (Some(kind.kind.as_str()), Some(name.as_str())),
            Self::Selected(selected) => (
                selected.written.kind.as_deref(),
                selected.written.name.as_deref(),
            ),
        }
    }

    /// Describes the target in messages: `kind=Deployment, name=web`.
    pub(super) fn describe(&self) -> String {
        let parts = match self {
            Self::Selected(selected) => {
                let written = &selected.written;
                vec![
                    ("group", written.group.as_deref()),
                    ("version", written.version.as_deref()),
                    ("kind", written.kind.as_deref()),
                    ("name", written.name.as_deref()),
                    ("namespace", written.namespace.as_deref()),
                    ("labelSelector", written.label_selector.as_deref()),
                    ("annotationSelector", written.annotation_selector.as_deref()),
                ]
            }
            Self::Named {
                kind,
                name,
                namespace,
            } => vec![
                (
                    "group",
                    Some(kind.group.as_str()).filter(|group| !group.is_empty()),
                ),
                ("version", Some(kind.version.as_str())),
                ("kind", Some(kind.kind.as_str())),
                ("name", Some(name.as_str())),
                ("namespace", namespace.as_deref()),
            ],
        };
        let parts = parts.into_iter();
        let parts = parts.filter_map(|(field, text)| Some(format!("{field}={}", text?)));
        let parts: Vec<String> = parts.collect();
        parts.join(", ")
    }
}

/// Reads labels or annotations.
fn read_map(object: &Value, field: &str) -> BTreeMap<String, String> {
    let map = object
        .get("metadata")
        .and_then(|it| it.get(field)?.as_object());
    let entries = map.into_iter().flatten();
    let texts = entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    texts.collect()
}

/// Parses a selector in kubectl's grammar: `a=b`, `a==b`, `a!=b`, `a in (b, c)`, `a notin (b)`, `a`, `!a`, joined by commas.
fn parse_selector(text: &str) -> Option<NamespaceSelector> {
    let mut selector = NamespaceSelector::default();
    for part in split_requirements(text) {
        selector.match_expressions.push(parse_requirement(part)?);
    }
    Some(selector)
}

/// Splits at the commas outside of parentheses.
fn split_requirements(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    // An empty text requires nothing.
    parts.filter(move |_| !text.trim().is_empty())
}

fn parse_requirement(part: &str) -> Option<LabelRequirement> {
    use LabelOperator::{DoesNotExist, Exists, In, NotIn};
    let part = part.trim();
    let (key, operator, values) = if let Some((key, value)) = part.split_once("!=") {
        (key, NotIn, vec![value.trim().to_owned()])
    } else if let Some((key, value)) = part.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        (key, In, vec![value.trim().to_owned()])
    } else if let Some((left, listed)) = part.strip_suffix(')').and_then(|it| it.split_once('(')) {
        let (key, operator) = left.trim_end().rsplit_once(char::is_whitespace)?;
        let operator = match operator {
            "in" => In,
            "notin" => NotIn,
            _ => return None,
        };
        let values = listed.split(',').map(|value| value.trim().to_owned());
        (key, operator, values.collect())
    } else if let Some(key) = part.strip_prefix('!') {
        (key, DoesNotExist, Vec::new())
    } else {
        (part, Exists, Vec::new())
    };
    let key = key.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    (!key.is_empty() && key.chars().all(is_part)).then(|| LabelRequirement {
        key: key.to_owned(),
        operator,
        values,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_those_of_kubectl() {
        let labels: BTreeMap<String, String> = [("app", "web"), ("a.b/tier", "front")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        for (selector, expected) in [
            ("", Some(true)),
            ("app=web", Some(true)),
            ("app == web , a.b/tier", Some(true)),
            ("app!=web", Some(false)),
            ("app!=web,app=web", Some(false)),
            ("app in (db, web),!zone", Some(true)),
            ("app notin (db, web)", Some(false)),
            ("zone notin (a)", Some(true)),
            ("zone", Some(false)),
            ("!app", Some(false)),
            ("app=web,", None),
            ("app is (web)", None),
            ("=web", None),
            ("a b", None),
        ] {
            let parsed = parse_selector(selector).map(|parsed| parsed.selects(&labels));
            assert_eq!(parsed, expected, "{selector:?}");
        }
    }
}
