//! Converts JSON to values.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value as Json};

use super::{Dict, MAX_DEPTH, Type, Value};

/// The data is nested too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is nested deeper than {MAX_DEPTH} levels")]
pub struct TooDeep;

/// Converts as Kubernetes decodes: a whole number within 64 bits becomes an int64, any other number a float64.
impl TryFrom<&Json> for Value {
    type Error = TooDeep;

    fn try_from(json: &Json) -> Result<Self, TooDeep> {
        let number = |number: &Number| match number.as_i64() {
            Some(number) => Self::Int64(number),
            None => Self::Float(number.as_f64().unwrap_or_default()),
        };
        convert_json(json, number, 0)
    }
}

/// JSON as Go's encoding/json decodes it: every number becomes a float64. It is not read through `serde_json::Value`, which treats maps
/// with a certain private key as raw JSON.
pub(crate) struct DecodedJson(pub(crate) Value);

impl<'de> Deserialize<'de> for DecodedJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonDecoder).map(Self)
    }
}

struct JsonDecoder;

impl<'de> Visitor<'de> for JsonDecoder {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Float(
            Number::from(number).as_f64().unwrap_or_default(),
        ))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Float(
            Number::from(number).as_f64().unwrap_or_default(),
        ))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(DecodedJson(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::list(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((name, DecodedJson(field))) = fields.next_entry::<String, DecodedJson>()? {
            entries.insert(Rc::from(name.as_str()), field);
        }
        Ok(Value::Dict(Dict::new(&Type::Any, entries)))
    }
}

fn convert_json(json: &Json, number: fn(&Number) -> Value, depth: usize) -> Result<Value, TooDeep> {
    if depth > MAX_DEPTH {
        return Err(TooDeep);
    }
    let nested = |json| convert_json(json, number, depth + 1);
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(of) => number(of),
        Json::String(text) => Value::text(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(nested).collect::<Result<_, _>>()?),
        Json::Object(fields) => {
            let mut entries = Vec::with_capacity(fields.len());
            for (name, field) in fields {
                entries.push((Rc::from(name.as_str()), nested(field)?));
            }
            Value::Dict(Dict::new(&Type::Any, entries))
        }
    })
}
