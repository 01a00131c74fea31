//! Catalogue, namespace and installation right after each other: the watches of the webhook have not heard of them yet.

use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::proxy::Proxy;
use addons_tests::scene::{DENIED, catalogue, create, installation, stored, version};
use addons_tests::webhook::Webhook;
use anyhow::{Result, ensure};
use common::api::names::{LABEL_CLUSTER, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

#[tokio::test]
async fn what_was_created_just_now_is_looked_for_once() -> Result<()> {
    let cluster = ControlPlane::alone_api_only().await?;
    definitions::install(&cluster).await?;
    let admin = Plugin::admin(&cluster)?;
    let namespace = ["create", "namespace", SYSTEM_NAMESPACE];
    admin.kubectl(&namespace).await?.done()?;
    let proxy = Proxy::start(&cluster)?;
    let webhook = Webhook::with(&cluster, proxy.kubeconfig(), &[]).await?;
    // From now on they bring nothing, and count as fresh for 90 s.
    proxy.stall("watch=true");

    let entry = version("1.0.0", json!({"defaultNamespace": "shop"}));
    let addons = json!([{"name": "web", "versions": [entry]}]);
    let all = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "team", "labels": {LABEL_CLUSTER: "local"}}},
        catalogue("platform", SYSTEM_NAMESPACE, addons),
        web("by-add-on", SYSTEM_NAMESPACE, json!({"name": "web"})),
        web("by-catalogue", "team", json!({"name": "web", "catalogue": "platform"})),
        web("by-version", "team", json!({"name": "web", "version": "1.0.0"})),
    ]});
    create(&admin, &all, &[]).await?.done()?;
    // The defaults are of the entry, too.
    let record = stored(&admin, "by-catalogue", "team").await?;
    ensure!(record["spec"]["targetNamespace"] == "shop", "{record}");

    // Of what there is not, the verdict says so as ever.
    let absent = web("absent", SYSTEM_NAMESPACE, json!({"name": "webb"}));
    let denied = create(&admin, &absent, &[]).await?;
    let words = format!("{DENIED}spec.addonRef.name: no add-on named webb; did you mean web");
    ensure!(denied.stderr.contains(&words), "{denied:?}");

    // The API server does not say: neither yes nor no.
    proxy.stall("/addoncatalogues");
    let denied = create(&admin, &absent, &[]).await?;
    ensure!(
        denied.code != 0 && denied.stderr.contains("did not say in time"),
        "{denied:?}"
    );
    proxy.heal();
    webhook.stop(&cluster).await
}

fn web(name: &str, namespace: &str, addon: Value) -> Value {
    installation(name, namespace, json!({"addonRef": addon}))
}
