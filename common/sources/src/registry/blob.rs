//! Blobs, verified while they are read.

use std::time::Duration;

use reqwest::{Response, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::http::bound::TooLarge;
use crate::http::retry::Tries;

use super::{Registry, RegistryError, of_blob, wrong};

/// The bytes of a blob as they arrive; its size and digest are verified before the last call returns.
pub struct Blob<'r, 'a> {
    registry: &'r mut Registry<'a>,
    location: String,
    /// Hex.
    wanted: String,
    /// What the manifest says.
    size: u64,
    seen: u64,
    digest: Sha256,
    rest: Rest,
    kept: Option<Vec<u8>>,
}

/// Where the next bytes come from.
pub enum Rest {
    /// The cache has all of them.
    Cached(Vec<u8>),
    /// An answer of a server.
    Remote(Box<Remote>),
    /// Nothing is left.
    End,
}

/// An answer, and what to ask for again if it breaks off.
pub struct Remote {
    response: Response,
    path: String,
    tries: Tries,
    /// Bytes to skip of an answer that starts again from the beginning.
    skip: u64,
}

impl Remote {
    /// The answer to a request for that path of the repository.
    pub(super) fn new(response: Response, path: String) -> Self {
        Self {
            response,
            path,
            tries: Tries::default(),
            skip: 0,
        }
    }

    /// The bytes after the first `seen`; if the answer breaks off, the rest is requested.
    async fn next(
        &mut self,
        registry: &mut Registry<'_>,
        location: &str,
        seen: u64,
    ) -> Result<Option<Vec<u8>>, RegistryError> {
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
                    if !self.tries.again(Duration::ZERO).await {
                        return Err(wrong(location, error.into()));
                    }
                    let resumed = registry.resume(&mut self.tries, &self.path, seen, location);
                    let response = resumed.await.map_err(of_blob)?;
                    self.skip = match response.status() {
                        StatusCode::PARTIAL_CONTENT => 0,
                        StatusCode::OK => seen,
                        _ => return Err(wrong(location, error.into())),
                    };
                    self.response = response;
                }
            }
        }
    }
}

impl<'r, 'a> Blob<'r, 'a> {
    /// `wanted` is the hex sha256; with `kept` the bytes go to the cache at the end.
    pub(super) fn new(
        registry: &'r mut Registry<'a>,
        location: String,
        wanted: String,
        size: u64,
        rest: Rest,
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

    /// The next bytes; `None` at the end, after the whole blob was verified.
    ///
    /// # Errors
    /// [`RegistryError::Size`], [`RegistryError::Digest`], or what goes wrong on the way.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, RegistryError> {
        let chunk = match std::mem::replace(&mut self.rest, Rest::End) {
            Rest::Cached(bytes) => Some(bytes).filter(|bytes| !bytes.is_empty()),
            Rest::Remote(mut remote) => {
                let chunk = remote.next(self.registry, &self.location, self.seen);
                let chunk = chunk.await?;
                self.rest = Rest::Remote(remote);
                chunk
            }
            Rest::End => None,
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

    /// The whole blob, at most `limit` bytes.
    ///
    /// # Errors
    /// As [`Blob::next`]; more bytes than are allowed.
    pub async fn read(mut self, limit: u64) -> Result<Vec<u8>, RegistryError> {
        if self.size > limit {
            return Err(wrong(&self.location, TooLarge(limit).into()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = self.next().await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn verify(&mut self) -> Result<(), RegistryError> {
        self.rest = Rest::End;
        if self.seen != self.size {
            return Err(self.wrong_size(format!("only {}", self.seen)));
        }
        let found = common::hex::of(&std::mem::take(&mut self.digest).finalize());
        if found != self.wanted {
            return Err(RegistryError::Digest {
                location: self.location.clone(),
                found,
            });
        }
        if let Some(kept) = self.kept.take() {
            self.registry.contents.put(&kept);
        }
        Ok(())
    }

    fn wrong_size(&self, found: String) -> RegistryError {
        RegistryError::Size {
            location: self.location.clone(),
            size: self.size,
            found,
        }
    }
}
