//! Errors of fetching a URL.

use crate::credentials::CredentialsError;
use crate::folder::FolderError;
use crate::http::HttpError;
use crate::image::ImageFetchError;
use crate::kustomize::KustomizeError;

/// Why a URL cannot be fetched. Every message names the location, without secrets.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// The scheme is not supported.
    #[error(
        "{location}: {scheme}:// is not supported; use a file, file://, http://, https://, oci://, s3://, gs:// or az://"
    )]
    Scheme {
        /// The location as given.
        location: String,
        /// The scheme.
        scheme: String,
    },
    /// The location is not a valid URL.
    #[error("{location} is not a valid URL")]
    Malformed {
        /// The location as given.
        location: String,
        /// Why.
        #[source]
        source: url::ParseError,
    },
    /// The URL contains a user name or password.
    #[error(
        "{location}: a user name or password in a URL would be recorded and shown; remove it, or download the file and give its path"
    )]
    Credentials {
        /// The URL without them.
        location: String,
    },
    /// The author of the location may not name local files.
    #[error(
        "{location}: catalogues, installations, plans and sets cannot name files of this machine; put it on a web server or in an object \
         store, or write it into the catalogue as source.inline"
    )]
    Local {
        /// The location as written.
        location: String,
        /// The place that the user would have to open; `None` if that would not help.
        place: Option<String>,
    },
    /// The file cannot be read.
    #[error("{location}")]
    File {
        /// The path.
        location: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The artifact of a registry cannot be read.
    #[error(transparent)]
    Image(Box<ImageFetchError>),
    /// The folder cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The kustomization cannot be built.
    #[error(transparent)]
    Kustomize(#[from] KustomizeError),
    /// The server answered with an error.
    #[error("{location}: the server answers {status}")]
    Status {
        /// The URL.
        location: String,
        /// `404 Not Found`.
        status: String,
    },
    /// The server requires credentials, or refuses them.
    #[error("{location}: the server answers {status} {}", whose(identity.as_deref(), wanted))]
    Denied {
        /// The URL.
        location: String,
        /// `401 Unauthorized`.
        status: String,
        /// The owner of the credentials that were sent.
        identity: Option<String>,
        /// The type of Secret to use.
        wanted: &'static str,
    },
    /// The Secret cannot be used for this URL.
    #[error("{location}")]
    Secret {
        /// The URL.
        location: String,
        /// Why.
        #[source]
        source: Box<CredentialsError>,
    },
    /// The server gave no usable response.
    #[error("{location} cannot be fetched")]
    Http {
        /// The URL.
        location: String,
        /// Why.
        #[source]
        source: HttpError,
    },
    /// The content is not in the cache, and requests are not allowed.
    #[error("{location} is not in the cache, and no server may be asked")]
    Offline {
        /// The URL.
        location: String,
    },
    /// The settings of an object store are wrong.
    #[error("{location}: {why}")]
    Setting {
        /// The URL.
        location: String,
        /// Which setting is wrong, where it is set, and what to write.
        why: String,
    },
    /// The object store gave no usable response.
    #[error("{location} cannot be fetched: {why}")]
    Store {
        /// The URL.
        location: String,
        /// The message of the client, without secrets.
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
