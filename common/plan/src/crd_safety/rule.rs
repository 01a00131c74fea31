//! Rules of a schema, keyword by keyword: whether a value satisfies them, and whether an older schema implies them.

use std::fmt;

use serde_json::{Map, Value};

use super::compare::MAX_RULE_LENGTH;
use common::schema::check;
use common::text::shorten;

/// One rule that a value has to satisfy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SchemaRule {
    demand: RuleDemand,
    /// A schema with only this rule.
    schema: Value,
}

#[derive(Clone, Debug, PartialEq)]
enum RuleDemand {
    Type {
        /// `string` etc.; `integer` and `string` for x-kubernetes-int-or-string.
        types: Vec<String>,
        nullable: bool,
    },
    Enum(Vec<Value>),
    /// A lower bound, and whether it is exclusive.
    Minimum(f64, bool),
    /// An upper bound, and whether it is exclusive.
    Maximum(f64, bool),
    MultipleOf(f64),
    /// A minimum number of characters, items or fields.
    AtLeast(CountedUnit, u64),
    /// A maximum number of characters, items or fields.
    AtMost(CountedUnit, u64),
    Pattern(String),
    Format(String),
    /// No two items are equal; with field names, in these fields.
    Unique(Vec<String>),
    /// `allOf`, `anyOf`, `oneOf` or `not` with its schemas.
    Junction(&'static str, Vec<Value>),
}

const NULLABLE: &str = "nullable";

/// The unit that a size limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountedUnit {
    Characters,
    Items,
    Fields,
}

/// Returns the rules of one schema, without those of nested schemas.
pub(super) fn parse_rules(schema: &Value) -> Vec<SchemaRule> {
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool) == Some(true);
    let number = |name: &str| schema.get(name).and_then(Value::as_f64);
    let count = |name: &str| schema.get(name).and_then(Value::as_u64);
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let list = |name: &str| schema.get(name).and_then(Value::as_array);
    let is_either = flag("x-kubernetes-int-or-string");
    let mut rules = Vec::new();
    let mut add = |keywords: &[&str], demand: Option<RuleDemand>| {
        let schema = || keep_keywords(schema, keywords);
        rules.extend(demand.map(|demand| SchemaRule {
            demand,
            schema: schema(),
        }));
    };
    let types: Vec<String> = match text("type") {
        _ if is_either => vec!["integer".to_owned(), "string".to_owned()],
        Some(one) => vec![one.to_owned()],
        None => Vec::new(),
    };
    add(
        &["type", "x-kubernetes-int-or-string", NULLABLE],
        (!types.is_empty()).then(|| RuleDemand::Type {
            types,
            nullable: flag(NULLABLE),
        }),
    );
    add(&["enum"], list("enum").cloned().map(RuleDemand::Enum));
    let minimum =
        number("minimum").map(|bound| RuleDemand::Minimum(bound, flag("exclusiveMinimum")));
    add(&["minimum", "exclusiveMinimum"], minimum);
    let maximum =
        number("maximum").map(|bound| RuleDemand::Maximum(bound, flag("exclusiveMaximum")));
    add(&["maximum", "exclusiveMaximum"], maximum);
    add(
        &["multipleOf"],
        number("multipleOf").map(RuleDemand::MultipleOf),
    );
    for (least, most, size) in [
        ("minLength", "maxLength", CountedUnit::Characters),
        ("minItems", "maxItems", CountedUnit::Items),
        ("minProperties", "maxProperties", CountedUnit::Fields),
    ] {
        let bound = count(least).filter(|least| *least > 0);
        add(
            &[least],
            bound.map(|least| RuleDemand::AtLeast(size, least)),
        );
        add(
            &[most],
            count(most).map(|most| RuleDemand::AtMost(size, most)),
        );
    }
    let pattern = text("pattern").map(|pattern| RuleDemand::Pattern(pattern.to_owned()));
    add(&["pattern"], pattern);
    let format = text("format").filter(|format| is_checked(format));
    add(
        &["format"],
        format.map(|format| RuleDemand::Format(format.to_owned())),
    );
    let unique = match text("x-kubernetes-list-type") {
        Some("set") => Some(Vec::new()),
        Some("map") => {
            let keys = list("x-kubernetes-list-map-keys").into_iter().flatten();
            Some(keys.filter_map(Value::as_str).map(str::to_owned).collect())
        }
        _ => None,
    };
    add(
        &["x-kubernetes-list-type", "x-kubernetes-list-map-keys"],
        unique.map(RuleDemand::Unique),
    );
    for word in ["allOf", "anyOf", "oneOf"] {
        // In an int-or-string, anyOf only repeats the types.
        let schemas = list(word).filter(|_| !(is_either && word == "anyOf"));
        add(
            &[word],
            schemas.map(|schemas| RuleDemand::Junction(word, schemas.clone())),
        );
    }
    let not = schema.get("not");
    add(
        &["not"],
        not.map(|not| RuleDemand::Junction("not", vec![not.clone()])),
    );
    rules
}

