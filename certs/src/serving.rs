//! The certificate that is served: its chain, key, names and dates are verified as the API server will verify them, before it is served. It
//! can be swapped while connections come in.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error as TlsError};

/// Contents of the certificate, key and authority files.
pub struct CertificateMaterial<'a> {
    /// Certificate chain, leaf first, PEM (`tls.crt`).
    pub chain_pem: &'a [u8],
    /// Private key, PEM (`tls.key`).
    pub key_pem: &'a [u8],
    /// The authorities that the API server trusts, PEM (`ca.crt`). If `None`, the last certificate of the chain is used; a single leaf is
    /// then verified except for its issuer.
    pub authority_pem: Option<&'a [u8]>,
}

/// A verified certificate.
#[derive(Clone, Debug)]
pub struct VerifiedCertificate {
    /// The key and chain for rustls.
    pub key: Arc<CertifiedKey>,
    /// When the leaf expires.
    pub not_after: UnixTime,
}

/// Why a certificate is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServingError {
    /// Not PEM, or PEM without the expected item.
    #[error("{what} holds no readable PEM")]
    Pem {
        /// What the PEM was read for: `the certificate`, `the key` or `the authority`.
        what: &'static str,
        /// The message of the reader.
        source: rustls::pki_types::pem::Error,
    },
    /// The certificate file is empty.
    #[error("the certificate file holds no certificate")]
    NoCertificate,
    /// A name for the certificate is not valid.
    #[error("{name:?} is neither a DNS name nor an IP address")]
    Name {
        /// The name.
        name: String,
        /// What is wrong.
        source: InvalidDnsNameError,
    },
    /// Key and certificate do not belong together, or the key cannot be used.
    #[error("the key does not belong to the certificate or cannot be used")]
    Key(#[source] TlsError),
    /// An authority cannot be used.
    #[error("the authority cannot be used")]
    Authority(#[source] TlsError),
    /// No verifier could be created from the authorities.
    #[error("the authorities cannot be used")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
    /// The verifier refuses the chain, the name or the dates.
    #[error("the certificate would be refused for {name}")]
    Refused {
        /// Name that was asked for.
        name: String,
        /// Why.
        source: TlsError,
    },
    /// The dates of the leaf cannot be read.
    #[error("the certificate does not say when it expires")]
    NoExpiry,
}

/// Verifies chain, key, names and dates at `now`, and returns the key for rustls.
///
/// `names` are the names that the API server will ask for; if empty, names are not checked.
///
/// # Errors
/// [`ServingError`]: the first problem for which a client would refuse the certificate.
pub fn verify(
    material: &CertificateMaterial<'_>,
    names: &[String],
    now: UnixTime,
) -> Result<VerifiedCertificate, ServingError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let chain = certificates(material.chain_pem, "the certificate")?;
    let (leaf, rest) = chain.split_first().ok_or(ServingError::NoCertificate)?;
    let key =
        PrivateKeyDer::from_pem_slice(material.key_pem).map_err(|source| ServingError::Pem {
            what: "the key",
            source,
        })?;
    let key = CertifiedKey::from_der(chain.clone(), key, &provider).map_err(ServingError::Key)?;

    let (anchors, intermediates) = match (material.authority_pem, rest.split_last()) {
        (Some(pem), _) => (certificates(pem, "the authority")?, rest),
        (None, Some((last, before))) => (vec![last.clone()], before),
        (None, None) => (vec![leaf.clone()], rest),
    };
    let lone_leaf = material.authority_pem.is_none() && rest.is_empty();
    let verifier = verifier(anchors, provider)?;

    let check = |name: &ServerName<'_>, now| {
        verifier
            .verify_server_cert(leaf, intermediates, name, &[], now)
            .map(|_| ())
    };
    for name in names {
        let server_name =
            ServerName::try_from(name.as_str()).map_err(|source| ServingError::Name {
                name: name.clone(),
                source,
            })?;
        let verdict = match check(&server_name, now) {
            // A single leaf has no known issuer; rustls has checked its dates before it reports that, and its names are checked here.
            Err(TlsError::InvalidCertificate(CertificateError::UnknownIssuer)) if lone_leaf => {
                ParsedCertificate::try_from(leaf)
                    .and_then(|leaf| verify_server_name(&leaf, &server_name))
            }
            verdict => verdict,
        };
        verdict.map_err(|source| ServingError::Refused {
            name: name.clone(),
            source,
        })?;
    }
    if names.is_empty() {
        match check(&any_name(), now) {
            Ok(()) => {}
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => {}
            Err(TlsError::InvalidCertificate(CertificateError::UnknownIssuer)) if lone_leaf => {}
            Err(source) => {
                return Err(ServingError::Refused {
                    name: "any name".to_owned(),
                    source,
                });
            }
        }
    }

    // rustls reports the expiry of a leaf only if it verifies at a later time; it checks dates first.
    let far = UnixTime::since_unix_epoch(Duration::from_secs(u64::from(u32::MAX) * 1000));
    let not_after = match check(&any_name(), far) {
        Err(TlsError::InvalidCertificate(CertificateError::ExpiredContext {
            not_after, ..
        })) => not_after,
        _ => return Err(ServingError::NoExpiry),
    };
    Ok(VerifiedCertificate {
        key: Arc::new(key),
        not_after,
    })
}

/// Returns all certificates of a PEM file.
fn certificates(
    pem: &[u8],
    what: &'static str,
) -> Result<Vec<CertificateDer<'static>>, ServingError> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|source| ServingError::Pem { what, source })
}

/// Returns a verifier that trusts `anchors`.
fn verifier(
    anchors: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, ServingError> {
    let mut roots = RootCertStore::empty();
    for anchor in anchors {
        roots.add(anchor).map_err(ServingError::Authority)?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(ServingError::Verifier)
}

/// Returns a name for checks in which the name does not matter.
fn any_name() -> ServerName<'static> {
    ServerName::from(std::net::IpAddr::from([127, 0, 0, 1]))
}

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
