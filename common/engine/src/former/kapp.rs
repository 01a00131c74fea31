//! Lists the applications of kapp. Their objects carry only a number; a ConfigMap has the name.

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::listing;
use super::{FormerContent, KAPP_APP, KAPP_SUFFIX, kapp_meta};

/// An application of kapp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KappApplication {
    /// The value of the label on its objects.
    pub label: String,
    /// The namespace of its ConfigMap.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Lists the applications that kapp finds: one LIST. Empty if the ConfigMaps of the cluster may not be read.
///
/// # Errors
/// Those of the request.
pub async fn applications(cluster: &Cluster) -> Result<Vec<KappApplication>, EngineError> {
    let everywhere = Collection::from_names("v1", "ConfigMap", "configmaps", None);
    let found = match listing::list_all::<FormerContent>(cluster, &everywhere, Some(KAPP_APP)).await
    {
        Ok(found) => found,
        Err(EngineError::Forbidden { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let found = found.into_iter().filter_map(|app| {
        let meta = kapp_meta(&app)?;
        let name = app.metadata.name;
        Some(KappApplication {
            label: meta.label_value,
            namespace: app.metadata.namespace.unwrap_or_default(),
            name: name.strip_suffix(KAPP_SUFFIX).unwrap_or(&name).to_owned(),
        })
    });
    Ok(found.collect())
}
