//! The certificate that is served now, swapped while connections come in.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::UnixTime;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::serving::Serving;

/// What the TLS configuration shares with the task that renews it. Empty until the first certificate verified: connections fail then.
#[derive(Debug, Default)]
pub struct Served(RwLock<Option<Serving>>);

impl Served {
    /// Serves this one from the next handshake on.
    pub fn swap(&self, serving: Serving) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(serving);
    }

    /// When the served certificate expires, if one is served.
    #[must_use]
    pub fn not_after(&self) -> Option<UnixTime> {
        self.read(|serving| serving.not_after)
    }

    fn read<T>(&self, read: impl FnOnce(&Serving) -> T) -> Option<T> {
        let served = self.0.read().unwrap_or_else(PoisonError::into_inner);
        served.as_ref().map(read)
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.read(|serving| Arc::clone(&serving.key))
    }
}
