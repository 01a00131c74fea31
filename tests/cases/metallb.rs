//! KKP's metallb, from its own templates, in one run: a namespace, definitions, a controller with a webhook, and objects that this webhook judges
//! (kubermatic#4735 and #6194: there they fail until somebody tries again).
//!
//! What metallb's controller does with its certificate is played here: once it runs, it writes its authority into the webhook
//! configuration. [`Backend`] answers for it.

use std::path::Path;

use addons_tests::backend::Backend;
use addons_tests::control_plane::pki::base64;
use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::plugin::Plugin;
use addons_tests::proxy::{Proxy, Seen};
use addons_tests::shared;
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use common::api::names;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

const NAMESPACE: &str = "metallb-system";
const CONFIGURATION: &str = "metallb-webhook-configuration";
/// The add-on's files.
const FILES: [&str; 2] = ["00_metallb.yaml", "01_address-pools.yaml"];
/// What KKP puts behind each file.
const SEPARATOR: &str = "\n\n---\n\n";
/// Objects of `golden/kkp/hetzner/metallb.yaml`, which has two pools, by `golden/kkp/index.json`.
const OBJECTS: usize = 26;

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: a real add-on on a cluster of its own")]
async fn metallb_installs_in_one_run() -> Result<()> {
    let mut tally = Tally::new("metallb");
    let (Some(folder), Some(data)) = (
        shared::path("corpus/kkp/main/addons/metallb"),
        shared::path("golden/kkp/hetzner/data.ipam.json"),
    ) else {
        tally.left_out("corpus/kkp and golden/kkp are not beside the checkout");
        return Ok(());
    };
    let backend = Backend::start(&[&format!("webhook-service.{NAMESPACE}.svc")])?;
    let options = Options {
        apiserver_flags: vec![backend.flag()],
        ..Options::default()
    };
    let cluster = ControlPlane::start(options).await?;
    let proxy = Proxy::start(&cluster)?;
    let plugin = Plugin::new(&cluster, proxy.kubeconfig())?;
    let admin = Plugin::admin(&cluster)?;

    publish(&admin, &folder, &data).await?;
    let install = ["install", "metallb", "--yes", "--timeout", "120s"];
    let (said, controller) = tokio::join!(plugin.run(&install), controller(&cluster, &backend));
    controller?;
    let said = said?.done()?.stderr;

    ensure!(!said.contains('✗'), "{said}");
    let requests = proxy.requests();
    let failed: Vec<&Seen> = writes(&requests)
        .filter(|seen| seen.status.is_none_or(|status| status >= 300))
        // The namespace of the record is asked for by creating it.
        .filter(|seen| !(seen.status == Some(409) && seen.uri.starts_with("/api/v1/namespaces?")))
        .collect();
    ensure!(failed.is_empty(), "{failed:#?}\n{said}");
    let mut answers = writes(&requests).map(|seen| seen.answered);
    ensure!(answers.all(|answered| answered.is_some()), "{requests:#?}");
    // The record, and every object once.
    let applied =
        writes(&requests).filter(|seen| seen.uri.contains("fieldManager=kubectl-addons."));
    ensure!(applied.count() == OBJECTS, "{requests:#?}");
    ordered(&requests)?;

    let events = [
        "get",
        "events",
        "-A",
        // A busy API server warns about the addresses of its own Service.
        "--field-selector=type!=Normal,involvedObject.name!=kubernetes",
        "-o",
        "name",
    ];
    let events = admin.kubectl(&events).await?.done()?.stdout;
    ensure!(events.is_empty(), "{events}");
    let mut judged: Vec<_> = backend.reviews().into_iter().collect();
    judged.sort_by(|a, b| a.object.cmp(&b.object));
    let objects: Vec<&str> = judged.iter().map(|review| review.object.as_str()).collect();
    let expected = [
        "IPAddressPool extra-pool",
        "IPAddressPool kkp-managed-pool",
        "L2Advertisement advertise-all",
    ];
    ensure!(objects == expected, "{judged:#?}");
    let is_the_pod = |endpoint: &str| endpoint.ends_with(":9443");
    ensure!(
        judged.iter().all(|review| is_the_pod(&review.endpoint)),
        "{judged:#?}"
    );

    let before = proxy.requests().len();
    plugin.run(&install).await?.done()?;
    let requests = proxy.requests();
    let again: Vec<&Seen> = writes(requests.get(before..).context("requests")?).collect();
    ensure!(again.is_empty(), "{again:#?}");
    tally.ran();
    Ok(())
}

