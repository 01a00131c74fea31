//! What stands in front of a registry: it writes every request down, and does wrong what the test says.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, LOCATION, TRANSFER_ENCODING};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::task::AbortHandle;

use super::Registry;

/// A request.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `GET`.
    pub method: String,
    /// `/v2/…`, with its query.
    pub path: String,
    /// What proved who asks.
    pub authorization: Option<String>,
    /// How many requests for the same came before.
    pub before: usize,
}

/// What is done instead of asking the registry.
#[derive(Clone, Debug)]
pub enum Fault {
    /// A status without a body.
    Status(u16),
    /// A redirect.
    Redirect(String),
    /// These bytes, with status 200.
    Bytes(Vec<u8>),
    /// These bytes, and the connection is cut where as many more were promised.
    Cut(Vec<u8>),
    /// Zeros without end.
    Endless,
    /// A refusal that asks for this.
    Challenge(String),
}

/// The front, gone when it is dropped.
pub struct Front {
    /// `127.0.0.1:PORT`.
    pub host: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: AbortHandle,
}

type Body = UnsyncBoxBody<Bytes, std::io::Error>;
type Faults = dyn Fn(&Seen) -> Option<Fault> + Send + Sync;

impl Front {
    /// Starts one; what `faults` leaves alone is the registry's.
    ///
    /// # Errors
    /// Of the network.
    pub async fn start(
        registry: Option<&Registry>,
        faults: impl Fn(&Seen) -> Option<Fault> + Send + Sync + 'static,
    ) -> Result<Self> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let host = listener.local_addr()?.to_string();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let upstream = registry.map(Registry::url);
        let faults: Arc<Faults> = Arc::new(faults);
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_gzip()
            .build()?;
        let written = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, faults) = (Arc::clone(&written), Arc::clone(&faults));
                let (upstream, client) = (upstream.clone(), client.clone());
                let service = service_fn(move |request| {
                    let (seen, faults) = (Arc::clone(&seen), Arc::clone(&faults));
                    let (upstream, client) = (upstream.clone(), client.clone());
                    async move { handle(request, &seen, &*faults, upstream, &client).await }
                });
                tokio::spawn(async move {
                    // An error is a connection that was cut.
                    let connection = http1::Builder::new();
                    let _ = connection
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(Self {
            host,
            seen,
            task: task.abort_handle(),
        })
    }

    /// The requests since the last call.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *seen)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn handle(
    request: Request<Incoming>,
    seen: &Mutex<Vec<Seen>>,
    faults: &Faults,
    upstream: Option<String>,
    client: &reqwest::Client,
) -> Result<Response<Body>> {
    let path = request.uri().to_string();
    let method = request.method().to_string();
    let authorization = request.headers().get(AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok());
    let now = {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Seen {
            before: seen
                .iter()
                .filter(|other| other.path == path && other.method == method)
                .count(),
            authorization: authorization.map(str::to_owned),
            method,
            path,
        };
        seen.push(now.clone());
        now
    };
    let full = |bytes: Vec<u8>| {
        let body = Full::from(bytes).map_err(|never: Infallible| match never {});
        body.boxed_unsync()
    };
    let answer = Response::builder();
    match (faults(&now), upstream) {
        (Some(Fault::Status(status)), _) => Ok(answer.status(status).body(full(Vec::new()))?),
        (Some(Fault::Redirect(to)), _) => {
            let answer = answer.status(307).header(LOCATION, to);
            Ok(answer.body(full(Vec::new()))?)
        }
        (Some(Fault::Bytes(bytes)), _) => Ok(answer.body(full(bytes))?),
        (Some(Fault::Cut(bytes)), _) => {
            let answer = answer.header(CONTENT_LENGTH, bytes.len() * 2);
            let cut = Err(std::io::Error::other("cut"));
            let frames = stream::iter([Ok(Frame::data(Bytes::from(bytes))), cut]);
            Ok(answer.body(StreamBody::new(frames).boxed_unsync())?)
        }
        (Some(Fault::Endless), _) => {
            let zeros = stream::repeat(Bytes::from_static(&[0; 1 << 14]));
            let frames = zeros.map(|zeros| Ok(Frame::data(zeros)));
            Ok(answer.body(StreamBody::new(frames).boxed_unsync())?)
        }
        (Some(Fault::Challenge(challenge)), _) => {
            let answer = answer.status(401).header("WWW-Authenticate", challenge);
            Ok(answer.body(full(Vec::new()))?)
        }
        (None, Some(upstream)) => {
            let mut headers = request.headers().clone();
            headers.remove(CONNECTION);
            let asking = client.request(request.method().clone(), upstream + &now.path);
            let body = request.into_body().collect().await?.to_bytes();
            let come = asking.headers(headers).body(body).send().await?;
            let mut answer = answer.status(come.status());
            for (name, value) in come.headers() {
                if name != CONNECTION && name != TRANSFER_ENCODING {
                    answer = answer.header(name, value);
                }
            }
            let frames = come
                .bytes_stream()
                .map_ok(Frame::data)
                .map_err(std::io::Error::other);
            Ok(answer.body(StreamBody::new(frames).boxed_unsync())?)
        }
        (None, None) => Ok(answer.status(404).body(full(Vec::new()))?),
    }
}
