//! Objects for tests of all crates.

#![expect(
    clippy::unwrap_used,
    reason = "only tests use these objects, and each is valid"
)]

use serde_json::{Value, json};

use super::catalogue::{AddonCatalogue, CatalogueClass};
use super::installation::AddonInstallation;
use super::names;

/// Returns a catalogue `name` in the system namespace with the given `addons`.
pub fn catalogue(name: &str, addons: Value) -> AddonCatalogue {
    catalogue_object(json!({
        "metadata": {"name": name, "namespace": names::SYSTEM_NAMESPACE},
        "spec": {"addons": addons},
    }))
}

/// Returns a catalogue from its JSON, without apiVersion and kind.
pub fn catalogue_object(mut object: Value) -> AddonCatalogue {
    object["apiVersion"] = json!(names::API_VERSION);
    object["kind"] = json!("AddonCatalogue");
    serde_json::from_value(object).unwrap()
}

/// Returns a catalogue of class Core.
pub fn core_catalogue(name: &str, addons: Value) -> AddonCatalogue {
    let mut catalogue = catalogue(name, addons);
    catalogue.spec.class = CatalogueClass::Core;
    catalogue
}

/// Returns an add-on with plain versions.
pub fn addon(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"version": version, "source": source()}))
        .collect();
    json!({"name": name, "versions": versions})
}

/// Returns an arbitrary source.
pub fn source() -> Value {
    json!({"url": {"manifest": "m.yaml"}})
}

/// Returns an installation `name` in `namespace` of `addon_ref`, with the fields `more` in its spec.
pub fn installation(
    namespace: &str,
    name: &str,
    addon_ref: Value,
    more: Value,
) -> AddonInstallation {
    serde_json::from_value(installation_json(namespace, name, addon_ref, more)).unwrap()
}

/// Returns the same installation as JSON.
pub fn installation_json(namespace: &str, name: &str, addon_ref: Value, more: Value) -> Value {
    let mut spec = more;
    spec["addonRef"] = addon_ref;
    json!({
        "apiVersion": names::API_VERSION,
        "kind": "AddonInstallation",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    })
}

/// Returns a core installation in the system namespace.
pub fn core_installation(name: &str) -> AddonInstallation {
    installation(
        names::SYSTEM_NAMESPACE,
        name,
        json!({"name": name}),
        json!({"coreAddon": true}),
    )
}
