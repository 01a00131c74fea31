//! Registries: images for [`super::image`], charts for [`chart`].
//!
//! References and manifests are parsed by oci-client. It sends no requests, because it would ask `/v2/` first, send passwords to
//! any token server, read answers of any size and follow redirects to plain HTTP.
//!
//! Requests: one for a manifest by name. A registry that takes the Secret's password directly needs no other; one that wants a
//! token needs two more per run (its refusal, and the token: tokens are not kept on disk); one that wants the password of
//! `docker login` needs one more.

mod answers;
mod blob;
mod challenge;
pub mod chart;
pub mod docker_config;
mod error;
mod login;
pub mod manifest;
mod reference;
mod referrers;

use std::time::Duration;

use common::manifest::digest;
use oci_client::Reference;
use oci_client::manifest::{OciDescriptor, OciImageManifest};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Request, Response};
use serde::Deserialize;
use url::Url;

use crate::Access;
use crate::cache::Cache;
use crate::http::retry::Tries;
use crate::http::{Http, HttpError, Redirects, bound};

pub use blob::Blob;
use blob::{Remote, Rest};
use challenge::Challenge;
pub use error::RegistryError;
use login::Login;
use manifest::Manifest;
pub use reference::{reference, repository, seen_by, short};
use reference::{sha256, shown};

/// Bytes of a blob that is kept in the cache, so that a second folder of the same image is not fetched again.
const MAX_KEPT: u64 = 32 << 20;
/// Pages of tags, each of [`PAGE`] tags or of the registry's own limit.
const MAX_PAGES: usize = 50;
/// Tags asked for at once.
const PAGE: &str = "1000";
/// Refusals of one request that are answered: of a password that the registry did not ask for, then of no credentials.
const MAX_ANSWERS: usize = 2;

/// One repository of a registry.
pub struct Registry<'a> {
    reference: Reference,
    origin: String,
    offline: bool,
    cache: &'a Cache,
    http: Http,
    login: Login<'a>,
    authorization: Option<HeaderValue>,
    /// Whether the token server of the last run was looked up.
    recalled: bool,
}

/// An image that a name stands for.
#[derive(Debug)]
pub struct Found {
    /// `sha256:…` of the named manifest, which may be an index.
    pub named: String,
    /// `sha256:…` of the image's manifest.
    pub digest: String,
    /// The manifest.
    pub manifest: OciImageManifest,
}

#[derive(Deserialize)]
struct Tags {
    // Null if there are none.
    tags: Option<Vec<String>>,
}

impl<'a> Registry<'a> {
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// Credentials that may not be sent there, or cannot be read.
    pub fn open(
        reference: &Reference,
        plain_http: bool,
        access: &Access<'a>,
    ) -> Result<Self, RegistryError> {
        let login = Login::new(reference, plain_http, access)?;
        let scheme = if plain_http { "http" } else { "https" };
        // Digests stand for the bytes as they are stored, so nothing is unpacked on the way.
        let http = Http::new(access.credentials, access.reach, false);
        Ok(Self {
            origin: format!("{scheme}://{}", reference.resolve_registry()),
            reference: reference.clone(),
            offline: access.offline,
            cache: access.cache,
            http: http.map_err(|source| wrong(&repository(reference), source))?,
            authorization: login.first(),
            login,
            recalled: false,
        })
    }

