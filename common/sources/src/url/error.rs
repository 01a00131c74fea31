//! Why a URL cannot be read.

use crate::credentials::CredentialsError;
use crate::http::HttpError;

/// Why a fetch failed. The location is part of every message; what may be secret in it is not.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// A scheme that cannot be read.
    #[error(
        "{location}: {scheme}:// cannot be read; use a file, file://, http://, https://, s3://, gs:// or az://"
    )]
    Scheme {
        /// As given.
        location: String,
        /// The scheme.
        scheme: String,
    },
    /// No URL.
    #[error("{location} is no URL")]
    Malformed {
        /// As given.
        location: String,
        /// Why.
        #[source]
        source: url::ParseError,
    },
    /// User name or password in a URL.
    #[error(
        "{location}: a user name or password in a URL would be recorded and shown; take it out, or give a file"
    )]
    Credentials {
        /// Without them.
        location: String,
    },
    /// A file of this machine, named by a catalogue in a cluster.
    #[error(
        "{location}: a catalogue in the cluster names no files of this machine; put it on a web server or in an object store, \
         or write it into the catalogue as source.inline"
    )]
    Local {
        /// As written.
        location: String,
    },
    /// The file cannot be read.
    #[error("{location}")]
    File {
        /// Path.
        location: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The server answered with an error.
    #[error("{location}: the server answers {status}")]
    Status {
        /// URL.
        location: String,
        /// `404 Not Found`.
        status: String,
    },
    /// The server wants other credentials, or some.
    #[error("{location}: the server answers {status} {}", whose(identity.as_deref(), wanted))]
    Denied {
        /// URL.
        location: String,
        /// `401 Unauthorized`.
        status: String,
        /// Whose credentials it got.
        identity: Option<String>,
        /// The type of Secret that it could get.
        wanted: &'static str,
    },
    /// A Secret that does not go with it.
    #[error("{location}")]
    Secret {
        /// URL.
        location: String,
        /// Why.
        #[source]
        source: Box<CredentialsError>,
    },
    /// No usable answer.
    #[error("{location} cannot be fetched")]
    Http {
        /// URL.
        location: String,
        /// Why.
        #[source]
        source: HttpError,
    },
    /// Not in the cache, and nobody may be asked.
    #[error(
        "{location} is not in the cache, and with --offline nobody is asked; run this once without --offline"
    )]
    Offline {
        /// URL.
        location: String,
    },
    /// An object store cannot be used as it is set up.
    #[error("{location}: {why}")]
    Setting {
        /// URL.
        location: String,
        /// Which setting, where it stands, and what would do.
        why: String,
    },
    /// No usable answer of an object store.
    #[error("{location} cannot be fetched: {why}")]
    Store {
        /// URL.
        location: String,
        /// In the words of the client, without what may be secret.
        why: String,
    },
}

fn whose(identity: Option<&str>, wanted: &str) -> String {
    match identity {
        Some(identity) => format!("to the credentials of {identity}; it takes other ones"),
        None => format!(
            "without credentials; the source's auth.secretRef can name a Secret of type {wanted}"
        ),
    }
}