/// Returns a schema with only these keywords. If `nullable` is not one of them, null is allowed.
fn keep_keywords(schema: &Value, keywords: &[&str]) -> Value {
    let mut fields = Map::new();
    for keyword in keywords {
        let value = schema.get(*keyword).cloned();
        fields.extend(value.map(|value| ((*keyword).to_owned(), value)));
    }
    if !keywords.contains(&NULLABLE) {
        fields.insert(NULLABLE.to_owned(), Value::Bool(true));
    }
    Value::Object(fields)
}

/// Whether the API server checks this format. It ignores all others.
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

impl SchemaRule {
    /// Whether every value that satisfies this rule also satisfies `other`.
    pub(super) fn implies(&self, other: &Self) -> bool {
        self.demand.implies(&other.demand)
    }

    /// Whether a value satisfies the rule. Always true for a rule that cannot be checked ([`SchemaRule::can_check`]).
    pub(super) fn accepts(&self, value: &Value) -> bool {
        check::fits(&self.schema, value)
    }

    /// Whether [`SchemaRule::accepts`] can check this rule.
    pub(super) fn can_check(&self) -> bool {
        match &self.demand {
            RuleDemand::Format(format) => matches!(format.as_str(), "int32" | "int64"),
            RuleDemand::Pattern(pattern) => check::compile_pattern(pattern).is_some(),
            _ => true,
        }
    }

    /// Whether it is a rule about the type.
    pub(super) fn demands_type(&self) -> bool {
        matches!(self.demand, RuleDemand::Type { .. })
    }
}

impl RuleDemand {
    fn implies(&self, other: &Self) -> bool {
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

    /// Formats a size: `1 item`, `3 items`.
    fn count_words(size: CountedUnit, count: u64) -> String {
        let word = match size {
            CountedUnit::Characters => "character",
            CountedUnit::Items => "item",
            CountedUnit::Fields => "field",
        };
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {word}{plural}")
    }
}

impl fmt::Display for SchemaRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.demand {
            RuleDemand::Type { types, nullable } => {
                let or_null = if *nullable { " or null" } else { "" };
                write!(f, "has to be {}{or_null}", types.join(" or "))
            }
            RuleDemand::Enum(values) => {
                const LISTED: usize = 8;
                let words: Vec<String> = values.iter().take(LISTED).map(Value::to_string).collect();
                let more = if values.len() > LISTED { ", …" } else { "" };
                write!(f, "takes only {}{more}", words.join(", "))
            }
            RuleDemand::Minimum(bound, true) => write!(f, "has to be more than {bound}"),
            RuleDemand::Minimum(bound, false) => write!(f, "has to be {bound} at least"),
            RuleDemand::Maximum(bound, true) => write!(f, "has to be less than {bound}"),
            RuleDemand::Maximum(bound, false) => write!(f, "may be {bound} at most"),
            RuleDemand::MultipleOf(unit) => write!(f, "has to be a multiple of {unit}"),
            RuleDemand::AtLeast(size, count) => {
                write!(
                    f,
                    "needs {} at least",
                    RuleDemand::count_words(*size, *count)
                )
            }
            RuleDemand::AtMost(size, count) => {
                write!(
                    f,
                    "may have {} at most",
                    RuleDemand::count_words(*size, *count)
                )
            }
            RuleDemand::Pattern(pattern) => {
                write!(
                    f,
                    "has to match {}",
                    shorten(pattern.clone(), MAX_RULE_LENGTH)
                )
            }
            RuleDemand::Format(format) => write!(f, "has to be of format {format}"),
            RuleDemand::Unique(keys) if keys.is_empty() => f.write_str("takes no item twice"),
            RuleDemand::Unique(keys) => {
                write!(f, "takes no two items of one {}", keys.join(" and "))
            }
            RuleDemand::Junction(word, _) => write!(f, "has to fit another {word}"),
        }
    }
}