    /// The digest that a tag stands for now: one request, or two if the registry sends no digest header.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn digest(&mut self, tag: &str) -> Result<String, RegistryError> {
        let location = self.location(tag);
        let path = format!("manifests/{tag}");
        let accept = manifest::MEDIA_TYPES.join(", ");
        let tries = &mut Tries::default();
        let response = self.send(tries, Method::HEAD, &path, &accept, &location);
        let response = response.await?;
        match answers::digest(response.headers()) {
            Some(digest) => Ok(digest),
            None => Ok(self.manifest(tag).await?.0),
        }
    }

    /// The image of a tag or digest; of an index the one that [`manifest::choose`] takes.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn image(&mut self, name: &str) -> Result<Found, RegistryError> {
        let (named, first) = self.manifest(name).await?;
        let location = self.location(name);
        let wrong = |source| RegistryError::Manifest { location, source };
        let index = match first {
            Manifest::Image(manifest) => {
                return Ok(Found {
                    digest: named.clone(),
                    named,
                    manifest: *manifest,
                });
            }
            Manifest::Index(index) => index,
        };
        let entry = match manifest::choose(&index, manifest::architecture()) {
            Ok(entry) => entry,
            Err(source) => return Err(wrong(source)),
        };
        match self.manifest(&entry.digest).await? {
            (digest, Manifest::Image(manifest)) => Ok(Found {
                named,
                digest,
                manifest: *manifest,
            }),
            (_, Manifest::Index(_)) => Err(wrong(manifest::ManifestError::Nested)),
        }
    }

    /// A blob: from the cache, or with one request.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn blob(&mut self, descriptor: &OciDescriptor) -> Result<Blob<'a>, RegistryError> {
        let location = self.location(&descriptor.digest);
        let wanted = sha256(&descriptor.digest, &location)?.to_owned();
        // A negative size counts as 0.
        let size = u64::try_from(descriptor.size).unwrap_or_default();
        let (rest, kept) = match self.cache.get(&wanted) {
            Some(bytes) => (Rest::Cached(bytes), None),
            None => {
                let path = format!("blobs/{}", descriptor.digest);
                let tries = &mut Tries::default();
                let response = self
                    .send(tries, Method::GET, &path, "*/*", &location)
                    .await?;
                let request = self.request(Method::GET, &path, "*/*");
                let request = request.map_err(|source| wrong(&location, source))?;
                let kept = (size <= MAX_KEPT).then(Vec::new);
                let remote = Remote::new(self.http.clone(), response, request);
                (Rest::Remote(Box::new(remote)), kept)
            }
        };
        Ok(Blob::new(location, wanted, size, rest, kept, self.cache))
    }

    /// All tags, in the registry's order, with one request for each page.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn tags(&mut self) -> Result<Vec<String>, RegistryError> {
        let location = repository(&self.reference);
        let wrong = |why| RegistryError::Tags {
            location: location.clone(),
            why,
        };
        let mut tags = Vec::new();
        let mut path = format!("tags/list?n={PAGE}");
        for _ in 0..MAX_PAGES {
            let read = self.read(&path, "application/json", &location);
            let (headers, bytes) = read.await?;
            let next = answers::next_page(&headers);
            let page: Tags =
                serde_json::from_slice(&bytes).map_err(|_| wrong("is not valid JSON"))?;
            tags.extend(page.tags.unwrap_or_default());
            match next {
                // Only the query is used, so that the link cannot lead to another host.
                Some(query) => path = format!("tags/list?{query}"),
                None => return Ok(tags),
            }
        }
        Err(wrong("has too many pages"))
    }

    /// A manifest and its digest: by digest from the cache, or with one request.
    async fn manifest(&mut self, name: &str) -> Result<(String, Manifest), RegistryError> {
        let location = self.location(name);
        let pinned = match name.contains(':') {
            true => Some(sha256(name, &location)?.to_owned()),
            false => None,
        };
        let bytes = match pinned.as_ref().and_then(|hex| self.cache.get(hex)) {
            Some(bytes) => bytes,
            None => {
                let path = format!("manifests/{name}");
                let accept = manifest::MEDIA_TYPES.join(", ");
                let (headers, bytes) = self.read(&path, &accept, &location).await?;
                let claimed = answers::digest(&headers);
                let found = digest::sha256(&bytes);
                let claimed = claimed
                    .as_deref()
                    .and_then(|text| text.strip_prefix("sha256:"));
                if [pinned.as_deref(), claimed]
                    .into_iter()
                    .flatten()
                    .any(|wanted| wanted != found)
                {
                    return Err(RegistryError::Digest { location, found });
                }
                self.cache.put(&bytes);
                bytes
            }
        };
        let digest = format!("sha256:{}", digest::sha256(&bytes));
        let read = manifest::read(&bytes);
        let read = read.map_err(|source| RegistryError::Manifest { location, source })?;
        Ok((digest, read))
    }

    /// Sends a request for this repository, and authenticates when the registry asks for it.
    async fn send(
        &mut self,
        tries: &mut Tries,
        method: Method,
        path: &str,
        accept: &str,
        location: &str,
    ) -> Result<Response, RegistryError> {
        if self.offline {
            let location = location.to_owned();
            return Err(RegistryError::Offline { location });
        }
        self.recall().await?;
        let mut answered = 0;
        loop {
            let failed = |source| wrong(location, source);
            let request = self.request(method.clone(), path, accept).map_err(failed)?;
            let sent = self
                .http
                .send(tries, &request, Redirects::Anywhere, None)
                .await;
            let response = sent.map_err(failed)?;
            let status = response.status();
            let is_refusal = matches!(status.as_u16(), 401 | 403) && self.is_ours(response.url());
            if is_refusal && answered < MAX_ANSWERS {
                answered += 1;
                let sent = self.authorization.take();
                let next = match Challenge::read(response.headers()) {
                    Some(challenge) => {
                        challenge.remember(self.cache, &self.origin);
                        let answer = self.login.answer(&self.http, &challenge, sent.as_ref());
                        answer.await?
                    }
                    None => None,
                };
                let has_new = next.is_some() && next != sent;
                // A registry that rejects an unexpected password says what it wants when it gets none.
                let unasked = status.as_u16() == 403 && sent.is_some();
                if has_new || unasked {
                    self.authorization = next;
                    continue;
                }
            }
            if status.is_success() {
                return Ok(response);
            }
            return Err(self.refusal(response, location.to_owned()).await);
        }
    }

    /// A request with the credentials so far.
    fn request(&self, method: Method, path: &str, accept: &str) -> Result<Request, HttpError> {
        let url = format!("{}/v2/{}/{path}", self.origin, self.reference.repository());
        let mut request = self.http.client.request(method, &url);
        request = request.header(ACCEPT, accept);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        Ok(request.build()?)
    }

    /// Gets the whole of a manifest or a page of tags; an answer that breaks off is asked for again.
    async fn read(
        &mut self,
        path: &str,
        accept: &str,
        location: &str,
    ) -> Result<(HeaderMap, Vec<u8>), RegistryError> {
        let mut tries = Tries::default();
        loop {
            let response = self
                .send(&mut tries, Method::GET, path, accept, location)
                .await?;
            let headers = response.headers().clone();
            match bound::body(response, bound::MANIFEST).await {
                Err(error) if error.is_passing() && tries.again(Duration::ZERO).await => {}
                read => return Ok((headers, read.map_err(|source| wrong(location, source))?)),
            }
        }
    }

    /// Gets a token before the registry asks for one, if it did so in the last run.
    async fn recall(&mut self) -> Result<(), RegistryError> {
        if std::mem::replace(&mut self.recalled, true) {
            return Ok(());
        }
        let Some(challenge) = Challenge::recall(self.cache, &self.origin) else {
            return Ok(());
        };
        match self.login.answer(&self.http, &challenge, None).await {
            Ok(token) => self.authorization = token,
            Err(error @ RegistryError::Unauthorized { .. }) => return Err(error),
            // The token server may have moved: the registry will name the new one.
            Err(_) => {}
        }
        Ok(())
    }

    async fn refusal(&self, response: Response, location: String) -> RegistryError {
        let status = response.status();
        let is_ours = self.is_ours(response.url());
        let bytes = bound::body(response, bound::SMALL).await;
        let detail = answers::detail(&bytes.unwrap_or_default());
        match status.as_u16() {
            401 | 403 if is_ours => {
                let (who, accept) = self.login.refused();
                RegistryError::Unauthorized {
                    location,
                    who,
                    detail,
                    accept,
                }
            }
            404 => RegistryError::NotFound {
                location,
                detail,
                repository: repository(&self.reference),
            },
            _ => RegistryError::Status {
                location,
                status: status.to_string(),
                detail,
            },
        }
    }

    /// Whether an answer comes from the registry itself, not from the target of a redirect.
    fn is_ours(&self, url: &Url) -> bool {
        Url::parse(&self.origin).is_ok_and(|origin| origin.origin() == url.origin())
    }

    fn location(&self, name: &str) -> String {
        let separator = if name.contains(':') { '@' } else { ':' };
        format!("{}{separator}{name}", repository(&self.reference))
    }
}

fn wrong(location: &str, source: HttpError) -> RegistryError {
    RegistryError::Http {
        location: location.to_owned(),
        source,
    }
}
