//! The webhook is asked by the API server from the moment that its start returns until it is stopped.

use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::webhook::Webhook;
use anyhow::Result;
use common::api::catalogue::AddonCatalogue;
use common::api::names;
use kube::api::{Api, PostParams};
use serde_json::json;

// Not the shared cluster: a registered webhook judges what all other tests do there.
#[tokio::test]
async fn the_webhook_denies_while_it_is_registered() -> Result<()> {
    let cluster = ControlPlane::alone_api_only().await?;
    definitions::install(&cluster).await?;
    let version =
        |version: &str| json!({"version": version, "source": {"inline": {"manifest": ""}}});
    let duplicate: AddonCatalogue = serde_json::from_value(json!({
        "apiVersion": names::API_VERSION,
        "kind": "AddonCatalogue",
        "metadata": {"name": "duplicate"},
        "spec": {"addons": [{"name": "web", "versions": [version("1.0.0"), version("v1.0.0")]}]},
    }))?;
    let catalogues = Api::<AddonCatalogue>::namespaced(cluster.client().await?, "default");

    let webhook = Webhook::start(&cluster, &[]).await?;
    let error = catalogues
        .create(&PostParams::default(), &duplicate)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("validate.kubectl-addons.dev"),
        "{error}"
    );
    webhook.stop(&cluster).await?;
    // Nobody answers any more, so this passes only where nobody is asked.
    catalogues
        .create(&PostParams::default(), &duplicate)
        .await?;
    Ok(())
}
