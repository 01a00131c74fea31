//! A registry in this process, by the OCI distribution specification 1.1: images and artifacts are pushed to it and pulled from it,
//! with a password, with tokens, or by anybody, and everything that it holds is in memory.
//!
//! It is strict where the specification leaves a choice, so that a client which passes here has made no use of leniency: names, tags
//! and digests are checked, chunks have to be in order, a manifest names only what is in its repository and has the type that it was
//! pushed with, and an `Accept` header that lacks this type finds nothing. Locations are relative, which the specification allows and
//! the registry of distribution does not do. Nothing is deleted.

mod answer;
mod authorization;
mod names;
mod store;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_RANGE, CONTENT_TYPE, HeaderName, RANGE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::super::running::Running;
use crate::control_plane::pki::Pair;
use crate::proxy::acceptor;

use answer::{Answer, Code, Refusal};
use names::{Digest, Route, Target};
use store::Store;

pub(super) use authorization::{Guard, Keys};

/// The first byte of a connection with TLS.
const HANDSHAKE: u8 = 0x16;
/// What Go's servers answer to a client that does not speak TLS.
const NO_TLS: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// A running registry; dropped, it is gone.
pub(super) struct Server(Running);

/// The content of the registry, and the rule of who may use it.
struct State {
    guard: Guard,
    /// Whether it has the referrers API; without it, clients keep lists under a tag.
    has_referrers: bool,
    store: Mutex<Store>,
}

/// The parts of a request that answers depend on.
struct Asked<'r> {
    method: &'r Method,
    query: BTreeMap<String, String>,
    accept: Vec<&'r str>,
    content_type: Option<&'r str>,
    content_range: Option<&'r str>,
    range: Option<&'r str>,
    body: Bytes,
}

impl Server {
    /// Starts one on a free port of 127.0.0.1; with a pair it speaks TLS.
    pub(super) fn start(guard: Guard, has_referrers: bool, tls: Option<&Pair>) -> Result<Self> {
        let acceptor = tls.map(acceptor).transpose()?;
        let state = Arc::new(State {
            guard,
            has_referrers,
            store: Mutex::default(),
        });
        let running = Running::start("registry", move |stream| {
            let (acceptor, state) = (acceptor.clone(), Arc::clone(&state));
            async move {
                match acceptor {
                    None => connection(stream, &state).await,
                    Some(_) if !speaks_tls(&stream).await => {
                        let mut stream = stream;
                        // A client that is gone by now needs no answer.
                        let _ = stream.write_all(NO_TLS).await;
                    }
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            connection(stream, &state).await;
                        }
                    }
                }
            }
        })?;
        Ok(Self(running))
    }

    /// `127.0.0.1:PORT`.
    pub(super) fn host(&self) -> String {
        self.0.address.to_string()
    }
}

async fn speaks_tls(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1)) && first == [HANDSHAKE]
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, state: &State) {
    let service = service_fn(|request: Request<Incoming>| async {
        let answer = state.answer(request).await;
        Ok::<_, Infallible>(answer.unwrap_or_else(Answer::from).into_response())
    });
    // An error is a connection that was cut by the client.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl State {
    async fn answer(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        let (head, body) = request.into_parts();
        let route = Route::parse(head.uri.path())?;
        let query = head.uri.query().unwrap_or_default();
        let query = url::form_urlencoded::parse(query.as_bytes()).into_owned();
        let query: BTreeMap<String, String> = query.collect();
        let header = |name: HeaderName| {
            let value = head.headers.get(name);
            value.and_then(|value| value.to_str().ok())
        };
        let wanted = authorization::needed(&head.method, &route, &query);
        self.guard.admit(header(AUTHORIZATION), &wanted)?;
        let accept = head.headers.get_all(ACCEPT).iter();
        let accept = accept.filter_map(|value| value.to_str().ok());
        let body = body
            .collect()
            .await
            .map_err(|_| Refusal::new(Code::BlobUploadInvalid, "the body ended too early"))?;
        let asked = Asked {
            method: &head.method,
            query,
            accept: accept.flat_map(|value| value.split(',')).collect(),
            content_type: header(CONTENT_TYPE),
            content_range: header(CONTENT_RANGE),
            range: header(RANGE),
            body: body.to_bytes(),
        };
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        match route {
            Route::Base => asked.reads(|| Ok(Answer::json(&serde_json::json!({})))),
            Route::Of(name, target) => self.of(&mut store, name, target, &asked),
        }
    }

    fn of(
        &self,
        store: &mut Store,
        name: &str,
        target: Target<'_>,
        asked: &Asked<'_>,
    ) -> Result<Answer, Refusal> {
        match target {
            Target::Tags => asked.reads(|| store.tags(name, &asked.query)),
            Target::Referrers(digest) if self.has_referrers => {
                let of_type = asked.query.get("artifactType");
                asked.reads(|| store.referrers(name, &digest, of_type))
            }
            Target::Referrers(_) => Err(Refusal::path()),
            Target::Manifest(reference) if asked.method == Method::PUT => {
                let media_type = asked.content_type.unwrap_or_default();
                let body = asked.body.clone();
                store.put_manifest(name, &reference, media_type, body, self.has_referrers)
            }
            Target::Manifest(reference) => {
                asked.reads(|| store.manifest(name, &reference, &asked.accept))
            }
            Target::Blob(digest) => asked.reads(|| store.blob(name, &digest, asked.range)),
            Target::Uploads => match *asked.method {
                Method::POST => begin(store, name, asked),
                _ => Err(Refusal::method()),
            },
            Target::Upload(id) => match *asked.method {
                Method::GET => store.upload(name, id),
                Method::PATCH => {
                    store.append(name, id, asked.content_range, &asked.body)?;
                    store.accepted(name, id)
                }
                Method::PUT => {
                    if !asked.body.is_empty() {
                        store.append(name, id, asked.content_range, &asked.body)?;
                    }
                    store.finish(name, id, &asked.digest()?)
                }
                Method::DELETE => store.cancel(name, id),
                _ => Err(Refusal::method()),
            },
        }
    }
}

impl Asked<'_> {
    /// An answer for `GET` and `HEAD` alone.
    fn reads(&self, read: impl FnOnce() -> Result<Answer, Refusal>) -> Result<Answer, Refusal> {
        match *self.method {
            Method::GET => read(),
            Method::HEAD => Ok(read()?.without_body()),
            _ => Err(Refusal::method()),
        }
    }

    /// The digest that the query names.
    fn digest(&self) -> Result<Digest, Refusal> {
        Digest::parse(self.query.get("digest").map_or("", String::as_str))
    }
}

/// Begins an upload; where the blob comes with the request, or another repository has it, ends it as well.
fn begin(store: &mut Store, name: &str, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    if let (Some(digest), Some(from)) = (asked.query.get("mount"), asked.query.get("from"))
        && let Some(mounted) = store.mount(name, &Digest::parse(digest)?, from)
    {
        return Ok(mounted);
    }
    let id = store.begin(name);
    if asked.query.contains_key("digest") {
        store.append(name, &id, None, &asked.body)?;
        return store.finish(name, &id, &asked.digest()?);
    }
    store.accepted(name, &id)
}
