//! Fetches http and https URLs. Unchanged content is not sent again.

use reqwest::StatusCode;
use reqwest::header::{ETAG, HeaderName, LAST_MODIFIED};
use url::Url;

use super::last_answer::LastAnswer;
use super::{FetchedDocument, UrlError, is_archive, redact_url};
use crate::credentials::{Credentials, CredentialsError, Proof};
use crate::http::{Http, HttpError, ReceivedResponse, Redirects, bound};
use crate::{SourceAccess, host};

/// The type of Secret that can be used for a URL.
const WANTED: &str = "kubernetes.io/basic-auth";

/// Fetches a URL with at most `limit` bytes.
pub async fn get(
    url: Url,
    limit: u64,
    access: &SourceAccess<'_>,
) -> Result<FetchedDocument, UrlError> {
    let location = redact_url(&url);
    let secret = access.credentials.map(|credentials| &*credentials.secret);
    let known = LastAnswer::load(url.as_str(), &access.reader(None), access);
    if access.offline {
        return known.offline(&location);
    }
    let basic = access
        .credentials
        .map(|credentials| basic(&url, credentials));
    let basic = basic.transpose().map_err(|source| UrlError::Secret {
        location: location.clone(),
        source: Box::new(source),
    })?;
    let basic = basic.flatten();
    let received = receive(url, basic, limit, &known, access).await;
    let received = received.map_err(|source| UrlError::Http {
        location: location.clone(),
        source,
    })?;
    let status = received.status.to_string();
    match received.status {
        // Servers only send this in response to conditional headers.
        StatusCode::NOT_MODIFIED => known
            .document(&location)
            .ok_or(UrlError::Status { location, status }),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(UrlError::Denied {
            location,
            status,
            identity: basic.and(secret).map(|secret| format!("Secret {secret}")),
            wanted: WANTED,
        }),
        other if !other.is_success() => Err(UrlError::Status { location, status }),
        _ => {
            let header = |name: HeaderName| {
                let value = received.headers.get(name)?.to_str().ok()?;
                Some(value.to_owned())
            };
            let (etag, date) = (header(ETAG), header(LAST_MODIFIED));
            let document = FetchedDocument {
                bytes: received.bytes,
                location: redact_url(&received.url),
            };
            known.store(&document, Some(&received.url), etag, date);
            Ok(document)
        }
    }
}

async fn receive(
    url: Url,
    basic: Option<(&str, &str)>,
    limit: u64,
    known: &LastAnswer<'_>,
    access: &SourceAccess<'_>,
) -> Result<ReceivedResponse, HttpError> {
    // An archive is compressed already, and some servers would declare that as the encoding of the response.
    let http = Http::new(
        access.credentials,
        access.reach.addresses(),
        !is_archive(url.path()),
    )?;
    let mut request = http.client.get(url);
    if let Some((user, password)) = basic {
        request = request.basic_auth(user, Some(password));
    }
    let (request, condition) = (request.build()?, known.condition());
    let received = http.receive(&request, Redirects::Anywhere, condition.as_ref(), limit);
    let received = tokio::time::timeout(bound::TIME, received).await;
    received.unwrap_or(Err(HttpError::Timeout))
}

/// Returns the user name and password for a URL; `None` if the Secret only has a certificate authority.
fn basic<'a>(
    url: &Url,
    credentials: &'a Credentials,
) -> Result<Option<(&'a str, &'a str)>, CredentialsError> {
    let Proof::Basic { .. } = credentials.proof else {
        return Err(credentials.mismatch("an http(s) URL", WANTED));
    };
    credentials.check(&host::of(url), url.scheme() == "https")?;
    Ok(credentials.account())
}
