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
pub mod registry;
pub mod scratch;
pub mod signature;
mod title;
pub mod url;

use std::ffi::OsStr;

use common::api::catalogue::{NotOneKind, Source, SourceKind};
use common::catalogue::channel::{LocationError, resolve_manifest};
use common::render::package::Package;

use cache::Cache;
use credentials::Credentials;

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
    /// How far the source may reach into the machine that reads it.
    pub reach: Reach,
    /// The credentials from the source's Secret.
    pub credentials: Option<&'a Credentials>,
    /// Where a program is searched that builds kustomizations of this machine, the value of PATH; `None` = they are not built.
    pub kustomize: Option<&'a OsStr>,
}

impl Access<'_> {
    /// Who reads with credentials of a Secret, for the keys of the cache: what they may read is not shown to others.
    fn identity(&self) -> String {
        let identity = self.credentials.map(Credentials::identity);
        identity.unwrap_or_default()
    }
}

/// How far a source may reach into the machine that reads it, by who named it (semantics 6 and 16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The user of this machine: it may use their files, credentials and settings.
    Own,
    /// A catalogue in the cluster, or on a web server: it may not, and link-local addresses, where clouds serve the credentials
    /// of a machine, are refused.
    Cluster,
    /// An installation outside the system namespace: nor may it ask this machine itself.
    Tenant,
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
