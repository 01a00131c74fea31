//! Documents and archives by URL: files of this machine, http(s), and objects in the stores of S3, Google and Azure.
//!
//! The same function reads indexes, catalogue files and the manifests that they name. One request asks a server whether the
//! cached content has changed.

mod error;
mod file;
mod http;
mod known;
mod object_store;
mod oci;

use std::path::{Path, PathBuf};

use addons_render::package::Package;
use url::Url;

pub use error::UrlError;

use crate::archive::is_archive;
use crate::http::bound;
use crate::{Access, Fetched, folder as files, kustomize};

/// What a folder of catalogues has, the first one that is there.
const INDEXES: [&str; 2] = ["catalogue.yaml", "addons.yaml"];

/// What was read at a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where they came from, after redirects, without credentials and without the query, which may hold a signature.
    pub location: String,
}

/// Fetches a location: a path, `file://`, `http://`, `https://`, `s3://BUCKET/KEY`, `gs://BUCKET/KEY`, `az://CONTAINER/BLOB` or
/// `oci://HOST/PATH:TAG`.
///
/// Credentials are for the host of an `http(s)` URL. For an object in a store, the Secret's annotation names the bucket with
/// its scheme, `s3://BUCKET`; the endpoint of the store is an option in the Secret itself.
///
/// # Errors
/// [`UrlError`].
pub async fn fetch(location: &str, access: &Access<'_>) -> Result<Document, UrlError> {
    if !location.contains("://") {
        return file::read(location, location, access);
    }
    let url = Url::parse(location).map_err(|source| UrlError::Malformed {
        location: unread(location),
        source,
    })?;
    refuse_credentials(&url)?;
    match url.scheme() {
        "file" => match url.to_file_path() {
            Ok(path) => file::read(path, location, access),
            Err(()) => Err(UrlError::File {
                location: location.to_owned(),
                source: std::io::Error::other(
                    "a file:// URL needs an absolute path: file:///path/to/file",
                ),
            }),
        },
        "http" | "https" => {
            let limit = limit(url.path());
            http::get(url, limit, access).await
        }
        "oci" => oci::get(location, access).await,
        scheme => match object_store::Kind::of(scheme) {
            Some(kind) => object_store::get(kind, &url, access).await,
            None => Err(UrlError::Scheme {
                location: shown(&url),
                scheme: scheme.to_owned(),
            }),
        },
    }
}

/// Fetches an http(s) URL that may be larger than documents are, or smaller.
///
/// # Errors
/// [`UrlError`].
pub(super) async fn get(url: Url, limit: u64, access: &Access<'_>) -> Result<Document, UrlError> {
    refuse_credentials(&url)?;
    http::get(url, limit, access).await
}

/// The location as it is recorded: a path becomes an absolute `file://` URL, so that a later upgrade works from any folder; that of
/// a folder with a catalogue or an index is that of the file.
///
/// # Errors
/// A relative path where the working directory is gone; a URL that holds credentials.
pub fn absolute(location: &str) -> Result<String, UrlError> {
    let mut indexes = INDEXES.iter().map(|name| Path::new(location).join(name));
    let index = indexes.find(|index| !location.contains("://") && index.is_file());
    match index.as_deref().and_then(Path::to_str) {
        Some(index) => absolute_of(index),
        None => absolute_of(location),
    }
}

/// As [`absolute`], of the very file or folder that is named.
///
/// # Errors
/// See [`absolute`].
pub fn absolute_of(location: &str) -> Result<String, UrlError> {
    if location.contains("://") {
        if let Ok(url) = Url::parse(location) {
            refuse_credentials(&url)?;
        }
        return Ok(location.to_owned());
    }
    let wrong = |source| UrlError::File {
        location: location.to_owned(),
        source,
    };
    let path = std::path::absolute(location).map_err(wrong)?;
    let url = Url::from_file_path(&path);
    url.map(String::from)
        .map_err(|()| wrong(std::io::Error::other("not a path")))
}

