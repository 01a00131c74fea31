//! The HTTP client. Each set of certificate authorities has one connection pool, which is created when it is
//! first needed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use common::manifest::digest::sha256;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Body, Certificate, Client, Request, Response, StatusCode};
use url::Url;

use super::bound::{self, CONNECT, IDLE, SMALL};
use super::error::HttpError;
use super::guard::{self, GuardedResolver, RefusedAddress};
use super::policy::{REDIRECTS, Redirects};
use super::retry::{LONGEST_PAUSE, RequestTries, is_transient, requested_pause};
use crate::credentials::Credentials;
use crate::reach::Addresses;

/// The maximum number of clients to keep.
const KEPT: usize = 16;
/// Parameters of signed URLs without a common prefix.
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

static CLIENTS: Mutex<Vec<(ClientKey, Client)>> = Mutex::new(Vec::new());

/// The settings of a client. Clients with equal settings are shared.
#[derive(Clone, PartialEq, Eq)]
struct ClientKey {
    ca: Option<Vec<u8>>,
    addresses: Addresses,
    gzip: bool,
}

/// Sends requests.
#[derive(Clone, Debug)]
pub struct Http {
    /// The client, which follows no redirects.
    pub client: Client,
    addresses: Addresses,
}

/// Conditional headers for a single URL. They are only sent to that URL, also after redirects, so that "not
/// modified" always refers to the cached content.
#[derive(Debug)]
pub struct CacheCondition {
    /// The URL as returned by [`hash_url`].
    pub url: String,
    /// `If-None-Match`, `If-Modified-Since`.
    pub headers: HeaderMap,
}

/// A response with its whole body.
#[derive(Debug)]
pub struct ReceivedResponse {
    /// The status, which can be an error.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The URL after redirects.
    pub url: Url,
    /// The body. If the status is an error, the part that could be read.
    pub bytes: Vec<u8>,
}

impl Http {
    /// Returns a client that only connects to `addresses`. It trusts only the authorities of the Secret or,
    /// if it has none, those of the machine. With `gzip`, it requests and unpacks compressed responses.
    ///
    /// # Errors
    /// The authorities cannot be read.
    pub fn new(
        credentials: Option<&Credentials>,
        addresses: Addresses,
        gzip: bool,
    ) -> Result<Self, HttpError> {
        let key = ClientKey {
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

    /// Checks that the addresses of a URL are allowed.
    ///
    /// # Errors
    /// An address is not allowed.
    pub async fn check(&self, url: &Url) -> Result<(), RefusedAddress> {
        guard::check(url, self.addresses).await
    }

    /// Sends a request and follows redirects. Failed connections and the statuses 429 and 5xx are retried.
    /// All other statuses are returned.
    ///
    /// # Errors
    /// [`HttpError`]. After the last try, the last error or response is returned.
    pub async fn send(
        &self,
        tries: &mut RequestTries,
        request: &Request,
        redirects: Redirects,
        condition: Option<&CacheCondition>,
    ) -> Result<Response, HttpError> {
        loop {
            let answer = self.follow(request, redirects, condition).await;
            let wanted = match &answer {
                Ok(response) if is_transient(response.status()) => {
                    requested_pause(response.headers())
                }
                Err(error) if error.is_transient() => None,
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
            if !tries.wait(wanted).await {
                return answer;
            }
        }
    }

    /// Sends a request and reads the response of at most `limit` bytes. If the response breaks off, the
    /// request is sent again.
    ///
    /// # Errors
    /// Errors of [`Http::send`], or the response has more than `limit` bytes.
    pub async fn receive(
        &self,
        request: &Request,
        redirects: Redirects,
        condition: Option<&CacheCondition>,
        limit: u64,
    ) -> Result<ReceivedResponse, HttpError> {
        let mut tries = RequestTries::default();
        loop {
            let response = self.send(&mut tries, request, redirects, condition).await?;
            let (status, url) = (response.status(), response.url().clone());
            let headers = response.headers().clone();
            let bytes = if status.is_success() {
                match bound::body(response, limit).await {
                    Err(error) if error.is_transient() && tries.wait(Duration::ZERO).await => {
                        continue;
                    }
                    bytes => bytes?,
                }
            } else {
                bound::body(response, SMALL).await.unwrap_or_default()
            };
            return Ok(ReceivedResponse {
                status,
                headers,
                url,
                bytes,
            });
        }
    }

    /// Returns the addresses that are allowed for the URL `at` after redirects from `first`. A redirect is
    /// chosen by the server, not by the user, so it never allows more than [`Addresses::NoMetadata`] on
    /// another host.
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
        condition: Option<&CacheCondition>,
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
            if let Some(condition) = condition.filter(|condition| condition.url == hash_url(&at)) {
                next.headers_mut().extend(condition.headers.clone());
            }
            let response = self.client.execute(next).await?;
            match redirects.next_url(&at, &response)? {
                Some(to) => at = to,
                None => return Ok(response),
            }
        }
        Err(HttpError::Redirects)
    }
}

/// Hashes a URL to store and compare it. The query is hashed too, because it can select the document, and
/// only the hash is stored, because the query can contain a secret. Signatures are left out, because object
/// stores sign every redirect anew.
pub fn hash_url(url: &Url) -> String {
    let mut lasting = url.clone();
    if url.query().is_some() {
        let named = url.query_pairs().filter(|(name, _)| !is_of_signature(name));
        lasting.query_pairs_mut().clear().extend_pairs(named);
    }
    sha256(lasting.as_str().as_bytes())
}

/// Whether a parameter belongs to a signed URL of AWS, Google, Azure or one of their CDNs.
fn is_of_signature(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("x-amz-") || name.starts_with("x-goog-") || SIGNATURE.contains(&name.as_str())
}

fn build(key: &ClientKey, secret: &str) -> Result<Client, HttpError> {
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(IDLE)
        .redirect(Policy::none())
        .gzip(key.gzip)
        .user_agent(concat!("kubectl-addons/", env!("CARGO_PKG_VERSION")));
    if key.addresses != Addresses::Any {
        builder = builder.dns_resolver(GuardedResolver(key.addresses));
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

    /// The user typed the first server, but not the targets of its redirects.
    #[test]
    fn redirects_of_a_typed_location_have_fewer_addresses() {
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
    fn signatures_do_not_change_the_hash_of_a_url() {
        let hash_url = |url: &str| hash_url(&Url::parse(url).unwrap());
        let first = hash_url("https://a.example/dl?file=1&X-Amz-Expires=300&X-Amz-Signature=a");
        let again = hash_url("https://a.example/dl?file=1&X-Amz-Expires=300&X-Amz-Signature=b");
        let other = hash_url("https://a.example/dl?file=2&X-Amz-Expires=300&X-Amz-Signature=a");
        assert_eq!(first, again);
        assert_ne!(first, other);
        assert_eq!(
            hash_url("https://a.example/x?sv=1&sr=b&sig=a&se=1"),
            hash_url("https://a.example/x?sv=1&sr=b&sig=b&se=2")
        );
        assert_ne!(
            hash_url("https://a.example/x"),
            hash_url("https://a.example/y")
        );
    }
}
