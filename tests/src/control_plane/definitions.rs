//! Our CRDs, for tests that do not go through `kubectl addons init`.

use anyhow::Result;
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{CustomResourceExt as _, ResourceExt as _};

use super::ControlPlane;

/// Installs the CRDs and waits until they are established; again changes nothing.
///
/// # Errors
/// Of the API server.
pub async fn install(cluster: &ControlPlane) -> Result<()> {
    let api = Api::<CustomResourceDefinition>::all(cluster.client().await?);
    for definition in [AddonCatalogue::crd(), AddonInstallation::crd()] {
        let name = definition.name_any();
        let params = PatchParams::apply("addons-tests").force();
        api.patch(&name, &params, &Patch::Apply(&definition))
            .await?;
        await_condition(api.clone(), &name, conditions::is_crd_established()).await?;
    }
    Ok(())
}
