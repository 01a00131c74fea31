//! A certificate in files, served as soon as it changed and verified.
//!
//! Files are compared by content: the kubelet replaces a Secret by swapping a symlink, which no watch on the old file sees.
//! A pair that was read half before and half after a swap does not verify, is not served, and is read again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::UnixTime;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::served::Served;
use crate::serving::{Material, Serving, ServingError, verify};

/// Longest file that is read; a chain of a dozen certificates has 30 KB.
const MAX_FILE: u64 = 1 << 20;

/// The paths of certificate, key and authorities, and the names that the certificate must have.
#[derive(Clone, Debug)]
pub struct Files {
    /// Chain, leaf first (`tls.crt`).
    pub certificate: PathBuf,
    /// Private key (`tls.key`).
    pub key: PathBuf,
    /// Authorities that the API server trusts (`ca.crt`).
    pub authority: Option<PathBuf>,
    /// Names that the API server asks for; empty = not checked.
    pub names: Vec<String>,
}

/// The result of a poll.
#[derive(Debug)]
pub enum Poll {
    /// The files are unchanged.
    Unchanged,
    /// New files verified and are served from the next handshake on.
    Swapped,
    /// New files did not verify: the old certificate stays.
    Kept(ReloadError),
}

/// Why files are not served.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is larger than any certificate.
    #[error("{} is larger than {MAX_FILE} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The content is refused.
    #[error("{} is not served", path.display())]
    Refused {
        /// The certificate file.
        path: PathBuf,
        /// Why.
        source: ServingError,
    },
}

/// Serves the files that verified last.
#[derive(Debug)]
pub struct Reloader {
    files: Files,
    served: Arc<Served>,
    digest: [u8; 32],
}

impl Reloader {
    /// Reads and verifies the files for the first time: a server never starts with an invalid certificate.
    ///
    /// # Errors
    /// [`ReloadError`] where a file cannot be read or its content would be refused.
    pub fn new(files: Files, served: Arc<Served>, now: UnixTime) -> Result<Self, ReloadError> {
        let content = Content::read(&files)?;
        served.swap(content.verify(&files, now)?);
        let digest = content.digest();
        Ok(Self {
            files,
            served,
            digest,
        })
    }

    /// Reads the files again and swaps them in if their content changed and verifies.
    pub fn poll(&mut self, now: UnixTime) -> Poll {
        let content = match Content::read(&self.files) {
            Ok(content) => content,
            Err(error) => return Poll::Kept(error),
        };
        let digest = content.digest();
        if digest == self.digest {
            return Poll::Unchanged;
        }
        match content.verify(&self.files, now) {
            Ok(serving) => {
                self.served.swap(serving);
                self.digest = digest;
                Poll::Swapped
            }
            Err(error) => Poll::Kept(error),
        }
    }
}

/// The bytes of the files.
struct Content {
    chain: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
    authority: Option<Vec<u8>>,
}

impl Content {
    fn read(files: &Files) -> Result<Self, ReloadError> {
        Ok(Self {
            chain: read(&files.certificate)?,
            key: Zeroizing::new(read(&files.key)?),
            authority: files.authority.as_deref().map(read).transpose()?,
        })
    }

    /// Digest over all files; their lengths are part of it.
    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [Some(&self.chain), Some(&*self.key), self.authority.as_ref()] {
            hash.update(
                part.map_or(u64::MAX, |part| part.len() as u64)
                    .to_be_bytes(),
            );
            hash.update(part.map_or(&[][..], Vec::as_slice));
        }
        hash.finalize().into()
    }

    fn verify(&self, files: &Files, now: UnixTime) -> Result<Serving, ReloadError> {
        let material = Material {
            chain_pem: &self.chain,
            key_pem: &self.key,
            authority_pem: self.authority.as_deref(),
        };
        verify(&material, &files.names, now).map_err(|source| ReloadError::Refused {
            path: files.certificate.clone(),
            source,
        })
    }
}

/// Reads a file, up to the size that a certificate can have.
fn read(path: &Path) -> Result<Vec<u8>, ReloadError> {
    let failed = |source| ReloadError::Read {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    io::Read::read_to_end(&mut io::Read::take(file, MAX_FILE + 1), &mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(ReloadError::TooLarge {
            path: path.to_owned(),
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
