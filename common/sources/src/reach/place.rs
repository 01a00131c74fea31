//! The places that a user can open to sources.

use std::path::{Path, PathBuf};

use common::address::is_safe_argument;
use url::Url;

use crate::host;
use crate::url::absolute;

/// A folder of the user, or a host or bucket for which the user has keys or an account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnPlace {
    /// The files below a folder.
    Folder(PathBuf),
    /// The keys of ssh for `HOST` or `HOST:PORT`.
    Ssh(String),
    /// `docker login` for `HOST[:PORT]`.
    Registry(String),
    /// The cloud account for `s3://BUCKET`, `gs://BUCKET` or `az://CONTAINER`.
    Bucket(String),
}

/// Why a text does not name a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnPlaceError {
    /// The file or folder does not exist.
    #[error(
        "{0}: there is no such file or folder; a host is ssh://HOST or oci://HOST, a bucket s3://BUCKET"
    )]
    Missing(String),
    /// The scheme is not supported, or there is no host.
    #[error(
        "{0}: not a folder, ssh://HOST, oci://HOST, s3://BUCKET, gs://BUCKET, az://CONTAINER or the location of an index"
    )]
    Malformed(String),
}

impl OwnPlace {
    /// Parses a folder, a host or a bucket. Returns `None` for the location of an index, which only opens
    /// itself.
    ///
    /// # Errors
    /// [`OwnPlaceError`].
    pub fn parse(text: &str) -> Result<Option<Self>, OwnPlaceError> {
        let malformed = || OwnPlaceError::Malformed(text.to_owned());
        if let Some(path) = path(text) {
            // A word without a slash may have been meant as a host.
            if !path.exists() && !text.contains(['/', '\\']) {
                return Err(OwnPlaceError::Missing(text.to_owned()));
            }
            return Ok(path.is_dir().then_some(Self::Folder(path)));
        }
        let url = Url::parse(text).map_err(|_| malformed())?;
        match url.scheme() {
            "http" | "https" => Ok(None),
            _ => Self::from_url(&url).map(Some).ok_or_else(malformed),
        }
    }

    /// The place that a typed location opens: its folder, its registry or its bucket.
    pub(super) fn beside(typed: &str) -> Option<Self> {
        let location = absolute(typed).ok()?;
        let Some(path) = path(&location) else {
            return Self::from_url(&Url::parse(&location).ok()?);
        };
        if path.is_dir() {
            return Some(Self::Folder(path));
        }
        path.parent().map(Path::to_owned).map(Self::Folder)
    }

    fn from_url(url: &Url) -> Option<Self> {
        let host = url.host_str().filter(|host| !host.is_empty())?;
        match url.scheme() {
            "oci" => Some(Self::Registry(host::of(url))),
            "ssh" => {
                let name = host.trim_start_matches('[').trim_end_matches(']');
                is_safe_argument(name).then(|| Self::Ssh(host::with_port(name, url.port())))
            }
            _ => bucket(url).map(Self::Bucket),
        }
    }

    /// Whether this place opens ssh to a host. A place without a port opens all ports.
    pub(super) fn is_ssh(&self, name: &str, port: Option<u16>) -> bool {
        let Self::Ssh(open) = self else {
            return false;
        };
        let is = |wanted: &str| open.eq_ignore_ascii_case(wanted);
        is(name) || is(&host::with_port(name, Some(port.unwrap_or(22))))
    }
}

/// Returns `s3://BUCKET` for the URL of an object, `None` for other URLs.
pub fn bucket(url: &Url) -> Option<String> {
    let scheme = match url.scheme() {
        scheme @ ("s3" | "gs" | "az") => scheme,
        "azure" => "az",
        _ => return None,
    };
    Some(format!("{scheme}://{}", url.host_str()?))
}

/// Returns the absolute path that a location names, `None` if it is the URL of something else.
pub fn path(text: &str) -> Option<PathBuf> {
    if !text.contains("://") {
        return std::path::absolute(text).ok();
    }
    let url = Url::parse(text).ok().filter(|url| url.scheme() == "file")?;
    url.to_file_path().ok()
}
