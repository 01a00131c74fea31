//! Why a URL cannot be read.

use crate::credentials::CredentialsError;
use crate::folder::FolderError;
use crate::http::HttpError;
use crate::image::ImageError;
use crate::kustomize::KustomizeError;

/// Why a fetch failed. Every message names the location, without secrets.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// A scheme that cannot be read.
    #[error(
        "{location}: {scheme}:// is not supported; use a file, file://, http://, https://, oci://, s3://, gs:// or az://"
    )]
    Scheme {
        /// As given.
        location: String,
        /// The scheme.
        scheme: String,
    },
    /// Not a URL.
    #[error("{location} is not a valid URL")]
    Malformed {
        /// As given.
        location: String,
        /// Why.
        #[source]
        source: url::ParseError,
    },
    /// User name or password in a URL.
    #[error(
        "{location}: a user name or password in a URL would be recorded and shown; remove it, or download the file and give its path"
    )]
    Credentials {
        /// Without them.
        location: String,
    },
    /// A file of this machine that is not open to whoever names it.
    #[error(
        "{location}: catalogues, installations, plans and sets cannot name files of this machine; put it on a web server or in an object \
         store, or write it into the catalogue as source.inline"
    )]
    Local {
        /// As written.
        location: String,
        /// The place that the user would have to open; `None` where that would not help.
        place: Option<String>,
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
    /// The artifact of a registry cannot be read.
    #[error(transparent)]
    Image(Box<ImageError>),
    /// The folder cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The kustomization cannot be built.
    #[error(transparent)]
    Kustomize(#[from] KustomizeError),
    /// The server answered with an error.
    #[error("{location}: the server answers {status}")]
    Status {
        /// URL.
        location: String,
        /// `404 Not Found`.
        status: String,
    },
    /// The server wants credentials, or other ones.
    #[error("{location}: the server answers {status} {}", whose(identity.as_deref(), wanted))]
    Denied {
        /// URL.
        location: String,
        /// `401 Unauthorized`.
        status: String,
        /// Whose credentials were sent.
        identity: Option<String>,
        /// The type of Secret that it takes.
        wanted: &'static str,
    },
    /// A Secret that cannot be used for it.
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
    /// Not in the cache, and no server may be asked.
    #[error("{location} is not in the cache, and no server may be asked")]
    Offline {
        /// URL.
        location: String,
    },
    /// An object store cannot be used as it is set up.
    #[error("{location}: {why}")]
    Setting {
        /// URL.
        location: String,
        /// Which setting, where it is, and what to write.
        why: String,
    },
    /// No usable answer of an object store.
    #[error("{location} cannot be fetched: {why}")]
    Store {
        /// URL.
        location: String,
        /// The words of the client, without secrets.
        why: String,
    },
}

fn whose(identity: Option<&str>, wanted: &str) -> String {
    match identity {
        Some(identity) => format!("to the credentials of {identity}; correct them"),
        None => format!(
            "without credentials; the source's auth.secretRef can name a Secret of type {wanted}"
        ),
    }
}
