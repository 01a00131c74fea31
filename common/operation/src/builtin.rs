//! The add-ons that this program contains: the webhook and the admission policies, built from the files in `deploy/`.
//!
//! They are the entries of an index of their own, so that every command for installations works on them. Their version is that of the
//! program: a newer program upgrades them with the same command.

pub mod definitions;
mod files;
mod kustomization;
pub mod rights;
pub mod webhook;

use std::sync::Arc;

use common::api::catalogue::{
    Addon, AddonCatalogueSpec, AddonTemplate, AddonVersion, Constraints, InlineSource, Method,
    Source,
};
use common::api::installation::AddonInstallation;
use common::api::names::{INDEX_BUILTIN, SYSTEM_NAMESPACE};
use common::catalogue::{Catalogue, CatalogueEntry, Origin};
use common::manifest::digest::sha256_trimmed;
use serde_json::{Value, json};

pub use addons_engine::webhooks::WEBHOOK;

pub use kustomization::BuiltinError;

/// The add-on with the admission policies.
pub const POLICIES: &str = "addons-policies";
/// Admission policies are served since 1.30.
const KUBERNETES: &str = ">=1.30.0";
/// The value with the image of the webhook.
pub const IMAGE: &str = "image";
/// The value with the failurePolicy of the validating webhook.
pub const FAILURE_POLICY: &str = "failurePolicy";
/// The group of CustomResourceDefinition objects.
const DEFINITIONS: &str = "apiextensions.k8s.io/v1";

/// Returns the index.
///
/// # Errors
/// A file cannot be read, which a test rules out.
pub fn catalogue() -> Result<Arc<Catalogue>, BuiltinError> {
    let (webhook, image) = to_template(webhook_objects()?)?;
    let values = json!({IMAGE: image, FAILURE_POLICY: "Fail"});
    let policies = to_manifest(&policy_objects()?);
    let spec = AddonCatalogueSpec {
        addons: vec![
            addon(
                WEBHOOK,
                "The admission webhook of this tool",
                version(webhook, Method::GoTemplate, Some(values)),
            ),
            addon(
                POLICIES,
                "Guards of core add-ons that need no webhook",
                version(policies, Method::Manifest, None),
            ),
        ],
        ..AddonCatalogueSpec::default()
    };
    let location = INDEX_BUILTIN.to_owned();
    Ok(Arc::new(Catalogue::from_spec(
        &spec,
        Origin::Index { location },
    )))
}

/// Returns the CustomResourceDefinitions of kubectl addons, as in the base.
///
/// # Errors
/// As [`catalogue`].
pub fn definitions() -> Result<Vec<Value>, BuiltinError> {
    let mut objects = kustomization::build("base")?;
    objects.retain(is_definition);
    Ok(objects)
}

/// Returns the objects of the webhook without the definitions and the namespace, which stay when it is uninstalled.
pub fn webhook_objects() -> Result<Vec<Value>, BuiltinError> {
    let mut objects = kustomization::build("base")?;
    objects.retain(|object| !is_definition(object) && object["kind"] != "Namespace");
    Ok(objects)
}

/// Returns the admission policies and their bindings.
pub fn policy_objects() -> Result<Vec<Value>, BuiltinError> {
    kustomization::build("policies")
}

/// Whether an entry is one of these add-ons, which are rendered without facts of the cluster.
pub(crate) fn is_builtin(entry: &CatalogueEntry) -> bool {
    matches!(&*entry.origin, Origin::Index { location } if location == INDEX_BUILTIN)
}

/// Whether an installation is that of the admission policies.
pub(crate) fn is_policies_record(record: &AddonInstallation) -> bool {
    let reference = &record.spec.addon_ref;
    reference.index.as_deref() == Some(INDEX_BUILTIN) && reference.name == POLICIES
}

fn is_definition(object: &Value) -> bool {
    object["apiVersion"] == DEFINITIONS
}

/// Returns the objects as a template of image and failurePolicy, and the image that they named.
fn to_template(mut objects: Vec<Value>) -> Result<(String, String), BuiltinError> {
    let mut image = None;
    for object in &mut objects {
        let validates = object["kind"] == "ValidatingWebhookConfiguration";
        if validates && let Some(webhooks) = object["webhooks"].as_array_mut() {
            for webhook in webhooks {
                webhook[FAILURE_POLICY] = placeholder(FAILURE_POLICY).into();
            }
        }
        if let Some(container) = object.pointer_mut("/spec/template/spec/containers/0") {
            let before = container[IMAGE].as_str().map(str::to_owned);
            container[IMAGE] = placeholder(IMAGE).into();
            image = before;
        }
    }
    let image = image.ok_or(BuiltinError::NoImage)?;
    let mut text = to_manifest(&objects);
    for value in [IMAGE, FAILURE_POLICY] {
        let quoted = format!("\"{}\"", placeholder(value));
        text = text.replace(&quoted, &format!("{{{{ .Variables.{value} | toJson }}}}"));
    }
    Ok((text, image))
}

/// Returns a text that no file contains.
fn placeholder(value: &str) -> String {
    format!("@{value}@")
}

/// Returns the objects as one manifest: JSON is YAML.
fn to_manifest(objects: &[Value]) -> String {
    let documents = objects.iter().map(|object| format!("---\n{object}\n"));
    documents.collect()
}

fn addon(name: &str, description: &str, version: AddonVersion) -> Addon {
    Addon {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        versions: vec![version],
        ..Addon::default()
    }
}

fn version(manifest: String, method: Method, values: Option<Value>) -> AddonVersion {
    AddonVersion {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        default_namespace: Some(SYSTEM_NAMESPACE.to_owned()),
        template: AddonTemplate {
            method,
            ..AddonTemplate::default()
        },
        manifest_hash: Some(sha256_trimmed(manifest.as_bytes())),
        source: Source {
            inline: Some(InlineSource { manifest }),
            ..Source::default()
        },
        constraints: Constraints {
            k8s_version: Some(KUBERNETES.to_owned()),
            ..Constraints::default()
        },
        values,
        ..AddonVersion::default()
    }
}

#[cfg(test)]
mod tests;
