//! Converts JSON to the data of a template: a TemplateData document of KKP.
//!
//! Templates can distinguish the types of KKP's Go structs: `StrictArp` is a pointer, which is true even if it points to false, and
//! `.Cluster.Features` has a method. Any part of the document may be missing, and then stays missing.

use std::rc::Rc;

use addons_gotemplate::function::Function;
use addons_gotemplate::sprig::to_json;
use addons_gotemplate::value::{Dict, StructValue, Type, Value};
use common::text::encode_hex;
use serde_json::Value as Json;
use sha1::{Digest as _, Sha1};

use super::field::{DataField, FieldError, NullValue};
use super::shapes::{self, HASHED};

/// The type of the values in a set.
const NOTHING: Type = Type::Record(&shapes::NOTHING);

/// The methods of a set (`sets.Set` of k8s.io/apimachinery).
const METHODS: &[Function<'static>] = &[Function::new(
    "Has",
    &[Type::Dict(&NOTHING), Type::Text],
    &|_, args| Ok(Value::Bool(args.dict(0)?.contains(args.text(1)?))),
)];

/// Reads a TemplateData document.
pub(super) fn read_template_data(json: &Json) -> Result<Value, FieldError> {
    let root = Value::try_from(json).map_err(|error| FieldError {
        path: ".".to_owned(),
        problem: error.to_string(),
    })?;
    let (Some(json), Value::Dict(document)) = (json.get("Cluster"), &root) else {
        return Ok(root);
    };
    let path = "Cluster".to_owned();
    let Some(cluster) = DataObject::new(DataField { json, path }, document.get("Cluster")) else {
        return Ok(root);
    };
    cluster.replace_all(shapes::CLUSTER)?;
    cluster.replace("Features", read_features)?;
    if let Some(csi) = cluster.child("CSI") {
        csi.replace_all(shapes::CSI)?;
    }
    if let Some(network) = cluster.child("Network") {
        network.replace_all(shapes::NETWORK)?;
        let hash = config_hash(&network.field)?;
        network.dict.set("ConfigHash", Value::text(hash));
    }
    Ok(root)
}

/// An object of the document, with its dict.
struct DataObject<'a> {
    field: DataField<'a>,
    dict: Dict,
}

impl<'a> DataObject<'a> {
    /// Returns the object for `field` if `value` is a dict.
    fn new(field: DataField<'a>, value: Option<Value>) -> Option<Self> {
        match value? {
            Value::Dict(dict) => Some(Self { field, dict }),
            _ => None,
        }
    }

    fn child(&self, name: &str) -> Option<Self> {
        let json = self.field.json.get(name)?;
        Self::new(self.field.child(name, json), self.dict.get(name))
    }

    /// Replaces field `name` with the result of `read`, if it exists.
    fn replace(
        &self,
        name: &str,
        read: impl FnOnce(&DataField<'a>) -> Result<Value, FieldError>,
    ) -> Result<(), FieldError> {
        if let Some(json) = self.field.json.get(name) {
            self.dict.set(name, read(&self.field.child(name, json))?);
        }
        Ok(())
    }

    /// Reads those of `fields` that exist as their types.
    fn replace_all(&self, fields: &'static [(&str, Type)]) -> Result<(), FieldError> {
        let mut fields = fields.iter();
        fields.try_for_each(|(name, of)| {
            self.replace(name, |field| field.to_value(of, NullValue::Empty))
        })
    }
}

/// Reads a set of names: a list of names, or an object whose keys are the names.
fn read_features(field: &DataField<'_>) -> Result<Value, FieldError> {
    let names: Vec<Rc<str>> = match field.json {
        Json::Object(object) => object.keys().map(|name| Rc::from(name.as_str())).collect(),
        _ => {
            let items = field.items()?;
            let names = items.iter().map(|item| item.text().map(Rc::from));
            names.collect::<Result<_, _>>()?
        }
    };
    let entries = names.into_iter().map(|name| (name, NOTHING.zero()));
    Ok(Value::Dict(Dict::with_methods(&NOTHING, METHODS, entries)))
}

/// Returns `.Cluster.Network.ConfigHash`, which changes with the network settings, so that pods roll out again: the lower-case hex SHA-1 of
/// the struct's compact JSON, as Go writes it. All lists are sorted before.
fn config_hash(network: &DataField<'_>) -> Result<String, FieldError> {
    let mut values = Vec::with_capacity(HASHED.fields.len());
    for (name, of) in HASHED.fields {
        let value = network.get(name)?.to_value(of, NullValue::Nil)?;
        values.push(match value {
            Value::List(list) => {
                let texts = list.iter().filter_map(|item| match item {
                    Value::Text(text) => Some(text.clone()),
                    _ => None,
                });
                let mut texts: Vec<_> = texts.collect();
                texts.sort_unstable();
                Value::texts(texts)
            }
            other => other,
        });
    }
    let json = to_json(&Value::Record(StructValue::new(&HASHED, values).into()));
    let json = json.map_err(|error| network.error(error.to_string()))?;
    Ok(encode_hex(&Sha1::digest(json.as_bytes())))
}
