//! Why a server gives no usable answer. The source that asks adds the location.

use std::error::Error;

use rustls::{CertificateError, InvalidMessage};

use super::bound::{TIME, TooLarge};
use super::guard::Refused;
use super::policy::REDIRECTS;

/// Why there is no answer. No message holds credentials or a signed URL.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The certificate authorities of a Secret cannot be read.
    #[error("key ca.crt of Secret {secret} holds no certificate in PEM format")]
    Authority {
        /// `NAMESPACE/NAME`.
        secret: String,
    },
    /// An address that is out of the reach of whoever named it.
    #[error(
        "{0}, which a catalogue or an installation in the cluster may not name; put it on a web server"
    )]
    Address(#[from] Refused),
    /// A redirect that is not followed.
    #[error(
        "the redirect to {to} is not followed: it leads {why}; if you trust that place, give it as the location"
    )]
    Redirect {
        /// Where it leads, without credentials.
        to: String,
        /// `to another host`, …
        why: &'static str,
    },
    /// Redirects without an end.
    #[error("too many redirects (more than {REDIRECTS})")]
    Redirects,
    /// The server asks for a longer pause than a command waits.
    #[error(
        "the server answers {status} and asks to come back in {seconds} s; run this again then"
    )]
    Later {
        /// `429 Too Many Requests`.
        status: String,
        /// The pause.
        seconds: u64,
    },
    /// More bytes than the limit.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// No end within the limit.
    #[error("timed out after {} s", TIME.as_secs())]
    Timeout,
    /// A certificate that no trusted authority signed.
    #[error(
        "the certificate of the server cannot be trusted; if you trust its authority, set SSL_CERT_FILE to a file with its \
         certificate, or, for a source of a catalogue, put that into key ca.crt of the Secret that auth.secretRef names"
    )]
    Authorities(#[source] reqwest::Error),
    /// A certificate that would not be valid with any authority.
    #[error("the certificate of the server is not valid")]
    Certificate(#[source] reqwest::Error),
    /// It answers a TLS handshake with something else, such as HTTP.
    #[error("the server does not speak TLS")]
    NoTls,
    /// No connection, or one that broke off. Without its URL, which may hold credentials.
    #[error(transparent)]
    Connection(reqwest::Error),
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        if let Some(refused) = cause::<Refused>(&error) {
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
    /// Whether the next request may succeed: the connection failed or broke off.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Connection(error) if !error.is_builder())
    }
}

/// Whether only another certificate of the server helps, whoever is trusted.
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

/// The first error of that kind below `error`; an I/O error hides what it was made of.
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
