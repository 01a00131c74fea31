//! The certificate that is served now. It can be swapped while connections come in.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::UnixTime;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::serving::VerifiedCertificate;

/// The certificate that the TLS configuration shares with the task that renews it. Until the first certificate is set, connections fail.
#[derive(Debug, Default)]
pub struct ServedCertificate(RwLock<Option<VerifiedCertificate>>);

impl ServedCertificate {
    /// Serves `serving` from the next handshake on.
    pub fn swap(&self, serving: VerifiedCertificate) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(serving);
    }

    /// Returns when the served certificate expires, or `None` if none is served.
    #[must_use]
    pub fn not_after(&self) -> Option<UnixTime> {
        self.read(|serving| serving.not_after)
    }

    fn read<T>(&self, read: impl FnOnce(&VerifiedCertificate) -> T) -> Option<T> {
        let served = self.0.read().unwrap_or_else(PoisonError::into_inner);
        served.as_ref().map(read)
    }
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.read(|serving| Arc::clone(&serving.key))
    }
}
