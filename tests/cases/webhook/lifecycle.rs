//! A certificate that changes, a webhook that stops, and one that is not there.

use std::time::Duration;

use addons_tests::control_plane::{ControlPlane, definitions, unique};
use addons_tests::plugin::Plugin;
use addons_tests::scene::{DENIED, catalogue, create, version};
use addons_tests::tally::Tally;
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use common::api::names::SYSTEM_NAMESPACE;
use futures::future::try_join_all;
use serde_json::{Value, json};

/// More than a busy machine needs for the reviews below.
const DRAIN: &str = "--drain-delay-seconds=5";
const CALLERS: usize = 4;
const REVIEWS: usize = 5;

/// One scenario on one cluster: every step needs what the one before left.
#[tokio::test]
async fn from_a_new_certificate_to_the_end_of_the_process() -> Result<()> {
    let mut tally = Tally::new("webhook::lifecycle");
    let cluster = ControlPlane::alone().await?;
    let user = Plugin::admin(&cluster)?;
    definitions::install(&cluster).await?;
    let create = ["create", "namespace", SYSTEM_NAMESPACE];
    user.kubectl(&create).await?.done()?;
    let mut webhook = Webhook::start(&cluster, &[DRAIN, "--tls-poll-seconds=1"]).await?;
    rotate(&user, &webhook, &mut tally).await?;
    drain(&user, &mut webhook, &mut tally).await?;
    down(&cluster, &user, &mut tally).await?;
    webhook.stop(&cluster).await?;
    without(&user, &mut tally).await
}

/// The certificate changes while reviews are answered, and what is no certificate is not served.
async fn rotate(user: &Plugin, webhook: &Webhook, tally: &mut Tally) -> Result<()> {
    let before = served(webhook).await?;
    let hosts = ["127.0.0.1", "localhost"];
    let next = webhook.authority().serving("addons-webhook", &hosts)?;
    next.write(webhook.folder(), "tls")?;
    let after = until("the new certificate is served", async || {
        reviewed(user).await?;
        let now = served(webhook).await?;
        Ok((now != before).then_some(now).ok_or_else(|| webhook.log()))
    })
    .await?;
    ensure!(
        after == der(&next.certificate)?,
        "another certificate is served"
    );
    tally.ran();

    std::fs::write(webhook.folder().join("tls.crt"), "no certificate")?;
    until("the refusal is logged", async || {
        reviewed(user).await?;
        let log = webhook.log();
        Ok(log
            .contains("the new certificate is not served")
            .then_some(())
            .ok_or(log))
    })
    .await?;
    ensure!(served(webhook).await? == after, "what is broken was taken");
    tally.ran();
    Ok(())
}

/// SIGTERM: not ready at once, every review until the end is answered, and the process ends by itself.
async fn drain(user: &Plugin, webhook: &mut Webhook, tally: &mut Tally) -> Result<()> {
    webhook.process().terminate()?;
    until("it drains", async || {
        let log = webhook.log();
        Ok(log.contains("draining").then_some(()).ok_or(log))
    })
    .await?;
    let ready = reqwest::get(format!("{}/readyz", webhook.health_url())).await?;
    ensure!(ready.status() == 503, "{}", ready.status());
    let callers = (0..CALLERS).map(|_| async {
        for _ in 0..REVIEWS {
            reviewed(user).await?;
        }
        anyhow::Ok(())
    });
    try_join_all(callers).await?;
    tally.ran();
    let status = until("it ends", async || {
        Ok(webhook
            .process()
            .try_wait()?
            .ok_or_else(|| "it runs".to_owned()))
    })
    .await?;
    ensure!(status.success(), "{status}\n{}", webhook.log());
    ensure!(
        webhook.log().contains("drained and stopped"),
        "{}",
        webhook.log()
    );
    tally.ran();
    Ok(())
}

/// Nobody answers: what is guarded is refused, everything else goes on.
async fn down(cluster: &ControlPlane, user: &Plugin, tally: &mut Tally) -> Result<()> {
    let failed = "failed calling webhook \"validate.kubectl-addons.dev\"";
    let object = catalogue(&unique("down"), SYSTEM_NAMESPACE, json!([]));
    let said = create(user, &object, &[]).await?.ended(1)?;
    ensure!(said.stderr.contains(failed), "{}", said.stderr);
    tally.ran();
    std::fs::write(user.home().join("down.json"), object.to_string())?;
    let said = user.run(&["catalogue", "add", "down.json"]).await?;
    ensure!(
        said.code != 0 && said.stderr.contains(failed),
        "{}",
        said.stderr
    );
    tally.ran();
    let namespace = cluster.namespace("down").await?;
    let delete = ["delete", "namespace", &namespace, "--timeout=60s"];
    user.kubectl(&delete).await?.done()?;
    tally.ran();
    Ok(())
}

/// No webhook is registered: the API server takes what the plugin refuses.
async fn without(user: &Plugin, tally: &mut Tally) -> Result<()> {
    let object = duplicate();
    let file = user.home().join("without.json");
    std::fs::write(&file, object.to_string())?;
    let said = user
        .run(&["catalogue", "add", "without.json"])
        .await?
        .ended(6)?;
    let words = words();
    ensure!(said.stderr.contains(words), "{}", said.stderr);
    tally.ran();
    create(user, &object, &[]).await?.done()?;
    tally.ran();
    Ok(())
}

fn duplicate() -> Value {
    let versions = [version("1.0.0", json!({})), version("v1.0.0", json!({}))];
    catalogue(
        "duplicate",
        SYSTEM_NAMESPACE,
        json!([{"name": "web", "versions": versions}]),
    )
}

fn words() -> &'static str {
    "spec.addons[0].versions[1]: web v1.0.0 is already at spec.addons[0].versions[0] (1.0.0)"
}

/// One review, which must be answered by the webhook.
async fn reviewed(user: &Plugin) -> Result<()> {
    let said = create(user, &duplicate(), &["--dry-run=server"])
        .await?
        .ended(1)?;
    ensure!(
        said.stderr.contains(&format!("{DENIED}{}", words())),
        "{}",
        said.stderr
    );
    Ok(())
}

/// The certificate (DER) that a new connection is shown.
async fn served(webhook: &Webhook) -> Result<Vec<u8>> {
    let root = reqwest::Certificate::from_pem(webhook.authority().certificate.as_bytes())?;
    let client = reqwest::Client::builder()
        .tls_certs_only([root])
        .tls_info(true)
        .no_proxy()
        .timeout(Duration::from_secs(10))
        .build()?;
    let answer = client.get(webhook.url()).send().await?;
    let info = answer.extensions().get::<reqwest::tls::TlsInfo>();
    let certificate = info.and_then(reqwest::tls::TlsInfo::peer_certificate);
    Ok(certificate.context("no certificate was shown")?.to_vec())
}

/// The first certificate of a PEM text.
fn der(pem: &str) -> Result<Vec<u8>> {
    let lines = pem
        .lines()
        .skip_while(|line| !line.starts_with("-----BEGIN"));
    let body: String = lines
        .skip(1)
        .take_while(|line| !line.starts_with("-----END"))
        .collect();
    Ok(base64::engine::general_purpose::STANDARD.decode(body)?)
}
