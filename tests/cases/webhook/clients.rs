//! A webhook that answers only an API server with the certificate that its AdmissionConfiguration names.

use std::fs;
use std::path::Path;

use addons_tests::control_plane::pki::{Authority, base64};
use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::guard::Folder;
use addons_tests::page::blocks;
use addons_tests::plugin::Plugin;
use addons_tests::scene::{DENIED, catalogue, create, version};
use addons_tests::tally::Tally;
use addons_tests::until::until;
use addons_tests::webhook::{Webhook, free_address};
use anyhow::{Context as _, Result, bail};
use common::api::catalogue::AddonCatalogue;
use common::api::names::SYSTEM_NAMESPACE;
use futures::future::try_join_all;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

const NAME: &str = "kube-apiserver";
/// More than the API server keeps open while they are idle (25): some of so many reviews at once need new connections.
const AT_ONCE: usize = 48;

#[tokio::test]
async fn only_an_api_server_with_a_certificate_is_answered() -> Result<()> {
    let mut tally = Tally::new("webhook::clients");
    let folder = Folder::new("kubectl-addons-clients-")?;
    let (first, second) = (Authority::new("first")?, Authority::new("second")?);
    first.client(NAME, &[])?.write(folder.path(), "client")?;
    let trusted = folder.path().join("trusted.crt");
    fs::write(&trusted, &first.certificate)?;
    let address = free_address()?;
    let flag = format!(
        "--admission-control-config-file={}",
        configuration(folder.path(), &address)?
    );
    let options = Options {
        apiserver_flags: vec![flag],
        api_only: true,
    };
    let cluster = ControlPlane::start(options).await?;
    definitions::install(&cluster).await?;
    let admin = Plugin::admin(&cluster)?;
    let namespace = ["create", "namespace", SYSTEM_NAMESPACE];
    admin.kubectl(&namespace).await?.done()?;
    let trust = format!("--client-ca={}", trusted.display());
    let name = format!("--client-name={NAME}");
    let arguments = [trust.as_str(), &name, "--tls-poll-seconds=1"];
    let kubeconfig = cluster
        .user("addons-webhook", &["system:masters"])?
        .kubeconfig;
    // It has started when the API server brings its verdict.
    let webhook = Webhook::at(&address, &cluster, &kubeconfig, &arguments).await?;
    tally.ran();

    without(&admin, &webhook, &address).await?;
    tally.ran();

    // Both authorities, then the certificate of the other one, then that one alone.
    fs::write(&trusted, first.certificate.clone() + &second.certificate)?;
    verified(&webhook, 1).await?;
    reviewed(&cluster).await?;
    second.client(NAME, &[])?.write(folder.path(), "client")?;
    // The API server closes the connections of the old one, whatever is in progress on them.
    let again = async || Ok(reviewed(&cluster).await.map_err(|error| error.to_string()));
    until("the other certificate is shown", again).await?;
    fs::write(&trusted, &second.certificate)?;
    verified(&webhook, 2).await?;
    until("only that one is trusted", again).await?;
    tally.ran();
    webhook.stop(&cluster).await
}

/// The API server has a certificate for one address of the webhook, and none for another: the failurePolicy decides there.
async fn without(admin: &Plugin, webhook: &Webhook, address: &str) -> Result<()> {
    let (_, port) = address.split_once(':').context("no port")?;
    let bundle = base64(&webhook.authority().certificate);
    let configuration = |policy: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "without-certificate"},
            "webhooks": [{
                "name": "without.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "failurePolicy": policy,
                "clientConfig": {"url": format!("https://localhost:{port}/validate"), "caBundle": bundle},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                    "operations": ["CREATE"]}],
            }],
        })
    };
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "any", "namespace": "default"}});
    for (policy, is_allowed) in [("Fail", false), ("Ignore", true)] {
        let file = admin.home().join("configuration.json");
        fs::write(&file, configuration(policy).to_string())?;
        let file = file.to_string_lossy();
        let apply = ["apply", "--server-side", "--filename", &file];
        admin.kubectl(&apply).await?.done()?;
        until(policy, async || {
            let said = create(admin, &object, &["--dry-run=server"]).await?;
            let is_refused = said.stderr.contains("tls: certificate required");
            let is_as_told = match is_allowed {
                true => said.code == 0,
                false => said.code != 0 && is_refused,
            };
            Ok(is_as_told.then_some(()).ok_or(said.stderr))
        })
        .await?;
    }
    let delete = [
        "delete",
        "validatingwebhookconfiguration",
        "without-certificate",
    ];
    admin.kubectl(&delete).await?.done()?;
    Ok(())
}

/// Many reviews at once, each of which gets its verdict.
async fn reviewed(cluster: &ControlPlane) -> Result<()> {
    let versions = [version("1.0.0", json!({})), version("v1.0.0", json!({}))];
    let addons = json!([{"name": "web", "versions": versions}]);
    let object = catalogue("duplicate", SYSTEM_NAMESPACE, addons);
    let object: AddonCatalogue = serde_json::from_value(object)?;
    let api = Api::<AddonCatalogue>::namespaced(cluster.client().await?, SYSTEM_NAMESPACE);
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let reviews = (0..AT_ONCE).map(|_| async {
        match api.create(&params, &object).await {
            Err(kube::Error::Api(status)) if status.message.starts_with(DENIED) => Ok(()),
            other => bail!("{other:?}"),
        }
    });
    try_join_all(reviews).await?;
    Ok(())
}

/// Waits until the webhook has read its authorities that many times.
async fn verified(webhook: &Webhook, times: usize) -> Result<()> {
    until("other authorities are verified by", async || {
        let log = webhook.log();
        let found = log.matches("verifying clients by new authorities").count();
        Ok((found == times).then_some(()).ok_or(log))
    })
    .await
}

/// Writes what the API server reads at its start, as the page of the webhook has it, and returns the path.
fn configuration(folder: &Path, address: &str) -> Result<String> {
    let page = include_str!("../../../webhook/README.md");
    let block = |kind: &str| {
        let mut blocks = blocks(page).map(|(_, text)| text);
        let found = blocks.find(|block| block.contains(kind));
        found.with_context(|| format!("the page has no {kind}"))
    };
    let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let users = block("kind: Config\n")?
        .replace("/etc/kubernetes/pki/webhooks.", &at("client."))
        .replace("addons-webhook.kubectl-addons.svc", address);
    fs::write(at("kubeconfig"), users)?;
    let plugins = block("kind: AdmissionConfiguration\n")?;
    let kubeconfig = at("kubeconfig");
    let plugins = plugins.replace("/etc/kubernetes/webhooks.kubeconfig", &kubeconfig);
    fs::write(at("admission.yaml"), plugins)?;
    Ok(at("admission.yaml"))
}
