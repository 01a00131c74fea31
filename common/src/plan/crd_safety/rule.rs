//! What one keyword of a schema asks of a value, and whether an older one asked for it already.

use std::fmt;

use regex_lite::RegexBuilder;
use serde_json::Value;

use super::schema::fits;

/// Memory that one pattern may take when it is compiled.
const LARGEST_PATTERN: usize = 1 << 20;

/// One demand on a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rule {
    Type {
        /// `string`, …; `integer` and `string` for x-kubernetes-int-or-string.
        types: Vec<String>,
        nullable: bool,
    },
    Enum(Vec<Value>),
    /// A bound, and whether a value has to be above it rather than at it.
    Minimum(f64, bool),
    /// As [`Rule::Minimum`].
    Maximum(f64, bool),
    MultipleOf(f64),
    /// Keyword and number: characters, items or fields at least.
    AtLeast(Size, u64),
    /// As [`Rule::AtLeast`].
    AtMost(Size, u64),
    Pattern(String),
    Format(String),
    /// No two items are equal, in these fields where there are any.
    Unique(Vec<String>),
    /// `allOf`, `anyOf`, `oneOf` or `not` with its schemas.
    Junction(&'static str, Vec<Value>),
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Characters,
    Items,
    Fields,
}

/// Every rule of one schema, without those of what is in the value.
pub(super) fn of(schema: &Value) -> Vec<Rule> {
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool) == Some(true);
    let number = |name: &str| schema.get(name).and_then(Value::as_f64);
    let count = |name: &str| schema.get(name).and_then(Value::as_u64);
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let list = |name: &str| schema.get(name).and_then(Value::as_array);
    let is_either = flag("x-kubernetes-int-or-string");
    let mut rules = Vec::new();
    let types: Vec<String> = match text("type") {
        _ if is_either => vec!["integer".to_owned(), "string".to_owned()],
        Some(one) => vec![one.to_owned()],
        None => Vec::new(),
    };
    if !types.is_empty() {
        rules.push(Rule::Type {
            types,
            nullable: flag("nullable"),
        });
    }
    rules.extend(list("enum").map(|values| Rule::Enum(values.clone())));
    rules.extend(number("minimum").map(|bound| Rule::Minimum(bound, flag("exclusiveMinimum"))));
    rules.extend(number("maximum").map(|bound| Rule::Maximum(bound, flag("exclusiveMaximum"))));
    rules.extend(number("multipleOf").map(Rule::MultipleOf));
    for (least, most, size) in [
        ("minLength", "maxLength", Size::Characters),
        ("minItems", "maxItems", Size::Items),
        ("minProperties", "maxProperties", Size::Fields),
    ] {
        let least = count(least).filter(|least| *least > 0);
        rules.extend(least.map(|least| Rule::AtLeast(size, least)));
        rules.extend(count(most).map(|most| Rule::AtMost(size, most)));
    }
    rules.extend(text("pattern").map(|pattern| Rule::Pattern(pattern.to_owned())));
    rules.extend(
        text("format")
            .filter(|format| is_checked(format))
            .map(|format| Rule::Format(format.to_owned())),
    );
    match text("x-kubernetes-list-type") {
        Some("set") => rules.push(Rule::Unique(Vec::new())),
        Some("map") => {
            let keys = list("x-kubernetes-list-map-keys").into_iter().flatten();
            let keys: Vec<String> = keys.filter_map(Value::as_str).map(str::to_owned).collect();
            rules.push(Rule::Unique(keys));
        }
        _ => {}
    }
    for word in ["allOf", "anyOf", "oneOf"] {
        // Of int-or-string, anyOf only repeats what it is.
        let schemas = list(word).filter(|_| !(is_either && word == "anyOf"));
        rules.extend(schemas.map(|schemas| Rule::Junction(word, schemas.clone())));
    }
    rules.extend(
        schema
            .get("not")
            .map(|not| Rule::Junction("not", vec![not.clone()])),
    );
    rules
}

/// Formats that the API server checks; it passes over any other.
fn is_checked(format: &str) -> bool {
    matches!(
        format,
        "int32"
            | "int64"
            | "bsonobjectid"
            | "uri"
            | "email"
            | "hostname"
            | "ipv4"
            | "ipv6"
            | "cidr"
            | "mac"
            | "uuid"
            | "uuid3"
            | "uuid4"
            | "uuid5"
            | "isbn"
            | "isbn10"
            | "isbn13"
            | "creditcard"
            | "ssn"
            | "hexcolor"
            | "rgbcolor"
            | "byte"
            | "date"
            | "duration"
            | "datetime"
            | "date-time"
    )
}

