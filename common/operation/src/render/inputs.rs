//! The inputs for rendering an add-on besides its package: layers of values, and template data.

use addons_render::facts::{self, FactOverlays, TemplateFacts};
use common::api::catalogue::Method;
use common::values::layers::{LayerValues, Layers};
use common::values::mask::SecretMask;
use common::values::merge;
use serde_json::{Value, json};

use super::values_from::{self, SecretValues};
use crate::builtin;
use crate::context::Context;
use crate::error::OperationError;
use crate::resolve::resolved::Resolved;

/// The inputs for rendering an add-on.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The values without those of the package, which is fetched later.
    pub layers: Layers,
    /// The template data.
    pub data: RenderData,
    /// The digest of the values, and of the state of the Secrets that they are read from.
    pub values_hash: String,
    /// The digest of the template data; empty if the method takes none.
    pub template_data_hash: String,
    /// The digest of the state of all Secrets of values and template data; empty if there are none.
    pub secrets_hash: String,
    /// The content of live Secrets that the chart looked up.
    pub looked_up: Vec<Value>,
}

/// The origin of template data, without its variables.
#[derive(Clone, Debug, Default)]
pub enum RenderData {
    /// The method takes none.
    #[default]
    None,
    /// A document that the user supplied.
    Given(Value),
    /// Facts of the cluster, and what users add to them.
    Cluster(Box<TemplateFacts>, Box<FactOverlays>),
}

impl RenderData {
    /// Returns template data with only a version of Kubernetes, for a cluster that is not read.
    pub fn with_version(version: &str) -> Self {
        let facts = TemplateFacts {
            version: version.trim_start_matches('v').to_owned(),
            ..TemplateFacts::default()
        };
        Self::Cluster(Box::new(facts), Box::default())
    }
}

impl Inputs {
    /// Reads the inputs that the method of the add-on needs; a plain manifest needs none.
    ///
    /// # Errors
    /// A Secret of `valuesFrom` is missing or not a map; a Secret with template data may not be read for this record; the server refuses.
    pub async fn read(ctx: &Context, resolved: &Resolved) -> Result<Self, OperationError> {
        if resolved.entry.version.template.method == Method::Manifest {
            return Ok(Self::without_cluster(resolved, RenderData::None));
        }
        // Builtin templates get nothing but values.
        if builtin::is_builtin(&resolved.entry) {
            return Ok(Self::without_cluster(
                resolved,
                RenderData::Given(json!({})),
            ));
        }
        let values_from = values_from::read_secrets(ctx, &resolved.wanted).await?;
        let facts = ctx.template_facts().await?.clone();
        let overlays = ctx.overlays(&resolved.name.namespace).await?;
        let settings = ctx.settings();
        let is_of_system = resolved.name.namespace == settings.system_namespace;
        // The core group created core records, from templates that it trusts.
        let is_trusted = is_of_system || resolved.wanted.spec.core_addon;
        if overlays.secret.is_some() && !settings.secret_data && !is_trusted {
            return Err(OperationError::NoAccount(resolved.name.clone()));
        }
        let template_data_hash = facts::facts_digest(&facts, &overlays);
        let overlay = overlays.secret.as_ref();
        let secrets_hash = values_from.secrets_hash(overlay.map(|it| it.revision.as_str()));
        let data = RenderData::Cluster(Box::new(facts), Box::new(overlays));
        let mut inputs = Self::without_cluster(resolved, data);
        inputs.values_hash = values_from.hash(&inputs.layers);
        inputs.layers.values_from = values_from.values;
        inputs.template_data_hash = template_data_hash;
        inputs.secrets_hash = secrets_hash;
        values_from::check_values(ctx, &resolved.name, &resolved.entry, &inputs.layers)?;
        Ok(inputs)
    }

    /// Returns the inputs without reading the cluster.
    pub fn without_cluster(resolved: &Resolved, data: RenderData) -> Self {
        let layers = Layers::for_installation(&resolved.entry, &resolved.wanted);
        Self {
            values_hash: SecretValues::default().hash(&layers),
            layers,
            data,
            template_data_hash: String::new(),
            secrets_hash: String::new(),
            looked_up: Vec::new(),
        }
    }

    /// Returns the mask for texts for people: it hides the content of Secrets from `valuesFrom`, template data beside the installation, and
    /// objects that a chart looked up.
    pub fn mask(&self) -> SecretMask {
        let values = self.layers.values_from.iter().map(LayerValues::values);
        let overlay = match &self.data {
            RenderData::Cluster(_, overlays) => overlays.secret.as_ref(),
            RenderData::None | RenderData::Given(_) => None,
        };
        let overlay = overlay.map(|secret| &secret.document);
        SecretMask::from_values(values.chain(overlay).chain(&self.looked_up))
    }

    /// Whether the template data comes from a cluster; it then includes the served kinds.
    pub fn is_of_cluster(&self) -> bool {
        !self.template_data_hash.is_empty()
    }

    /// Returns the layers of values with those of the package.
    pub fn with_package(&self, defaults: LayerValues) -> Layers {
        Layers {
            package: defaults,
            ..self.layers.clone()
        }
    }

    /// Returns the template data with these variables. Variables of a supplied document are merged below them, because KKP has variables
    /// instead of values.
    pub fn template_document(&self, variables: &Value) -> Value {
        match &self.data {
            RenderData::None => Value::Null,
            RenderData::Cluster(facts, overlays) => {
                facts::template_data(facts, overlays, variables)
            }
            RenderData::Given(document) => {
                let mut document = document.clone();
                let below = document.get("Variables").unwrap_or(&Value::Null);
                let layers = [
                    (merge::Layer::Package, below),
                    (merge::Layer::Spec, variables),
                ];
                let merged = merge::merge(&layers);
                if let Value::Object(fields) = &mut document {
                    fields.insert("Variables".to_owned(), merged);
                }
                document
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use addons_render::facts::SecretOverlay;

    use super::*;

    #[test]
    fn both_kinds_of_secrets_are_hidden() {
        let overlays = FactOverlays {
            config_map: Some(json!({"Cluster": {"Name": "public-name"}})),
            secret: Some(SecretOverlay {
                document: json!({"Credentials": {"AWS": {"SecretAccessKey": "hunter22"}}}),
                revision: "u/1".to_owned(),
            }),
        };
        let secret =
            LayerValues::from_secret("shop", "db", "values", json!({"password": "correct horse"}));
        let inputs = Inputs {
            layers: Layers {
                values_from: vec![secret],
                ..Layers::default()
            },
            data: RenderData::Cluster(Box::default(), Box::new(overlays)),
            ..Inputs::default()
        };
        assert_eq!(
            inputs
                .mask()
                .mask_text("public-name hunter22 correct horse"),
            "public-name *** ***"
        );
        assert!(Inputs::default().mask().is_empty());
    }
}
