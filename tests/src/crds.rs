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
        without_citations(&mut object);
        let yaml = serde_saphyr::to_string(&object)?;
        let header =
            "# Generated from the Rust types: cargo run -p addons-tests --bin generate crds\n";
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

/// Takes `(semantics 6)` out of descriptions: the rules are a document of this repository, which `kubectl explain` does not show.
pub(crate) fn without_citations(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = uncited(text);
            }
            fields.values_mut().for_each(without_citations);
        }
        Value::Array(items) => items.iter_mut().for_each(without_citations),
        _ => {}
    }
}

fn uncited(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, cited)) = rest.split_once("(semantics ") {
        let Some((_, after)) = cited.split_once(')') else {
            break;
        };
        kept.push_str(before.trim_end());
        rest = after;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_cites_no_rule() {
        for (text, expected) in [
            ("The lock (semantics 13).", "The lock."),
            ("A\n(semantics 1, 5). B (semantics 2)", "A. B"),
            ("A (b).", "A (b)."),
        ] {
            assert_eq!(uncited(text), expected);
        }
    }
}
