//! The client: one connection pool for each set of certificate authorities, made when it is first needed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use common::manifest::digest::sha256;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Body, Certificate, Client, Request, Response, StatusCode};
use url::Url;

use super::bound::{self, CONNECT, IDLE, SMALL};
use super::error::HttpError;
use super::guard::{self, Guarded, Refused};
use super::policy::{REDIRECTS, Redirects};
use super::retry::{LONGEST_PAUSE, Tries, is_passing, wanted_pause};
use crate::credentials::Credentials;
use crate::reach::Addresses;

/// Clients that are kept.
const KEPT: usize = 16;
/// The parameters of signed URLs that have no prefix.
const SIGNATURE: [&str; 21] = [
    "awsaccesskeyid",
    "expires",
    "googleaccessid",
    "jwt",
    "key-pair-id",
    "policy",
    "se",
    "sig",
    "signature",
    "ske",
    "skoid",
    "sks",
    "skt",
    "sktid",
    "skv",
    "sp",
    "spr",
    "sr",
    "st",
    "sv",
    "token",
];

static CLIENTS: Mutex<Vec<(Key, Client)>> = Mutex::new(Vec::new());

/// What makes clients differ.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    ca: Option<Vec<u8>>,
    addresses: Addresses,
    gzip: bool,
}

/// Asks servers.
#[derive(Clone, Debug)]
pub struct Http {
    /// Follows no redirect by itself.
    pub client: Client,
    addresses: Addresses,
}

/// Headers for one location only, wherever redirects lead: a server that answers "unchanged" must mean what the cache holds.
#[derive(Debug)]
pub struct Condition {
    /// As [`hashed`].
    pub url: String,
    /// `If-None-Match`, `If-Modified-Since`.
    pub headers: HeaderMap,
}

/// A whole answer.
#[derive(Debug)]
pub struct Received {
    /// Any, also of an error.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Where it came from, after redirects.
    pub url: Url,
    /// Of an error, what could be read of it.
    pub bytes: Vec<u8>,
}

impl Http {
    /// Trusts the authorities of the Secret and no others, or without any those of the machine; refuses all addresses
    /// but `addresses`. With `gzip`, compressed answers are asked for and unpacked.
    ///
    /// # Errors
    /// Authorities that cannot be read.
    pub fn new(
        credentials: Option<&Credentials>,
        addresses: Addresses,
        gzip: bool,
    ) -> Result<Self, HttpError> {
        let key = Key {
            ca: credentials.and_then(|credentials| credentials.ca.clone()),
            addresses,
            gzip,
        };
        let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(other, _)| *other == key) {
            let client = client.clone();
            return Ok(Self { client, addresses });
        }
        let secret = credentials.map(|credentials| &*credentials.secret);
        let client = build(&key, secret.unwrap_or_default())?;
        if clients.len() >= KEPT {
            clients.remove(0);
        }
        clients.push((key, client.clone()));
        Ok(Self { client, addresses })
    }

    /// Judges a URL by its addresses.
    ///
    /// # Errors
    /// An address that is out of reach.
    pub async fn check(&self, url: &Url) -> Result<(), Refused> {
        guard::check(url, self.addresses).await
    }

    /// Sends a request and follows redirects. No connection, 429 and 5xx are tried again; every other status is an answer.
    ///
    /// # Errors
    /// [`HttpError`]; with the tries used up, the last error or answer.
    pub async fn send(
        &self,
        tries: &mut Tries,
        request: &Request,
        redirects: Redirects,
        condition: Option<&Condition>,
    ) -> Result<Response, HttpError> {
        loop {
            let answer = self.follow(request, redirects, condition).await;
            let wanted = match &answer {
                Ok(response) if is_passing(response.status()) => wanted_pause(response.headers()),
                Err(error) if error.is_passing() => None,
                _ => return answer,
            };
            let wanted = wanted.unwrap_or_default();
            if let Ok(response) = &answer
                && wanted > LONGEST_PAUSE
            {
                return Err(HttpError::Later {
                    status: response.status().to_string(),
                    seconds: wanted.as_secs(),
                });
            }
            if !tries.again(wanted).await {
                return answer;
            }
        }
    }

    /// Sends a request and reads the answer, `limit` bytes at most; an answer that breaks off is asked for again.
    ///
    /// # Errors
    /// As [`Http::send`], and more bytes than `limit`.
    pub async fn receive(
        &self,
        request: &Request,
        redirects: Redirects,
        condition: Option<&Condition>,
        limit: u64,
    ) -> Result<Received, HttpError> {
        let mut tries = Tries::default();
        loop {
            let response = self.send(&mut tries, request, redirects, condition).await?;
            let (status, url) = (response.status(), response.url().clone());
            let headers = response.headers().clone();
            let bytes = if status.is_success() {
                match bound::body(response, limit).await {
                    Err(error) if error.is_passing() && tries.again(Duration::ZERO).await => {
                        continue;
                    }
                    bytes => bytes?,
                }
            } else {
                bound::body(response, SMALL).await.unwrap_or_default()
            };
            return Ok(Received {
                status,
                headers,
                url,
                bytes,
            });
        }
    }

    /// Which addresses a request may lead to where redirects led it. The server named the place, and not whoever named the server.
    fn addresses_at(&self, first: &Url, at: &Url) -> Addresses {
        match first.host() == at.host() {
            true => self.addresses,
            false => self.addresses.max(Addresses::NoMetadata),
        }
    }

    async fn follow(
        &self,
        request: &Request,
        redirects: Redirects,
        condition: Option<&Condition>,
    ) -> Result<Response, HttpError> {
        let mut at = request.url().clone();
        for _ in 0..=REDIRECTS {
            guard::check(&at, self.addresses_at(request.url(), &at)).await?;
            let mut next = Request::new(request.method().clone(), at.clone());
            *next.headers_mut() = request.headers().clone();
            let body = request.body().and_then(Body::as_bytes);
            *next.body_mut() = body.map(|bytes| bytes.to_vec().into());
            if !redirects.keeps_credentials(request.url(), &at) {
                next.headers_mut().remove(AUTHORIZATION);
            }
            if let Some(condition) = condition.filter(|condition| condition.url == hashed(&at)) {
                next.headers_mut().extend(condition.headers.clone());
            }
            let response = self.client.execute(next).await?;
            match redirects.next(&at, &response)? {
                Some(to) => at = to,
                None => return Ok(response),
            }
        }
        Err(HttpError::Redirects)
    }
}

