//! http and https: bounded in size, time, redirects and tries; what has not moved is not sent again.

use std::error::Error;
use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{
    ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION,
};
use reqwest::{Client, Response, StatusCode};
use url::Url;

use super::client::{Refused, check_address, client};
use super::known::Known;
use super::{Document, UrlError, is_archive, shown};
use crate::credentials::{CredentialsError, Proof};
use crate::retry::{LONGEST_PAUSE, Tries, is_passing, wanted_pause};
use crate::{Access, host};

/// All tries together.
const DEADLINE: Duration = Duration::from_secs(180);
const REDIRECTS: usize = 5;
/// The type of Secret that goes with a URL.
const WANTED: &str = "kubernetes.io/basic-auth";

/// Gets a URL, `limit` bytes at most. What is broken or overloaded is asked four times in all: no connection, half an answer,
/// 429, 5xx.
pub async fn get(url: Url, limit: u64, access: &Access<'_>) -> Result<Document, UrlError> {
    let location = shown(&url);
    let secret = access.credentials.map(|credentials| &*credentials.secret);
    let known = Known::of(url.as_str(), secret.unwrap_or_default(), access);
    if access.offline {
        return known.offline(&location);
    }
    let request = Request {
        basic: basic(&url, access)?,
        // An archive is compressed already, and some servers take that for the encoding of the answer.
        client: client(access, !is_archive(&url))?,
        limit,
        location,
        url,
        access,
    };
    let seconds = DEADLINE.as_secs();
    let tries = tokio::time::timeout(DEADLINE, request.tries(&known)).await;
    match tries {
        Ok(Ok(Some(document))) => Ok(document),
        // The server answers so only to what is known.
        Ok(Ok(None)) => {
            let location = request.location;
            known.document(&location).ok_or(UrlError::Status {
                location,
                status: StatusCode::NOT_MODIFIED.to_string(),
            })
        }
        Ok(Err(error)) => Err(error),
        Err(_) => Err(UrlError::Timeout {
            location: request.location,
            seconds,
        }),
    }
}

/// What is asked for, and with what.
struct Request<'a> {
    client: Client,
    url: Url,
    location: String,
    limit: u64,
    /// User name and password for the host of `url`.
    basic: Option<(&'a str, &'a str)>,
    access: &'a Access<'a>,
}

/// Why one try failed, and when the next one may come.
struct Failure {
    error: UrlError,
    again: Option<Duration>,
}

impl From<UrlError> for Failure {
    fn from(error: UrlError) -> Self {
        Self { error, again: None }
    }
}

