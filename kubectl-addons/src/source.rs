//! Where indexes, catalogues and manifests are read: one function, one size limit, every error with its location.

mod file;
mod http;

use std::path::PathBuf;

/// What a fetch may bring at the most.
pub const MAX_BYTES: u64 = 16 << 20;

/// What was fetched, and from where.
#[derive(Debug)]
pub struct Fetched {
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
pub async fn fetch(location: &str) -> Result<Fetched, SourceError> {
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
