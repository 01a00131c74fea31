//! http and https: what the server says is unchanged is not sent again.

use reqwest::StatusCode;
use reqwest::header::{ETAG, HeaderName, LAST_MODIFIED};
use url::Url;

use super::known::Known;
use super::{Document, UrlError, is_archive, shown};
use crate::credentials::{Credentials, CredentialsError, Proof};
use crate::http::{Http, HttpError, Received, Redirects, bound};
use crate::{Access, host};

/// The type of Secret that goes with a URL.
const WANTED: &str = "kubernetes.io/basic-auth";

/// Gets a URL, `limit` bytes at most.
pub async fn get(url: Url, limit: u64, access: &Access<'_>) -> Result<Document, UrlError> {
    let location = shown(&url);
    let secret = access.credentials.map(|credentials| &*credentials.secret);
    let known = Known::of(url.as_str(), &access.reader(None), access);
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
        // An answer only to requests with a condition.
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
            let document = Document {
                bytes: received.bytes,
                location: shown(&received.url),
            };
            known.keep(&document, Some(&received.url), etag, date);
            Ok(document)
        }
    }
}

async fn receive(
    url: Url,
    basic: Option<(&str, &str)>,
    limit: u64,
    known: &Known<'_>,
    access: &Access<'_>,
) -> Result<Received, HttpError> {
    // An archive is compressed already, and some servers take that for the encoding of the answer.
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

/// User name and password for that URL; `None` for a Secret that holds only a certificate authority.
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
