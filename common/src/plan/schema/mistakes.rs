//! Why a document cannot be read as an object of ours, with the path of each field: serde knows neither.

use kube::CustomResourceExt;
use serde_json::Value;

use crate::plan::schema;

/// How many mistakes are named.
const NAMED: usize = 5;

/// The mistakes of an object of ours, by the schema that the API server would judge it by.
#[must_use]
pub fn mistakes<K: CustomResourceExt>(document: &Value) -> Vec<String> {
    let mut found = schema::problems(&schema_of::<K>(), document);
    let more = found.len().saturating_sub(NAMED);
    found.truncate(NAMED);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found
}

/// All of them, and the fields that an object of ours does not have: paths, and what is wrong there.
#[must_use]
pub fn every<K: CustomResourceExt>(document: &Value) -> Vec<(String, String)> {
    schema::strict(&schema_of::<K>(), document)
}

/// A definition can always be written as JSON.
fn schema_of<K: CustomResourceExt>() -> Value {
    let mut definition = serde_json::to_value(K::crd()).unwrap_or_default();
    let schema = definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema");
    schema.map(Value::take).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::catalogue::AddonCatalogue;
    use crate::api::names;

    #[test]
    fn every_mistake_has_its_path() {
        let at = "spec.addons[0].versions[0]";
        let source = json!({"url": {"manifest": "a"}});
        for (version, expected) in [
            (json!({"version": "1", "source": source}), None),
            (
                json!({"version": 1.2, "source": source}),
                Some(format!(
                    "{at}.version must be a string, not a number: put it in quotes"
                )),
            ),
            (
                json!({"version": "1", "source": "a"}),
                Some(format!("{at}.source must be an object, not a string")),
            ),
            (
                json!({"version": "1", "source": source, "template": {"method": "kustomize"}}),
                Some(format!("{at}.template.method must be one of")),
            ),
            (
                json!({"version": "1"}),
                Some(format!("{at}.source is required")),
            ),
        ] {
            let found = mistakes::<AddonCatalogue>(&json!({
                "apiVersion": names::API_VERSION,
                "kind": "AddonCatalogue",
                "metadata": {"name": "c"},
                "spec": {"addons": [{"name": "a", "versions": [version]}]},
            }));
            match expected {
                Some(expected) => assert!(
                    matches!(found.as_slice(), [one] if one.starts_with(&expected)),
                    "{expected}: {found:?}"
                ),
                None => assert_eq!(found, Vec::<String>::new()),
            }
        }
    }
}
