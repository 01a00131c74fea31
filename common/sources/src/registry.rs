//! A client for registries: images for [`super::image`], charts for [`chart`].
//!
//! This is not an existing client library, because those request `/v2/` first, send passwords to any token
//! server, read responses of any size and follow redirects to plain HTTP.
//!
//! A manifest by name needs one request if the registry accepts the password of the Secret directly. A
//! registry that requires a token needs two more per run, its refusal and the token, because tokens are not
//! stored on disk. One that requires the password of `docker login` needs one more.

mod answers;
mod blob;
mod challenge;
pub mod chart;
pub mod docker_config;
mod error;
mod exchange;
mod login;
pub mod manifest;
pub mod push;
mod reader_cache;
mod reference;
mod referrers;

use common::entrance;
use common::image::Image;
use common::manifest::digest;
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde::Deserialize;

use crate::SourceAccess;
use crate::cache::SourceCache;
use crate::http::retry::RequestTries;
use crate::http::{Http, HttpError};

pub use blob::Blob;
use blob::{BlobSource, RemoteBlob};
pub use error::RegistryAccessError;
use login::Login;
use manifest::{BlobDescriptor, ImageManifest, RegistryManifest};
use reader_cache::ReaderCache;
use reference::{api_host, sha256};
pub use reference::{reader_key, reference, repository, short, tag};

/// The maximum size in bytes of a blob to cache, so that another folder of the same image is not fetched
/// again.
const MAX_KEPT: u64 = 32 << 20;
/// The maximum number of pages of referrers or of tags. A page of tags has [`PAGE`] tags or the limit of the
/// registry.
const MAX_PAGES: usize = 50;
const TOO_MANY_PAGES: &str = "has too many pages";
/// The number of tags to request per page.
const PAGE: &str = "1000";
/// How often one request is sent again with other credentials: after a refusal of a password that the
/// registry did not ask for, and after a refusal without credentials.
const MAX_ANSWERS: usize = 2;

/// A client for one repository of a registry.
pub struct RegistryClient<'a> {
    reference: Image,
    origin: String,
    offline: bool,
    cache: &'a SourceCache,
    contents: ReaderCache<'a>,
    http: Http,
    login: Login<'a>,
    authorization: Option<HeaderValue>,
    /// Whether the token server of the last run was already looked up in the cache.
    recalled: bool,
    /// Whether the registry may have the referrers API; false after it responded that it has not.
    has_referrers: bool,
}

/// The image that a tag or digest resolves to.
#[derive(Debug)]
pub struct ResolvedImage {
    /// `sha256:…` of the named manifest, which can be an index.
    pub named: String,
    /// `sha256:…` of the manifest of the image.
    pub digest: String,
    /// The manifest.
    pub manifest: ImageManifest,
}

#[derive(Deserialize)]
struct TagsPage {
    // Null if there are no tags.
    tags: Option<Vec<String>>,
}

impl<'a> RegistryClient<'a> {
    /// Creates a client. Sends no request.
    ///
    /// # Errors
    /// The credentials may not be sent to this registry or cannot be read.
    pub fn open(
        reference: &Image,
        plain_http: bool,
        access: &SourceAccess<'a>,
    ) -> Result<Self, RegistryAccessError> {
        let login = Login::new(reference, plain_http, access)?;
        let scheme = if plain_http { "http" } else { "https" };
        // Digests are those of the stored bytes, so responses must not be decompressed.
        let http = Http::new(access.credentials, access.reach.addresses(), false);
        Ok(Self {
            origin: format!("{scheme}://{}", api_host(reference)),
            reference: reference.clone(),
            offline: access.offline,
            cache: access.cache,
            contents: ReaderCache::new(reference, plain_http, access),
            http: http.map_err(|source| http_error(&repository(reference), source))?,
            authorization: login.initial_header(),
            login,
            recalled: false,
            has_referrers: true,
        })
    }

