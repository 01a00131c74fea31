//! Images and artifacts of a registry.

mod access;
mod bytes;
mod content;
mod faults;
mod warm;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;

use addons_sources::cache::SourceCache;
use addons_sources::credentials::Credentials;
use addons_sources::image::{ImageFetchError, fetch};
use addons_sources::{FetchedPackage, Reach, SourceAccess};
pub use addons_tests::servers::registry::tar;
use addons_tests::servers::registry::{Layer, PASSWORD, Registry, USER};
use anyhow::Result;
use common::api::catalogue::DockerSource;
use common::api::names::ANNOTATION_ALLOWED_HOSTS;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use tempfile::TempDir;

pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
pub const GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub const ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
pub const DOCKER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";

/// Who reads: a cache of its own, and perhaps a Secret.
pub struct Reader {
    cache: SourceCache,
    pub folder: TempDir,
    pub credentials: Option<Credentials>,
    pub offline: bool,
    pub reach: Reach,
}

impl Reader {
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        Ok(Self {
            cache: SourceCache::new(Some(folder.path().join("cache"))),
            folder,
            credentials: None,
            offline: false,
            reach: Reach::cluster(),
        })
    }

    /// One whose Secret is for a registry.
    pub fn with(credentials: Credentials) -> Result<Self> {
        let credentials = Some(credentials);
        Ok(Self {
            credentials,
            ..Self::new()?
        })
    }

    pub fn access(&self) -> SourceAccess<'_> {
        SourceAccess {
            cache: &self.cache,
            offline: self.offline,
            hash: None,
            reach: &self.reach,
            credentials: self.credentials.as_ref(),
            kustomize: None,
        }
    }

    /// Over plain HTTP.
    pub async fn fetch(&self, image: &str, path: &str) -> Result<FetchedPackage, ImageFetchError> {
        self.fetch_from(&source(image, path, true)).await
    }

    pub async fn fetch_from(
        &self,
        source: &DockerSource,
    ) -> Result<FetchedPackage, ImageFetchError> {
        fetch(source, &self.access()).await
    }
}

pub fn source(image: &str, path: &str, plain_http: bool) -> DockerSource {
    DockerSource {
        image: image.to_owned(),
        path: (!path.is_empty()).then(|| path.to_owned()),
        plain_http,
        ..DockerSource::default()
    }
}

/// Data of a typed Secret for some hosts.
pub fn secret(kind: &str, data: &[(&str, &str)], hosts: &str) -> Result<Credentials> {
    let mut secret = Secret {
        type_: Some(kind.to_owned()),
        data: Some(
            data.iter()
                .map(|(key, text)| ((*key).to_owned(), ByteString(text.as_bytes().to_vec())))
                .collect(),
        ),
        ..Secret::default()
    };
    secret.metadata.namespace = Some("system".to_owned());
    secret.metadata.name = Some("pull".to_owned());
    let annotations = BTreeMap::from([(ANNOTATION_ALLOWED_HOSTS.to_owned(), hosts.to_owned())]);
    secret.metadata.annotations = Some(annotations);
    Ok(Credentials::read(&secret)?)
}

pub fn password(password: &str, hosts: &str) -> Result<Credentials> {
    let data = [("username", USER), ("password", password)];
    secret("kubernetes.io/basic-auth", &data, hosts)
}

/// That of the user of the registry.
pub fn right(registry: &str) -> Result<Credentials> {
    password(PASSWORD, registry)
}

pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

pub fn layer(media_type: &'static str, bytes: Vec<u8>) -> Layer {
    Layer {
        media_type,
        bytes,
        title: None,
    }
}

/// The image that most tests read: `/m/a.yaml` and `/m/b.yaml`, the first of which the second layer replaces.
pub async fn push_app(registry: &Registry, repository: &str, tag: &str) -> Result<String> {
    let layers = [
        layer(
            GZIP,
            gzip(&tar(&[("m/a.yaml", "old"), ("m/b.yaml", "b")])?)?,
        ),
        layer(GZIP, gzip(&tar(&[("m/a.yaml", "new")])?)?),
    ];
    registry.push(repository, tag, CONFIG, &layers).await
}

/// The files as `PATH:CONTENT`.
pub fn files(fetched: &FetchedPackage) -> String {
    let files = fetched.package.files().iter();
    let files = files.map(|file| format!("{}:{}", file.path, String::from_utf8_lossy(&file.bytes)));
    files.collect::<Vec<_>>().join(" ")
}

/// The whole chain, as people see it.
pub fn text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}

/// The files, or the error.
pub fn outcome(fetched: Result<FetchedPackage, ImageFetchError>) -> String {
    match fetched {
        Ok(fetched) => files(&fetched),
        Err(error) => text(&error),
    }
}
