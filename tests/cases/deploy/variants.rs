//! Overlays and components: cert-manager's part is played by the test, and what is only built is looked at.

use std::collections::BTreeSet;

use addons_tests::control_plane::pki::{Authority, base64};
use addons_tests::shared;
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::world::{BASE, CONFIGURATIONS, World};

const OVERLAY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../deploy/overlays/cert-manager"
);
const COMPONENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/components");
/// Kinds of others that our files have, and where the corpus has their definitions.
const CERT_MANAGER: &str = "corpus/upstream/cert-manager-crds/v1.21.1";
const PROMETHEUS: &str = "corpus/upstream/prometheus-operator/v0.80.0/bundle.yaml";

/// The objects of a kustomization.
async fn build(world: &World, folder: &str) -> Result<Vec<Value>> {
    let text = world.kubectl(&["kustomize", folder]).await?;
    Ok(serde_saphyr::from_multiple(&text)?)
}

/// Kind and name of each object.
fn names(objects: &[Value]) -> BTreeSet<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = |object: &Value| text(&object["kind"]) + "/" + &text(&object["metadata"]["name"]);
    objects.iter().map(name).collect()
}

#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: each starts a cluster with the deployed webhook"
)]
async fn cert_manager_can_take_the_place_of_the_managed_authority() -> Result<()> {
    let mut tally = Tally::new("deploy::variants cert-manager");
    let world = World::new().await?;
    let objects = build(&world, OVERLAY).await?;
    let built = names(&objects);
    for gone in [
        "Secret/addons-webhook-ca",
        "ClusterRole/kubectl-addons:webhook-configurations",
    ] {
        ensure!(!built.contains(gone), "{gone}: {built:?}");
    }
    let roles = objects.iter().filter(|object| {
        let kind = object["kind"].as_str().unwrap_or_default();
        ["Role", "ClusterRole"].contains(&kind)
    });
    for rule in roles.flat_map(|role| role["rules"].as_array().into_iter().flatten()) {
        let names = rule["resourceNames"].to_string();
        ensure!(!names.contains("addons-webhook-ca"), "{rule}");
    }
    ensure!(built.contains("Certificate/addons-webhook"), "{built:?}");
    tally.ran();
    match shared::path(CERT_MANAGER) {
        Some(definitions) => {
            let definitions = definitions.display().to_string();
            world.kubectl(&["create", "-f", &definitions]).await?;
            world
                .kubectl(&["wait", "--for=condition=Established", "crd", "--all"])
                .await?;
            world.kubectl(&["apply", "-k", OVERLAY]).await?;
            tally.ran();
        }
        None => {
            tally.left_out("Issuers and Certificates: the corpus is not beside the checkout");
            let ours = objects.iter().filter(|object| {
                let version = object["apiVersion"].as_str().unwrap_or_default();
                !version.starts_with("cert-manager.io/")
            });
            let list =
                json!({"apiVersion": "v1", "kind": "List", "items": ours.collect::<Vec<_>>()});
            let file = world.admin.home().join("ours.json");
            std::fs::write(&file, list.to_string())?;
            world
                .kubectl(&["apply", "-f", &file.display().to_string()])
                .await?;
        }
    }
    play(&world).await?;
    world.rolled_out().await?;
    until("it denies", async || {
        Ok(world.denies().await.map_err(|error| error.to_string()))
    })
    .await?;
    tally.ran();
    Ok(())
}

/// What cert-manager and its cainjector do.
async fn play(world: &World) -> Result<()> {
    let authority = Authority::new("cert-manager")?;
    let host = "addons-webhook.kubectl-addons.svc";
    let pair = authority.serving("addons-webhook", &[host])?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "addons-webhook-tls", "namespace": "kubectl-addons"},
        "stringData": {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.certificate},
    });
    let file = world.admin.home().join("secret.json");
    std::fs::write(&file, secret.to_string())?;
    world
        .kubectl(&["create", "-f", &file.display().to_string()])
        .await?;
    for kind in CONFIGURATIONS {
        let configuration = world.get(kind, "kubectl-addons").await?;
        let from = &configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"];
        ensure!(from == "kubectl-addons/addons-webhook", "{kind}: {from}");
        let entries = configuration["webhooks"]
            .as_array()
            .context("no webhooks")?;
        let patch = (0..entries.len()).map(|index| {
            let path = format!("/webhooks/{index}/clientConfig/caBundle");
            json!({"op": "add", "path": path, "value": base64(&authority.certificate)})
        });
        let patch = Value::Array(patch.collect()).to_string();
        let args = ["patch", kind, "kubectl-addons", "--type=json", "-p", &patch];
        world.kubectl(&args).await?;
    }
    Ok(())
}

#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: each starts a cluster with the deployed webhook"
)]
async fn components_complete_the_base() -> Result<()> {
    let mut tally = Tally::new("deploy::variants components");
    let world = World::new().await?;
    let components =
        ["webhook-spread", "webhook-monitor"].map(|name| format!("{COMPONENTS}/{name}"));
    let folder = world.overlay(&json!({"resources": [BASE], "components": components}))?;
    let objects = build(&world, &folder).await?;
    let built = names(&objects);
    for part in [
        "PodMonitor/addons-webhook",
        "PrometheusRule/addons-webhook",
        "ConfigMap/addons-webhook-dashboard",
    ] {
        ensure!(built.contains(part), "{part}: {built:?}");
    }
    tally.ran();
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment");
    let affinity = &deployment.context("no Deployment")?["spec"]["template"]["spec"]["affinity"];
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    ensure!(
        affinity["podAntiAffinity"][required].is_array(),
        "{affinity}"
    );
    tally.ran();
    let Some(bundle) = shared::path(PROMETHEUS) else {
        tally.left_out("PodMonitor and PrometheusRule: the corpus is not beside the checkout");
        return Ok(());
    };
    let definitions = world.admin.home().join("definitions.yaml");
    let text = std::fs::read_to_string(bundle)?;
    let ours = text.split("\n---\n").filter(|document| {
        let kinds = [
            "name: podmonitors.monitoring",
            "name: prometheusrules.monitoring",
        ];
        kinds.iter().any(|kind| document.contains(kind))
    });
    std::fs::write(&definitions, ours.collect::<Vec<_>>().join("\n---\n"))?;
    let definitions = definitions.display().to_string();
    world.kubectl(&["create", "-f", &definitions]).await?;
    world
        .kubectl(&["wait", "--for=condition=Established", "crd", "--all"])
        .await?;
    world.kubectl(&["apply", "-k", &folder]).await?;
    // Two nodes for two replicas.
    world.rolled_out().await?;
    let nodes = world
        .in_system(&["get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}"])
        .await?;
    let nodes: BTreeSet<_> = nodes.split_whitespace().collect();
    ensure!(nodes.len() == 2, "{nodes:?}");
    world.denies().await?;
    tally.ran();
    Ok(())
}
