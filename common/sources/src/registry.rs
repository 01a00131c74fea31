//! Registries: images for [`super::image`], charts for [`chart`].
//!
//! The requests are our own: clients of registries ask `/v2/` first, send passwords to any token server, read answers of any size
//! and follow redirects to plain HTTP.
//!
//! Requests: one for a manifest by name. A registry that takes the Secret's password directly needs no other; one that wants a
//! token needs two more per run (its refusal, and the token: tokens are not kept on disk); one that wants the password of
//! `docker login` needs one more.

mod answers;
mod blob;
mod challenge;
pub mod chart;
mod contents;
pub mod docker_config;
mod error;
mod exchange;
mod login;
pub mod manifest;
pub mod push;
mod reference;
mod referrers;

use common::entrance;
use common::image::Image;
use common::manifest::digest;
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde::Deserialize;

use crate::Access;
use crate::cache::Cache;
use crate::http::retry::Tries;
use crate::http::{Http, HttpError};

pub use blob::Blob;
use blob::{Remote, Rest};
use contents::Contents;
pub use error::RegistryError;
use login::Login;
use manifest::{Descriptor, ImageManifest, Manifest};
use reference::{asked, sha256};
pub use reference::{reference, repository, seen_by, short, tag};

/// Bytes of a blob that is kept in the cache, so that a second folder of the same image is not fetched again.
const MAX_KEPT: u64 = 32 << 20;
/// Pages of referrers, and of tags, each of [`PAGE`] tags or of the registry's own limit.
const MAX_PAGES: usize = 50;
const TOO_MANY_PAGES: &str = "has too many pages";
/// Tags asked for at once.
const PAGE: &str = "1000";
/// Refusals of one request that are answered: of a password that the registry did not ask for, then of no credentials.
const MAX_ANSWERS: usize = 2;

/// One repository of a registry.
pub struct Registry<'a> {
    reference: Image,
    origin: String,
    offline: bool,
    cache: &'a Cache,
    contents: Contents<'a>,
    http: Http,
    login: Login<'a>,
    authorization: Option<HeaderValue>,
    /// Whether the token server of the last run was looked up.
    recalled: bool,
    /// Whether it may have the referrers API: until it says that it has not.
    has_referrers: bool,
}

/// An image that a name stands for.
#[derive(Debug)]
pub struct Found {
    /// `sha256:…` of the named manifest, which may be an index.
    pub named: String,
    /// `sha256:…` of the image's manifest.
    pub digest: String,
    /// The manifest.
    pub manifest: ImageManifest,
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
        reference: &Image,
        plain_http: bool,
        access: &Access<'a>,
    ) -> Result<Self, RegistryError> {
        let login = Login::new(reference, plain_http, access)?;
        let scheme = if plain_http { "http" } else { "https" };
        // Digests stand for the bytes as they are stored, so nothing is unpacked on the way.
        let http = Http::new(access.credentials, access.reach.addresses(), false);
        Ok(Self {
            origin: format!("{scheme}://{}", asked(reference)),
            reference: reference.clone(),
            offline: access.offline,
            cache: access.cache,
            contents: Contents::new(reference, plain_http, access),
            http: http.map_err(|source| wrong(&repository(reference), source))?,
            authorization: login.first(),
            login,
            recalled: false,
            has_referrers: true,
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

    /// A blob: from the cache if the same reader got it from this repository before, otherwise with one request.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn blob(&mut self, descriptor: &Descriptor) -> Result<Blob<'_, 'a>, RegistryError> {
        // A negative size counts as 0.
        let size = u64::try_from(descriptor.size).unwrap_or_default();
        self.content(&descriptor.digest, size, size <= MAX_KEPT)
            .await
    }

    /// A blob by its digest; with `keeps` it goes to the cache.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn content(
        &mut self,
        digest: &str,
        size: u64,
        keeps: bool,
    ) -> Result<Blob<'_, 'a>, RegistryError> {
        let location = self.location(digest);
        let wanted = sha256(digest, &location)?.to_owned();
        let (rest, kept) = match self.contents.get(&wanted) {
            Some(bytes) => (Rest::Cached(bytes), None),
            None => {
                let path = format!("blobs/{digest}");
                let tries = &mut Tries::default();
                let response = self.send(tries, Method::GET, &path, "*/*", &location);
                let response = response.await.map_err(of_blob)?;
                let remote = Remote::new(response, path);
                (Rest::Remote(Box::new(remote)), keeps.then(Vec::new))
            }
        };
        Ok(Blob::new(self, location, wanted, size, rest, kept))
    }

    /// All tags, in the registry's order, with one request for each page.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn tags(&mut self) -> Result<Vec<String>, RegistryError> {
        let location = repository(&self.reference);
        let wrong = |why| RegistryError::List {
            location: location.clone(),
            entries: "tags",
            why,
        };
        let mut tags = Vec::new();
        let mut path = format!("tags/list?n={PAGE}");
        for _ in 0..MAX_PAGES {
            let read = self.read(&path, "application/json", &location);
            let (headers, bytes) = read.await?;
            let next = answers::next_page(&headers);
            let page: Tags =
                entrance::from_slice(&bytes).map_err(|_| wrong("is not valid JSON"))?;
            tags.extend(page.tags.unwrap_or_default());
            match next {
                // Only the query is used, so that the link cannot lead to another host.
                Some(query) => path = format!("tags/list?{query}"),
                None => return Ok(tags),
            }
        }
        Err(wrong(TOO_MANY_PAGES))
    }

    /// A manifest and its digest.
    async fn manifest(&mut self, name: &str) -> Result<(String, Manifest), RegistryError> {
        let (digest, bytes) = self.original(name).await?;
        let location = self.location(name);
        let read = manifest::read(&bytes);
        let read = read.map_err(|source| RegistryError::Manifest { location, source })?;
        Ok((digest, read))
    }

    /// The bytes of a manifest, and their digest. One that is named by digest comes from the cache under the same condition as a blob.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn original(&mut self, name: &str) -> Result<(String, Vec<u8>), RegistryError> {
        let location = self.location(name);
        let pinned = match name.contains(':') {
            true => Some(sha256(name, &location)?.to_owned()),
            false => None,
        };
        let bytes = match pinned.as_ref().and_then(|hex| self.contents.get(hex)) {
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
                self.contents.put(&bytes);
                bytes
            }
        };
        Ok((format!("sha256:{}", digest::sha256(&bytes)), bytes))
    }

    fn location(&self, name: &str) -> String {
        let separator = if name.contains(':') { '@' } else { ':' };
        format!("{}{separator}{name}", repository(&self.reference))
    }
}

/// No tag leads to a blob that a manifest names and the registry has lost.
fn of_blob(error: RegistryError) -> RegistryError {
    match error {
        RegistryError::NotFound {
            location, detail, ..
        } => RegistryError::NotFound {
            location,
            detail,
            repository: None,
        },
        error => error,
    }
}

fn wrong(location: &str, source: HttpError) -> RegistryError {
    RegistryError::Http {
        location: location.to_owned(),
        source,
    }
}
