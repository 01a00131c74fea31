//! git over http and https with our own client: what it sends and receives is bounded, it shows who asks at the first
//! request, and no redirect leads it to another host.

mod exchange;

use std::any::Any;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gix::protocol::transport::client::blocking_io::http::{
    GetResponse, Http, PostBodyDataKind, PostResponse,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, IntoUrl, Method, RequestBuilder, Response, StatusCode, Url};

use exchange::{Body, Exchange, Headers, Outgoing, header_lines};

use super::GitError;
use super::wire::Wire;
use crate::credentials::{Credentials, Proof};
use crate::url::client::Guarded;
use crate::url::without_credentials;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REDIRECTS: usize = 5;
/// GitHub wants this name for the tokens of its apps, and takes any for other tokens, as GitLab, Gitea and Azure do.
const USER_OF_TOKENS: &str = "x-access-token";

/// The header of what is replayed.
const ADVERTISEMENT_TYPE: &[u8] = b"content-type:application/x-git-upload-pack-advertisement\n";

/// What a server said of itself, in protocol v2, where it names no ref and so does not change: with it a later run needs no
/// request to learn it.
#[derive(Clone, Debug, Default)]
pub struct Advertisement {
    /// As it was sent.
    pub bytes: Vec<u8>,
    /// The URL of the repository after redirects.
    pub base: String,
    /// It was too long to be kept whole.
    pub is_cut: bool,
}

/// What [`Connection`] tells who holds it.
pub type Learned = Arc<Mutex<Advertisement>>;

/// The requests of one fetch.
pub struct Connection {
    wire: Arc<Wire>,
    client: Client,
    /// User name and password.
    account: Option<(String, String)>,
    known: Option<Advertisement>,
    base: Option<String>,
    learned: Learned,
}

impl Connection {
    /// A client with these credentials. With what is `known` of the server it is not asked for it again.
    ///
    /// # Errors
    /// A CA that is none.
    pub fn new(
        wire: Arc<Wire>,
        credentials: Option<&Credentials>,
        known: Option<Advertisement>,
    ) -> Result<Self, GitError> {
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(Policy::none());
        if wire.guarded {
            builder = builder.dns_resolver(Guarded);
        }
        if let Some((credentials, ca)) = credentials.and_then(|all| Some((all, all.ca.as_ref()?))) {
            let certificates = Certificate::from_pem_bundle(ca).unwrap_or_default();
            if certificates.is_empty() {
                return Err(GitError::Authority {
                    remote: wire.remote.clone(),
                    secret: credentials.secret.clone(),
                });
            }
            builder = builder.tls_certs_only(certificates);
        }
        let client = builder
            .build()
            .map_err(|source| connection(&wire, source))?;
        Ok(Self {
            account: credentials.and_then(account),
            client,
            known,
            base: None,
            learned: Learned::default(),
            wire,
        })
    }

    /// What it learns of the server.
    pub fn learned(&self) -> Learned {
        Arc::clone(&self.learned)
    }

    fn request(
        &self,
        method: Method,
        url: impl IntoUrl,
        lines: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> RequestBuilder {
        let mut headers = HeaderMap::new();
        for line in lines {
            let header = line.as_ref().split_once(':').and_then(|(name, value)| {
                let name = HeaderName::try_from(name).ok()?;
                Some((name, HeaderValue::try_from(value.trim()).ok()?))
            });
            headers.extend(header);
        }
        let request = self.client.request(method, url).headers(headers);
        match &self.account {
            Some((user, password)) => request.basic_auth(user, Some(password)),
            None => request,
        }
    }

    /// Gets a URL below `base`; redirects stay on the host, and move the base.
    fn follow(&mut self, url: &str, base: &str, headers: &[String]) -> io::Result<Response> {
        let parse = |url: &str| url.parse::<Url>().map_err(io::Error::other);
        let (mut now, tail) = (parse(url)?, url.strip_prefix(base).unwrap_or_default());
        for _ in 0..=REDIRECTS {
            let request = self.request(Method::GET, now.clone(), headers);
            let response = send(&self.wire, request)?;
            if !response.status().is_redirection() {
                self.base = now.as_str().strip_suffix(tail).map(str::to_owned);
                return judge(&self.wire, self.account.is_some(), response);
            }
            let to = response.headers().get(LOCATION);
            let to = to.and_then(|to| now.join(to.to_str().ok()?).ok());
            let refused = |to: &str, why| {
                let remote = self.wire.remote.clone();
                let to = without_credentials(to);
                self.wire.fail(GitError::Redirect { remote, to, why })
            };
            let Some(to) = to else {
                return Err(refused("nowhere", "nowhere"));
            };
            if let Some(why) = leads_away(&now, &to, tail) {
                return Err(refused(to.as_str(), why));
            }
            now = to;
        }
        let remote = self.wire.remote.clone();
        let (to, why) = (without_credentials(now.as_str()), "to ever more redirects");
        Err(self.wire.fail(GitError::Redirect { remote, to, why }))
    }
}

/// Why a redirect is not followed: a policy that names hosts must not be led around it, and a password not to others.
pub fn leads_away(from: &Url, to: &Url, tail: &str) -> Option<&'static str> {
    let upgraded = from.scheme() == "http" && to.scheme() == "https";
    if from.scheme() != to.scheme() && !upgraded {
        Some("to another scheme")
    } else if from.host() != to.host() {
        Some("to another host")
    } else if from.port_or_known_default() != to.port_or_known_default() && !upgraded {
        Some("to another port")
    } else if !to.username().is_empty() || to.password().is_some() || !to.as_str().ends_with(tail) {
        Some("to something else than a repository")
    } else {
        None
    }
}

fn account(credentials: &Credentials) -> Option<(String, String)> {
    match &credentials.proof {
        Proof::Basic { username, password } if username.is_empty() => {
            Some((USER_OF_TOKENS.to_owned(), password.clone()))
        }
        Proof::Basic { username, password } => Some((username.clone(), password.clone())),
        _ => None,
    }
}

fn connection(wire: &Wire, source: reqwest::Error) -> GitError {
    GitError::Connection {
        remote: wire.remote.clone(),
        source: Box::new(source.without_url()),
    }
}

fn send(wire: &Wire, request: RequestBuilder) -> io::Result<Response> {
    let answer = wire.run(async { Ok::<_, io::Error>(request.send().await) })?;
    answer.map_err(|error| wire.fail(connection(wire, error)))
}

/// An answer that is no success ends the fetch.
fn judge(wire: &Wire, with_credentials: bool, response: Response) -> io::Result<Response> {
    let (remote, status) = (wire.remote.clone(), response.status().to_string());
    let error = match response.status() {
        StatusCode::OK => return Ok(response),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => GitError::Denied {
            remote,
            status,
            way_out: if with_credentials {
                "the user name or password of auth.secretRef is wrong, or may not read this repository"
            } else {
                "it wants credentials: a Secret of type kubernetes.io/basic-auth as auth.secretRef"
            }
            .to_owned(),
        },
        StatusCode::NOT_FOUND | StatusCode::GONE => GitError::Missing { remote, status },
        _ => GitError::Status { remote, status },
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
        let headers: Vec<String> = headers
            .into_iter()
            .map(|line| line.as_ref().to_owned())
            .collect();
        let response = self
            .follow(url, base_url, &headers)
            .map_err(gix::Error::from_error)?;
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
        let exchange = Exchange::new(Arc::clone(&self.wire), self.account.is_some(), request);
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
