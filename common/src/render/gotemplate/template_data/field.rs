//! A field of the document that must have a certain type. Null is the type's zero value, as in Go.

use serde_json::{Map, Value as Json};

use crate::render::gotemplate::error::TemplateError;

/// A field and its path.
pub(super) struct Field<'a> {
    pub json: &'a Json,
    pub path: String,
}

impl<'a> Field<'a> {
    pub(super) fn child(&self, name: &str, json: &'a Json) -> Self {
        Self {
            json,
            path: format!("{}.{name}", self.path),
        }
    }

    pub(super) fn error(&self, problem: String) -> TemplateError {
        TemplateError::Data {
            path: self.path.clone(),
            problem,
        }
    }

    fn expected(&self, what: &str) -> TemplateError {
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

    pub(super) fn text(&self) -> Result<&'a str, TemplateError> {
        match self.json {
            Json::Null => Ok(""),
            Json::String(text) => Ok(text),
            _ => Err(self.expected("a string")),
        }
    }

    pub(super) fn optional_bool(&self) -> Result<Option<bool>, TemplateError> {
        match self.json {
            Json::Null => Ok(None),
            Json::Bool(value) => Ok(Some(*value)),
            _ => Err(self.expected("a boolean or null")),
        }
    }

    pub(super) fn bool(&self) -> Result<bool, TemplateError> {
        self.optional_bool().map(Option::unwrap_or_default)
    }

    pub(super) fn int32(&self) -> Result<i32, TemplateError> {
        if self.json.is_null() {
            return Ok(0);
        }
        let number = self
            .json
            .as_i64()
            .and_then(|number| i32::try_from(number).ok());
        number.ok_or_else(|| self.expected("a whole number of 32 bits"))
    }

    pub(super) fn items(&self) -> Result<Option<Vec<Self>>, TemplateError> {
        match self.json {
            Json::Null => Ok(None),
            Json::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(index, json)| Self {
                    json,
                    path: format!("{}[{index}]", self.path),
                });
                Ok(Some(items.collect()))
            }
            _ => Err(self.expected("a list")),
        }
    }

    pub(super) fn texts(&self) -> Result<Option<Vec<&'a str>>, TemplateError> {
        let Some(items) = self.items()? else {
            return Ok(None);
        };
        items
            .iter()
            .map(Self::text)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    pub(super) fn object(&self) -> Result<Option<&'a Map<String, Json>>, TemplateError> {
        match self.json {
            Json::Null => Ok(None),
            Json::Object(fields) => Ok(Some(fields)),
            _ => Err(self.expected("an object")),
        }
    }
}
