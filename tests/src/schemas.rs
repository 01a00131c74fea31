//! JSON schemas of the files that people write, for their editors; made of the Rust types.

use anyhow::{Context as _, Result};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;
use common::api::names;
use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use crate::crds::without_citations;

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// File names below `deploy/schemas`, and what stands in them.
///
/// # Errors
/// A definition without a schema.
pub fn files() -> Result<Vec<(String, String)>> {
    let named = |title: &str, mut schema: Value| -> Result<String> {
        without_citations(&mut schema);
        schema["$schema"] = json!(DRAFT);
        schema["title"] = json!(title);
        Ok(format!("{}\n", serde_json::to_string_pretty(&schema)?))
    };
    let catalogue = document::<AddonCatalogue>("AddonCatalogue", &[])?;
    Ok(vec![
        (
            "catalogue.json".to_owned(),
            named("A catalogue of add-ons", catalogue)?,
        ),
        (
            "set.json".to_owned(),
            named("A set of installations", set()?)?,
        ),
    ])
}

/// A document of a set: an installation, or a list of them.
fn set() -> Result<Value> {
    let installation = document::<AddonInstallation>("AddonInstallation", &["name"])?;
    let reference = json!({"$ref": "#/definitions/installation"});
    Ok(json!({
        "definitions": {"installation": installation},
        "if": {"required": ["kind"], "properties": {"kind": {"const": "List"}}},
        "then": {
            "type": "object",
            "required": ["apiVersion", "kind", "items"],
            "properties": {
                "apiVersion": {"const": "v1"},
                "items": {"type": "array", "items": reference},
            },
        },
        "else": reference,
    }))
}

/// An object of ours as a document of a file. `required`: fields of its metadata.
fn document<K: CustomResourceExt>(kind: &str, required: &[&str]) -> Result<Value> {
    let mut definition = serde_json::to_value(K::crd())?;
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let mut spec = definition
        .pointer_mut(spec)
        .context("a definition without a schema of its spec")?
        .take();
    plain(&mut spec);
    Ok(json!({
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": false,
        "properties": {
            "$schema": {"type": "string", "description": "Where this schema is, for editors."},
            "apiVersion": {"const": names::API_VERSION},
            "kind": {"const": kind},
            "metadata": {
                "type": "object",
                "required": required,
                "properties": {"name": {"type": "string", "maxLength": 253}},
            },
            "spec": spec,
        },
    }))
}

/// Makes JSON Schema of a structural schema: what the API server drops or takes as it is is said by `additionalProperties`.
fn plain(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    let is_free = fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    fields.retain(|key, value| match key.as_str() {
        "nullable" => false,
        "format" => !value.as_str().is_some_and(|it| it.starts_with("uint")),
        key => !key.starts_with("x-kubernetes-"),
    });
    if is_free {
        fields.insert("additionalProperties".to_owned(), json!(true));
    } else if fields.contains_key("properties") {
        fields.insert("additionalProperties".to_owned(), json!(false));
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(plain);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(key) {
            plain(inner);
        }
    }
    integral(fields);
}

/// A bound that is a float stays an integer.
fn integral(fields: &mut Map<String, Value>) {
    if let Some(minimum) = fields.get_mut("minimum")
        && minimum.as_f64() == Some(0.0)
    {
        *minimum = json!(0);
    }
}
