//! Smart HTTP with our own client: it limits what is received, sends credentials with the first request, and follows no redirect to
//! another host.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, USER_AGENT,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::{Method, StatusCode};
use tokio::net::TcpStream;
use url::Url;

use super::Traffic;
use crate::credentials::Credentials;
use crate::git::{MAX_REFS, Problem};
use crate::http::bound;
use crate::http::retry::Tries;
use crate::http::{Http, HttpError, Redirects};
use crate::loopback::Loopback;
use crate::reach::Addresses;
use crate::url::shown;

/// The repository, in the paths that git asks for.
pub const PATH: &str = "/repository";
/// Bytes of a request: it names commits or files.
pub const MAX_REQUEST: usize = 4 << 20;
/// How long a connection may send no request; git opens another one.
const SILENCE: Duration = Duration::from_secs(30);
/// Below the repository: what the server can do, and in older versions of the protocol its refs.
const INFO: &str = "/info/refs";
const SERVICE: &str = "service=git-upload-pack";
/// Below the repository: refs, and objects.
const UPLOAD_PACK: &str = "/git-upload-pack";
const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
const RESULT: &str = "application/x-git-upload-pack-result";
/// Headers of git that the server gets.
const FORWARDED: [HeaderName; 5] = [
    ACCEPT,
    CONTENT_TYPE,
    CONTENT_ENCODING,
    USER_AGENT,
    HeaderName::from_static("git-protocol"),
];
/// GitHub requires this user name for the tokens of its apps. For other tokens GitHub, GitLab, Gitea and Azure accept any.
const USER_OF_TOKENS: &str = "x-access-token";

type Body = UnsyncBoxBody<Bytes, io::Error>;
type Request = hyper::Request<Incoming>;
type Response = hyper::Response<Body>;

/// The first answer of a server. In protocol v2 it names no refs and rarely changes, so a later run uses it instead of asking.
#[derive(Clone, Debug)]
pub struct Advertisement {
    /// As sent.
    pub bytes: Vec<u8>,
    /// The URL of the repository after redirects.
    pub base: String,
}

impl Advertisement {
    /// Whether it may be kept: it names only what the server can do.
    pub fn is_lasting(&self) -> bool {
        let begin = self.bytes.get(..64).unwrap_or(&self.bytes);
        let version = b"version 2\n";
        begin.windows(version.len()).any(|window| window == version)
    }
}

/// A server.
pub struct HttpWay {
    /// The URL of the repository.
    base: String,
    client: Http,
    /// User name and password.
    account: Option<(String, String)>,
}

impl HttpWay {
    /// A server with these credentials.
    ///
    /// # Errors
    /// Certificate authorities that cannot be read.
    pub fn new(
        url: &Url,
        credentials: Option<&Credentials>,
        addresses: Addresses,
    ) -> Result<Self, Problem> {
        let client = Http::new(credentials, addresses, true);
        Ok(Self {
            base: url.as_str().trim_end_matches('/').to_owned(),
            client: client.map_err(|source| Problem::Http { source })?,
            account: credentials.and_then(account),
        })
    }

