//! TLS for reviews, and who may send them.

use std::sync::Arc;

use anyhow::Context as _;
use clap::ValueEnum;
use rustls::crypto::aws_lc_rs;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};

use crate::clients::Clients;

/// The oldest version of TLS that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MinimumTls {
    /// TLS 1.2, for API servers before 1.13 and proxies.
    #[value(name = "1.2")]
    V12,
    /// TLS 1.3.
    #[value(name = "1.3")]
    V13,
}

impl MinimumTls {
    fn versions(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::V12 => vec![&TLS13, &TLS12],
            Self::V13 => vec![&TLS13],
        }
    }
}

/// Returns a TLS configuration that serves `certificate`, to these clients or to everyone.
///
/// # Errors
/// The TLS library has none of the versions.
pub fn config(
    certificate: Arc<dyn ResolvesServerCert>,
    minimum: MinimumTls,
    clients: Option<Arc<Clients>>,
) -> anyhow::Result<ServerConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&minimum.versions())
        .context("the TLS provider has no protocol version")?;
    let Some(clients) = clients else {
        return Ok(builder
            .with_no_client_auth()
            .with_cert_resolver(certificate));
    };
    let mut config = builder
        .with_client_cert_verifier(clients)
        .with_cert_resolver(certificate);
    // A resumed session would not present its certificate again.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}
