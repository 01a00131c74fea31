//! From JSON to values: plain, or as a TemplateData document of KKP (`golden/kkp/README.md`, "TemplateData").
//!
//! A document may have any part of the fields: what is there becomes what KKP's Go types are, what is not stays missing.

mod config_hash;
mod field;

#[cfg(test)]
mod tests;

use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::error::TemplateError;
use super::value::{Dict, Element, List, MAX_DEPTH, Pointer, Record, Shape, Value, Version};
use config_hash::config_hash;
use field::Field;

/// Reads plain data: a whole number within 64 bits is an int64, any other a float64, as Kubernetes decodes them.
pub(super) fn plain(json: &Json) -> Result<Value, TemplateError> {
    value(json, 0)
}

/// Reads a TemplateData document.
pub(super) fn read(json: &Json) -> Result<Value, TemplateError> {
    let root = plain(json)?;
    let Some(cluster) = json.get("Cluster").and_then(Json::as_object) else {
        return Ok(root);
    };
    let Value::Dict(dict) = &root else {
        return Ok(root);
    };
    let Some(Value::Dict(dict)) = dict.get("Cluster") else {
        return Ok(root);
    };
    let cluster = Fields::new(cluster, "Cluster", &dict);
    cluster.set("Features", features)?;
    cluster.set("KubeVirtInfraStorageClasses", |field| {
        records(field, Shape::StorageClass)
    })?;
    cluster.set("KubeVirtInfraVolumeSnapshotClasses", |field| {
        records(field, Shape::SnapshotClass)
    })?;
    cluster.set("Version", |field| match field.json {
        Json::String(text) => {
            let version = Version::parse(text).map_err(|error| field.error(error.to_string()))?;
            Ok(Value::Version(Rc::new(version)))
        }
        other => plain(other),
    })?;
    if let Some(csi) = cluster.object("CSI") {
        csi.set("SsSegmentedIscsiNetwork", |field| {
            field.optional_bool().map(pointer)
        })?;
    }
    if let Some(network) = cluster.object("Network") {
        network
            .dict
            .set("ConfigHash", Value::text(config_hash(network.json)?));
        network.set("StrictArp", |field| field.optional_bool().map(pointer))?;
        network.set("PodCIDRBlocks", texts)?;
        network.set("ServiceCIDRBlocks", texts)?;
        network.set("IPAMAllocations", |field| {
            let allocation = |(name, json): (&String, _)| {
                let value = record(&field.child(name, json), Shape::Allocation)?;
                Ok((Rc::from(name.as_str()), value))
            };
            let entries = field.object()?.into_iter().flatten().map(allocation);
            let entries = entries.collect::<Result<Vec<_>, TemplateError>>()?;
            Ok(Value::Dict(Dict::new(
                Element::Record(Shape::Allocation),
                entries,
            )))
        })?;
    }
    Ok(root)
}

/// An object of the document, and the dict that it became.
struct Fields<'a> {
    json: &'a Map<String, Json>,
    path: String,
    dict: Dict,
}

impl<'a> Fields<'a> {
    fn new(json: &'a Map<String, Json>, path: &str, dict: &Dict) -> Self {
        Self {
            json,
            path: path.to_owned(),
            dict: dict.clone(),
        }
    }

    /// Reads field `name` again, where it is there.
    fn set(
        &self,
        name: &str,
        read: impl FnOnce(&Field<'_>) -> Result<Value, TemplateError>,
    ) -> Result<(), TemplateError> {
        if let Some(json) = self.json.get(name) {
            let path = format!("{}.{name}", self.path);
            self.dict.set(name, read(&Field { json, path })?);
        }
        Ok(())
    }

    fn object(&self, name: &str) -> Option<Self> {
        let json = self.json.get(name)?.as_object()?;
        let Value::Dict(dict) = self.dict.get(name)? else {
            return None;
        };
        Some(Self::new(json, &format!("{}.{name}", self.path), &dict))
    }
}

fn value(json: &Json, depth: usize) -> Result<Value, TemplateError> {
    if depth > MAX_DEPTH {
        return Err(TemplateError::Data {
            path: ".".to_owned(),
            problem: format!("it is nested deeper than {MAX_DEPTH} levels"),
        });
    }
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int64(number),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::text(text.as_str()),
        Json::Array(items) => {
            let items = items.iter().map(|item| value(item, depth + 1));
            Value::list(items.collect::<Result<_, _>>()?)
        }
        Json::Object(fields) => {
            let mut entries = Vec::with_capacity(fields.len());
            for (name, json) in fields {
                entries.push((Rc::from(name.as_str()), value(json, depth + 1)?));
            }
            Value::Dict(Dict::new(Element::Any, entries))
        }
    })
}

/// A set of names: a list of them, or an object whose keys they are.
fn features(field: &Field<'_>) -> Result<Value, TemplateError> {
    let names: Vec<Rc<str>> = match field.json {
        Json::Object(object) => object.keys().map(|name| Rc::from(name.as_str())).collect(),
        _ => field
            .texts()?
            .unwrap_or_default()
            .into_iter()
            .map(Rc::from)
            .collect(),
    };
    let element = Element::Record(Shape::Empty);
    let entries = names.into_iter().map(|name| (name, element.zero()));
    Ok(Value::Dict(Dict::new(element, entries)))
}

fn texts(field: &Field<'_>) -> Result<Value, TemplateError> {
    Ok(Value::texts(field.texts()?.unwrap_or_default()))
}

fn pointer(target: Option<bool>) -> Value {
    Value::Pointer(Pointer::Bool(target))
}

/// A list of structs.
fn records(field: &Field<'_>, shape: Shape) -> Result<Value, TemplateError> {
    let items = field.items()?.unwrap_or_default();
    let items = items.iter().map(|item| record(item, shape));
    let items = items.collect::<Result<_, _>>()?;
    Ok(Value::List(List::new(Element::Record(shape), items)))
}

/// A struct: what is not there, or null, has its zero value.
fn record(field: &Field<'_>, shape: Shape) -> Result<Value, TemplateError> {
    let mut record = Record::zero(shape);
    for (name, json) in field.object()?.into_iter().flatten() {
        let Some(zero) = record.get(name).filter(|_| !json.is_null()) else {
            continue;
        };
        let field = field.child(name, json);
        let value = match zero {
            Value::Bool(_) => Value::Bool(field.bool()?),
            Value::Pointer(Pointer::Bool(_)) => pointer(field.optional_bool()?),
            Value::Pointer(Pointer::Text(_)) => {
                Value::Pointer(Pointer::Text(Some(Rc::from(field.text()?))))
            }
            Value::List(_) => texts(&field)?,
            Value::Dict(_) => {
                let mut entries: Vec<(Rc<str>, Value)> = Vec::new();
                for (name, json) in field.object()?.into_iter().flatten() {
                    let text = field.child(name, json).text()?;
                    entries.push((Rc::from(name.as_str()), Value::text(text)));
                }
                Value::Dict(Dict::new(Element::Text, entries))
            }
            _ => Value::text(field.text()?),
        };
        record.set(name, value);
    }
    Ok(Value::Record(Rc::new(record)))
}