impl From<Document> for Fetched {
    /// One file, by the last part of its location.
    fn from(document: Document) -> Self {
        let path = document.location.split('?').next().unwrap_or_default();
        let name = path.rsplit('/').find(|part| !part.is_empty());
        Self {
            package: Package::file(name.unwrap_or("manifest.yaml"), document.bytes),
            location: document.location,
            resolved: None,
        }
    }
}

fn refuse_credentials(url: &Url) -> Result<(), UrlError> {
    if url.password().is_none() && url.username().is_empty() {
        return Ok(());
    }
    let location = shown(url);
    Err(UrlError::Credentials { location })
}

/// The most bytes that are read from a path: an archive is told by its ending.
fn limit(path: &str) -> u64 {
    if is_archive(path) {
        bound::ARCHIVE
    } else {
        bound::DOCUMENT
    }
}

/// The files of a folder of this machine; `None` where the location is no such folder, or may not be read for
/// its author (semantics 16).
///
/// # Errors
/// [`UrlError::Folder`].
pub fn folder(location: &str, access: &Access<'_>) -> Result<Option<Fetched>, UrlError> {
    let Some(path) = own_folder(location, access) else {
        return Ok(None);
    };
    let package = files::read(&path)?;
    Ok(Some(of_folder(&path, package)))
}

/// As [`folder`]; of a kustomization what is built of it, where such are built.
///
/// # Errors
/// [`UrlError::Folder`]; [`UrlError::Kustomize`].
pub async fn local(location: &str, access: &Access<'_>) -> Result<Option<Fetched>, UrlError> {
    let Some(path) = own_folder(location, access) else {
        return Ok(None);
    };
    let package = match access.kustomize {
        Some(programs) if kustomize::is_kustomization(&path) => {
            kustomize::build(&path, programs).await?
        }
        _ => files::read(&path)?,
    };
    Ok(Some(of_folder(&path, package)))
}

/// The path of a folder that may be read.
fn own_folder(location: &str, access: &Access<'_>) -> Option<PathBuf> {
    let path = match location.contains("://") {
        false => Some(PathBuf::from(location)),
        true => Url::parse(location)
            .ok()
            .filter(|url| url.scheme() == "file")
            .and_then(|url| url.to_file_path().ok()),
    };
    path.filter(|path| path.is_dir())
        .and_then(|path| access.reach.file(&path))
}

fn of_folder(path: &Path, package: Package) -> Fetched {
    Fetched {
        package,
        location: path.to_string_lossy().into_owned(),
        resolved: None,
    }
}

/// A location of any source as it may be shown and recorded.
pub(super) fn without_credentials(location: &str) -> String {
    match Url::parse(location) {
        Ok(url) => shown(&url),
        Err(_) => unread(location),
    }
}

/// The URL as it may be shown and recorded: without credentials and without the query, which may hold a signature.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for URLs that cannot have credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    if url.query().is_some() {
        url.set_query(Some("..."));
    }
    url.into()
}

/// As [`shown`], for text that is not a URL.
fn unread(location: &str) -> String {
    let location = location.split(['?', '#']).next().unwrap_or_default();
    match (location.split_once("://"), location.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => location.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        for (url, expected) in [
            ("https://h/a.yaml", "https://h/a.yaml"),
            ("https://u:p@h:8443/a.yaml#x", "https://h:8443/a.yaml"),
            ("https://h/a.yaml?X-Amz-Signature=1", "https://h/a.yaml?..."),
            ("s3://bucket/a.yaml", "s3://bucket/a.yaml"),
        ] {
            assert_eq!(shown(&Url::parse(url).unwrap()), expected);
        }
        assert_eq!(unread("https://u:p@[h/a.yaml?sig=1"), "https://[h/a.yaml");
    }

    #[test]
    fn a_file_is_named_by_its_location() {
        for (location, expected) in [
            ("https://h/a/b.tgz", "b.tgz"),
            ("https://h/a/b.yaml?...", "b.yaml"),
            ("https://h/a/", "a"),
            ("", "manifest.yaml"),
        ] {
            let fetched = Fetched::from(Document {
                bytes: Vec::new(),
                location: location.to_owned(),
            });
            assert_eq!(fetched.package.as_file().unwrap().path, expected);
        }
    }
}
