//! Values from the Secrets of `spec.valuesFrom`: they are read whenever values are merged, and never stored (semantics 9).
//!
//! Only templates get their content. Records and plans store the revision of the Secrets; everything that is shown passes through
//! [`crate::render::inputs::Inputs::mask`].

use std::collections::BTreeMap;

use addons_admission::rules::installation::secret_values;
use addons_admission::verdict::Verdict;
use addons_engine::secret;
use common::api::installation::{AddonInstallation, SecretKeyRef};
use common::api::names::InstallationName;
use common::catalogue::CatalogueEntry;
use common::manifest::digest::digest;
use common::manifest::yaml::YamlProblem;
use common::values::layers::{LayerValues, Layers};
use common::values::secret::{SecretValuesError, check_content, check_label};
use common::values::{self, ValuesError};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::context::Context;
use crate::error::{OperationError, ValuesFromError, within};
use crate::records::name_of;
use crate::resolve::verdict;

/// The values from the Secrets of an installation.
#[derive(Clone, Debug, Default)]
pub struct SecretValues {
    /// Their values, in their order: [`Layers::values_from`].
    pub values: Vec<LayerValues>,
    /// The revision of each Secret: uid and resourceVersion.
    states: Vec<String>,
}

/// Reads the Secrets that an installation names, each once; they are in the namespace of its record.
///
/// # Errors
/// [`ValuesFromError`], if a Secret is missing and not optional, is not for values, or has none; refusals of the server.
pub async fn read_secrets(
    ctx: &Context,
    record: &AddonInstallation,
) -> Result<SecretValues, OperationError> {
    // Secrets are beside the record.
    let cluster = ctx.home().await?;
    let installation = name_of(record);
    let is_of_system = installation.namespace == ctx.settings().system_namespace;
    let references: Vec<&SecretKeyRef> = record
        .spec
        .values_from
        .iter()
        .map(|from| &from.secret_key_ref)
        .collect();
    let namespace = installation.namespace.as_str();
    let mut names: Vec<&str> = references.iter().map(|it| it.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let requests = names.into_iter().map(async |name| {
        let secret = within(secret::get(cluster, namespace, name).await, || {
            format!(
                "{installation} takes values from Secret {namespace}/{name}, which cannot be read"
            )
        })?;
        Ok::<_, OperationError>((name, secret))
    });
    let secrets: BTreeMap<&str, Option<Secret>> =
        try_join_all(requests).await?.into_iter().collect();
    let mut found = SecretValues::default();
    for (index, reference) in references.into_iter().enumerate() {
        let name = reference.name.as_str();
        let secret = secrets.get(name).and_then(Option::as_ref);
        if let Some(secret) = secret {
            let labels = secret.metadata.labels.clone().unwrap_or_default();
            check_label(namespace, name, is_of_system, &labels)
                .map_err(|why| not_values(&installation, why))?;
        }
        found.add(&installation, index, reference, secret)?;
    }
    Ok(found)
}

fn not_values(installation: &InstallationName, why: SecretValuesError) -> ValuesFromError {
    ValuesFromError::NotValues {
        installation: installation.clone(),
        why,
    }
}

impl SecretValues {
    /// Returns the digest of the values of entry, form and record, and of the revisions of the Secrets: if it changes, the installation is
    /// due (semantics 12.1). Without Secrets, it is the digest of the values alone. The content of Secrets is not part of it, because it
    /// could be guessed; the package has a hash of its own.
    pub fn hash(&self, layers: &Layers) -> String {
        let layers = Layers {
            values_from: Vec::new(),
            ..layers.clone()
        };
        let values = layers.overrides();
        if self.states.is_empty() {
            return digest(&values);
        }
        digest(&json!({"values": values, "valuesFrom": self.states}))
    }

    /// Returns the digest of the state of the Secrets, and of the one with template data; empty if there are none.
    pub fn secrets_hash(&self, overlay: Option<&str>) -> String {
        if self.states.is_empty() && overlay.is_none() {
            return String::new();
        }
        digest(&json!([self.states, overlay]))
    }

    fn add(
        &mut self,
        installation: &InstallationName,
        index: usize,
        reference: &SecretKeyRef,
        secret: Option<&Secret>,
    ) -> Result<(), ValuesFromError> {
        let namespace = &installation.namespace;
        let SecretKeyRef {
            name,
            key,
            optional,
        } = reference;
        let data = secret.and_then(|secret| secret.data.as_ref());
        let Some(bytes) = data.and_then(|data| data.get(key)) else {
            let (installation, name) = (installation.clone(), name.clone());
            return match secret {
                _ if *optional => {
                    self.states.push("not there".to_owned());
                    Ok(())
                }
                None => Err(ValuesFromError::NoSecret {
                    installation,
                    name,
                    index,
                }),
                Some(_) => Err(ValuesFromError::NoKey {
                    installation,
                    name,
                    key: key.clone(),
                    index,
                }),
            };
        };
        let place = format!("Secret {namespace}/{name}, key {key}");
        let values = values::read(&bytes.0, &place).map_err(|error| ValuesFromError::NoValues {
            installation: installation.clone(),
            why: safe_message(&error),
        })?;
        check_content(namespace, name, &values).map_err(|why| not_values(installation, why))?;
        let values = LayerValues::from_secret(namespace, name, key, values);
        self.values.push(values);
        let metadata = secret.map(|secret| &secret.metadata);
        let text = |text: Option<&String>| text.cloned().unwrap_or_default();
        self.states.push(format!(
            "{place} {}/{}",
            text(metadata.and_then(|metadata| metadata.uid.as_ref())),
            text(metadata.and_then(|metadata| metadata.resource_version.as_ref())),
        ));
        Ok(())
    }
}

/// Validates the layers after the Secrets were read, with the messages of the webhook, which cannot read them.
///
/// # Errors
/// [`crate::error::VerdictRefusal`].
pub(crate) fn check_values(
    ctx: &Context,
    installation: &InstallationName,
    entry: &CatalogueEntry,
    layers: &Layers,
) -> Result<(), OperationError> {
    if layers.values_from.is_empty() {
        return Ok(());
    }
    let verdict = Verdict {
        problems: secret_values(layers, entry),
        ..Verdict::default()
    };
    Ok(verdict::conclude(
        ctx,
        &format!("installation {installation}"),
        &verdict,
    )?)
}

/// Returns the message of an error, with its reason unless that could repeat content of the Secret.
fn safe_message(error: &ValuesError) -> String {
    match error {
        ValuesError::Yaml { problem, .. } => match problem {
            YamlProblem::Syntax(_)
            | YamlProblem::DuplicateKey { .. }
            | YamlProblem::MergeReplaces { .. } => error.to_string(),
            problem => format!("{error}: {problem}"),
        },
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn secret(data: Value, version: &str) -> Secret {
        let data: BTreeMap<String, String> = serde_json::from_value(data).unwrap();
        let data = data
            .into_iter()
            .map(|(key, text)| (key, k8s_openapi::ByteString(text.into_bytes())));
        let mut secret = Secret {
            data: Some(data.collect()),
            ..Secret::default()
        };
        secret.metadata.uid = Some("u".to_owned());
        secret.metadata.resource_version = Some(version.to_owned());
        secret
    }

    fn found(optional: bool, secret: Option<&Secret>) -> Result<SecretValues, String> {
        let installation = InstallationName {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        };
        let reference = SecretKeyRef {
            name: "db".to_owned(),
            key: "values".to_owned(),
            optional,
        };
        let mut found = SecretValues::default();
        match found.add(&installation, 0, &reference, secret) {
            Ok(()) => Ok(found),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_key_is_a_layer_and_its_state_is_part_of_the_hash() {
        let layers = Layers {
            spec: LayerValues::new("spec.values", json!({"a": 1})),
            ..Layers::default()
        };
        let read = |version: &str| {
            let secret = secret(json!({"values": "db: {password: hunter2}\n"}), version);
            found(false, Some(&secret)).unwrap()
        };
        let first = read("7");
        assert_eq!(
            first.values,
            [LayerValues::from_secret(
                "shop",
                "db",
                "values",
                json!({"db": {"password": "hunter2"}})
            )]
        );
        assert_eq!(first.hash(&layers), read("7").hash(&layers));
        assert_ne!(first.hash(&layers), read("8").hash(&layers));
        assert_ne!(
            first.hash(&layers),
            found(true, None).unwrap().hash(&layers)
        );
        let alone = |found: &SecretValues| found.secrets_hash(None);
        assert_eq!(alone(&first), alone(&read("7")));
        assert_ne!(alone(&first), alone(&read("8")));
        assert_ne!(alone(&first), first.secrets_hash(Some("u/1")));
        assert_eq!(alone(&SecretValues::default()), "");
        // Without Secrets it is the hash of the values alone.
        let alone = |layers: &Layers| SecretValues::default().hash(layers);
        assert_eq!(alone(&layers), digest(&json!({"a": 1})));
        assert_eq!(alone(&Layers::default()), digest(&json!({})));
        // The catalogue's values count, filled in or not; the Secrets' values do not.
        let mut changed = layers.clone();
        changed.values_from = first.values.clone();
        assert_eq!(alone(&changed), alone(&layers));
        changed.catalogue = LayerValues::new("catalogue", json!({"b": 2}));
        assert_eq!(alone(&changed), digest(&json!({"a": 1, "b": 2})));
        assert!(!format!("{first:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_missing_or_unreadable_is_named_without_its_content() {
        assert_eq!(
            found(false, None).unwrap_err(),
            "shop/web takes values from Secret shop/db, which does not exist"
        );
        let other = secret(json!({"other": "a: 1"}), "1");
        assert_eq!(
            found(false, Some(&other)).unwrap_err(),
            "shop/web takes values from key values of Secret shop/db, which has no such key"
        );
        assert!(found(true, Some(&other)).unwrap().values.is_empty());
        for (text, why) in [
            ("a: 1\nb: *hunter2\n", ":2:4: cannot be read as YAML"),
            ("hunter2: 1\nhunter2: 2\n", ":2:1: cannot be read as YAML"),
            ("- hunter2\n", ":1: values are one map, as in `replicas: 3`"),
            ("hunter2", ":1: values are one map, as in `replicas: 3`"),
            (
                "a: \u{7}hunter2",
                ":1:4: cannot be read as YAML: control characters are not allowed: write U+0007 as an escape in double quotes, or as base64",
            ),
        ] {
            let broken = secret(json!({ "values": text }), "1");
            // Optional Secrets may be missing, but not broken.
            let error = found(true, Some(&broken)).unwrap_err();
            assert_eq!(
                error,
                format!(
                    "shop/web takes values from a Secret without values: Secret shop/db, key values{why}"
                )
            );
        }
    }
}
