//! Reads indexes, catalogues and packages: one module for each kind of source, and every error names its location.
//!
//! Every source yields a [`Package`] in memory and the digest of its content; what was fetched is kept in one [`cache`].
//! With a warm cache at most one request is sent: whether something that can change has changed.

pub mod archive;
pub mod cache;
pub mod chart;
pub mod child;
pub mod credentials;
pub mod dependency;
pub mod directory;
pub mod folder;
pub mod git;
mod host;
mod http;
pub mod image;
pub mod kustomize;
pub mod layout;
pub mod location;
pub mod loopback;
mod names;
pub mod pinned;
pub mod platform;
pub mod provenance;
pub mod reach;
pub mod registry;
pub mod scratch;
pub mod signature;
mod title;
pub mod url;

use std::ffi::OsStr;

use addons_render::package::Package;
use common::api::catalogue::{NotOneKind, Source, SourceKind};
use common::catalogue::channel::{LocationError, resolve_manifest};

use cache::Cache;
use credentials::Credentials;
use reach::Addresses;

pub use reach::Reach;
pub use title::title;

/// The inputs that every source shares.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// Content of earlier fetches.
    pub cache: &'a Cache,
    /// Use only the cache; no server is asked.
    pub offline: bool,
    /// The `manifestHash` of a file that is read from the cache although its URL has other content by now; only where `offline`.
    pub hash: Option<&'a str>,
    /// What the source may open on the machine that reads it.
    pub reach: &'a Reach,
    /// The credentials from the source's Secret.
    pub credentials: Option<&'a Credentials>,
    /// Where a program is searched that builds kustomizations of this machine, the value of PATH; `None` = they are not built.
    pub kustomize: Option<&'a OsStr>,
}

impl Access<'_> {
    /// Who reads, for the keys of the cache: with which Secret (its authorities included), with which account of the user (`own`), and
    /// whether this machine may be asked. What one of them may read is not shown to others.
    fn reader(&self, own: Option<&str>) -> String {
        let who = match self.credentials {
            Some(credentials) => credentials.identity(),
            None => own.unwrap_or_default().to_owned(),
        };
        match self.reach.addresses() {
            Addresses::OtherMachines => format!("{who} of a tenant"),
            Addresses::Any | Addresses::NoMetadata => who,
        }
    }
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

/// Why a source cannot be read, with what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// None of the kinds that are known, or several.
    #[error(transparent)]
    Kind(#[from] NotOneKind),
    /// A relative location that cannot be resolved.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// A file, a URL or an object in a store.
    #[error(transparent)]
    Url(#[from] url::UrlError),
    /// A repository.
    #[error(transparent)]
    Git(#[from] git::GitError),
    /// An image.
    #[error(transparent)]
    Image(#[from] image::ImageError),
    /// A chart of a repository.
    #[error(transparent)]
    Chart(#[from] chart::ChartError),
    /// A chart of a registry.
    #[error(transparent)]
    RegistryChart(#[from] registry::chart::ChartError),
    /// An archive of manifests or templates.
    #[error("archive: {0}")]
    Archive(archive::ArchiveError),
}

/// Fetches what a source holds. Relative locations are resolved against `base`; `place` names the entry where the source has
/// no location of its own.
///
/// # Errors
/// [`SourceError`].
pub async fn package(
    source: &Source,
    base: &str,
    place: &str,
    access: &Access<'_>,
) -> Result<Fetched, SourceError> {
    match source.kind()? {
        SourceKind::Git(git) => Ok(git::fetch(git, access).await?),
        SourceKind::Docker(image) => Ok(image::fetch(image, access).await?),
        SourceKind::Helm(chart) if chart.url.starts_with("oci://") => {
            Ok(registry::chart::fetch(chart, access).await?)
        }
        SourceKind::Helm(chart) => Ok(chart::fetch(chart, access).await?),
        SourceKind::Url(url) => {
            let location = resolve_manifest(base, &url.manifest)?;
            if let Some(folder) = url::local(&location, access).await? {
                return Ok(folder);
            }
            Ok(url::fetch(&location, access).await?.into())
        }
        SourceKind::Inline(inline) => Ok(Fetched {
            package: Package::file("manifest.yaml", inline.manifest.clone().into_bytes()),
            location: format!("{place}.source.inline"),
            resolved: None,
        }),
    }
}
