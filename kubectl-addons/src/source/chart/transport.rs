//! One GET of a chart repository: bounded in size, time, redirects and tries, conditional where something is known.

use std::fmt;
use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{
    ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Certificate, Client, RequestBuilder, Response, StatusCode};
use url::Url;

use crate::source::cache::Note;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(120);
const REDIRECTS: usize = 5;
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// What to get.
pub(super) struct Request<'a> {
    pub url: &'a Url,
    /// Bytes at most.
    pub limit: usize,
    /// User and password: never for the host that a redirect leads to.
    pub basic: Option<(&'a str, &'a str)>,
    /// Certificate authorities, as PEM, beside those of the machine.
    pub ca: Option<&'a [u8]>,
    /// What it was the last time.
    pub known: Option<&'a Note>,
}

/// What came.
pub(super) enum Answer {
    /// It is what it was.
    NotModified,
    /// All of it, and what tells whether it changed; the note has no digest yet.
    Body { bytes: Vec<u8>, note: Note },
}

/// Why nothing came. No URL is in it.
#[derive(Debug)]
pub enum TransportError {
    /// `404 Not Found`.
    Status(String),
    /// More than is read, in MiB.
    TooLarge(usize),
    /// No PEM.
    Ca,
    /// The rest.
    Http(reqwest::Error),
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "the server answers {status}"),
            Self::TooLarge(limit) => write!(f, "it is larger than {limit} MiB"),
            Self::Ca => f.write_str("ca.crt of the Secret holds no PEM certificate"),
            Self::Http(error) => {
                write!(f, "it cannot be fetched: {error}")?;
                let mut cause = std::error::Error::source(error);
                while let Some(inner) = cause {
                    write!(f, ": {inner}")?;
                    cause = inner.source();
                }
                Ok(())
            }
        }
    }
}

/// Gets a URL. Connection errors, 429 and 5xx are tried again; redirects lead to the same scheme or to https.
pub(super) async fn get(request: &Request<'_>) -> Result<Answer, TransportError> {
    let client = client(request.ca)?;
    let mut pause = FIRST_PAUSE;
    for last in (1..=TRIES).map(|attempt| attempt == TRIES) {
        match conditional(&client, request).send().await {
            Ok(response) if response.status() == StatusCode::NOT_MODIFIED => {
                return Ok(Answer::NotModified);
            }
            Ok(response) if response.status().is_success() => {
                return body(response, request.limit).await;
            }
            Ok(response) => {
                let status = response.status();
                let again = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                if last || !again {
                    return Err(TransportError::Status(status.to_string()));
                }
            }
            Err(error) if last || !(error.is_connect() || error.is_timeout()) => {
                return Err(http(error));
            }
            Err(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    Err(TransportError::Status("nothing".to_owned()))
}

fn client(ca: Option<&[u8]>) -> Result<Client, TransportError> {
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .redirect(Policy::custom(redirect))
        .referer(false)
        .user_agent(concat!("kubectl-addons/", env!("CARGO_PKG_VERSION")));
    if let Some(pem) = ca {
        let roots = Certificate::from_pem_bundle(pem).map_err(|_| TransportError::Ca)?;
        if roots.is_empty() {
            return Err(TransportError::Ca);
        }
        builder = builder.tls_certs_merge(roots);
    }
    builder.build().map_err(http)
}

fn conditional(client: &Client, request: &Request<'_>) -> RequestBuilder {
    let mut get = client.get(request.url.clone());
    if let Some((user, password)) = request.basic {
        get = get.basic_auth(user, Some(password));
    }
    if let Some(etag) = request.known.and_then(|note| note.etag.as_ref()) {
        get = get.header(IF_NONE_MATCH, etag);
    } else if let Some(time) = request.known.and_then(|note| note.last_modified.as_ref()) {
        get = get.header(IF_MODIFIED_SINCE, time);
    }
    get
}

async fn body(response: Response, limit: usize) -> Result<Answer, TransportError> {
    let too_large = || TransportError::TooLarge(limit >> 20);
    let length = response.content_length();
    if length.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let note = Note {
        etag: header(response.headers(), ETAG),
        last_modified: header(response.headers(), LAST_MODIFIED),
        ..Note::default()
    };
    let mut bytes = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(&chunk.map_err(http)?);
        if bytes.len() > limit {
            return Err(too_large());
        }
    }
    Ok(Answer::Body { bytes, note })
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

fn redirect(attempt: Attempt<'_>) -> Action {
    let scheme = attempt.url().scheme();
    let same = attempt
        .previous()
        .last()
        .is_some_and(|previous| previous.scheme() == scheme);
    if attempt.previous().len() > REDIRECTS {
        attempt.error("too many redirects")
    } else if same || scheme == "https" {
        attempt.follow()
    } else {
        attempt.error("a redirect to another scheme is not followed")
    }
}

/// Without its URL, which may hold a signature.
fn http(error: reqwest::Error) -> TransportError {
    TransportError::Http(error.without_url())
}