impl Request<'_> {
    /// `None`: what is known has not moved.
    async fn tries(&self, known: &Known<'_>) -> Result<Option<Document>, UrlError> {
        let mut tries = Tries::default();
        loop {
            let failure = match self.once(known).await {
                Ok(found) => return Ok(found),
                Err(failure) => failure,
            };
            match failure.again {
                Some(wanted) if tries.again(wanted).await => {}
                _ => return Err(failure.error),
            }
        }
    }

    async fn once(&self, known: &Known<'_>) -> Result<Option<Document>, Failure> {
        let mut at = self.url.clone();
        for _ in 0..=REDIRECTS {
            if !self.access.ambient {
                check_address(&at).map_err(|refused| self.refused(refused))?;
            }
            let response = self.ask(&at, known).await?;
            let Some(to) = self.redirect(&at, &response)? else {
                return self.answer(response, known).await;
            };
            at = to;
        }
        let location = self.location.clone();
        let limit = REDIRECTS;
        Err(UrlError::Redirects { location, limit }.into())
    }

    async fn ask(&self, at: &Url, known: &Known<'_>) -> Result<Response, Failure> {
        let mut request = self.client.get(at.clone());
        if let Some((user, password)) = self.basic.filter(|_| at.origin() == self.url.origin()) {
            request = request.basic_auth(user, Some(password));
        }
        // Behind another redirect than the last time lies something else, whatever its date.
        if known.is_at(&shown(at)) {
            if let Some(etag) = known.etag() {
                request = request.header(IF_NONE_MATCH, etag);
            }
            if let Some(date) = known.last_modified() {
                request = request.header(IF_MODIFIED_SINCE, date);
            }
        }
        request.send().await.map_err(|error| self.broken(error))
    }

    /// Where the answer leads: to the same scheme, or to https.
    fn redirect(&self, at: &Url, response: &Response) -> Result<Option<Url>, UrlError> {
        let status = response.status();
        let to = header(response.headers(), LOCATION);
        let Some(to) = to.filter(|_| matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)) else {
            return Ok(None);
        };
        let to = at.join(&to).map_err(|source| UrlError::Malformed {
            location: format!("{}: the redirect", self.location),
            source,
        })?;
        if to.scheme() == at.scheme() || to.scheme() == "https" {
            return Ok(Some(to));
        }
        Err(UrlError::Redirect {
            location: self.location.clone(),
            to: shown(&to),
        })
    }

    async fn answer(
        &self,
        response: Response,
        known: &Known<'_>,
    ) -> Result<Option<Document>, Failure> {
        let status = response.status();
        if status == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        if !status.is_success() {
            return Err(self.status(status, response.headers()));
        }
        let etag = header(response.headers(), ETAG);
        let last_modified = header(response.headers(), LAST_MODIFIED);
        let location = shown(response.url());
        let bytes = self.body(response).await?;
        let document = Document { bytes, location };
        known.keep(&document, etag, last_modified);
        Ok(Some(document))
    }

    async fn body(&self, response: Response) -> Result<Vec<u8>, Failure> {
        let too_large = || UrlError::TooLarge {
            location: self.location.clone(),
            limit: self.limit,
        };
        let announced = response.content_length().unwrap_or_default();
        if announced > self.limit {
            return Err(too_large().into());
        }
        let mut bytes = Vec::new();
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| self.broken(error))?;
            if (bytes.len() + chunk.len()) as u64 > self.limit {
                return Err(too_large().into());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn status(&self, status: StatusCode, headers: &HeaderMap) -> Failure {
        let location = self.location.clone();
        let words = status.to_string();
        let secret = self.access.credentials.filter(|_| self.basic.is_some());
        if matches!(status.as_u16(), 401 | 403) {
            return Failure::from(UrlError::Denied {
                location,
                status: words,
                identity: secret.map(|credentials| format!("Secret {}", credentials.secret)),
                wanted: WANTED,
            });
        }
        let again = is_passing(status);
        let wanted = wanted_pause(headers);
        match wanted.filter(|_| again) {
            Some(wanted) if wanted > LONGEST_PAUSE => Failure::from(UrlError::Later {
                location,
                status: words,
                seconds: wanted.as_secs(),
            }),
            wanted => Failure {
                error: UrlError::Status {
                    location,
                    status: words,
                },
                again: again.then(|| wanted.unwrap_or_default()),
            },
        }
    }

    /// No answer, or half of one.
    fn broken(&self, error: reqwest::Error) -> Failure {
        let location = self.location.clone();
        if let Some(refused) = cause::<Refused>(&error) {
            return self.refused(*refused).into();
        }
        let source = error.without_url();
        if cause::<rustls::Error>(&source)
            .is_some_and(|error| matches!(error, rustls::Error::InvalidCertificate(_)))
        {
            return UrlError::Certificate { location, source }.into();
        }
        Failure {
            error: UrlError::Http { location, source },
            again: Some(Duration::ZERO),
        }
    }

    fn refused(&self, Refused(address): Refused) -> UrlError {
        UrlError::Address {
            location: self.location.clone(),
            address,
        }
    }
}

/// User name and password for that URL; a Secret that holds neither, but an authority, proves nothing.
fn basic<'a>(url: &Url, access: &Access<'a>) -> Result<Option<(&'a str, &'a str)>, UrlError> {
    let Some(credentials) = access.credentials else {
        return Ok(None);
    };
    let wrong = |source: CredentialsError| UrlError::Secret {
        location: shown(url),
        source: Box::new(source),
    };
    let Proof::Basic { username, password } = &credentials.proof else {
        return Err(wrong(CredentialsError::Mismatch {
            secret: credentials.secret.clone(),
            source_kind: "an http(s) URL",
            wanted: WANTED,
        }));
    };
    credentials.check_host(&host::of(url)).map_err(wrong)?;
    if username.is_empty() && password.is_empty() {
        return Ok(None);
    }
    if url.scheme() != "https" && !url.host_str().is_some_and(host::is_loopback) {
        return Err(UrlError::Plain {
            location: shown(url),
            secret: credentials.secret.clone(),
        });
    }
    Ok(Some((username, password)))
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

/// The first error of that kind below `error`; an I/O error hides what it was made of.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let inner = error.downcast_ref::<std::io::Error>();
        next = match inner.and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
