//! Reads an AddonCatalogue from a file as far as possible: all mistakes are found at once, and the readable part is validated anyway.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::verdict::AdmissionProblem;
use common::api::catalogue::{
    Addon, AddonCatalogue, AddonCatalogueSpec, AddonVersion, CatalogueClass,
};
use common::api::names;
use common::schema::mistakes;

/// The fields of the spec other than the add-ons.
const FIELDS: [&str; 5] = ["class", "from", "baseURL", "registry", "signature"];

/// The readable part of a document.
#[derive(Clone, Debug)]
pub struct ReadCatalogue {
    /// The catalogue. Parts that could not be read are empty.
    pub object: AddonCatalogue,
    /// The mistakes, according to the schema that the API server uses.
    pub problems: Vec<AdmissionProblem>,
    /// The parts that could not be read. Rules that complain about them only report a consequence.
    pub unread: UnreadPaths,
}

/// The paths of the parts that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadPaths(Vec<String>);

impl UnreadPaths {
    /// Returns whether `field` is a part that could not be read, or is inside one.
    #[must_use]
    pub fn has(&self, field: &str) -> bool {
        let mut unread = self.0.iter();
        unread.any(|path| {
            let rest = field.strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }
}

/// Reads a document of kind AddonCatalogue.
#[must_use]
pub fn read(document: &Value) -> ReadCatalogue {
    let mut unread = Vec::new();
    let version = document.get("apiVersion").and_then(Value::as_str);
    let version = version.unwrap_or_default();
    if version != names::API_VERSION {
        let message = format!("{version} is not supported; use {}", names::API_VERSION);
        return ReadCatalogue {
            object: AddonCatalogue::new("", AddonCatalogueSpec::default()),
            problems: vec![schema_problem("apiVersion", message)],
            unread: UnreadPaths(vec!["spec".to_owned()]),
        };
    }
    let mut problems: Vec<AdmissionProblem> =
        mistakes::find_strict_mistakes::<AddonCatalogue>(document)
            .into_iter()
            .map(|(path, message)| schema_problem(path, message))
            .collect();
    let mut object = AddonCatalogue::new("", read_spec(&document["spec"], &mut unread));
    object.metadata = read_metadata(&document["metadata"], &mut problems);
    ReadCatalogue {
        object,
        problems,
        unread: UnreadPaths(unread),
    }
}

fn schema_problem(field: impl Into<String>, message: impl Into<String>) -> AdmissionProblem {
    AdmissionProblem::invalid("schema", field, message)
}

fn read_spec(written: &Value, unread: &mut Vec<String>) -> AddonCatalogueSpec {
    if let Some(spec) = parse_typed(written) {
        return spec;
    }
    let mut spec = AddonCatalogueSpec::default();
    let Value::Object(fields) = written else {
        unread.push("spec".to_owned());
        return spec;
    };
    let mut kept = Map::new();
    for name in FIELDS {
        let Some(value) = fields.get(name) else {
            continue;
        };
        if parse_typed::<AddonCatalogueSpec>(&json!({name: value})).is_some() {
            kept.insert(name.to_owned(), value.clone());
        } else {
            unread.push(format!("spec.{name}"));
        }
    }
    spec = parse_typed(&Value::Object(kept)).unwrap_or(spec);
    if unread.iter().any(|path| path == "spec.class") {
        // The class is unknown: rules that apply to one class only must not report anything.
        spec.class = CatalogueClass::Core;
    }
    match fields.get("addons") {
        None | Some(Value::Null) => {}
        Some(Value::Array(addons)) => {
            let addons = addons.iter().enumerate();
            let addons = addons.map(|(i, it)| read_addon(it, format!("spec.addons[{i}]"), unread));
            spec.addons = addons.collect();
        }
        Some(_) => unread.push("spec.addons".to_owned()),
    }
    spec
}

fn read_addon(written: &Value, place: String, unread: &mut Vec<String>) -> Addon {
    if let Some(addon) = parse_typed(written) {
        return addon;
    }
    let mut bare = written.clone();
    bare["versions"] = match written {
        Value::Object(_) => json!([]),
        _ => {
            unread.push(place);
            return Addon::default();
        }
    };
    let Some(mut addon) = parse_typed::<Addon>(&bare) else {
        unread.push(place);
        return Addon::default();
    };
    let Value::Array(versions) = &written["versions"] else {
        unread.push(format!("{place}.versions"));
        return addon;
    };
    let versions = versions.iter().enumerate();
    addon.versions = versions
        .map(|(j, it)| read_version(it, format!("{place}.versions[{j}]"), unread))
        .collect();
    addon
}

fn read_version(written: &Value, place: String, unread: &mut Vec<String>) -> AddonVersion {
    parse_typed(written).unwrap_or_else(|| {
        // A unique id, so that it is not a duplicate of another version.
        let version = AddonVersion {
            id: place.clone(),
            ..AddonVersion::default()
        };
        unread.push(place);
        version
    })
}

/// Reads the metadata, which our schema does not cover.
fn read_metadata(written: &Value, problems: &mut Vec<AdmissionProblem>) -> ObjectMeta {
    let name = &written["name"];
    if !name.is_null() && !name.as_str().is_some_and(names::is_object_name) {
        problems.push(schema_problem(
            "metadata.name",
            format!(
                "{name} cannot be the name of a catalogue (lower-case letters, digits, - and .)"
            ),
        ));
    }
    for field in ["labels", "annotations"] {
        let Some(entries) = written[field].as_object() else {
            continue;
        };
        let wrong = entries.iter().filter(|(_, value)| !value.is_string());
        problems.extend(wrong.map(|(key, _)| {
            let path = format!("metadata.{field}.{key}");
            schema_problem(path, "must be a string: put it in quotes")
        }));
    }
    if let Some(mut metadata) = parse_typed::<ObjectMeta>(written) {
        // A file that was copied from a cluster contains these fields.
        metadata.resource_version = None;
        metadata.uid = None;
        metadata.creation_timestamp = None;
        metadata.managed_fields = None;
        return metadata;
    }
    if problems.iter().all(|it| !it.field.starts_with("metadata")) {
        problems.push(schema_problem(
            "metadata",
            "cannot be read as the metadata of an object",
        ));
    }
    ObjectMeta {
        name: name.as_str().map(str::to_owned),
        ..ObjectMeta::default()
    }
}

fn parse_typed<T: DeserializeOwned>(written: &Value) -> Option<T> {
    T::deserialize(written).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(addons: Value) -> Value {
        json!({
            "apiVersion": names::API_VERSION, "kind": "AddonCatalogue", "metadata": {"name": "c", "resourceVersion": "7"},
            "spec": {"addons": addons},
        })
    }

    fn texts(read: &ReadCatalogue) -> Vec<String> {
        read.problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_can_be_read_is_read_beside_what_cannot() {
        let source = json!({"url": {"manifest": "a"}});
        let read = read(&document(json!([
            {"name": "web", "versions": [
                {"version": 1.0, "source": source},
                {"version": "1.1", "source": source, "constraint": {}},
                {"version": "1.2"},
            ]},
            {"name": "Shop!", "versions": []},
            7,
        ])));
        assert_eq!(
            texts(&read),
            [
                "spec.addons[0].versions[0].version: must be a string, not an integer: put it in quotes",
                "spec.addons[0].versions[1].constraint: unknown field; did you mean constraints?",
                "spec.addons[0].versions[2].source: is required",
                "spec.addons[1].name: must match the pattern ^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$, unlike \"Shop!\"",
                "spec.addons[2]: must be an object, not an integer",
            ]
        );
        assert_eq!(
            read.unread.0,
            [
                "spec.addons[0].versions[0]",
                "spec.addons[0].versions[2]",
                "spec.addons[2]"
            ]
        );
        assert!(read.unread.has("spec.addons[0].versions[0].source"));
        assert!(!read.unread.has("spec.addons[0].versions[1].source"));
        let versions = &read.object.spec.addons[0].versions;
        assert_eq!(versions[1].version, "1.1");
        assert_eq!(read.object.metadata.resource_version, None);
    }

    #[test]
    fn the_rest_of_the_specification_is_judged_by_field() {
        let mut document = document(json!([{"name": "web", "versions": []}]));
        document["spec"]["class"] = json!("Kore");
        document["spec"]["registry"] = json!("r.example");
        document["metadata"] = json!({"name": "A b", "labels": {"x": true}});
        let read = read(&document);
        assert_eq!(
            texts(&read),
            [
                "spec.class: must be one of \"Custom\", \"Core\", not \"Kore\"",
                "metadata.name: \"A b\" cannot be the name of a catalogue (lower-case letters, digits, - and .)",
                "metadata.labels.x: must be a string: put it in quotes",
            ]
        );
        assert_eq!(read.object.spec.registry.as_deref(), Some("r.example"));
        assert_eq!(read.object.spec.addons.len(), 1);
    }

    #[test]
    fn another_version_of_the_api_is_not_read() {
        let read = read(&json!({"apiVersion": "kubectl-addons.dev/v2", "spec": 1}));
        let expected =
            "apiVersion: kubectl-addons.dev/v2 is not supported; use kubectl-addons.dev/v1alpha1";
        assert_eq!(texts(&read), [expected]);
        assert!(read.unread.has("spec.addons[0]"));
    }
}
