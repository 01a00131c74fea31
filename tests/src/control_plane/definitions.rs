//! Our definitions as the project ships them, for tests that do not go through `kubectl addons init`.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};

use super::{ControlPlane, Options};
use crate::until::until;

const FILES: [&str; 3] = [
    "addoncatalogues.kubectl-addons.dev.yaml",
    "addoninstallations.kubectl-addons.dev.yaml",
    "addonpolicies.kubectl-addons.dev.yaml",
];

/// A cluster with them.
///
/// # Errors
/// Of [`ControlPlane::start`] and [`install`].
pub async fn cluster(options: Options) -> Result<ControlPlane> {
    let cluster = ControlPlane::start(options).await?;
    install(&cluster).await?;
    Ok(cluster)
}

/// The cluster with them.
///
/// # Errors
/// Of [`install`].
pub async fn on(cluster: Arc<ControlPlane>) -> Result<Arc<ControlPlane>> {
    install(&cluster).await?;
    Ok(cluster)
}

/// Installs the files of `deploy/crds` and waits until they are established; again changes nothing.
///
/// # Errors
/// A file that cannot be read; of the API server.
pub async fn install(cluster: &ControlPlane) -> Result<()> {
    let api = Api::<CustomResourceDefinition>::all(cluster.client().await?);
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/crds"));
    for file in FILES {
        let text = std::fs::read_to_string(folder.join(file)).context(file)?;
        let definition: CustomResourceDefinition = serde_saphyr::from_str(&text).context(file)?;
        let name = definition.name_any();
        let params = PatchParams::apply("addons-tests").force();
        api.patch(&name, &params, &Patch::Apply(&definition))
            .await?;
        until(&name, async || {
            let definition = api.get(&name).await?;
            let conditions = definition.status.and_then(|status| status.conditions);
            let is_established = conditions
                .into_iter()
                .flatten()
                .any(|condition| condition.type_ == "Established" && condition.status == "True");
            Ok(is_established
                .then_some(())
                .ok_or_else(|| "it is not established".to_owned()))
        })
        .await?;
    }
    Ok(())
}
