//! Pushing to a registry: blobs that it lacks, and manifests as they are.
//!
//! A small blob is one request after that which begins the upload, a large one is sent in pieces, so that no more than a piece is
//! in memory and a piece that is lost is sent again.

use std::fs::File;
use std::io::{Read as _, Take};

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION,
};
use reqwest::{Method, Request, Response};
use url::Url;

use super::{Registry, RegistryError, wrong};
use crate::http::retry::Tries;
use crate::http::{HttpError, Redirects};

/// Bytes of a piece.
const PIECE: u64 = 16 << 20;
const BYTES: &str = "application/octet-stream";

/// Why something could not be pushed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The registry refuses it, or cannot be reached.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The registry does not say where to upload to.
    #[error("{location}: the registry does not say where to upload to")]
    NoLocation {
        /// What was to be pushed.
        location: String,
    },
    /// The archive cannot be read any more.
    #[error("{location}: the archive was changed while it was read")]
    Changed {
        /// What was to be pushed.
        location: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// What became of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The repository had it.
    WasThere,
    /// The registry took it from another of its repositories.
    Mounted,
    /// It was sent.
    Sent,
}

impl Registry<'_> {
    /// Asks for the right to push, from now on.
    pub fn pushing(&mut self) {
        self.login.pushes();
    }

    /// Whether the repository has a blob.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn has_blob(&mut self, digest: &str) -> Result<bool, RegistryError> {
        let location = self.location(digest);
        let path = format!("blobs/{digest}");
        let tries = &mut Tries::default();
        let asked = self
            .send(tries, Method::HEAD, &path, "*/*", &location)
            .await;
        there(asked.map(drop))
    }

    /// The digest that a name stands for; `None` where there is none of that name.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn digest_of(&mut self, name: &str) -> Result<Option<String>, RegistryError> {
        match self.digest(name).await {
            Ok(digest) => Ok(Some(digest)),
            Err(RegistryError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Pushes a blob of this size, unless the repository has it; `beside` is another repository of the registry that has it. `on` hears how many bytes
    /// were sent.
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
    ) -> Result<Pushed, PushError> {
        if self.has_blob(digest).await? {
            return Ok(Pushed::WasThere);
        }
        let location = self.location(digest);
        let url = self.url("blobs/uploads/", &location)?;
        let begun = match beside {
            Some(beside) => self.mount(&url, digest, beside, &location).await?,
            None => self.write(Method::POST, &url, &[], &[], &location).await?,
        };
        if beside.is_some() && begun.status().as_u16() == 201 {
            return Ok(Pushed::Mounted);
        }
        let mut at = next(&url, &begun, &location)?;
        let mut sent = 0;
        while size - sent > PIECE {
            let piece = piece(&mut bytes, PIECE, &location)?;
            let range = format!("{sent}-{}", sent + PIECE - 1);
            let headers = [(CONTENT_TYPE, BYTES), (CONTENT_RANGE, range.as_str())];
            let answer = self.write(Method::PATCH, &at, &headers, &piece, &location);
            at = next(&at, &answer.await?, &location)?;
            sent += PIECE;
            on(sent);
        }
        let rest = piece(&mut bytes, size - sent, &location)?;
        at.query_pairs_mut().append_pair("digest", digest);
        let range = format!("{sent}-{}", size.max(1) - 1);
        let mut headers = vec![(CONTENT_TYPE, BYTES)];
        if sent > 0 {
            headers.push((CONTENT_RANGE, range.as_str()));
        }
        self.write(Method::PUT, &at, &headers, &rest, &location)
            .await?;
        Ok(Pushed::Sent)
    }

    /// Begins an upload of a blob that the registry may take from another of its repositories. The token has to allow reading there;
    /// whoever gets no such token uploads the blob.
    async fn mount(
        &mut self,
        url: &Url,
        digest: &str,
        beside: &str,
        location: &str,
    ) -> Result<Response, RegistryError> {
        let mut mounting = url.clone();
        mounting
            .query_pairs_mut()
            .append_pair("mount", digest)
            .append_pair("from", beside);
        self.login.reads_beside(Some(beside));
        let begun = self
            .write(Method::POST, &mounting, &[], &[], location)
            .await;
        // For this request alone: what is sent afterwards needs no more than its own repository.
        self.login.reads_beside(None);
        match begun {
            Err(RegistryError::Unauthorized { .. }) => {
                self.write(Method::POST, url, &[], &[], location).await
            }
            begun => begun,
        }
    }

    /// Pushes a manifest under a tag or its digest.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn push_manifest(
        &mut self,
        name: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<(), RegistryError> {
        let location = self.location(name);
        let url = self.url(&format!("manifests/{name}"), &location)?;
        let headers = [(CONTENT_TYPE, media_type)];
        let answer = self.write(Method::PUT, &url, &headers, bytes, &location);
        answer.await.map(drop)
    }

    /// Sends something; a redirect is not followed, because it would lose the body or lead it elsewhere.
    async fn write(
        &mut self,
        method: Method,
        url: &Url,
        headers: &[(reqwest::header::HeaderName, &str)],
        body: &[u8],
        location: &str,
    ) -> Result<Response, RegistryError> {
        let make = |registry: &Self| -> Result<Request, HttpError> {
            let mut request = registry.http.client.request(method.clone(), url.clone());
            request = request
                .header(ACCEPT, "*/*")
                .header(CONTENT_LENGTH, body.len());
            for (name, value) in headers {
                request = request.header(name, *value);
            }
            // Some registries have uploads on other hosts, which the credentials are not for.
            if let Some(authorization) = &registry.authorization
                && registry.is_ours(url)
            {
                request = request.header(AUTHORIZATION, authorization.clone());
            }
            Ok(request.body(body.to_vec()).build()?)
        };
        let tries = &mut Tries::default();
        self.exchange(tries, Redirects::None, location, make).await
    }

    fn url(&self, path: &str, location: &str) -> Result<Url, RegistryError> {
        let request = self.request(Method::GET, path, "*/*");
        let request = request.map_err(|source| wrong(location, source))?;
        Ok(request.url().clone())
    }
}

fn there(asked: Result<(), RegistryError>) -> Result<bool, RegistryError> {
    match asked {
        Ok(()) => Ok(true),
        Err(RegistryError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Where the upload goes on.
fn next(at: &Url, answer: &Response, location: &str) -> Result<Url, PushError> {
    let header = answer.headers().get(LOCATION);
    let header = header.and_then(|value| value.to_str().ok());
    let next = header.and_then(|value| at.join(value).ok());
    // As for redirects: what was asked for with TLS goes on with TLS.
    let next = next.filter(|next| next.scheme() == at.scheme() || next.scheme() == "https");
    next.ok_or_else(|| PushError::NoLocation {
        location: location.to_owned(),
    })
}

fn piece(bytes: &mut Take<File>, size: u64, location: &str) -> Result<Vec<u8>, PushError> {
    let changed = |source| PushError::Changed {
        location: location.to_owned(),
        source,
    };
    let mut piece = vec![0; usize::try_from(size).unwrap_or_default()];
    bytes.read_exact(&mut piece).map_err(changed)?;
    Ok(piece)
}
