//! Places that the user opens.

use std::path::{Path, PathBuf};

use common::address::is_plain;
use url::Url;

use crate::host;
use crate::url::absolute;

/// A part of the machine of the user, or of what their accounts may read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The files below a folder.
    Folder(PathBuf),
    /// The keys of ssh for `HOST` or `HOST:PORT`.
    Ssh(String),
    /// `docker login` for `HOST[:PORT]`.
    Registry(String),
    /// The account in a cloud, for `s3://BUCKET`, `gs://BUCKET` or `az://CONTAINER`.
    Bucket(String),
}

/// A text that names no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// There is neither such a folder nor such a file.
    #[error(
        "{0}: there is no such file or folder; a host is ssh://HOST or oci://HOST, a bucket s3://BUCKET"
    )]
    Missing(String),
    /// Another scheme, or no host.
    #[error(
        "{0}: not a folder, ssh://HOST, oci://HOST, s3://BUCKET, gs://BUCKET, az://CONTAINER or the location of an index"
    )]
    Malformed(String),
}

impl Place {
    /// What a text opens: a folder, a host, a bucket. `None` for an index that opens nothing but itself.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn parse(text: &str) -> Result<Option<Self>, PlaceError> {
        let malformed = || PlaceError::Malformed(text.to_owned());
        if let Some(path) = path(text) {
            // A bare word may have been meant as a host.
            if !path.exists() && !text.contains(['/', '\\']) {
                return Err(PlaceError::Missing(text.to_owned()));
            }
            return Ok(path.is_dir().then_some(Self::Folder(path)));
        }
        let url = Url::parse(text).map_err(|_| malformed())?;
        match url.scheme() {
            "http" | "https" => Ok(None),
            _ => Self::of_url(&url).map(Some).ok_or_else(malformed),
        }
    }

    /// What a location opens by being typed: the folder that it is in, its registry or its bucket.
    pub(super) fn beside(typed: &str) -> Option<Self> {
        let location = absolute(typed).ok()?;
        let Some(path) = path(&location) else {
            return Self::of_url(&Url::parse(&location).ok()?);
        };
        if path.is_dir() {
            return Some(Self::Folder(path));
        }
        path.parent().map(Path::to_owned).map(Self::Folder)
    }

    fn of_url(url: &Url) -> Option<Self> {
        let host = url.host_str().filter(|host| !host.is_empty())?;
        match url.scheme() {
            "oci" => Some(Self::Registry(host::of(url))),
            "ssh" => {
                let name = host.trim_start_matches('[').trim_end_matches(']');
                is_plain(name).then(|| Self::Ssh(host::with_port(name, url.port())))
            }
            _ => bucket(url).map(Self::Bucket),
        }
    }

    /// Whether it is this host; one without a port stands for all of its ports.
    pub(super) fn is_ssh(&self, name: &str, port: Option<u16>) -> bool {
        let Self::Ssh(open) = self else {
            return false;
        };
        let is = |wanted: &str| open.eq_ignore_ascii_case(wanted);
        is(name) || is(&host::with_port(name, Some(port.unwrap_or(22))))
    }
}

/// `s3://BUCKET` of the URL of an object; `None` of any other URL.
pub fn bucket(url: &Url) -> Option<String> {
    let scheme = match url.scheme() {
        scheme @ ("s3" | "gs" | "az") => scheme,
        "azure" => "az",
        _ => return None,
    };
    Some(format!("{scheme}://{}", url.host_str()?))
}

/// The absolute path that a location names; `None` of any other URL.
pub fn path(text: &str) -> Option<PathBuf> {
    if !text.contains("://") {
        return std::path::absolute(text).ok();
    }
    let url = Url::parse(text).ok().filter(|url| url.scheme() == "file")?;
    url.to_file_path().ok()
}
