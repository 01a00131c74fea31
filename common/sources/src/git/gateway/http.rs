//! Forwards smart HTTP requests of git with the HTTP client of all sources, which limits what is received,
//! sends credentials with the first request, and follows no redirects to other hosts.

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
use crate::git::{GitProblem, MAX_REFS};
use crate::http::bound;
use crate::http::retry::RequestTries;
use crate::http::{Http, HttpError, Redirects};
use crate::loopback::Loopback;
use crate::reach::Addresses;
use crate::url::redact_url;

/// The path of the repository in the requests of git.
pub const PATH: &str = "/repository";
/// The maximum size in bytes of a request, which lists commits or files.
pub const MAX_REQUEST: usize = 4 << 20;
/// How long a connection may be idle. Git opens a new one when needed.
const SILENCE: Duration = Duration::from_secs(30);
/// The path, below the repository, of the capabilities of the server and, in older versions of the protocol,
/// of its refs.
const INFO: &str = "/info/refs";
const SERVICE: &str = "service=git-upload-pack";
/// The path, below the repository, of refs and objects.
const UPLOAD_PACK: &str = "/git-upload-pack";
const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
const RESULT: &str = "application/x-git-upload-pack-result";
/// The headers of git that are forwarded to the server.
const FORWARDED: [HeaderName; 5] = [
    ACCEPT,
    CONTENT_TYPE,
    CONTENT_ENCODING,
    USER_AGENT,
    HeaderName::from_static("git-protocol"),
];
/// The user name for tokens. GitHub requires this name for the tokens of its apps. For other tokens, GitHub,
/// GitLab, Gitea and Azure accept any name.
const USER_OF_TOKENS: &str = "x-access-token";

type ReplyBody = UnsyncBoxBody<Bytes, io::Error>;
type GitRequest = hyper::Request<Incoming>;
type GitReply = hyper::Response<ReplyBody>;

/// The first response of a server. In protocol version 2 it has no refs and rarely changes, so later runs
/// reuse it.
#[derive(Clone, Debug)]
pub struct Advertisement {
    /// The response as sent.
    pub bytes: Vec<u8>,
    /// The URL of the repository after redirects.
    pub base: String,
}

impl Advertisement {
    /// Whether the response can be reused, because it only lists capabilities.
    pub fn is_lasting(&self) -> bool {
        let begin = self.bytes.get(..64).unwrap_or(&self.bytes);
        let version = b"version 2\n";
        begin.windows(version.len()).any(|window| window == version)
    }
}

/// A server that is reached over HTTP.
pub struct HttpBackend {
    /// The URL of the repository.
    base: String,
    client: Http,
    /// The user name and password.
    account: Option<(String, String)>,
}

impl HttpBackend {
    /// Sets up the client for a server.
    ///
    /// # Errors
    /// The certificate authorities cannot be read.
    pub fn new(
        url: &Url,
        credentials: Option<&Credentials>,
        addresses: Addresses,
    ) -> Result<Self, GitProblem> {
        let client = Http::new(credentials, addresses, true);
        Ok(Self {
            base: url.as_str().trim_end_matches('/').to_owned(),
            client: client.map_err(|source| GitProblem::Http { source })?,
            account: credentials.and_then(account),
        })
    }

