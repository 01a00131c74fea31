//! git over http and https with our own client: it limits what is sent and received, sends credentials with the first request,
//! and follows no redirect to another host.

mod exchange;

use std::any::Any;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use gix::protocol::transport::client::blocking_io::http::{
    GetResponse, Http, PostBodyDataKind, PostResponse,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{IntoUrl, Method, Request, Response, StatusCode};

use exchange::{Body, Exchange, Headers, Outgoing, header_lines};

use super::Problem;
use super::wire::Wire;
use crate::credentials::Credentials;
use crate::http::retry::Tries;
use crate::http::{Http as Client, HttpError, Redirects};
use crate::url::shown;

/// GitHub requires this user name for the tokens of its apps. For other tokens GitHub, GitLab, Gitea and Azure accept any.
const USER_OF_TOKENS: &str = "x-access-token";

/// The header of a replayed advertisement.
const ADVERTISEMENT_TYPE: &[u8] = b"content-type:application/x-git-upload-pack-advertisement\n";

/// The capabilities of a server in protocol v2. They name no refs and rarely change, so a later run replays them instead of
/// asking.
#[derive(Clone, Debug, Default)]
pub struct Advertisement {
    /// As sent.
    pub bytes: Vec<u8>,
    /// The URL of the repository after redirects.
    pub base: String,
    /// Whether it was too long to be kept whole.
    pub is_cut: bool,
}

/// The advertisement of a [`Connection`], for its owner.
pub type Learned = Arc<Mutex<Advertisement>>;

/// The requests of one fetch.
pub struct Connection {
    wire: Arc<Wire>,
    http: Client,
    /// User name and password.
    account: Option<(String, String)>,
    known: Option<Advertisement>,
    base: Option<String>,
    learned: Learned,
}

impl Connection {
    /// A client with these credentials. With a `known` advertisement the server is not asked for it.
    ///
    /// # Errors
    /// Certificate authorities that cannot be read.
    pub fn new(
        wire: Arc<Wire>,
        credentials: Option<&Credentials>,
        known: Option<Advertisement>,
    ) -> Result<Self, Problem> {
        let http = Client::new(credentials, wire.reach, true);
        Ok(Self {
            http: http.map_err(|source| Problem::Http { source })?,
            account: credentials.and_then(account),
            known,
            base: None,
            learned: Learned::default(),
            wire,
        })
    }

    /// The advertisement of the server, filled while it is read.
    pub fn learned(&self) -> Learned {
        Arc::clone(&self.learned)
    }

    fn request(
        &self,
        method: Method,
        url: impl IntoUrl,
        lines: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> io::Result<Request> {
        let mut headers = HeaderMap::new();
        for line in lines {
            let header = line.as_ref().split_once(':').and_then(|(name, value)| {
                let name = HeaderName::try_from(name).ok()?;
                Some((name, HeaderValue::try_from(value.trim()).ok()?))
            });
            headers.extend(header);
        }
        let mut request = self.http.client.request(method, url).headers(headers);
        if let Some((user, password)) = &self.account {
            request = request.basic_auth(user, Some(password));
        }
        let request = request.build();
        request.map_err(|error| failed(&self.wire, error))
    }

    /// Gets a URL below `base`; a redirect moves the base.
    fn follow(
        &mut self,
        url: &str,
        base: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> io::Result<Response> {
        let request = self.request(Method::GET, url, headers)?;
        let response = send(&self.wire, &self.http, &request, Redirects::SameHost)?;
        let response = judge(&self.wire, self.account.is_some(), response)?;
        let tail = url.strip_prefix(base).unwrap_or_default();
        let moved = response.url().as_str().strip_suffix(tail);
        self.base = Some(moved.map(str::to_owned).ok_or_else(|| {
            let (to, why) = (shown(response.url()), "to something else than a repository");
            let source = HttpError::Redirect { to, why };
            failed(&self.wire, source)
        })?);
        Ok(response)
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

fn failed(wire: &Wire, source: impl Into<HttpError>) -> io::Error {
    let source = source.into();
    wire.fail(Problem::Http { source })
}

fn send(
    wire: &Wire,
    http: &Client,
    request: &Request,
    redirects: Redirects,
) -> io::Result<Response> {
    let mut tries = Tries::default();
    let response = wire.run(http.send(&mut tries, request, redirects, None))?;
    response.map_err(|source| failed(wire, source))
}

/// Any answer but a success ends the fetch.
fn judge(wire: &Wire, with_credentials: bool, response: Response) -> io::Result<Response> {
    let status = response.status().to_string();
    let error = match response.status() {
        StatusCode::OK => return Ok(response),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Problem::Denied {
            status,
            way_out: if with_credentials {
                "the user name or password of auth.secretRef is wrong, or may not read this repository"
            } else {
                "it wants credentials: a Secret of type kubernetes.io/basic-auth as auth.secretRef"
            }
            .to_owned(),
        },
        StatusCode::NOT_FOUND | StatusCode::GONE => Problem::Missing { status },
        _ => Problem::Status { status },
    };
    Err(wire.fail(error))
}

impl Http for Connection {
    type Headers = Headers;
    type ResponseBody = Body;
    type PostBody = Outgoing;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<Headers, Body>> {
        if let Some(known) = self.known.take() {
            self.base = Some(known.base);
            return Ok(GetResponse {
                headers: Headers::known(ADVERTISEMENT_TYPE.to_vec()),
                body: Body::known(&self.wire, known.bytes),
            });
        }
        let response = self.follow(url, base_url, headers);
        let response = response.map_err(gix::Error::from_error)?;
        self.learned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .base = self.base.clone().unwrap_or_default();
        Ok(GetResponse {
            headers: Headers::known(header_lines(&response)),
            body: Body::kept(&self.wire, response, self.learned()),
        })
    }

    fn post(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _kind: PostBodyDataKind,
    ) -> gix::Result<PostResponse<Headers, Body, Outgoing>> {
        let request = self.request(Method::POST, url, headers);
        let request = request.map_err(gix::Error::from_error)?;
        let with_credentials = self.account.is_some();
        let (wire, http) = (Arc::clone(&self.wire), self.http.clone());
        let exchange = Exchange::new(wire, http, with_credentials, request);
        Ok(PostResponse {
            post_body: Outgoing(exchange.clone()),
            headers: Headers::of(exchange.clone()),
            body: Body::of(&self.wire, exchange),
        })
    }

    fn configure(&mut self, _config: &dyn Any) -> gix::Result {
        Ok(())
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.base.clone()
    }
}