    /// Serves one connection of git.
    pub async fn serve(&self, loopback: &Loopback, traffic: &Arc<Traffic>, stream: TcpStream) {
        let service = service_fn(async |request: Request| {
            Ok::<_, Infallible>(self.reply(loopback, traffic, request).await)
        });
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(SILENCE);
        // git knows why it breaks off.
        let _ = server.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn reply(
        &self,
        loopback: &Loopback,
        traffic: &Arc<Traffic>,
        request: Request,
    ) -> Response {
        let token = request.headers().get(AUTHORIZATION);
        let token = token.and_then(|token| token.to_str().ok()?.strip_prefix("Bearer "));
        if !token.is_some_and(|token| loopback.is_token(token)) {
            return empty(StatusCode::UNAUTHORIZED);
        }
        let path = request.uri().path().strip_prefix(PATH);
        let answer = match (request.method(), path, request.uri().query()) {
            (&Method::GET, Some(INFO), Some(SERVICE)) => self.info(traffic, &request).await,
            (&Method::POST, Some(UPLOAD_PACK), None) => self.exchange(traffic, request).await,
            _ => return empty(StatusCode::NOT_FOUND),
        };
        answer.unwrap_or_else(|problem| {
            traffic.fail(problem);
            empty(StatusCode::BAD_GATEWAY)
        })
    }

    /// The first answer of the server, asked for once. A redirect moves the repository.
    async fn info(&self, traffic: &Traffic, request: &Request) -> Result<Response, Problem> {
        if let Some(known) = traffic.advertisement() {
            return Ok(answer(ADVERTISEMENT, whole(known.bytes)));
        }
        let tail = format!("{INFO}?{SERVICE}");
        let url = format!("{}{tail}", self.base);
        let response = self
            .send(
                Method::GET,
                &url,
                request.headers(),
                None,
                Redirects::SameHost,
            )
            .await?;
        typed(&response, ADVERTISEMENT)?;
        let moved = response.url().as_str().strip_suffix(&tail);
        let base = moved.map(str::to_owned).ok_or_else(|| Problem::Http {
            source: HttpError::Redirect {
                to: shown(response.url()),
                why: "to something else than a repository",
            },
        })?;
        let bytes = bound::body(response, MAX_REFS as u64).await;
        let bytes = bytes.map_err(|source| match source {
            HttpError::TooLarge(_) => Problem::TooLarge,
            source => Problem::Http { source },
        })?;
        traffic.received(bytes.len())?;
        traffic.set_advertisement(Some(Advertisement {
            bytes: bytes.clone(),
            base,
        }));
        Ok(answer(ADVERTISEMENT, whole(bytes)))
    }

    /// One request and its answer, which is counted while it is read.
    async fn exchange(
        &self,
        traffic: &Arc<Traffic>,
        request: Request,
    ) -> Result<Response, Problem> {
        let known = traffic.advertisement();
        let base = known.map_or_else(|| self.base.clone(), |known| known.base);
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, MAX_REQUEST).collect().await;
        let body = body.map_err(|source| Problem::Connection { source })?;
        let body = Some(body.to_bytes());
        let url = format!("{base}{UPLOAD_PACK}");
        let response = self
            .send(Method::POST, &url, &parts.headers, body, Redirects::None)
            .await?;
        typed(&response, RESULT)?;
        let traffic = Arc::clone(traffic);
        let counted = response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(|error| Problem::Http {
                source: error.into(),
            });
            let counted = chunk.and_then(|chunk| {
                traffic.received(chunk.len())?;
                Ok(Frame::data(chunk))
            });
            counted.map_err(|problem| {
                traffic.fail(problem);
                io::ErrorKind::ConnectionAborted.into()
            })
        });
        Ok(answer(RESULT, StreamBody::new(counted).boxed_unsync()))
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &HeaderMap,
        body: Option<Bytes>,
        redirects: Redirects,
    ) -> Result<reqwest::Response, Problem> {
        let failed = |source| Problem::Http { source };
        let mut request = self.client.client.request(method, url);
        for name in &FORWARDED {
            if let Some(value) = headers.get(name) {
                request = request.header(name, value);
            }
        }
        if let Some((user, password)) = &self.account {
            request = request.basic_auth(user, Some(password));
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let request = request.build().map_err(|error| failed(error.into()))?;
        let mut tries = Tries::default();
        let response = self
            .client
            .send(&mut tries, &request, redirects, None)
            .await;
        let response = response.map_err(failed)?;
        self.judge(response.status())?;
        Ok(response)
    }

    /// Any answer but a success ends the fetch.
    fn judge(&self, status: StatusCode) -> Result<(), Problem> {
        let text = status.to_string();
        Err(match status {
            StatusCode::OK => return Ok(()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Problem::Denied {
                status: text,
                way_out: if self.account.is_some() {
                    "the user name or password of auth.secretRef is wrong, or may not read this repository"
                } else {
                    "it wants credentials: a Secret of type kubernetes.io/basic-auth as auth.secretRef"
                }
                .to_owned(),
            },
            StatusCode::NOT_FOUND | StatusCode::GONE => Problem::Missing { status: text },
            _ => Problem::Status { status: text },
        })
    }
}

fn account(credentials: &Credentials) -> Option<(String, String)> {
    let (user, password) = credentials.account()?;
    let user = if user.is_empty() {
        USER_OF_TOKENS
    } else {
        user
    };
    Some((user.to_owned(), password.to_owned()))
}

/// Refuses an answer that is something else, such as a page.
fn typed(response: &reqwest::Response, wanted: &str) -> Result<(), Problem> {
    let found = response.headers().get(CONTENT_TYPE);
    let found = found
        .and_then(|found| found.to_str().ok())
        .unwrap_or_default();
    if found == wanted {
        return Ok(());
    }
    let source = format!("it answers with content of type {found:?}");
    Err(Problem::Protocol {
        source: source.into(),
    })
}

fn answer(kind: &'static str, body: Body) -> Response {
    let mut response = hyper::Response::new(body);
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn empty(status: StatusCode) -> Response {
    let mut response = hyper::Response::new(whole(Vec::new()));
    *response.status_mut() = status;
    response
}

fn whole(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes))
        .map_err(|never| match never {})
        .boxed_unsync()
}