    /// Serves one connection of git.
    pub async fn serve(&self, loopback: &Loopback, traffic: &Arc<Traffic>, stream: TcpStream) {
        let service = service_fn(async |request: GitRequest| {
            Ok::<_, Infallible>(self.reply(loopback, traffic, request).await)
        });
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(SILENCE);
        // Git reports the reason if the connection breaks off.
        let _ = server.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn reply(
        &self,
        loopback: &Loopback,
        traffic: &Arc<Traffic>,
        request: GitRequest,
    ) -> GitReply {
        let token = request.headers().get(AUTHORIZATION);
        let token = token.and_then(|token| token.to_str().ok()?.strip_prefix("Bearer "));
        if !token.is_some_and(|token| loopback.is_token(token)) {
            return empty_reply(StatusCode::UNAUTHORIZED);
        }
        let path = request.uri().path().strip_prefix(PATH);
        let answer = match (request.method(), path, request.uri().query()) {
            (&Method::GET, Some(INFO), Some(SERVICE)) => self.advertise(traffic, &request).await,
            (&Method::POST, Some(UPLOAD_PACK), None) => self.exchange(traffic, request).await,
            _ => return empty_reply(StatusCode::NOT_FOUND),
        };
        answer.unwrap_or_else(|problem| {
            traffic.fail(problem);
            empty_reply(StatusCode::BAD_GATEWAY)
        })
    }

    /// Responds with the capabilities of the server, which are requested once. A redirect changes the base
    /// URL of the repository.
    async fn advertise(
        &self,
        traffic: &Traffic,
        request: &GitRequest,
    ) -> Result<GitReply, GitProblem> {
        if let Some(known) = traffic.advertisement() {
            return Ok(reply_with(ADVERTISEMENT, full_body(known.bytes)));
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
        check_content_type(&response, ADVERTISEMENT)?;
        let moved = response.url().as_str().strip_suffix(&tail);
        let base = moved.map(str::to_owned).ok_or_else(|| GitProblem::Http {
            source: HttpError::Redirect {
                to: redact_url(response.url()),
                why: "to something else than a repository",
            },
        })?;
        let bytes = bound::body(response, MAX_REFS as u64).await;
        let bytes = bytes.map_err(|source| match source {
            HttpError::TooLarge(_) => GitProblem::TooLarge,
            source => GitProblem::Http { source },
        })?;
        traffic.received(bytes.len())?;
        traffic.set_advertisement(Some(Advertisement {
            bytes: bytes.clone(),
            base,
        }));
        Ok(reply_with(ADVERTISEMENT, full_body(bytes)))
    }

    /// Forwards one request. The response is counted while it is read.
    async fn exchange(
        &self,
        traffic: &Arc<Traffic>,
        request: GitRequest,
    ) -> Result<GitReply, GitProblem> {
        let known = traffic.advertisement();
        let base = known.map_or_else(|| self.base.clone(), |known| known.base);
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, MAX_REQUEST).collect().await;
        let body = body.map_err(|source| GitProblem::Connection { source })?;
        let body = Some(body.to_bytes());
        let url = format!("{base}{UPLOAD_PACK}");
        let response = self
            .send(Method::POST, &url, &parts.headers, body, Redirects::None)
            .await?;
        check_content_type(&response, RESULT)?;
        let traffic = Arc::clone(traffic);
        let counted = response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(|error| GitProblem::Http {
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
        Ok(reply_with(RESULT, StreamBody::new(counted).boxed_unsync()))
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &HeaderMap,
        body: Option<Bytes>,
        redirects: Redirects,
    ) -> Result<reqwest::Response, GitProblem> {
        let failed = |source| GitProblem::Http { source };
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
        let mut tries = RequestTries::default();
        let response = self
            .client
            .send(&mut tries, &request, redirects, None)
            .await;
        let response = response.map_err(failed)?;
        self.check_status(response.status())?;
        Ok(response)
    }

    /// Returns an error for any status but 200.
    fn check_status(&self, status: StatusCode) -> Result<(), GitProblem> {
        let text = status.to_string();
        Err(match status {
            StatusCode::OK => return Ok(()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => GitProblem::Denied {
                status: text,
                way_out: if self.account.is_some() {
                    "the user name or password of auth.secretRef is wrong, or may not read this repository"
                } else {
                    "it wants credentials: a Secret of type kubernetes.io/basic-auth as auth.secretRef"
                }
                .to_owned(),
            },
            StatusCode::NOT_FOUND | StatusCode::GONE => GitProblem::Missing { status: text },
            _ => GitProblem::Status { status: text },
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

/// Refuses a response of another type, such as a web page.
fn check_content_type(response: &reqwest::Response, wanted: &str) -> Result<(), GitProblem> {
    let found = response.headers().get(CONTENT_TYPE);
    let found = found
        .and_then(|found| found.to_str().ok())
        .unwrap_or_default();
    if found == wanted {
        return Ok(());
    }
    let source = format!("it answers with content of type {found:?}");
    Err(GitProblem::Protocol {
        source: source.into(),
    })
}

fn reply_with(kind: &'static str, body: ReplyBody) -> GitReply {
    let mut response = hyper::Response::new(body);
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn empty_reply(status: StatusCode) -> GitReply {
    let mut response = hyper::Response::new(full_body(Vec::new()));
    *response.status_mut() = status;
    response
}

fn full_body(bytes: Vec<u8>) -> ReplyBody {
    Full::new(Bytes::from(bytes))
        .map_err(|never| match never {})
        .boxed_unsync()
}