/// The add-on as KKP has it, templates and all, in a catalogue of the cluster, and what KKP would tell its templates.
async fn publish(admin: &Plugin, folder: &Path, data: &Path) -> Result<()> {
    let mut templates = Vec::new();
    for file in FILES {
        templates.push(std::fs::read_to_string(folder.join(file))?);
    }
    let data = std::fs::read_to_string(data)?;
    let variables: Value = serde_json::from_str(&data)?;
    let variables = variables.get("Variables").context("Variables")?;
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "kkp"},
        "spec": {"addons": [{"name": "metallb", "versions": [{
            "version": "0.13.7", "defaultNamespace": NAMESPACE, "template": {"method": "go-template"},
            "values": variables, "source": {"inline": {"manifest": templates.join(SEPARATOR)}}}]}]},
    });
    let file = admin.home().join("catalogue.json");
    std::fs::write(&file, catalogue.to_string())?;
    let file = file.display().to_string();
    admin.run(&["catalogue", "add", &file]).await?.done()?;
    let overlay = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": names::TEMPLATE_DATA, "namespace": names::SYSTEM_NAMESPACE},
        "data": {"data.json": data},
    });
    let create = ["create", "-f", "-"];
    let overlay = overlay.to_string();
    admin.kubectl_with_input(&create, &overlay).await?.done()?;
    Ok(())
}

/// Requests that change something.
fn is_write(seen: &Seen) -> bool {
    seen.method != "GET" && !seen.uri.contains("dryRun=")
}

fn writes(requests: &[Seen]) -> impl Iterator<Item = &Seen> {
    let mut writes = requests.iter().filter(|seen| is_write(seen));
    std::iter::from_fn(move || writes.next())
}

/// Namespace and definitions, then workloads, then the webhook, then what it judges: each after the one before was answered.
fn ordered(requests: &[Seen]) -> Result<()> {
    let stages = [
        "/namespaces/metallb-system",
        "/serviceaccounts/controller",
        "/deployments/controller",
        "/validatingwebhookconfigurations/metallb-webhook-configuration",
        "/l2advertisements/advertise-all",
    ];
    let sent = |path: &str| {
        let mut requests = requests.iter().enumerate();
        let wanted = |seen: &Seen| {
            seen.uri
                .split('?')
                .next()
                .is_some_and(|uri| uri.ends_with(path))
        };
        let found = requests.find(|(_, seen)| is_write(seen) && wanted(seen));
        found.with_context(|| format!("{path} was not applied"))
    };
    for pair in stages.windows(2) {
        let [first, second] = pair else { continue };
        let (answered, came) = (sent(first)?.1.answered, sent(second)?.0);
        ensure!(
            answered.is_some_and(|answered| answered <= came),
            "{second} did not wait for {first}: {requests:#?}"
        );
    }
    let (l2, _) = sent("/l2advertisements/advertise-all")?;
    let last = sent("/customresourcedefinitions/l2advertisements.metallb.io")?;
    ensure!(last.1.answered.is_some_and(|answered| answered <= l2));
    Ok(())
}

/// What metallb's controller does once it runs: it gives the API server the authority of its certificate.
async fn controller(cluster: &ControlPlane, backend: &Backend) -> Result<()> {
    let client = cluster.client().await?;
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::namespaced(client.clone(), NAMESPACE);
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client);
    until("metallb's controller and its webhook", async || {
        let deployment = deployments.get_opt("controller").await?;
        let status = deployment.and_then(|deployment| deployment.status);
        if status.and_then(|status| status.ready_replicas) != Some(1) {
            return Ok(Err("the controller does not run".to_owned()));
        }
        let Some(found) = configurations.get_opt(CONFIGURATION).await? else {
            return Ok(Err("there is no configuration".to_owned()));
        };
        let webhooks = found.webhooks.unwrap_or_default();
        let bundle = base64(backend.authority());
        let patch: Vec<Value> = (0..webhooks.len())
            .map(|index| {
                let path = format!("/webhooks/{index}/clientConfig/caBundle");
                json!({"op": "add", "path": path, "value": bundle})
            })
            .collect();
        let patch = Patch::Json::<()>(serde_json::from_value(Value::Array(patch))?);
        configurations
            .patch(CONFIGURATION, &PatchParams::default(), &patch)
            .await?;
        Ok(Ok(()))
    })
    .await
}
