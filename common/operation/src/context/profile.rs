//! The facts of the cluster that expressions read: what is stated about it, and the rest as far as it is needed.

use std::collections::BTreeSet;

use addons_engine::{EngineError, local, nodes, template_facts};
use addons_render::facts::{FactOverlays, TemplateFacts, template_data};
use common::expression::profile::Profile;
use serde_json::json;

use super::Context;
use crate::error::OperationError;

impl Context {
    /// Returns the facts of the cluster that are stated about it, in its ConfigMap and by KKP, and its version.
    ///
    /// # Errors
    /// The server does not answer, or the ConfigMap `addon-template-data` cannot be used.
    pub async fn stated_profile(&self) -> Result<Profile, OperationError> {
        let namespace = self.settings.records_namespace();
        let stated = template_facts::read_stated(self.home().await?, namespace).await?;
        let version = self.cluster_facts().await?.kubernetes;
        let version = version.map(|it| format!("{}.{}.{}", it.major, it.minor, it.patch));
        let known = TemplateFacts {
            version: version.unwrap_or_default(),
            ..TemplateFacts::default()
        };
        let data = template_data(&known, &stated, &json!({}));
        let is_home = *namespace == self.settings.system_namespace;
        Ok(Profile::from_template_data(namespace, is_home, &data))
    }

    /// Reads the facts that these variables name and that are not known yet. What may not be read stays unknown.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn complete_profile(
        &self,
        profile: &mut Profile,
        variables: &BTreeSet<String>,
    ) -> Result<(), OperationError> {
        let unknown = variables.iter().filter(|name| !profile.knows(name));
        let unknown: BTreeSet<&str> = unknown.map(String::as_str).collect();
        let is_needed = |names: &[&str]| names.iter().any(|name| unknown.contains(name));
        if is_needed(&["version", "provider", "cni", "cniVersion"]) {
            let known = self.template_facts().await?;
            let data = template_data(known, &FactOverlays::default(), &json!({}));
            let found = Profile::from_template_data(&profile.namespace, profile.is_home, &data);
            profile.version = profile.version.take().or(found.version);
            profile.provider = profile.provider.take().or(found.provider);
            profile.cni = profile.cni.take().or(found.cni);
            profile.cni_version = profile.cni_version.take().or(found.cni_version);
        }
        if is_needed(&["labels"]) {
            let found = local::read_labels(self.home().await?, &profile.namespace).await;
            profile.labels = or_unknown(found)?;
        }
        if is_needed(&["architectures", "nodeLabels"])
            && let Some(found) = nodes::read_labels(self.cluster().await?).await?
        {
            profile.add_nodes(&found);
        }
        if is_needed(&["kinds"]) {
            // A kind that the cache does not have may have been installed since.
            let table = self.cluster().await?.kinds_now().await;
            let kinds = or_unknown(table)?.map(|table| {
                let kinds = table.iter().map(|(gvk, _)| match gvk.group.as_str() {
                    "" => gvk.kind,
                    group => format!("{}.{group}", gvk.kind),
                });
                kinds.collect()
            });
            profile.kinds = kinds;
        }
        Ok(())
    }
}

/// Returns `None` for what may not be read.
fn or_unknown<T>(found: Result<T, EngineError>) -> Result<Option<T>, EngineError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(EngineError::Forbidden { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
