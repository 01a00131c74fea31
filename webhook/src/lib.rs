//! The admission webhook: parses reviews, takes the facts from its watches, and answers what `addons_admission` decides.
//!
//! `/mutate`, `/validate`, `/clusters` and `/core-sets` are on the TLS port; `/healthz`, `/readyz` and `/metrics` are on a plain port of
//! their own, because kubelets have no client certificate and do not trust our authority.

mod access;
mod args;
mod body;
mod budget;
mod cache;
mod certificates;
mod clients;
mod connections;
mod follow;
mod freshness;
mod handlers;
mod lookup;
mod refusal;
mod review;
mod server;
mod state;
mod telemetry;
mod tls;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use certs::serving::ServedCertificate;
use clap::Parser as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::crypto::aws_lc_rs;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::access::RequesterAccess;
use crate::args::Args;
use crate::certificates::Certificates;
use crate::freshness::Freshness;
use crate::lookup::LiveLookup;
use crate::server::ReviewLimits;
use crate::state::WebhookState;

/// Serves until a signal ends it. Reads the arguments of the process.
///
/// # Errors
/// Arguments, certificates or a kubeconfig cannot be used, a port is taken, or a server fails.
pub fn main() -> anyhow::Result<()> {
    actix_web::rt::System::new().block_on(serve())
}

async fn serve() -> anyhow::Result<()> {
    let args = Args::parse();
    addons_telemetry::log::start();
    // kube uses the default of the process; all other code names the provider.
    if aws_lc_rs::default_provider().install_default().is_err() {
        warn!("another TLS provider was installed before");
    }
    let client = client(&args).await?;
    let certificate = Arc::new(ServedCertificate::default());
    let certificates = Certificates::new(&args, client.clone(), &certificate)?;

    let (publish, facts) = watch::channel(None);
    let freshness = Arc::new(Freshness::new(Duration::from_secs(args.stale_seconds)));
    let state = Arc::new(WebhookState::new(
        facts,
        Arc::clone(&freshness),
        Arc::clone(&certificate),
        RequesterAccess::new(client.clone()),
        LiveLookup::new(client.clone()),
    ));
    let watching = actix_web::rt::spawn(cache::watch(
        client,
        args.settings(),
        freshness,
        state.metrics.watch_failures.clone(),
        publish,
    ));
    let keeping = actix_web::rt::spawn(certificates.keep(Arc::clone(&state)));

    let health = server::bind(args.health_bind)?;
    let reviews = server::bind(args.bind)?;
    info!(
        reviews = %reviews.local_addr()?,
        health = %health.local_addr()?,
        version = env!("CARGO_PKG_VERSION"),
        "serving"
    );
    let health = server::serve_probes(health, Arc::clone(&state))?;
    let health_handle = health.handle();
    let health = actix_web::rt::spawn(health);
    let drain = server::drain_on_signal(
        Arc::clone(&state),
        Duration::from_secs(args.drain_delay_seconds),
    )?;
    let clients = args.clients()?;
    let rereading = clients.clone().map(|clients| {
        let interval = Duration::from_secs(args.tls_poll_seconds);
        actix_web::rt::spawn(server::reload_clients(clients, interval))
    });
    let tls = tls::config(certificate, args.tls_min, clients)?;
    let limits = ReviewLimits {
        workers: args.workers(),
        connections: usize::from(args.max_connections),
    };
    server::serve_reviews(reviews, &state, tls, limits, drain)?
        .await
        .context("the review server failed")?;
    // Probes are answered until the last review has ended.
    health_handle.stop(true).await;
    health.await.context("the health server failed")??;
    watching.abort();
    keeping.abort();
    if let Some(rereading) = rereading {
        rereading.abort();
    }
    info!("drained and stopped");
    Ok(())
}

/// Creates a client for the API server: from the given kubeconfig, else as kubectl finds one, else from the pod.
async fn client(args: &Args) -> anyhow::Result<kube::Client> {
    let config = match &args.kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path)
                .with_context(|| format!("cannot read kubeconfig {}", path.display()))?;
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("kubeconfig {} cannot be used", path.display()))?
        }
        None => kube::Config::infer()
            .await
            .context("neither a kubeconfig nor a pod's ServiceAccount was found")?,
    };
    kube::Client::try_from(config).context("cannot create a client from the kubeconfig")
}
