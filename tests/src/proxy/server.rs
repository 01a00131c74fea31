//! The connections of the proxy.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use futures::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, HOST, HeaderValue, RETRY_AFTER,
    TRANSFER_ENCODING, USER_AGENT,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::fault::Action;
use super::view::{Answer, Events, asked, is_watch};
use super::{Seen, State};
use crate::control_plane::pki::Pair;

/// More than the API server takes (3 MiB).
const BODY_LIMIT: usize = 16 << 20;

type Body = UnsyncBoxBody<Bytes, reqwest::Error>;

/// TLS with this certificate, HTTP/1.1 only.
pub(crate) fn acceptor(pair: &Pair) -> Result<TlsAcceptor> {
    let certificates = CertificateDer::pem_slice_iter(pair.certificate.as_bytes());
    let certificates = certificates.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Takes connections until it is dropped, which ends them too.
pub(super) async fn serve(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<State>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, state) = (acceptor.clone(), Arc::clone(&state));
        connections.spawn(async move {
            // Small requests must not wait for an acknowledgement.
            let _ = stream.set_nodelay(true);
            if let Ok(stream) = acceptor.accept(stream).await {
                connection(TokioIo::new(stream), state).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(
    stream: TokioIo<tokio_rustls::server::TlsStream<tokio::net::TcpStream>>,
    state: Arc<State>,
) {
    // A connection belongs to one process, so its first request tells whose it is.
    let client = Arc::new(OnceLock::new());
    let mut stopped = state.stopped.subscribe();
    let service = service_fn(|request| {
        let (state, client) = (Arc::clone(&state), Arc::clone(&client));
        async move {
            let name = bearer(&request);
            let _ = client.set(name.clone());
            handle(&state, &name, request).await
        }
    });
    let mut serving = std::pin::pin!(http1::Builder::new().serve_connection(stream, service));
    loop {
        tokio::select! {
            // An error is a connection that was cut, here or by the client.
            _ = &mut serving => return,
            changed = stopped.changed() => {
                let gone = client.get().is_some_and(|name| stopped.borrow().contains(name));
                if changed.is_err() || gone {
                    return;
                }
            }
        }
    }
}

/// Who asks: the bearer token.
fn bearer(request: &Request<Incoming>) -> String {
    let value = request.headers().get(AUTHORIZATION);
    let value = value.and_then(|value| value.to_str().ok());
    let token = value.and_then(|value| value.strip_prefix("Bearer "));
    token.unwrap_or_default().to_owned()
}

/// An error closes the connection without an answer.
async fn handle(
    state: &Arc<State>,
    client: &str,
    request: Request<Incoming>,
) -> Result<Response<Body>> {
    if state.stopped.borrow().iter().any(|name| name == client) {
        return Err(anyhow!("{client} is stopped"));
    }
    let mut flowing_again = state.flowing.subscribe();
    let (number, action) = register(state, client, &request);
    match action {
        Some(Action::Answer {
            status,
            retry_after,
        }) => {
            let answer = status_answer(status, retry_after)?;
            state.answered(number, status);
            return Ok(answer);
        }
        Some(Action::Say(text)) => {
            state.answered(number, 200);
            let answer = Response::builder().header(CONTENT_TYPE, "application/json");
            return Ok(answer.body(whole(text))?);
        }
        Some(Action::Replay) => {
            let kept = asked(&request).and_then(|asked| state.lock().answers.of(&asked));
            if let Some(answer) = kept {
                state.answered(number, answer.status.as_u16());
                return Ok(answer.head().body(whole(answer.body))?);
            }
        }
        Some(Action::Delay(duration)) => tokio::time::sleep(duration).await,
        Some(Action::Hold) => {
            // The sender lives as long as the proxy.
            let _ = flowing_again.changed().await;
        }
        Some(Action::Cut { delivered }) => {
            if delivered {
                deliver(state, number, client, request)
                    .await?
                    .bytes()
                    .await?;
            }
            return Err(anyhow!("cut"));
        }
        Some(Action::Hang { delivered }) => {
            if delivered {
                deliver(state, number, client, request)
                    .await?
                    .bytes()
                    .await?;
            }
            // The service is dropped with the connection.
            return std::future::pending().await;
        }
        Some(Action::Stop { delivered }) => {
            // The answer has come before anybody knows that the client is gone: what it sent otherwise is as it is.
            if delivered {
                deliver(state, number, client, request)
                    .await?
                    .bytes()
                    .await?;
            }
            state
                .stopped
                .send_modify(|stopped| stopped.push(client.to_owned()));
            return Err(anyhow!("stopped"));
        }
        None => {}
    }
    let (stalled, uri) = (state.stalled.subscribe(), request.uri().to_string());
    flowing(stalled.clone(), &uri).await;
    let asked = asked(&request).filter(|_| state.lock().answers.is_kept);
    let upstream = deliver(state, number, client, request).await?;
    state.answered(number, upstream.status().as_u16());
    if let Some(asked) = asked {
        let answer = Answer::read(upstream).await?;
        state.lock().answers.keep(asked, answer.clone());
        return Ok(answer.head().body(whole(answer.body))?);
    }
    let mut answer = Response::builder().status(upstream.status());
    let behind = state.lock().behind;
    for (name, value) in upstream.headers() {
        if name == DATE {
            answer = answer.header(name, earlier(value, behind)?);
        } else if name != CONNECTION && name != TRANSFER_ENCODING {
            answer = answer.header(name, value);
        }
    }
    let (state, mut events) = (Arc::clone(state), Events::default());
    let watched = is_watch(&uri).then(|| uri.clone());
    let stream = upstream.bytes_stream().then(move |chunk| {
        let (stalled, uri) = (stalled.clone(), uri.clone());
        async move {
            flowing(stalled, &uri).await;
            chunk
        }
    });
    let stream = stream.map(move |chunk| {
        let chunk = match &watched {
            Some(uri) => chunk.map(|chunk| events.pass(&chunk, |event| state.hides(uri, event))),
            None => chunk,
        };
        chunk.map(Frame::data)
    });
    Ok(answer.body(StreamBody::new(stream).boxed_unsync())?)
}

/// A time, so much earlier.
fn earlier(date: &HeaderValue, by: Duration) -> Result<String> {
    let date = jiff::fmt::rfc2822::parse(date.to_str()?)?;
    Ok(jiff::fmt::rfc2822::to_string(&(date - by))?)
}

/// Waits until requests like this one are not stalled.
async fn flowing(mut stalled: watch::Receiver<Vec<String>>, uri: &str) {
    // The sender lives as long as the proxy.
    let _ = stalled
        .wait_for(|parts| !parts.iter().any(|part| uri.contains(part)))
        .await;
}

/// Writes the request down and looks for a fault that hits it.
fn register(state: &State, client: &str, request: &Request<Incoming>) -> (usize, Option<Action>) {
    let method = request.method().as_str().to_owned();
    let uri = request.uri().to_string();
    let agent = request.headers().get(USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok());
    let mut inner = state.lock();
    // Every fault counts every request, also where another one acts.
    let hits: Vec<_> = inner
        .faults
        .iter_mut()
        .filter_map(|fault| fault.hit(client, &method, &uri))
        .collect();
    inner.hits += usize::from(!hits.is_empty());
    inner.seen.push(Seen {
        client: client.to_owned(),
        method,
        uri,
        agent: agent.unwrap_or_default().to_owned(),
        status: None,
        answered: None,
        body: Bytes::new(),
    });
    (inner.seen.len() - 1, hits.into_iter().next())
}

/// Sends the request to the API server in the name of the client's user.
async fn deliver(
    state: &State,
    number: usize,
    client: &str,
    request: Request<Incoming>,
) -> Result<reqwest::Response> {
    let upstream = state.lock().upstreams.get(client).cloned();
    let upstream = upstream.with_context(|| format!("no client {client:?}"))?;
    let (mut parts, body) = request.into_parts();
    let body = Limited::new(body, BODY_LIMIT).collect().await;
    let body = body.map_err(|error| anyhow!(error))?.to_bytes();
    if let Some(seen) = state.lock().seen.get_mut(number) {
        seen.body = body.clone();
    }
    for name in [
        AUTHORIZATION,
        CONNECTION,
        CONTENT_LENGTH,
        HOST,
        TRANSFER_ENCODING,
    ] {
        parts.headers.remove(name);
    }
    let answer = upstream
        .request(parts.method, format!("{}{}", state.server, parts.uri))
        .headers(parts.headers)
        .body(body)
        .send()
        .await?;
    Ok(answer)
}

/// A Status as the API server writes it.
fn whole(body: impl Into<Bytes>) -> Body {
    let body = Full::new(body.into()).map_err(|never: Infallible| match never {});
    body.boxed_unsync()
}

fn status_answer(status: u16, retry_after: Option<u32>) -> Result<Response<Body>> {
    let reason = match status {
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "Unknown",
    };
    let mut answer = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/json");
    if let Some(seconds) = retry_after {
        answer = answer.header(RETRY_AFTER, seconds);
    }
    let body = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the proxy of the tests answers in place of the API server",
        "reason": reason,
        "code": status,
    });
    Ok(answer.body(whole(body.to_string()))?)
}

impl State {
    /// Whether an event of a watch is hidden, which counts as a hit.
    fn hides(&self, uri: &str, event: &Value) -> bool {
        let mut inner = self.lock();
        let is_hidden = inner.hidden.iter().any(|hidden| hidden.is(uri, event));
        inner.hits += usize::from(is_hidden);
        is_hidden
    }

    fn answered(&self, number: usize, status: u16) {
        let mut inner = self.lock();
        let come = inner.seen.len();
        if let Some(seen) = inner.seen.get_mut(number) {
            seen.status = Some(status);
            seen.answered = Some(come);
        }
    }
}
