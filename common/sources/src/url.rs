//! Fetches documents and archives by URL: local files, http(s), objects in the stores of S3, Google and
//! Azure, and catalogues in registries.
//!
//! The same function reads indexes, catalogue files and the manifests that they name. With a warm cache, one
//! request asks the server whether the content has changed.

mod error;
mod http;
mod last_answer;
mod object_store;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use addons_render::package::Package;
use common::api::catalogue::DockerSource;
use common::image::is_of_this_machine;
use common::oci::CATALOGUE_FILE;
use url::Url;

pub use error::UrlError;

use crate::archive::is_archive;
use crate::http::bound::{self, ContentTooLarge};
use crate::image::{self, ImageFetchError};
use crate::registry::RegistryAccessError;
use crate::{FetchedPackage, SourceAccess, folder as files, kustomize, registry};

/// The file names of the catalogue or index in a folder, in order of preference.
const INDEXES: [&str; 2] = ["catalogue.yaml", "addons.yaml"];

/// How the locations of artifacts in registries begin.
pub const ARTIFACT: &str = "oci://";

/// The content of a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedDocument {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The location after redirects, without credentials and without the query, which can contain a
    /// signature.
    pub location: String,
}

/// Fetches a location: a path, `file://`, `http://`, `https://`, `s3://BUCKET/KEY`, `gs://BUCKET/KEY`,
/// `az://CONTAINER/BLOB` or `oci://HOST/PATH:TAG`.
///
/// Credentials for an `http(s)` URL must name its host. For an object in a store, the annotation of the
/// Secret names the bucket with its scheme, `s3://BUCKET`, and the endpoint of the store is an option in the
/// Secret.
///
/// # Errors
/// [`UrlError`].
pub async fn fetch(location: &str, access: &SourceAccess<'_>) -> Result<FetchedDocument, UrlError> {
    if !location.contains("://") {
        return read_file(location, location, access);
    }
    let url = Url::parse(location).map_err(|source| UrlError::Malformed {
        location: redact_text(location),
        source,
    })?;
    refuse_credentials(&url)?;
    match url.scheme() {
        "file" => match url.to_file_path() {
            Ok(path) => read_file(path, location, access),
            Err(()) => Err(UrlError::File {
                location: location.to_owned(),
                source: std::io::Error::other(
                    "a file:// URL needs an absolute path: file:///path/to/file",
                ),
            }),
        },
        "http" | "https" => {
            let limit = size_limit(url.path());
            http::get(url, limit, access).await
        }
        "oci" => get_artifact(location, access).await,
        scheme => match object_store::StoreKind::from_scheme(scheme) {
            Some(kind) => object_store::get(kind, &url, access).await,
            None => Err(UrlError::Scheme {
                location: redact_url(&url),
                scheme: scheme.to_owned(),
            }),
        },
    }
}

/// Reads a local file if the author of the location may name it (semantics 16).
fn read_file(
    path: impl AsRef<Path>,
    written: &str,
    access: &SourceAccess<'_>,
) -> Result<FetchedDocument, UrlError> {
    let Some(real) = access.reach.file(path.as_ref()) else {
        return Err(UrlError::Local {
            location: written.to_owned(),
            place: access.reach.closed_folder(path.as_ref()),
        });
    };
    let path = path.as_ref();
    let location = path.to_string_lossy().into_owned();
    let wrong = |source| UrlError::File {
        location: location.clone(),
        source,
    };
    let limit = size_limit(&location);
    let file = File::open(real).map_err(wrong)?;
    let metadata = file.metadata().map_err(wrong)?;
    if metadata.is_dir() {
        return Err(wrong(std::io::Error::other("is a folder, not a file")));
    }
    let mut bytes =
        Vec::with_capacity(usize::try_from(metadata.len().min(limit)).unwrap_or_default());
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(wrong)?;
    if bytes.len() as u64 > limit {
        return Err(wrong(std::io::Error::other(ContentTooLarge(limit))));
    }
    Ok(FetchedDocument { bytes, location })
}

/// Fetches the file `catalogue.yaml` of the artifact at `oci://HOST/PATH:TAG`.
async fn get_artifact(
    location: &str,
    access: &SourceAccess<'_>,
) -> Result<FetchedDocument, UrlError> {
    let failed = |error: ImageFetchError| UrlError::Image(Box::new(error));
    let source = artifact_source(location).map_err(|error| failed(error.into()))?;
    let fetched = image::fetch(&source, access).await.map_err(failed)?;
    match fetched.package.as_file() {
        Some(file) => Ok(FetchedDocument {
            bytes: file.bytes.clone(),
            location: location.to_owned(),
        }),
        None => Err(UrlError::File {
            location: location.to_owned(),
            source: std::io::Error::other(format!("{CATALOGUE_FILE} is a folder")),
        }),
    }
}

/// Returns the file `catalogue.yaml` of the artifact at `oci://HOST/PATH:TAG` as a source, without credentials.
///
/// # Errors
/// The location is not a reference.
pub fn artifact_source(location: &str) -> Result<DockerSource, RegistryAccessError> {
    let image = location.strip_prefix(ARTIFACT).unwrap_or(location);
    Ok(DockerSource {
        image: image.to_owned(),
        path: Some(CATALOGUE_FILE.to_owned()),
        plain_http: is_of_this_machine(&registry::reference(image)?.host),
        ..DockerSource::default()
    })
}

