//! The two servers: for reviews, and for probes and metrics; and how they stop.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::dev::{Extensions, Server};
use actix_web::http::KeepAlive;
use actix_web::rt::net::TcpStream;
use actix_web::web::{self, Data};
use actix_web::{App, HttpResponse, HttpServer};
use anyhow::Context as _;
use rustls::ServerConfig;
use rustls::pki_types::UnixTime;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{debug, info, warn};

use crate::clients::Clients;
use crate::connections::Connections;
use crate::freshness::WatchedKind;
use crate::handlers;
use crate::state::WebhookState;

/// Longer than the 90 s for which the API server keeps idle connections: if the server closes first, the API server gets an EOF that it
/// does not retry.
const KEEP_ALIVE: Duration = Duration::from_secs(180);
/// The time limit for the head of a review. It begins with the connection, and the API server opens some connections that it only uses
/// later: with a shorter limit, a 408 could arrive just when it sends a review, which would be lost. It is therefore longer than the 90 s
/// after which the API server closes idle connections by itself. Clients that hold connections without sending lose them at the limit of
/// connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(100);
/// The time limit for the head of a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Less than half of the 5 s that the API server waits, so that a review behind a flood of handshakes has the rest.
const TLS_TIMEOUT: Duration = Duration::from_secs(2);
/// The most open connections for probes.
const PROBES: usize = 64;
/// The connections of one worker, in addition to a limit of [`Connections`], at which actix stops accepting. They leave room for
/// connections in a handshake and for those that are being closed, so that the limit, which closes a connection instead, is reached first.
const MORE_CONNECTIONS: usize = 4096;
/// The most TLS handshakes in progress on one worker.
const MAX_HANDSHAKES: usize = 1024;
/// The time for reviews that are in progress when the server stops.
const STOP_SECONDS: u64 = 10;

/// Limits of the server for reviews.
#[derive(Clone, Copy, Debug)]
pub struct ReviewLimits {
    /// The number of threads.
    pub workers: usize,
    /// The most open connections. An API server holds one for each review in progress.
    pub connections: usize,
}

/// Opens a listener, so that an address in use is an error before anything else begins.
pub fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))
}

/// Returns the current time, in the type of certificates.
pub fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixTime::since_unix_epoch(since.unwrap_or_default())
}

/// Returns the server for `/mutate`, `/validate`, `/clusters` and `/core-sets`. It stops when `stop` ends, after the reviews in progress.
pub fn serve_reviews(
    listener: TcpListener,
    state: &Arc<WebhookState>,
    tls: ServerConfig,
    limits: ReviewLimits,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<Server> {
    let data = Data::from(Arc::clone(state));
    let connections = Connections::new(limits.connections, state.metrics.evictions.clone());
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .route("/mutate", web::post().to(handlers::mutating))
            .route("/validate", web::post().to(handlers::validating))
            .route("/clusters", web::post().to(handlers::clusters))
            .route("/core-sets", web::post().to(handlers::core_sets))
    })
    .workers(limits.workers)
    .on_connect(move |stream, data| {
        if let Some(stream) = stream.downcast_ref::<TlsStream<TcpStream>>() {
            register_connection(&connections, stream.get_ref().0, data);
        }
    })
    // Without this, Nagle's algorithm and delayed acknowledgements cost 40 ms in each handshake.
    .tcp_nodelay(true)
    .keep_alive(KEEP_ALIVE)
    .client_request_timeout(HEAD_TIMEOUT)
    .tls_handshake_timeout(TLS_TIMEOUT)
    .max_connections(limits.connections.saturating_add(MORE_CONNECTIONS))
    .max_connection_rate(MAX_HANDSHAKES)
    .shutdown_timeout(STOP_SECONDS)
    .shutdown_signal(stop)
    .listen_rustls_0_23(listener, tls)?;
    Ok(server.run())
}

/// Returns the server for probes and metrics, with one worker and plain HTTP.
pub fn serve_probes(listener: TcpListener, state: Arc<WebhookState>) -> io::Result<Server> {
    let connections = Connections::new(PROBES, state.metrics.evictions.clone());
    let data = Data::from(state);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .route("/healthz", web::get().to(healthz))
            .route("/readyz", web::get().to(readyz))
            .route("/metrics", web::get().to(metrics))
    })
    .workers(1)
    .on_connect(move |stream, data| {
        if let Some(stream) = stream.downcast_ref::<TcpStream>() {
            register_connection(&connections, stream, data);
        }
    })
    .keep_alive(KeepAlive::Disabled)
    .client_request_timeout(PROBE_TIMEOUT)
    .max_connections(PROBES + MORE_CONNECTIONS)
    .shutdown_timeout(1)
    .disable_signals()
    .listen(listener)?;
    Ok(server.run())
}

/// Registers a new connection, for as long as the server holds it.
fn register_connection(connections: &Arc<Connections>, socket: &TcpStream, data: &mut Extensions) {
    match connections.admit(socket) {
        Ok(place) => {
            data.insert(place);
        }
        Err(error) => debug!(%error, "a connection is served without a place"),
    }
}

/// Returns a future that ends `delay` after SIGTERM or SIGINT. Endpoints still list this process for a while, so it keeps serving: not
/// ready, and closing each connection with its response.
pub fn drain_on_signal(
    state: Arc<WebhookState>,
    delay: Duration,
) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        drain(&state, delay).await;
    })
}

/// Keeps serving for `delay` while draining.
pub async fn drain(state: &WebhookState, delay: Duration) {
    state.draining.store(true, Ordering::Relaxed);
    info!(seconds = delay.as_secs(), "draining");
    tokio::time::sleep(delay).await;
}

/// Reads the authorities of clients every `interval`, until it is aborted.
pub async fn reload_clients(clients: Arc<Clients>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        match clients.poll() {
            Ok(false) => {}
            Ok(true) => info!("verifying clients by new authorities"),
            Err(error) => warn!(
                error = format!("{error:#}"),
                "the new authorities of clients are not used"
            ),
        }
    }
}

/// `GET /healthz`: the process is alive.
async fn healthz() -> &'static str {
    "ok"
}

/// `GET /readyz`: the facts are complete and fresh, the certificate is valid, and the process is not shutting down.
async fn readyz(state: Data<WebhookState>) -> HttpResponse {
    let missing = if state.draining.load(Ordering::Relaxed) {
        "draining".to_owned()
    } else if let Err(refusal) = state.facts() {
        refusal.to_string()
    } else {
        match state.certificate.not_after() {
            None => "no certificate is served yet".to_owned(),
            Some(end) if end <= now() => "the certificate has expired".to_owned(),
            Some(_) => return HttpResponse::Ok().body("ok"),
        }
    };
    HttpResponse::ServiceUnavailable().body(missing)
}

/// `GET /metrics`
async fn metrics(state: Data<WebhookState>) -> HttpResponse {
    for watched in WatchedKind::ALL {
        let silent = state.freshness.silence(watched, Instant::now());
        state.metrics.set_facts_age(watched, silent);
    }
    let held = i64::try_from(state.bodies.held_bytes()).unwrap_or(i64::MAX);
    state.metrics.body_bytes.set(held);
    match state.metrics.encode_text() {
        Ok(text) => HttpResponse::Ok()
            .content_type("application/openmetrics-text; version=1.0.0; charset=utf-8")
            .body(text),
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}

#[cfg(test)]
pub mod tests;
