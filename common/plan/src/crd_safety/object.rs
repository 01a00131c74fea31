//! Paths into objects, as a schema describes them.

use std::fmt;

use serde_json::Value;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SchemaSegment {
    /// A named field.
    Field(String),
    /// Every item of a list.
    Items,
    /// Every value of a map.
    Values,
}

/// A path from the root of an object. Displayed as `field spec.rules[*].host`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SchemaPath(Vec<SchemaSegment>);

impl SchemaPath {
    /// Appends a step.
    pub(super) fn with(&self, segment: SchemaSegment) -> Self {
        let mut path = self.clone();
        path.0.push(segment);
        path
    }

    /// Appends a field.
    pub(super) fn field(&self, name: &str) -> Self {
        self.with(SchemaSegment::Field(name.to_owned()))
    }

    /// Whether the path is the field `name` of the root, or below it.
    pub(super) fn is_under(&self, name: &str) -> bool {
        matches!(self.0.first(), Some(SchemaSegment::Field(first)) if first == name)
    }

    /// Returns the parent path and the name of the field. Returns `None` for the root, and for items and values.
    pub(super) fn parent(&self) -> Option<(Self, &str)> {
        match self.0.split_last() {
            Some((SchemaSegment::Field(name), rest)) => Some((Self(rest.to_vec()), name)),
            _ => None,
        }
    }

    /// Whether `is` holds for any value at this path. A missing value does not count.
    pub(super) fn any_value(&self, object: &Value, is: &dyn Fn(&Value) -> bool) -> bool {
        any(object, &self.0, is)
    }
}

fn any(value: &Value, path: &[SchemaSegment], is: &dyn Fn(&Value) -> bool) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return is(value);
    };
    match first {
        SchemaSegment::Field(name) => value.get(name).is_some_and(|value| any(value, rest, is)),
        SchemaSegment::Items => {
            let items = value.as_array().into_iter().flatten();
            items.into_iter().any(|value| any(value, rest, is))
        }
        SchemaSegment::Values => {
            let fields = value.as_object().into_iter().flatten();
            fields.into_iter().any(|(_, value)| any(value, rest, is))
        }
    }
}

impl fmt::Display for SchemaPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the object");
        }
        f.write_str("field ")?;
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                SchemaSegment::Field(name) if i > 0 => write!(f, ".{name}")?,
                SchemaSegment::Field(name) => f.write_str(name)?,
                SchemaSegment::Items | SchemaSegment::Values => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}
