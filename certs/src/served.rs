//! The certificate that is served now, swapped while connections come in.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::pki_types::UnixTime;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::serving::Serving;

/// What the TLS configuration shares with the task that renews it. Empty until the first certificate verified: connections fail then.
#[derive(Debug, Default)]
pub struct Served(ArcSwapOption<Serving>);

impl Served {
    /// Serves this one from the next handshake on.
    pub fn swap(&self, serving: Serving) {
        self.0.store(Some(Arc::new(serving)));
    }

    /// When the served certificate expires, if one is served.
    #[must_use]
    pub fn not_after(&self) -> Option<UnixTime> {
        self.0.load().as_ref().map(|serving| serving.not_after)
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0
            .load()
            .as_ref()
            .map(|serving| Arc::clone(&serving.key))
    }
}
