//! Reads indexes, catalogues and packages. Each kind of source has its own module, and every error names the
//! location that failed.
//!
//! Every source returns a [`Package`] in memory and the digest of its content. All fetched content is stored
//! in one [`cache`]. With a warm cache, a source sends at most one request, which asks whether the content
//! has changed.

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
pub mod url;

use std::ffi::OsStr;

use addons_render::package::Package;
use common::api::catalogue::{CatalogueSource, NotOneKind, Source, SourceKind};
use common::catalogue::channel::{LocationError, resolve_manifest};

use cache::SourceCache;
use credentials::Credentials;
use reach::Addresses;

pub use names::title;
pub use reach::Reach;

/// The inputs that all sources share.
#[derive(Clone, Copy, Debug)]
pub struct SourceAccess<'a> {
    /// The content of earlier fetches.
    pub cache: &'a SourceCache,
    /// Use only the cache and send no request.
    pub offline: bool,
    /// The `manifestHash` of the version to read from the cache, even if the URL has other content by now.
    /// Only used if `offline`.
    pub hash: Option<&'a str>,
    /// What the source may access on this machine.
    pub reach: &'a Reach,
    /// The credentials from the Secret of the source.
    pub credentials: Option<&'a Credentials>,
    /// The value of PATH to search for a program that builds kustomizations. `None`: kustomizations are not
    /// built.
    pub kustomize: Option<&'a OsStr>,
}

impl SourceAccess<'_> {
    /// Identifies the reader in cache keys, because content that one reader may read must not be returned to
    /// another: the Secret (with its certificate authorities) or the account of the user (`own`), and whether
    /// requests to this machine are allowed.
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

/// The content of a source.
#[derive(Clone, Debug)]
pub struct FetchedPackage {
    /// The files.
    pub package: Package,
    /// Where the files were read, without credentials, for messages: `https://HOST/REPO@COMMIT:PATH`.
    pub location: String,
    /// What a name that can change resolved to: the commit (`git`), the image digest (`docker`, `oci://`) or
    /// the chart version.
    pub resolved: Option<String>,
}

/// Why a source cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The source has no known kind, or several.
    #[error(transparent)]
    Kind(#[from] NotOneKind),
    /// The copy for a cluster has no content.
    #[error(
        "the content is in AddonCatalogue {}/{}, and this copy of it only lists what fits a cluster",
        .0.namespace, .0.name
    )]
    OtherCatalogue(CatalogueSource),
    /// A relative location cannot be resolved.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// A file, a URL or an object in a store cannot be read.
    #[error(transparent)]
    Url(#[from] url::UrlError),
    /// A git repository cannot be read.
    #[error(transparent)]
    Git(#[from] git::GitError),
    /// An image cannot be read.
    #[error(transparent)]
    Image(#[from] image::ImageFetchError),
    /// A chart of a chart repository cannot be read.
    #[error(transparent)]
    Chart(#[from] chart::RepositoryChartError),
    /// A chart in a registry cannot be read.
    #[error(transparent)]
    RegistryChart(#[from] registry::chart::RegistryChartError),
    /// An archive of manifests or templates cannot be read.
    #[error("archive: {0}")]
    Archive(archive::ArchiveError),
}

/// Fetches the content of a source. Relative locations are resolved against `base`. `place` names the entry
/// in the location of an inline source, which has no location of its own.
///
/// # Errors
/// [`SourceError`].
pub async fn package(
    source: &Source,
    base: &str,
    place: &str,
    access: &SourceAccess<'_>,
) -> Result<FetchedPackage, SourceError> {
    match source.kind()? {
        SourceKind::Git(git) => Ok(git::fetch(git, access).await?),
        SourceKind::Docker(image) => Ok(image::fetch(image, access).await?),
        SourceKind::Helm(chart) if chart.url.starts_with("oci://") => {
            Ok(registry::chart::fetch(chart, access).await?)
        }
        SourceKind::Helm(chart) => Ok(chart::fetch(chart, access).await?),
        SourceKind::Url(url) => {
            let location = resolve_manifest(base, &url.manifest)?;
            if let Some(folder) = url::read_local(&location, access).await? {
                return Ok(folder);
            }
            Ok(url::fetch(&location, access).await?.into())
        }
        SourceKind::Inline(inline) => Ok(FetchedPackage {
            package: Package::from_file("manifest.yaml", inline.manifest.clone().into_bytes()),
            location: format!("{place}.source.inline"),
            resolved: None,
        }),
        SourceKind::Catalogue(of) => Err(SourceError::OtherCatalogue(of.clone())),
    }
}
