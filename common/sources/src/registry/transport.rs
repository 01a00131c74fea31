//! Requests to registries: bounded in size, time, redirects and tries.

use std::time::Duration;

use ::url::Url;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, RequestBuilder, Response};
use serde_json::Value;

use crate::retry::{LONGEST_PAUSE, Tries, is_passing, wanted_pause};
use crate::url::{self, client::Guarded};

use super::RegistryError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REDIRECTS: usize = 5;
/// How long nothing may come. The whole fetch has a limit of its own.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of an error that are read, and characters of it that are shown.
const MAX_ERROR: u64 = 64 << 10;
const MAX_DETAIL: usize = 200;

/// A client that trusts `ca` (PEM, of a Secret) and nothing else, or without one what the machine trusts. With `guarded` no
/// name leads to the machine's own services.
///
/// # Errors
/// Certificates that cannot be read.
pub fn client(
    ca: Option<(&[u8], &String)>,
    redirects: Policy,
    guarded: bool,
) -> Result<Client, RegistryError> {
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .redirect(redirects)
        // What a digest stands for is the bytes as they are stored.
        .no_gzip()
        .user_agent(concat!("kubectl-addons/", env!("CARGO_PKG_VERSION")));
    if guarded {
        builder = builder.dns_resolver(Guarded);
    }
    if let Some((pem, secret)) = ca {
        let certificates = Certificate::from_pem_bundle(pem).unwrap_or_default();
        if certificates.is_empty() {
            let secret = secret.clone();
            return Err(RegistryError::Certificate { secret });
        }
        builder = builder.tls_certs_only(certificates);
    }
    builder
        .build()
        .map_err(|error| wrong("the HTTP client", error))
}

/// Redirects lead to the same scheme or to https, and with `guarded` to no address of the machine's own services; reqwest
/// leaves the credentials behind where they lead to another host.
pub fn redirects(guarded: bool) -> Policy {
    Policy::custom(move |attempt| {
        let scheme = attempt.url().scheme();
        let same = attempt
            .previous()
            .last()
            .is_some_and(|previous| previous.scheme() == scheme);
        let refused = url::client::check_address(attempt.url()).err();
        match refused.filter(|_| guarded) {
            Some(refused) => attempt.error(refused),
            None if attempt.previous().len() > REDIRECTS => attempt.error("too many redirects"),
            None if same || scheme == "https" => attempt.follow(),
            None => attempt.error("a redirect to another scheme"),
        }
    })
}

/// With `guarded` refuses a URL whose host is an address of the machine's own services.
///
/// # Errors
/// [`RegistryError::Address`].
pub fn check_address(location: &str, guarded: bool) -> Result<(), RegistryError> {
    let Ok(parsed) = Url::parse(location) else {
        return Ok(());
    };
    match url::client::check_address(&parsed) {
        Err(source) if guarded => Err(RegistryError::Address {
            host: parsed.host_str().unwrap_or_default().to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

/// Sends a request; connection errors, 429 and 5xx are tried again, when the registry wants it so.
///
/// # Errors
/// No answer. Every status is an answer, also one that asks us to come back much later.
pub async fn send(request: RequestBuilder, location: &str) -> Result<Response, RegistryError> {
    let mut tries = Tries::default();
    while let Some(attempt) = request.try_clone() {
        let answer = attempt.send().await;
        let wanted = match &answer {
            Ok(response) if is_passing(response.status()) => {
                wanted_pause(response.headers()).unwrap_or_default()
            }
            // A connection that was kept open may be gone by now.
            Err(error) if !(error.is_redirect() || error.is_builder()) => Duration::ZERO,
            Ok(_) | Err(_) => return answer.map_err(|error| wrong(location, error)),
        };
        if wanted > LONGEST_PAUSE || !tries.again(wanted).await {
            return answer.map_err(|error| wrong(location, error));
        }
    }
    request.send().await.map_err(|error| wrong(location, error))
}

/// The whole of a small answer.
///
/// # Errors
/// [`RegistryError::TooLarge`], or what goes wrong on the way.
pub async fn body(
    mut response: Response,
    location: &str,
    what: &'static str,
    limit: u64,
) -> Result<Vec<u8>, RegistryError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| wrong(location, error))?
    {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > limit {
            return Err(RegistryError::TooLarge {
                location: location.to_owned(),
                what,
                limit,
            });
        }
    }
    Ok(bytes)
}

/// What the registry says about an error, as `: TEXT`, in one line; nothing where it says nothing.
pub async fn detail(response: Response) -> String {
    let Ok(bytes) = body(response, "", "the error", MAX_ERROR).await else {
        return String::new();
    };
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let of = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let text = [
        "/errors/0/message",
        "/errors/0/code",
        "/details",
        "/message",
    ];
    let Some(text) = text
        .into_iter()
        .find_map(of)
        .filter(|text| !text.is_empty())
    else {
        return String::new();
    };
    let shown = text.chars().take(MAX_DETAIL);
    let shown: String = shown
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect();
    format!(": {shown}")
}

/// An error of the client without its URL.
pub fn wrong(location: &str, source: reqwest::Error) -> RegistryError {
    RegistryError::Http {
        location: location.to_owned(),
        source: source.without_url(),
    }
}
