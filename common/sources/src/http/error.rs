//! Why a server gives no usable response. The caller adds the location.

use std::error::Error;

use rustls::{CertificateError, InvalidMessage};

use super::bound::{ContentTooLarge, TIME};
use super::guard::RefusedAddress;
use super::policy::REDIRECTS;

/// Why there is no response. No message contains credentials or a signed URL.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The certificate authorities of a Secret cannot be read.
    #[error("key ca.crt of Secret {secret} holds no certificate in PEM format")]
    Authority {
        /// `NAMESPACE/NAME`.
        secret: String,
    },
    /// The author of the source may not name this address.
    #[error(
        "{0}, which a catalogue or an installation in the cluster may not name; put it on a web server"
    )]
    Address(#[from] RefusedAddress),
    /// A redirect is not followed.
    #[error(
        "the redirect to {to} is not followed: it leads {why}; if you trust that place, give it as the location"
    )]
    Redirect {
        /// The target, without credentials.
        to: String,
        /// `to another host`, …
        why: &'static str,
    },
    /// There are too many redirects.
    #[error("too many redirects (more than {REDIRECTS})")]
    Redirects,
    /// The server requests a longer pause than a command waits.
    #[error(
        "the server answers {status} and asks to come back in {seconds} s; run this again then"
    )]
    Later {
        /// `429 Too Many Requests`.
        status: String,
        /// The pause.
        seconds: u64,
    },
    /// The response has more bytes than the limit.
    #[error(transparent)]
    TooLarge(#[from] ContentTooLarge),
    /// The request did not end within the time limit.
    #[error("timed out after {} s", TIME.as_secs())]
    Timeout,
    /// No trusted authority signed the certificate.
    #[error(
        "the certificate of the server cannot be trusted; if you trust its authority, set SSL_CERT_FILE to a file with its \
         certificate, or, for a source of a catalogue, put that into key ca.crt of the Secret that auth.secretRef names"
    )]
    Authorities(#[source] reqwest::Error),
    /// The certificate is invalid, regardless of the trusted authorities.
    #[error("the certificate of the server is not valid")]
    Certificate(#[source] reqwest::Error),
    /// The server does not respond to a TLS handshake with TLS, but with HTTP, for example.
    #[error("the server does not speak TLS")]
    NoTls,
    /// The connection failed or broke off. The error has no URL, which could contain credentials.
    #[error(transparent)]
    Connection(reqwest::Error),
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        if let Some(refused) = cause::<RefusedAddress>(&error) {
            return Self::Address(refused.clone());
        }
        let error = error.without_url();
        match cause::<rustls::Error>(&error) {
            Some(rustls::Error::InvalidCertificate(why)) if is_of_server(why) => {
                Self::Certificate(error)
            }
            Some(rustls::Error::InvalidCertificate(_)) => Self::Authorities(error),
            Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => Self::NoTls,
            _ => Self::Connection(error),
        }
    }
}

impl HttpError {
    /// Whether a retry may succeed, because the connection failed or broke off.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Connection(error) if !error.is_builder())
    }
}

/// Whether the server needs another certificate, regardless of the trusted authorities.
fn is_of_server(why: &CertificateError) -> bool {
    use CertificateError as Why;
    matches!(
        why,
        Why::Expired
            | Why::ExpiredContext { .. }
            | Why::NotValidYet
            | Why::NotValidYetContext { .. }
            | Why::NotValidForName
            | Why::NotValidForNameContext { .. }
            | Why::Revoked
    )
}

/// Finds the first error of type `E` in the chain, also within I/O errors.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let inner = error.downcast_ref::<std::io::Error>();
        next = match inner.and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
