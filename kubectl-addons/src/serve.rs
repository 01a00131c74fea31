//! Serves the health port of a loop: `/readyz` and `/metrics` over plain HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use addons_loops::LoopMetrics;
use anyhow::{Context as _, Result};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// The most connections at the same time.
const CONNECTIONS: usize = 16;
/// How long a client may take to send its headers.
const HEADERS: Duration = Duration::from_secs(5);
/// The pause before accepting connections again if the process has no file descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// Binds the port before anything else happens, so that a failure is an error of the command line.
///
/// # Errors
/// The port cannot be bound.
pub async fn bind_health(address: SocketAddr) -> Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.with_context(|| format!("--health-bind {address}"))
}

/// Answers requests until the future is dropped.
pub async fn serve_health(listener: TcpListener, metrics: Arc<LoopMetrics>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&free).try_acquire_owned() else {
            continue;
        };
        let metrics = Arc::clone(&metrics);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer_request(&request, &metrics);
                async move { Ok::<_, Infallible>(answer) }
            });
            // An error of a client does not affect others.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADERS)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(permit);
        });
    }
}

fn answer_request(request: &Request<Incoming>, metrics: &LoopMetrics) -> Response<Full<Bytes>> {
    let (status, text) = match request.uri().path() {
        "/metrics" => match metrics.encode_text() {
            Ok(text) => (StatusCode::OK, text),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        },
        "/readyz" if metrics.is_ready() => (StatusCode::OK, "ready\n".to_owned()),
        "/readyz" => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the API server has not answered yet\n".to_owned(),
        ),
        _ => (StatusCode::NOT_FOUND, "not found\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}
