//! Reads fields of the TemplateData document as certain types.

use std::rc::Rc;

use addons_gotemplate::value::{
    Dict, ListValue, PointerValue, SpelledVersion, StructValue, Type, Value,
};
use serde_json::{Map, Value as Json};

/// A field of the data does not have the type that it has in KKP.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the template data at {path}: {problem}")]
pub struct FieldError {
    /// Path of the field.
    pub path: String,
    /// What is wrong.
    pub problem: String,
}

/// A field with its path.
pub(super) struct DataField<'a> {
    pub json: &'a Json,
    pub path: String,
}

/// How a null becomes a value if Go has a list or a map.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NullValue {
    /// An empty list or map, as templates see it.
    Empty,
    /// Nil, as JSON shows it.
    Nil,
}

impl<'a> DataField<'a> {
    /// Returns the field `name` of an object; null if it does not exist.
    pub(super) fn get(&self, name: &str) -> Result<Self, FieldError> {
        let json = self.object()?.and_then(|object| object.get(name));
        Ok(self.child(name, json.unwrap_or(&Json::Null)))
    }

    pub(super) fn child(&self, name: &str, json: &'a Json) -> Self {
        Self {
            json,
            path: format!("{}.{name}", self.path),
        }
    }

    /// Returns the field as a value of type `of`. As in Go, null becomes the zero value.
    pub(super) fn to_value(&self, of: &'static Type, null: NullValue) -> Result<Value, FieldError> {
        Ok(match of {
            Type::Text => Value::text(self.text()?),
            Type::Bool => Value::Bool(self.bool()?.unwrap_or_default()),
            // KKP's whole numbers are int32.
            Type::Int => Value::Int(self.int32()?.into()),
            Type::Version => self.version()?,
            Type::Pointer(to @ Type::Bool) => {
                Value::Pointer(PointerValue::new(to, self.bool()?.map(Value::Bool)))
            }
            Type::Pointer(to) if self.json.is_null() => Value::Pointer(PointerValue::new(to, None)),
            Type::Pointer(to) => {
                Value::Pointer(PointerValue::new(to, Some(self.to_value(to, null)?)))
            }
            Type::List(_) | Type::Dict(_) if self.json.is_null() && null == NullValue::Nil => {
                Value::Nil
            }
            Type::List(element) => {
                let items = self.items()?.into_iter();
                let items = items.map(|item| item.to_value(element, null));
                Value::List(ListValue::new(element, items.collect::<Result<_, _>>()?))
            }
            Type::Dict(element) => {
                let entries = self.object()?.into_iter().flatten().map(|(name, json)| {
                    let value = self.child(name, json).to_value(element, null)?;
                    Ok((Rc::from(name.as_str()), value))
                });
                let entries = entries.collect::<Result<Vec<_>, FieldError>>()?;
                Value::Dict(Dict::new(element, entries))
            }
            Type::Record(shape) => {
                let fields = shape.fields.iter();
                let values = fields.map(|(name, of)| self.get(name)?.to_value(of, null));
                let values = values.collect::<Result<_, _>>()?;
                Value::Record(Rc::new(StructValue::new(shape, values)))
            }
            _ => self.plain()?,
        })
    }

    fn plain(&self) -> Result<Value, FieldError> {
        Value::try_from(self.json).map_err(|error| self.error(error.to_string()))
    }

    fn version(&self) -> Result<Value, FieldError> {
        let Json::String(text) = self.json else {
            return self.plain();
        };
        let version = SpelledVersion::parse(text).map_err(|error| self.error(error.to_string()))?;
        Ok(Value::Version(Rc::new(version)))
    }

    pub(super) fn error(&self, problem: String) -> FieldError {
        FieldError {
            path: self.path.clone(),
            problem,
        }
    }

    fn expected(&self, what: &str) -> FieldError {
        let found = match self.json {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "a list",
            Json::Object(_) => "an object",
        };
        self.error(format!("expected {what}, found {found}"))
    }

    pub(super) fn text(&self) -> Result<&'a str, FieldError> {
        match self.json {
            Json::Null => Ok(""),
            Json::String(text) => Ok(text),
            _ => Err(self.expected("a string")),
        }
    }

    fn bool(&self) -> Result<Option<bool>, FieldError> {
        match self.json {
            Json::Null => Ok(None),
            Json::Bool(value) => Ok(Some(*value)),
            _ => Err(self.expected("a boolean or null")),
        }
    }

    fn int32(&self) -> Result<i32, FieldError> {
        if self.json.is_null() {
            return Ok(0);
        }
        let number = self.json.as_i64().and_then(|number| number.try_into().ok());
        number.ok_or_else(|| self.expected("a whole number of 32 bits"))
    }

    pub(super) fn items(&self) -> Result<Vec<Self>, FieldError> {
        let items = match self.json {
            Json::Null => &[],
            Json::Array(items) => items.as_slice(),
            _ => return Err(self.expected("a list")),
        };
        let items = items.iter().enumerate().map(|(index, json)| Self {
            json,
            path: format!("{}[{index}]", self.path),
        });
        Ok(items.collect())
    }

    fn object(&self) -> Result<Option<&'a Map<String, Json>>, FieldError> {
        match self.json {
            Json::Null => Ok(None),
            Json::Object(fields) => Ok(Some(fields)),
            _ => Err(self.expected("an object")),
        }
    }
}
