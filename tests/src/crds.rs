//! The definitions of our objects as files, made of the Rust types.

use anyhow::{Context as _, Result};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;
use common::api::names;
use common::api::policy::AddonPolicy;
use kube::CustomResourceExt as _;
use serde_json::{Value, json};

/// File names below `deploy/crds`, and what stands in them.
///
/// # Errors
/// A definition that cannot be written as YAML.
pub fn files() -> Result<Vec<(String, String)>> {
    [
        AddonCatalogue::crd(),
        AddonInstallation::crd(),
        AddonPolicy::crd(),
    ]
    .into_iter()
    .map(|crd| {
        let mut object = serde_json::to_value(&crd)?;
        let name = object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .context("a definition without a name")?;
        let file = format!("{name}.yaml");
        let metadata = object
            .pointer_mut("/metadata")
            .context("a definition without metadata")?;
        // `init` never puts an older definition over a newer one (semantics 17).
        metadata["annotations"] = json!({names::ANNOTATION_CRD_VERSION: env!("CARGO_PKG_VERSION")});
        tidy(&mut object);
        let yaml = serde_saphyr::to_string(&object)?;
        let header =
            "# Generated from the Rust types: cargo run -p addons-tests --bin generate-crds\n";
        Ok((file, format!("{header}{yaml}")))
    })
    .collect()
}

/// Takes out what schemars writes for Rust's sake: `nullable` (the API server then drops a null by itself, and a rule's
/// `has` means what it says) and the formats of Rust's integers, which it warns about. A
/// bound that is a float stays an integer.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|key, value| match key.as_str() {
                "nullable" => !value.is_boolean(),
                "format" => !value
                    .as_str()
                    .is_some_and(|format| format.starts_with("uint")),
                _ => true,
            });
            if let Some(minimum) = fields.get_mut("minimum")
                && minimum.as_f64() == Some(0.0)
            {
                *minimum = json!(0);
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
