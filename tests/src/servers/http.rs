//! A web server that answers what a test tells it to, also what no good server would, and remembers who asked for what.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::running::Running;
use crate::control_plane::pki::Pair;
use crate::proxy::acceptor;

/// A running server; dropped, it is gone.
pub struct Server {
    running: Running,
    scheme: &'static str,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Path and query; towards a proxy the whole URL.
    pub uri: String,
    /// By their lower-case names.
    pub headers: BTreeMap<String, String>,
    /// How many requests for this URI came before.
    pub before: usize,
}

/// What is sent.
pub struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: BoxStream<'static, io::Result<Frame<Bytes>>>,
}

impl Answer {
    /// That status, and nothing else.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: stream::empty().boxed(),
        }
    }

    /// These bytes, with their length.
    #[must_use]
    pub fn ok(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let length = bytes.len().to_string();
        Self::chunks([bytes]).with("content-length", length)
    }

    /// These bytes under that `ETag`, or the word that they are known.
    #[must_use]
    pub fn tagged(request: &Seen, etag: &str, bytes: impl Into<Bytes>) -> Self {
        match request.headers.get("if-none-match") {
            Some(known) if known == etag => Self::status(304),
            _ => Self::ok(bytes),
        }
        .with("etag", etag)
    }

    /// These bytes without a word about their length.
    pub fn chunks(chunks: impl IntoIterator<Item = Bytes, IntoIter: Send + 'static>) -> Self {
        let chunks = stream::iter(chunks).map(|chunk| Ok(Frame::data(chunk)));
        Self {
            body: chunks.boxed(),
            ..Self::status(200)
        }
    }

    /// A redirect.
    #[must_use]
    pub fn moved(to: impl Into<String>) -> Self {
        Self::status(302).with("location", to)
    }

    /// One more header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// After its bytes the connection is cut.
    #[must_use]
    pub fn cut(mut self) -> Self {
        let broken = stream::once(async {
            // What came before is sent first.
            tokio::task::yield_now().await;
            Err(io::ErrorKind::BrokenPipe.into())
        });
        self.body = self.body.chain(broken).boxed();
        self
    }

    /// The connection is cut instead of an answer.
    #[must_use]
    pub fn none() -> Self {
        let broken = stream::iter([Err(io::ErrorKind::BrokenPipe.into())]);
        Self {
            body: broken.boxed(),
            ..Self::status(200)
        }
    }
}

impl Server {
    /// Starts a server on a free port of 127.0.0.1; with a pair it speaks TLS.
    ///
    /// # Errors
    /// Where no port is free, or of the cryptography.
    pub fn start(
        tls: Option<&Pair>,
        answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Result<Self> {
        let acceptor = tls.map(acceptor).transpose()?;
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let state = Arc::new(State {
            seen: Arc::clone(&seen),
            answer: Box::new(answer),
        });
        let running = Running::start("web server", move |stream| {
            let (acceptor, state) = (acceptor.clone(), Arc::clone(&state));
            async move {
                match acceptor {
                    None => connection(stream, state).await,
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            connection(stream, state).await;
                        }
                    }
                }
            }
        })?;
        Ok(Self {
            running,
            scheme: if tls.is_some() { "https" } else { "http" },
            seen,
        })
    }

    /// The URL of a path, by address.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.running.address)
    }

    /// `HOST:PORT`.
    #[must_use]
    pub fn host(&self) -> String {
        self.running.address.to_string()
    }

    /// What came so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }
}

struct State {
    seen: Arc<Mutex<Vec<Seen>>>,
    answer: Box<dyn Fn(&Seen) -> Answer + Send + Sync>,
}

impl State {
    fn answer(&self, request: &Request<Incoming>) -> Answer {
        let headers = request.headers().iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), value.into_owned())
        });
        let uri = request.uri().to_string();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let request = Seen {
            before: seen.iter().filter(|other| other.uri == uri).count(),
            headers: headers.collect(),
            uri,
        };
        seen.push(request.clone());
        drop(seen);
        (self.answer)(&request)
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<State>) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = state.answer(&request);
        async move {
            let mut response = Response::builder().status(answer.status);
            for (name, value) in answer.headers {
                response = response.header(name, value);
            }
            let body = StreamBody::new(answer.body);
            let unusable = |_| Response::new(StreamBody::new(stream::empty().boxed()));
            Ok::<_, Infallible>(response.body(body).unwrap_or_else(unusable))
        }
    });
    // An error is a connection that was cut, here or by the client.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
