//! Certificates that are exchanged every few seconds, and their authority with them, while reviews come in without a pause.

use std::time::Duration;

use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::tally::Tally;
use addons_tests::webhook::Webhook;
use anyhow::{Result, ensure};
use common::api::names::SYSTEM_NAMESPACE;

use crate::deploy::load::Load;
use crate::deploy::world::World;

/// More than the API server keeps open while they are idle (25), so that new connections are made all the time.
const CALLERS: usize = 32;
/// Reviews by default; `REVIEWS` asks for more.
const REVIEWS: usize = 4_000;
/// How often files are exchanged, and how many times at least.
const ROTATION: Duration = Duration::from_secs(2);
const ROTATIONS: usize = 10;
/// Seconds that a managed certificate is valid by default; `LEAF_SECONDS` asks for less. A third of it is what a busy machine may
/// stand still.
const LEAF: u32 = 24;
/// Times that each must be exchanged at least, by both replicas together.
const LEAVES: usize = 10;
const AUTHORITIES: usize = 2;

/// The certificate comes from files, which change every two seconds. How long each would be valid does not matter, so a slow machine
/// proves as much as a fast one.
#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: thousands of reviews while certificates change"
)]
async fn no_review_fails_while_files_change_every_two_seconds() -> Result<()> {
    let mut tally = Tally::new("rotation::files");
    let cluster = ControlPlane::start(Options::default()).await?;
    let user = Plugin::admin(&cluster)?;
    definitions::install(&cluster).await?;
    let create = ["create", "namespace", SYSTEM_NAMESPACE];
    user.kubectl(&create).await?.done()?;
    let webhook = Webhook::start(&cluster, &["--tls-poll-seconds=1"]).await?;
    let wanted = reviews()?;
    let load = Load::start(cluster.kubeconfig(), CALLERS).await?;
    let url = webhook.url();
    let at = ("localhost", url.trim_start_matches("https://").parse()?);
    let served = || webhook.log().matches("serving a new certificate").count();
    let mut tick = tokio::time::interval(ROTATION);
    while load.reviews() < wanted || served() < ROTATIONS {
        tick.tick().await;
        let next = webhook
            .authority()
            .serving("addons-webhook", &["127.0.0.1", "localhost"])?;
        next.write(webhook.folder(), "tls")?;
        load.ask("the webhook", at, &webhook.authority().certificate)
            .await?;
        ensure!(load.is_going_on(), "every caller has ended");
    }
    let reviews = load.stop(|| webhook.log()).await?;
    tally.ran();
    let served = served();
    tally.note(format!(
        "{reviews} reviews, none failed; {served} certificates from files"
    ));
    webhook.stop(&cluster).await
}

/// The webhook manages its authority itself: two replicas share it, and sign their own certificates.
#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: thousands of reviews while certificates change"
)]
async fn no_review_fails_while_certificates_and_authorities_change() -> Result<()> {
    let mut tally = Tally::new("rotation::managed");
    let leaf = match std::env::var("LEAF_SECONDS") {
        Ok(text) => text.parse()?,
        Err(_) => LEAF,
    };
    let leaf_lifetime = format!("--leaf-lifetime={leaf}s");
    let ca_lifetime = format!("--ca-lifetime={}s", 3 * leaf);
    let world = World::with(&[&leaf_lifetime, &ca_lifetime]).await?;
    let wanted = reviews()?;
    let load = Load::start(world.cluster.kubeconfig(), CALLERS).await?;
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let (leaves, authorities) = loop {
        tick.tick().await;
        load.dial(&world).await?;
        let logs = world.kubelet.logs();
        let leaves = logs.matches("serving a new certificate").count();
        let authorities = logs.matches(r#""step":"Promote""#).count();
        if load.reviews() >= wanted && leaves >= LEAVES && authorities >= AUTHORITIES {
            break (leaves, authorities);
        }
        ensure!(load.is_going_on(), "every caller has ended");
    };
    let reviews = load.stop(|| world.kubelet.logs()).await?;
    tally.ran();
    tally.note(format!(
        "{reviews} reviews, none failed; {leaves} certificates, {authorities} authorities exchanged"
    ));
    Ok(())
}

/// How many reviews to wait for.
pub(crate) fn reviews() -> Result<usize> {
    match std::env::var("REVIEWS") {
        Ok(text) => Ok(text.parse()?),
        Err(_) => Ok(REVIEWS),
    }
}