/// Fetches an http(s) URL with at most `limit` bytes.
///
/// # Errors
/// [`UrlError`].
pub(super) async fn get(
    url: Url,
    limit: u64,
    access: &SourceAccess<'_>,
) -> Result<FetchedDocument, UrlError> {
    refuse_credentials(&url)?;
    http::get(url, limit, access).await
}

/// Returns the location to record. A path becomes an absolute `file://` URL, so that a later upgrade works
/// from any folder. A folder with a catalogue or an index becomes the URL of that file.
///
/// # Errors
/// A relative path cannot be resolved because the working directory was removed, or a URL contains
/// credentials.
pub fn absolute(location: &str) -> Result<String, UrlError> {
    let mut indexes = INDEXES.iter().map(|name| Path::new(location).join(name));
    let index = indexes.find(|index| !location.contains("://") && index.is_file());
    match index.as_deref().and_then(Path::to_str) {
        Some(index) => absolute_exact(index),
        None => absolute_exact(location),
    }
}

/// Like [`absolute`], but a folder is never replaced by a file in it.
///
/// # Errors
/// See [`absolute`].
pub fn absolute_exact(location: &str) -> Result<String, UrlError> {
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

impl From<FetchedDocument> for FetchedPackage {
    /// A package of one file, named by the last part of the location.
    fn from(document: FetchedDocument) -> Self {
        let path = document.location.split('?').next().unwrap_or_default();
        let name = path.rsplit('/').find(|part| !part.is_empty());
        Self {
            package: Package::from_file(name.unwrap_or("manifest.yaml"), document.bytes),
            location: document.location,
            resolved: None,
        }
    }
}

fn refuse_credentials(url: &Url) -> Result<(), UrlError> {
    if url.password().is_none() && url.username().is_empty() {
        return Ok(());
    }
    let location = redact_url(url);
    Err(UrlError::Credentials { location })
}

/// The maximum size in bytes of a file. Archives, recognised by their extension, may be larger.
fn size_limit(path: &str) -> u64 {
    if is_archive(path) {
        bound::ARCHIVE
    } else {
        bound::DOCUMENT
    }
}

/// Reads the files of a local folder. Returns `None` if the location is not a local folder, or its author may
/// not read it (semantics 16).
///
/// # Errors
/// [`UrlError::Folder`].
pub fn read_folder(
    location: &str,
    access: &SourceAccess<'_>,
) -> Result<Option<FetchedPackage>, UrlError> {
    let Some(path) = local_folder(location, access) else {
        return Ok(None);
    };
    let package = files::read(&path)?;
    Ok(Some(folder_package(&path, package)))
}

/// Reads a local folder like [`read_folder`]. If the access allows it, a kustomization is built instead.
///
/// # Errors
/// [`UrlError::Folder`]; [`UrlError::Kustomize`].
pub async fn read_local(
    location: &str,
    access: &SourceAccess<'_>,
) -> Result<Option<FetchedPackage>, UrlError> {
    let Some(path) = local_folder(location, access) else {
        return Ok(None);
    };
    let package = match access.kustomize {
        Some(programs) if kustomize::is_kustomization(&path) => {
            kustomize::build(&path, programs).await?
        }
        _ => files::read(&path)?,
    };
    Ok(Some(folder_package(&path, package)))
}

/// Returns the path of a local folder that may be read.
fn local_folder(location: &str, access: &SourceAccess<'_>) -> Option<PathBuf> {
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

fn folder_package(path: &Path, package: Package) -> FetchedPackage {
    FetchedPackage {
        package,
        location: path.to_string_lossy().into_owned(),
        resolved: None,
    }
}

/// Removes secrets from the location of a source, so that it can be shown and recorded.
pub(super) fn redact_location(location: &str) -> String {
    match Url::parse(location) {
        Ok(url) => redact_url(&url),
        Err(_) => redact_text(location),
    }
}

/// Removes the credentials and the query, which can contain a signature, so that the URL can be shown and
/// recorded.
pub(super) fn redact_url(url: &Url) -> String {
    let mut url = url.clone();
    // These only fail for URLs that cannot have credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    if url.query().is_some() {
        url.set_query(Some("..."));
    }
    url.into()
}

/// Like [`redact_url`], for a text that is not a valid URL.
fn redact_text(location: &str) -> String {
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
            assert_eq!(redact_url(&Url::parse(url).unwrap()), expected);
        }
        assert_eq!(
            redact_text("https://u:p@[h/a.yaml?sig=1"),
            "https://[h/a.yaml"
        );
    }

    #[test]
    fn an_artifact_is_read_as_its_registry_speaks() {
        for (location, image, plain_http) in [
            ("oci://h.example/c:1", "h.example/c:1", false),
            ("oci://127.0.0.1:5000/c", "127.0.0.1:5000/c", true),
        ] {
            let found = artifact_source(location).unwrap();
            let path = found.path.as_deref();
            assert_eq!((found.image.as_str(), path), (image, Some(CATALOGUE_FILE)));
            assert_eq!(found.plain_http, plain_http, "{location}");
        }
        assert!(artifact_source("oci://h.example/C").is_err());
    }

    #[test]
    fn a_file_is_named_by_its_location() {
        for (location, expected) in [
            ("https://h/a/b.tgz", "b.tgz"),
            ("https://h/a/b.yaml?...", "b.yaml"),
            ("https://h/a/", "a"),
            ("", "manifest.yaml"),
        ] {
            let fetched = FetchedPackage::from(FetchedDocument {
                bytes: Vec::new(),
                location: location.to_owned(),
            });
            assert_eq!(fetched.package.as_file().unwrap().path, expected);
        }
    }
}
