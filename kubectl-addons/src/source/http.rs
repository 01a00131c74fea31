//! http and https: bounded in size, time, redirects and tries.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response};

use super::{Document, MAX_BYTES, SourceError};

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(120);
const REDIRECTS: usize = 5;
pub(super) const TRIES: u32 = 4;
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Gets a URL. Connection errors, 429 and 5xx are tried again, four times in all; redirects lead to the same scheme or to https.
pub async fn get(url: &str) -> Result<Document, SourceError> {
    let location = without_credentials(url);
    let client = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .redirect(Policy::custom(redirect))
        .user_agent(concat!("kubectl-addons/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|source| http_error(&location, source))?;
    let mut pause = FIRST_PAUSE;
    for last in (0..TRIES).map(|attempt| attempt + 1 == TRIES) {
        match client.get(url).send().await {
            Ok(response) if response.status().is_success() => {
                return body(response, &location).await;
            }
            Ok(response) => {
                let status = response.status();
                let again = status.is_server_error() || status.as_u16() == 429;
                if last || !again {
                    return Err(SourceError::Status {
                        location,
                        status: status.to_string(),
                    });
                }
            }
            Err(error) if last || !(error.is_connect() || error.is_timeout()) => {
                return Err(http_error(&location, error));
            }
            Err(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    Err(SourceError::Status {
        location,
        status: "no answer".to_owned(),
    })
}

async fn body(response: Response, location: &str) -> Result<Document, SourceError> {
    let too_large = || SourceError::TooLarge {
        location: location.to_owned(),
    };
    if response
        .content_length()
        .is_some_and(|length| length > MAX_BYTES)
    {
        return Err(too_large());
    }
    let location_after = without_credentials(response.url().as_str());
    let mut bytes = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(&chunk.map_err(|source| http_error(location, source))?);
        if bytes.len() as u64 > MAX_BYTES {
            return Err(too_large());
        }
    }
    Ok(Document {
        bytes,
        location: location_after,
    })
}

/// To the same scheme, or to https; what it refuses is an error that says so.
pub(super) fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
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
        attempt.error("a redirect to another scheme")
    }
}

fn http_error(location: &str, source: reqwest::Error) -> SourceError {
    SourceError::Http {
        location: location.to_owned(),
        source: source.without_url(),
    }
}

/// The URL as it may be shown.
pub fn without_credentials(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(mut parsed) => {
            // Both fail only where there can be none.
            let _ = parsed.set_username("");
            let _ = parsed.set_password(None);
            parsed.into()
        }
        Err(_) => url.to_owned(),
    }
}
