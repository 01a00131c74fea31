//! Serves a certificate from files, and swaps it when the files change and their new content is verified.
//!
//! Files are compared by content: the kubelet replaces a Secret by swapping a symlink, which a watch on the old file does not see. A pair
//! of which one file was read before and the other after a swap fails verification, is not served, and is read again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::UnixTime;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::serving::ServedCertificate;
use crate::serving::{CertificateMaterial, ServingError, VerifiedCertificate, verify};

/// Size limit of a file. A chain of a dozen certificates has 30 KB.
const MAX_FILE: u64 = 1 << 20;

/// The paths of certificate, key and authorities, and the names that the certificate must have.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// Certificate chain, leaf first (`tls.crt`).
    pub certificate: PathBuf,
    /// Private key (`tls.key`).
    pub key: PathBuf,
    /// Authorities that the API server trusts (`ca.crt`).
    pub authority: Option<PathBuf>,
    /// Names that the API server asks for. If empty, names are not checked.
    pub names: Vec<String>,
}

/// The result of a poll.
#[derive(Debug)]
pub enum ReloadOutcome {
    /// The files are unchanged.
    Unchanged,
    /// New files were verified and are served from the next handshake on.
    Swapped,
    /// New files could not be read or verified: the old certificate stays.
    Kept(ReloadError),
}

/// Why the files are not served.
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
    /// Verification refused the content.
    #[error("{} is not served", path.display())]
    Refused {
        /// The certificate file.
        path: PathBuf,
        /// Why.
        source: ServingError,
    },
}

/// Serves the last verified content of the files.
#[derive(Debug)]
pub struct Reloader {
    files: CertificateFiles,
    served: Arc<ServedCertificate>,
    digest: [u8; 32],
}

impl Reloader {
    /// Reads and verifies the files for the first time: a server never starts with an invalid certificate.
    ///
    /// # Errors
    /// [`ReloadError`] if a file cannot be read, or if its content is refused.
    pub fn new(
        files: CertificateFiles,
        served: Arc<ServedCertificate>,
        now: UnixTime,
    ) -> Result<Self, ReloadError> {
        let content = CertificateBytes::read(&files)?;
        served.swap(content.verify(&files, now)?);
        let digest = content.digest();
        Ok(Self {
            files,
            served,
            digest,
        })
    }

    /// Reads the files again, and serves them if their content has changed and is verified.
    pub fn poll(&mut self, now: UnixTime) -> ReloadOutcome {
        let content = match CertificateBytes::read(&self.files) {
            Ok(content) => content,
            Err(error) => return ReloadOutcome::Kept(error),
        };
        let digest = content.digest();
        if digest == self.digest {
            return ReloadOutcome::Unchanged;
        }
        match content.verify(&self.files, now) {
            Ok(serving) => {
                self.served.swap(serving);
                self.digest = digest;
                ReloadOutcome::Swapped
            }
            Err(error) => ReloadOutcome::Kept(error),
        }
    }
}

/// The bytes of the files.
struct CertificateBytes {
    chain: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
    authority: Option<Vec<u8>>,
}

impl CertificateBytes {
    fn read(files: &CertificateFiles) -> Result<Self, ReloadError> {
        Ok(Self {
            chain: read_file(&files.certificate)?,
            key: Zeroizing::new(read_file(&files.key)?),
            authority: files.authority.as_deref().map(read_file).transpose()?,
        })
    }

    /// Digest of all files. It includes their lengths.
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

    fn verify(
        &self,
        files: &CertificateFiles,
        now: UnixTime,
    ) -> Result<VerifiedCertificate, ReloadError> {
        let material = CertificateMaterial {
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

/// Reads a file of at most [`MAX_FILE`] bytes.
fn read_file(path: &Path) -> Result<Vec<u8>, ReloadError> {
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
