//! Pushes missing blobs and unchanged manifests to a registry.
//!
//! After the request that starts the upload, a small blob takes one request. A large blob is sent in pieces,
//! so that only one piece is in memory and only a lost piece is sent again.

use std::fs::File;
use std::io::{Read as _, Take};

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION,
};
use reqwest::{Method, Request, Response};
use url::Url;

use super::{RegistryAccessError, RegistryClient, http_error, if_found};
use crate::http::retry::RequestTries;
use crate::http::{HttpError, Redirects};

/// The size of a piece in bytes.
const PIECE: u64 = 16 << 20;
const BYTES: &str = "application/octet-stream";

/// Why a push failed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The registry refuses the push or cannot be reached.
    #[error(transparent)]
    Registry(#[from] RegistryAccessError),
    /// The registry does not return a location for the upload.
    #[error("{location}: the registry does not say where to upload to")]
    NoLocation {
        /// What should be pushed.
        location: String,
    },
    /// The archive cannot be read, because it was changed.
    #[error("{location}: the archive was changed while it was read")]
    Changed {
        /// What should be pushed.
        location: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// The result of pushing a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// The repository already had the blob.
    WasThere,
    /// The registry copied the blob from another of its repositories.
    Mounted,
    /// The blob was sent.
    Sent,
}

impl RegistryClient<'_> {
    /// Makes all further tokens allow pushing.
    pub fn request_push(&mut self) {
        self.login.request_push();
    }

    /// Whether the repository has a blob.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn has_blob(&mut self, digest: &str) -> Result<bool, RegistryAccessError> {
        let location = self.location(digest);
        let path = format!("blobs/{digest}");
        let tries = &mut RequestTries::default();
        let asked = self
            .send(tries, Method::HEAD, &path, "*/*", &location)
            .await;
        Ok(if_found(asked)?.is_some())
    }

    /// Requests the digest of a tag. Returns `None` if the tag does not exist.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn find_digest(&mut self, name: &str) -> Result<Option<String>, RegistryAccessError> {
        if_found(self.digest(name).await)
    }

    /// Pushes a blob of `size` bytes unless the repository has it. `beside` is another repository of the
    /// registry that has the blob. `on` is called with the number of bytes sent so far.
    ///
    /// # Errors
    /// [`PushError`].
    pub async fn push_blob(
        &mut self,
        digest: &str,
        size: u64,
        beside: Option<&str>,
        mut bytes: Take<File>,
        mut on: impl FnMut(u64),
    ) -> Result<PushOutcome, PushError> {
        if self.has_blob(digest).await? {
            return Ok(PushOutcome::WasThere);
        }
        let location = self.location(digest);
        let url = self.url("blobs/uploads/", &location)?;
        let begun = match beside {
            Some(beside) => self.mount(&url, digest, beside, &location).await?,
            None => {
                self.send_body(Method::POST, &url, &[], &[], &location)
                    .await?
            }
        };
        if beside.is_some() && begun.status().as_u16() == 201 {
            return Ok(PushOutcome::Mounted);
        }
        let mut at = next_upload_url(&url, &begun, &location)?;
        let mut sent = 0;
        while size - sent > PIECE {
            let piece = read_piece(&mut bytes, PIECE, &location)?;
            let range = format!("{sent}-{}", sent + PIECE - 1);
            let headers = [(CONTENT_TYPE, BYTES), (CONTENT_RANGE, range.as_str())];
            let answer = self.send_body(Method::PATCH, &at, &headers, &piece, &location);
            at = next_upload_url(&at, &answer.await?, &location)?;
            sent += PIECE;
            on(sent);
        }
        let rest = read_piece(&mut bytes, size - sent, &location)?;
        at.query_pairs_mut().append_pair("digest", digest);
        let range = format!("{sent}-{}", size.max(1) - 1);
        let mut headers = vec![(CONTENT_TYPE, BYTES)];
        if sent > 0 {
            headers.push((CONTENT_RANGE, range.as_str()));
        }
        self.send_body(Method::PUT, &at, &headers, &rest, &location)
            .await?;
        Ok(PushOutcome::Sent)
    }

    /// Starts an upload that lets the registry copy the blob from another of its repositories. This needs a
    /// token that allows reading there; without one, a normal upload is started.
    async fn mount(
        &mut self,
        url: &Url,
        digest: &str,
        beside: &str,
        location: &str,
    ) -> Result<Response, RegistryAccessError> {
        let mut mounting = url.clone();
        mounting
            .query_pairs_mut()
            .append_pair("mount", digest)
            .append_pair("from", beside);
        self.login.allow_reading(Some(beside));
        let begun = self
            .send_body(Method::POST, &mounting, &[], &[], location)
            .await;
        // Only for this request; further requests only access this repository.
        self.login.allow_reading(None);
        match begun {
            Err(RegistryAccessError::Unauthorized { .. }) => {
                self.send_body(Method::POST, url, &[], &[], location).await
            }
            begun => begun,
        }
    }

    /// Pushes a manifest under a tag or its digest.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn push_manifest(
        &mut self,
        name: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<(), RegistryAccessError> {
        let location = self.location(name);
        let url = self.url(&format!("manifests/{name}"), &location)?;
        let headers = [(CONTENT_TYPE, media_type)];
        let answer = self.send_body(Method::PUT, &url, &headers, bytes, &location);
        answer.await.map(drop)
    }

    /// Sends a request with a body. Redirects are not followed, because they would drop the body or send it
    /// to another host.
    async fn send_body(
        &mut self,
        method: Method,
        url: &Url,
        headers: &[(reqwest::header::HeaderName, &str)],
        body: &[u8],
        location: &str,
    ) -> Result<Response, RegistryAccessError> {
        let make = |registry: &Self| -> Result<Request, HttpError> {
            let mut request = registry.http.client.request(method.clone(), url.clone());
            request = request
                .header(ACCEPT, "*/*")
                .header(CONTENT_LENGTH, body.len());
            for (name, value) in headers {
                request = request.header(name, *value);
            }
            // Some registries upload to other hosts, to which the credentials must not be sent.
            if let Some(authorization) = &registry.authorization
                && registry.is_ours(url)
            {
                request = request.header(AUTHORIZATION, authorization.clone());
            }
            Ok(request.body(body.to_vec()).build()?)
        };
        let tries = &mut RequestTries::default();
        self.exchange(tries, Redirects::None, location, make).await
    }

    fn url(&self, path: &str, location: &str) -> Result<Url, RegistryAccessError> {
        let request = self.request(Method::GET, path, "*/*");
        let request = request.map_err(|source| http_error(location, source))?;
        Ok(request.url().clone())
    }
}

/// Returns the location of the next request of an upload.
fn next_upload_url(at: &Url, answer: &Response, location: &str) -> Result<Url, PushError> {
    let header = answer.headers().get(LOCATION);
    let header = header.and_then(|value| value.to_str().ok());
    let next = header.and_then(|value| at.join(value).ok());
    // As for redirects, an upload with TLS must continue with TLS.
    let next = next.filter(|next| next.scheme() == at.scheme() || next.scheme() == "https");
    next.ok_or_else(|| PushError::NoLocation {
        location: location.to_owned(),
    })
}

fn read_piece(bytes: &mut Take<File>, size: u64, location: &str) -> Result<Vec<u8>, PushError> {
    let changed = |source| PushError::Changed {
        location: location.to_owned(),
        source,
    };
    let mut piece = vec![0; usize::try_from(size).unwrap_or_default()];
    bytes.read_exact(&mut piece).map_err(changed)?;
    Ok(piece)
}
