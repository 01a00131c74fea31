//! A watch that brings nothing: what the webhook knows may be out of date, so it judges nothing (semantics 18).

use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::proxy::Proxy;
use addons_tests::scene::{catalogue, create, installation, version};
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Result, ensure};
use common::api::names::SYSTEM_NAMESPACE;
use serde_json::json;

const STALLED: &str = "the webhook has heard nothing of addoninstallations";

#[tokio::test]
async fn a_silent_watch_stops_verdicts_until_it_brings_what_was_missed() -> Result<()> {
    let cluster = ControlPlane::alone_api_only().await?;
    definitions::install(&cluster).await?;
    let admin = Plugin::admin(&cluster)?;
    let namespace = ["create", "namespace", SYSTEM_NAMESPACE];
    admin.kubectl(&namespace).await?.done()?;
    let addons = json!([{"name": "web", "versions": [version("1.0.0", json!({}))]}]);
    let platform = catalogue("platform", SYSTEM_NAMESPACE, addons);
    create(&admin, &platform, &[]).await?.done()?;
    let proxy = Proxy::start(&cluster)?;
    // Far below the minute between bookmarks: here the lists after each silence keep it ready.
    let webhook = Webhook::with(&cluster, proxy.kubeconfig(), &["--stale-seconds=6"]).await?;
    let web = |name: &str| {
        let spec = json!({"addonRef": {"name": "web"}});
        installation(name, SYSTEM_NAMESPACE, spec)
    };
    until("a verdict", async || {
        let said = create(&admin, &web("first"), &["--dry-run=server"]).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;

    proxy.stall("/addoninstallations");
    ready(&webhook, 503, STALLED).await?;
    let denied = create(&admin, &web("first"), &[]).await?;
    ensure!(
        denied.code != 0
            && denied.stderr.contains("denied the request")
            && denied.stderr.contains(STALLED),
        "{denied:?}"
    );
    let metrics = reqwest::get(format!("{}/metrics", webhook.health_url()));
    let metrics = metrics.await?.text().await?;
    ensure!(
        metrics.contains("addons_webhook_refused_total{reason=\"stale\"}"),
        "{metrics}"
    );
    // Its writes are not judged (semantics 18).
    let user = cluster.user("system:addon-manager", &["system:masters"])?;
    let sync = Plugin::new(&cluster, &user.kubeconfig)?;
    create(&sync, &web("missed"), &[]).await?.done()?;

    proxy.heal();
    ready(&webhook, 200, "ok").await?;
    let remove = [
        "delete",
        "addoncatalogue",
        "platform",
        "-n",
        SYSTEM_NAMESPACE,
        "--dry-run=server",
    ];
    until("a verdict on what was missed", async || {
        let said = admin.kubectl(&remove).await?;
        let knows = said.code == 0 && said.stderr.contains("missed");
        Ok(knows.then_some(()).ok_or(said.stdout + &said.stderr))
    })
    .await?;
    webhook.stop(&cluster).await
}

/// Waits until `/readyz` has this status, and says these words.
async fn ready(webhook: &Webhook, status: u16, words: &str) -> Result<()> {
    until(&format!("/readyz {status}"), async || {
        let answer = reqwest::get(format!("{}/readyz", webhook.health_url())).await?;
        let (code, said) = (answer.status().as_u16(), answer.text().await?);
        let is_so = code == status && said.contains(words);
        Ok(is_so.then_some(()).ok_or(said))
    })
    .await
}
