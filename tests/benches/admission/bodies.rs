//! Reviews of three sizes, as the API server sends them, all of which are allowed.

use common::api::names::{API_VERSION, GROUP, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

/// The add-on that installations refer to.
pub(crate) const ADDON: &str = "web";

/// How large a review is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Medium,
    Large,
}

impl Size {
    pub(crate) const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    fn bytes(self) -> usize {
        match self {
            Self::Small => 430,
            Self::Medium => 55 << 10,
            Self::Large => 1_400 << 10,
        }
    }
}

/// For `/mutate`: an installation is created, with values that make the review so large.
pub(crate) fn installation(size: Size) -> Vec<u8> {
    let review = |values: &Value| {
        let mut spec = json!({"addonRef": {"name": ADDON}});
        if values.as_object().is_some_and(|values| !values.is_empty()) {
            spec["values"] = values.clone();
        }
        let object = json!({
            "apiVersion": API_VERSION, "kind": "AddonInstallation",
            "metadata": {"name": ADDON, "namespace": SYSTEM_NAMESPACE}, "spec": spec,
        });
        of("AddonInstallation", "CREATE", &object, &Value::Null)
    };
    let empty = review(&json!({}));
    let (mut values, mut length) = (json!({}), empty.len());
    for number in 0.. {
        let (key, value) = (
            format!("setting-{number}"),
            json!({"enabled": true, "level": number, "note": "as it comes"}),
        );
        length += key.len() + value.to_string().len() + 4;
        if length > size.bytes() {
            break;
        }
        values[key] = value;
    }
    review(&values)
}

/// For `/validate`: an installation is created, or a catalogue that is large gets one more version.
pub(crate) fn validated(size: Size) -> Vec<u8> {
    if size == Size::Small {
        return installation(size);
    }
    let mut addons = 1;
    loop {
        let review = of(
            "AddonCatalogue",
            "UPDATE",
            &catalogue(addons, 11),
            &catalogue(addons, 10),
        );
        if review.len() >= size.bytes() {
            return review;
        }
        // Each adds the same, so the right number is found soon.
        addons += (addons * (size.bytes() - review.len()) / review.len()).max(1);
    }
}

fn catalogue(addons: usize, versions: usize) -> Value {
    let version = |patch: usize| {
        json!({"version": format!("1.0.{patch}"), "constraints": {"k8sVersion": ">=1.30.0"},
            "source": {"url": {"manifest": "https://example.com/manifest.yaml"}}})
    };
    let addon = |number: usize| {
        let versions: Vec<Value> = (0..versions).map(version).collect();
        json!({"name": format!("addon-{number}"), "versions": versions})
    };
    let addons: Vec<Value> = (0..addons).map(addon).collect();
    json!({
        "apiVersion": API_VERSION, "kind": "AddonCatalogue",
        "metadata": {"name": "large", "namespace": SYSTEM_NAMESPACE}, "spec": {"addons": addons},
    })
}

fn of(kind: &str, operation: &str, object: &Value, old: &Value) -> Vec<u8> {
    let name = &object["metadata"]["name"];
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": operation,
            "name": name, "namespace": SYSTEM_NAMESPACE,
            "kind": {"group": GROUP, "version": "v1alpha1", "kind": kind},
            "resource": {"group": GROUP, "version": "v1alpha1", "resource": format!("{}s", kind.to_lowercase())},
            "userInfo": {"username": "jane"}, "object": object, "oldObject": old,
        },
    });
    review.to_string().into_bytes()
}
