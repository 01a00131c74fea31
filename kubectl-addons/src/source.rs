//! Where indexes, catalogues and packages are read: a file a kind of source, every error with its location.
//!
//! Every source ends in a [`Package`] in memory and in the digest of its content; what was fetched is kept in one [`cache`].
//! With a warm cache a source is asked once at most: whether what can move has moved.

pub mod cache;
pub mod chart;
pub mod credentials;
mod file;
mod http;

use std::path::PathBuf;

use common::render::package::Package;

use cache::Cache;
use credentials::Credentials;

/// What every source is read with.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// What was fetched before.
    pub cache: &'a Cache,
    /// Only the cache is asked (`--offline`).
    pub offline: bool,
    /// Whether files, credentials and settings of this machine may be used: not for catalogues in a cluster (semantics 16).
    pub ambient: bool,
    /// Those of the source's Secret.
    pub credentials: Option<&'a Credentials>,
}

/// What a source holds.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Its files.
    pub package: Package,
    /// Where they were read, without credentials: `https://HOST/REPO@COMMIT:PATH`, for people and for places in errors.
    pub location: String,
    /// The commit (`git`), the image digest (`docker`, `oci://`) or the chart version that a moving name stands for.
    pub resolved: Option<String>,
}

/// What a fetch may bring at the most.
pub const MAX_BYTES: u64 = 16 << 20;

/// What was read at a location.
#[derive(Debug)]
pub struct Document {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The absolute location, after redirects.
    pub location: String,
}

/// Why a fetch failed. The location is part of every message.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A scheme that cannot be read.
    #[error("{location}: {scheme}:// cannot be read; use a file, file://, http:// or https://")]
    Scheme {
        /// As given.
        location: String,
        /// The scheme.
        scheme: String,
    },
    /// User name or password in a URL.
    #[error(
        "{location}: a user name or password in a URL would be recorded and shown; take it out, or give a file"
    )]
    Credentials {
        /// Without them.
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
    /// More than [`MAX_BYTES`].
    #[error("{location} is larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge {
        /// As given.
        location: String,
    },
    /// The server answered with an error.
    #[error("{location}: the server answers {status}")]
    Status {
        /// URL without credentials.
        location: String,
        /// `404 Not Found`.
        status: String,
    },
    /// No usable answer.
    #[error("{location} cannot be fetched")]
    Http {
        /// URL without credentials.
        location: String,
        /// Why; its URL was taken out, which may hold credentials.
        #[source]
        source: reqwest::Error,
    },
}

/// Fetches a location: a path, `file://`, `http://` or `https://`.
///
/// # Errors
/// [`SourceError`].
pub async fn fetch(location: &str) -> Result<Document, SourceError> {
    match location.split_once("://") {
        None => file::read(PathBuf::from(location)),
        Some(("file", _)) => match url::Url::parse(location)
            .ok()
            .and_then(|url| url.to_file_path().ok())
        {
            Some(path) => file::read(path),
            None => Err(SourceError::File {
                location: location.to_owned(),
                source: std::io::Error::other(
                    "a file:// URL needs an absolute path: file:///path/to/file",
                ),
            }),
        },
        Some(("http" | "https", _)) => http::get(location).await,
        Some((scheme, _)) => Err(SourceError::Scheme {
            location: location.to_owned(),
            scheme: scheme.to_owned(),
        }),
    }
}

/// The location as it is recorded: paths become absolute `file://` URLs, so that a later upgrade finds them from anywhere.
///
/// # Errors
/// A relative path where the working directory is gone; a URL that holds credentials.
pub fn absolute(location: &str) -> Result<String, SourceError> {
    if location.contains("://") {
        let location = location.to_owned();
        return match url::Url::parse(&location) {
            Ok(url) if url.password().is_some() || !url.username().is_empty() => {
                Err(SourceError::Credentials {
                    location: http::without_credentials(&location),
                })
            }
            _ => Ok(location),
        };
    }
    let wrong = |source| SourceError::File {
        location: location.to_owned(),
        source,
    };
    let path = std::path::absolute(location).map_err(wrong)?;
    let url = url::Url::from_file_path(&path);
    url.map(String::from)
        .map_err(|()| wrong(std::io::Error::other("not a path")))
}