/// A URL as it may be kept on disk and compared: its query may hold a secret, and may name another document. Signatures are left out,
/// because object stores sign a new one for every redirect.
pub fn hashed(url: &Url) -> String {
    let mut lasting = url.clone();
    if url.query().is_some() {
        let named = url.query_pairs().filter(|(name, _)| !is_of_signature(name));
        lasting.query_pairs_mut().clear().extend_pairs(named);
    }
    sha256(lasting.as_str().as_bytes())
}

/// Whether a parameter belongs to a URL that was signed for a while: by AWS, Google, Azure or a CDN of theirs.
fn is_of_signature(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("x-amz-") || name.starts_with("x-goog-") || SIGNATURE.contains(&name.as_str())
}

fn build(key: &Key, secret: &str) -> Result<Client, HttpError> {
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(IDLE)
        .redirect(Policy::none())
        .gzip(key.gzip)
        .user_agent(concat!("kubectl-addons/", env!("CARGO_PKG_VERSION")));
    if key.addresses != Addresses::Any {
        builder = builder.dns_resolver(Guarded(key.addresses));
    }
    if let Some(pem) = &key.ca {
        let certificates = Certificate::from_pem_bundle(pem).unwrap_or_default();
        if certificates.is_empty() {
            let secret = secret.to_owned();
            return Err(HttpError::Authority { secret });
        }
        builder = builder.tls_certs_only(certificates);
    }
    Ok(builder.build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The user typed a server, and not where that leads.
    #[test]
    fn redirects_of_a_typed_location_are_not_typed() {
        let http = |addresses| Http {
            client: Client::new(),
            addresses,
        };
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let first = Url::parse("http://10.0.0.1/a").unwrap();
        for (addresses, to, expected) in [
            (Addresses::Any, "http://10.0.0.1:81/b", Addresses::Any),
            (
                Addresses::Any,
                "http://169.254.169.254/",
                Addresses::NoMetadata,
            ),
            (
                Addresses::OtherMachines,
                "http://h/",
                Addresses::OtherMachines,
            ),
        ] {
            let to = Url::parse(to).unwrap();
            assert_eq!(http(addresses).addresses_at(&first, &to), expected, "{to}");
        }
    }

    #[test]
    fn a_new_signature_is_no_other_document() {
        let hashed = |url: &str| hashed(&Url::parse(url).unwrap());
        let first = hashed("https://a.example/dl?file=1&X-Amz-Expires=300&X-Amz-Signature=a");
        let again = hashed("https://a.example/dl?file=1&X-Amz-Expires=300&X-Amz-Signature=b");
        let other = hashed("https://a.example/dl?file=2&X-Amz-Expires=300&X-Amz-Signature=a");
        assert_eq!(first, again);
        assert_ne!(first, other);
        assert_eq!(
            hashed("https://a.example/x?sv=1&sr=b&sig=a&se=1"),
            hashed("https://a.example/x?sv=1&sr=b&sig=b&se=2")
        );
        assert_ne!(hashed("https://a.example/x"), hashed("https://a.example/y"));
    }
}
