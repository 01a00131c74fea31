//! The API server takes our CRDs, and they refuse what no client needs to judge.

use addons_tests::control_plane::{ControlPlane, definitions, unique};
use anyhow::Result;
use common::api::catalogue::AddonCatalogue;
use common::api::names;
use kube::api::{Api, DynamicObject, PostParams};
use kube::discovery::ApiResource;
use serde_json::{Value, json};

#[tokio::test]
async fn a_version_has_exactly_one_source() -> Result<()> {
    let cluster = ControlPlane::shared().await?;
    definitions::install(&cluster).await?;
    let resource = ApiResource::erase::<AddonCatalogue>(&());
    // Untyped, for the types of this workspace are no judge of themselves.
    let catalogues: Api<DynamicObject> =
        Api::namespaced_with(cluster.client().await?, "default", &resource);
    let create = async |source: Value| -> Result<_> {
        let catalogue = serde_json::from_value(json!({
            "apiVersion": names::API_VERSION,
            "kind": "AddonCatalogue",
            "metadata": {"name": unique("harness-source")},
            "spec": {"addons": [{"name": "web", "versions": [{"version": "1.0.0", "source": source}]}]},
        }))?;
        Ok(catalogues.create(&PostParams::default(), &catalogue).await)
    };
    let inline = json!({"manifest": ""});
    create(json!({"inline": inline})).await??;
    for wrong in [
        json!({}),
        json!({"inline": inline, "url": {"manifest": "a.yaml"}}),
    ] {
        let error = create(wrong).await?.unwrap_err().to_string();
        assert!(
            error.contains("spec.addons[0].versions[0].source"),
            "{error}"
        );
    }
    Ok(())
}
