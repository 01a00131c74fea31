//! Reads blobs and verifies them.

use std::time::Duration;

use reqwest::{Response, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::http::bound::ContentTooLarge;
use crate::http::retry::RequestTries;

use super::{RegistryAccessError, RegistryClient, http_error, without_repository};

/// A blob that is read as it arrives. The size and the digest are verified before the end is returned.
pub struct Blob<'r, 'a> {
    registry: &'r mut RegistryClient<'a>,
    location: String,
    /// The expected hex sha256.
    wanted: String,
    /// The size in the manifest.
    size: u64,
    seen: u64,
    digest: Sha256,
    rest: BlobSource,
    kept: Option<Vec<u8>>,
}

/// The source of the next bytes.
pub enum BlobSource {
    /// All bytes come from the cache.
    Cached(Vec<u8>),
    /// A response of the registry.
    Remote(Box<RemoteBlob>),
    /// All bytes were read.
    End,
}

/// A response, and the request to repeat if it breaks off.
pub struct RemoteBlob {
    response: Response,
    path: String,
    tries: RequestTries,
    /// The number of bytes to skip if the response starts again from the beginning.
    skip: u64,
}

impl RemoteBlob {
    /// Wraps the response to a request for `path` in the repository.
    pub(super) fn new(response: Response, path: String) -> Self {
        Self {
            response,
            path,
            tries: RequestTries::default(),
            skip: 0,
        }
    }

    /// Reads the bytes after the first `seen`. If the response breaks off, the rest is requested.
    async fn next(
        &mut self,
        registry: &mut RegistryClient<'_>,
        location: &str,
        seen: u64,
    ) -> Result<Option<Vec<u8>>, RegistryAccessError> {
        loop {
            match self.response.chunk().await {
                Ok(None) => return Ok(None),
                Ok(Some(chunk)) => {
                    let skipped = self.skip.min(chunk.len() as u64);
                    self.skip -= skipped;
                    let chunk = chunk.get(usize::try_from(skipped).unwrap_or(chunk.len())..);
                    if let Some(chunk) = chunk.filter(|chunk| !chunk.is_empty()) {
                        return Ok(Some(chunk.to_vec()));
                    }
                }
                Err(error) => {
                    if !self.tries.wait(Duration::ZERO).await {
                        return Err(http_error(location, error.into()));
                    }
                    let resumed = registry.resume(&mut self.tries, &self.path, seen, location);
                    let response = resumed.await.map_err(without_repository)?;
                    self.skip = match response.status() {
                        StatusCode::PARTIAL_CONTENT => 0,
                        StatusCode::OK => seen,
                        _ => return Err(http_error(location, error.into())),
                    };
                    self.response = response;
                }
            }
        }
    }
}

impl<'r, 'a> Blob<'r, 'a> {
    /// `wanted` is the hex sha256. With `kept`, the bytes are stored in the cache at the end.
    pub(super) fn new(
        registry: &'r mut RegistryClient<'a>,
        location: String,
        wanted: String,
        size: u64,
        rest: BlobSource,
        kept: Option<Vec<u8>>,
    ) -> Self {
        Self {
            registry,
            location,
            wanted,
            size,
            seen: 0,
            digest: Sha256::new(),
            rest,
            kept,
        }
    }

    /// Returns the next bytes, or `None` at the end after the whole blob was verified.
    ///
    /// # Errors
    /// [`RegistryAccessError::Size`], [`RegistryAccessError::Digest`], or an error of the transfer.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, RegistryAccessError> {
        let chunk = match std::mem::replace(&mut self.rest, BlobSource::End) {
            BlobSource::Cached(bytes) => Some(bytes).filter(|bytes| !bytes.is_empty()),
            BlobSource::Remote(mut remote) => {
                let chunk = remote.next(self.registry, &self.location, self.seen);
                let chunk = chunk.await?;
                self.rest = BlobSource::Remote(remote);
                chunk
            }
            BlobSource::End => None,
        };
        match chunk {
            Some(chunk) => {
                self.seen = self.seen.saturating_add(chunk.len() as u64);
                if self.seen > self.size {
                    return Err(self.wrong_size(format!("more than {}", self.size)));
                }
                self.digest.update(&chunk);
                if let Some(kept) = &mut self.kept {
                    kept.extend_from_slice(&chunk);
                }
                Ok(Some(chunk))
            }
            None => self.verify().map(|()| None),
        }
    }

    /// Reads the whole blob of at most `limit` bytes.
    ///
    /// # Errors
    /// Errors of [`Blob::next`], or the blob has more than `limit` bytes.
    pub async fn read(mut self, limit: u64) -> Result<Vec<u8>, RegistryAccessError> {
        if self.size > limit {
            return Err(http_error(&self.location, ContentTooLarge(limit).into()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = self.next().await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn verify(&mut self) -> Result<(), RegistryAccessError> {
        self.rest = BlobSource::End;
        if self.seen != self.size {
            return Err(self.wrong_size(format!("only {}", self.seen)));
        }
        let found = common::text::encode_hex(&std::mem::take(&mut self.digest).finalize());
        if found != self.wanted {
            return Err(RegistryAccessError::Digest {
                location: self.location.clone(),
                found,
            });
        }
        if let Some(kept) = self.kept.take() {
            self.registry.contents.put(&kept);
        }
        Ok(())
    }

    fn wrong_size(&self, found: String) -> RegistryAccessError {
        RegistryAccessError::Size {
            location: self.location.clone(),
            size: self.size,
            found,
        }
    }
}