    /// Requests the current digest of a tag. Takes one request, or two if the registry sends no digest
    /// header.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn digest(&mut self, tag: &str) -> Result<String, RegistryAccessError> {
        let location = self.location(tag);
        let path = format!("manifests/{tag}");
        let accept = manifest::MEDIA_TYPES.join(", ");
        let tries = &mut RequestTries::default();
        let response = self.send(tries, Method::HEAD, &path, &accept, &location);
        let response = response.await?;
        match answers::digest(response.headers()) {
            Some(digest) => Ok(digest),
            None => Ok(self.manifest(tag).await?.0),
        }
    }

    /// Requests the manifest of the image of a tag or digest. From an index, [`manifest::choose`] selects the
    /// image.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn image(&mut self, name: &str) -> Result<ResolvedImage, RegistryAccessError> {
        let (named, first) = self.manifest(name).await?;
        let location = self.location(name);
        let wrong = |source| RegistryAccessError::Manifest { location, source };
        let index = match first {
            RegistryManifest::Image(manifest) => {
                return Ok(ResolvedImage {
                    digest: named.clone(),
                    named,
                    manifest: *manifest,
                });
            }
            RegistryManifest::Index(index) => index,
        };
        let entry = match manifest::choose(&index, manifest::architecture()) {
            Ok(entry) => entry,
            Err(source) => return Err(wrong(source)),
        };
        match self.manifest(&entry.digest).await? {
            (digest, RegistryManifest::Image(manifest)) => Ok(ResolvedImage {
                named,
                digest,
                manifest: *manifest,
            }),
            (_, RegistryManifest::Index(_)) => Err(wrong(manifest::RegistryManifestError::Nested)),
        }
    }

    /// Opens a blob, from the cache if the same reader fetched it from this repository before, otherwise with
    /// one request.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn blob(
        &mut self,
        descriptor: &BlobDescriptor,
    ) -> Result<Blob<'_, 'a>, RegistryAccessError> {
        // A negative size counts as 0.
        let size = u64::try_from(descriptor.size).unwrap_or_default();
        self.content(&descriptor.digest, size, size <= MAX_KEPT)
            .await
    }

    /// Opens a blob by its digest. With `keeps`, it is stored in the cache.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn content(
        &mut self,
        digest: &str,
        size: u64,
        keeps: bool,
    ) -> Result<Blob<'_, 'a>, RegistryAccessError> {
        let location = self.location(digest);
        let wanted = sha256(digest, &location)?.to_owned();
        let (rest, kept) = match self.contents.get(&wanted) {
            Some(bytes) => (BlobSource::Cached(bytes), None),
            None => {
                let path = format!("blobs/{digest}");
                let tries = &mut RequestTries::default();
                let response = self.send(tries, Method::GET, &path, "*/*", &location);
                let response = response.await.map_err(without_repository)?;
                let remote = RemoteBlob::new(response, path);
                (BlobSource::Remote(Box::new(remote)), keeps.then(Vec::new))
            }
        };
        Ok(Blob::new(self, location, wanted, size, rest, kept))
    }

    /// Requests all tags in the order of the registry, with one request per page.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn tags(&mut self) -> Result<Vec<String>, RegistryAccessError> {
        let location = repository(&self.reference);
        let wrong = |why| RegistryAccessError::List {
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
            let page: TagsPage =
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

    /// Requests a manifest and its digest.
    async fn manifest(
        &mut self,
        name: &str,
    ) -> Result<(String, RegistryManifest), RegistryAccessError> {
        let (digest, bytes) = self.manifest_bytes(name).await?;
        let location = self.location(name);
        let read = manifest::read(&bytes);
        let read = read.map_err(|source| RegistryAccessError::Manifest { location, source })?;
        Ok((digest, read))
    }

    /// Requests the bytes of a manifest and their digest. A manifest named by digest comes from the cache
    /// under the same condition as a blob.
    ///
    /// # Errors
    /// [`RegistryAccessError`].
    pub async fn manifest_bytes(
        &mut self,
        name: &str,
    ) -> Result<(String, Vec<u8>), RegistryAccessError> {
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
                    return Err(RegistryAccessError::Digest { location, found });
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

/// Removes the repository from the error for a missing blob, because a list of its tags would not help.
fn without_repository(error: RegistryAccessError) -> RegistryAccessError {
    match error {
        RegistryAccessError::NotFound {
            location, detail, ..
        } => RegistryAccessError::NotFound {
            location,
            detail,
            repository: None,
        },
        error => error,
    }
}

/// Turns the error for missing content into `None`.
fn if_found<T>(result: Result<T, RegistryAccessError>) -> Result<Option<T>, RegistryAccessError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(RegistryAccessError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn http_error(location: &str, source: HttpError) -> RegistryAccessError {
    RegistryAccessError::Http {
        location: location.to_owned(),
        source,
    }
}