impl Rule {
    /// Whether a value that obeys this rule obeys `other`, too.
    pub(super) fn implies(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Type {
                    types: old,
                    nullable: was,
                },
                Self::Type {
                    types: new,
                    nullable: is,
                },
            ) => {
                let fits = |old: &String| {
                    new.contains(old) || (old == "integer" && new.iter().any(|new| new == "number"))
                };
                old.iter().all(fits) && (*is || !was)
            }
            (Self::Enum(old), Self::Enum(new)) => old.iter().all(|value| new.contains(value)),
            (Self::Minimum(old, above), Self::Minimum(new, is_above)) => {
                old > new || (old == new && (*above || !is_above))
            }
            (Self::Maximum(old, below), Self::Maximum(new, is_below)) => {
                old < new || (old == new && (*below || !is_below))
            }
            (Self::AtLeast(old_size, old), Self::AtLeast(size, new)) => {
                old_size == size && old >= new
            }
            (Self::AtMost(old_size, old), Self::AtMost(size, new)) => {
                old_size == size && old <= new
            }
            (Self::Format(old), Self::Format(new)) => {
                old == new || (old == "int32" && new == "int64")
            }
            (Self::Junction("anyOf", old), Self::Junction("anyOf", new)) => {
                old.iter().all(|part| new.contains(part))
            }
            (Self::Junction("allOf", old), Self::Junction("allOf", new)) => {
                new.iter().all(|part| old.contains(part))
            }
            (old, new) => old == new,
        }
    }

    /// Whether a value obeys; `None` where nobody can tell from here.
    pub(super) fn holds(&self, value: &Value) -> Option<bool> {
        if value.is_null() && !matches!(self, Self::Type { .. }) {
            return Some(true);
        }
        Some(match self {
            Self::Type { types, nullable } => {
                (value.is_null() && *nullable) || types.iter().any(|name| is_type(value, name))
            }
            Self::Enum(values) => values.contains(value),
            Self::Minimum(bound, above) => value
                .as_f64()
                .is_none_or(|value| value > *bound || (!above && value == *bound)),
            Self::Maximum(bound, below) => value
                .as_f64()
                .is_none_or(|value| value < *bound || (!below && value == *bound)),
            Self::MultipleOf(unit) => value
                .as_f64()
                .is_none_or(|value| *unit == 0.0 || (value / unit).fract() == 0.0),
            Self::AtLeast(size, least) => size.of(value).is_none_or(|count| count >= *least),
            Self::AtMost(size, most) => size.of(value).is_none_or(|count| count <= *most),
            Self::Pattern(pattern) => match value.as_str() {
                // The API server's patterns are Go's, which the crate reads but for rare escapes.
                Some(text) => {
                    let mut builder = RegexBuilder::new(pattern);
                    let pattern = builder.size_limit(LARGEST_PATTERN).build().ok()?;
                    pattern.is_match(text)
                }
                None => true,
            },
            Self::Format(format) if format == "int32" => value
                .as_i64()
                .is_none_or(|value| i32::try_from(value).is_ok()),
            Self::Format(format) if format == "int64" => true,
            Self::Format(_) => return None,
            Self::Unique(keys) => value.as_array().is_none_or(|items| is_unique(items, keys)),
            Self::Junction(word, schemas) => {
                let fitting = schemas.iter().filter(|schema| fits(schema, value)).count();
                match *word {
                    "allOf" => fitting == schemas.len(),
                    "anyOf" => fitting > 0,
                    "oneOf" => fitting == 1,
                    _ => fitting == 0,
                }
            }
        })
    }

    /// Whether [`Rule::holds`] can tell.
    pub(super) fn is_judged(&self) -> bool {
        match self {
            Self::Format(format) => matches!(format.as_str(), "int32" | "int64"),
            Self::Pattern(pattern) => RegexBuilder::new(pattern)
                .size_limit(LARGEST_PATTERN)
                .build()
                .is_ok(),
            _ => true,
        }
    }
}

impl Size {
    fn of(self, value: &Value) -> Option<u64> {
        let count = match self {
            Self::Characters => value.as_str()?.chars().count(),
            Self::Items => value.as_array()?.len(),
            Self::Fields => value.as_object()?.len(),
        };
        u64::try_from(count).ok()
    }

    /// `1 item`, `3 items`.
    fn words(self, count: u64) -> String {
        let word = match self {
            Self::Characters => "character",
            Self::Items => "item",
            Self::Fields => "field",
        };
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {word}{plural}")
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|value| value.fract() == 0.0),
        _ => true,
    }
}

fn is_unique(items: &[Value], keys: &[String]) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    items.iter().all(|item| {
        let identity = if keys.is_empty() {
            item.to_string()
        } else {
            let fields: Vec<String> = keys
                .iter()
                .map(|key| item.get(key).map(Value::to_string).unwrap_or_default())
                .collect();
            fields.join("\0")
        };
        seen.insert(identity)
    })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { types, nullable } => {
                let or_null = if *nullable { " or null" } else { "" };
                write!(f, "has to be {}{or_null}", types.join(" or "))
            }
            Self::Enum(values) => {
                const LISTED: usize = 8;
                let words: Vec<String> = values.iter().take(LISTED).map(Value::to_string).collect();
                let more = if values.len() > LISTED { ", …" } else { "" };
                write!(f, "takes only {}{more}", words.join(", "))
            }
            Self::Minimum(bound, true) => write!(f, "has to be more than {bound}"),
            Self::Minimum(bound, false) => write!(f, "has to be {bound} at least"),
            Self::Maximum(bound, true) => write!(f, "has to be less than {bound}"),
            Self::Maximum(bound, false) => write!(f, "may be {bound} at most"),
            Self::MultipleOf(unit) => write!(f, "has to be a multiple of {unit}"),
            Self::AtLeast(size, count) => write!(f, "needs {} at least", size.words(*count)),
            Self::AtMost(size, count) => write!(f, "may have {} at most", size.words(*count)),
            Self::Pattern(pattern) => write!(f, "has to match {pattern}"),
            Self::Format(format) => write!(f, "has to be of format {format}"),
            Self::Unique(keys) if keys.is_empty() => f.write_str("takes no item twice"),
            Self::Unique(keys) => write!(f, "takes no two items of one {}", keys.join(" and ")),
            Self::Junction(word, _) => write!(f, "has to fit another {word}"),
        }
    }
}
