//! Fetches the provenance file of a chart. In a chart repository it is a file next to the archive, in a
//! registry a layer of the same manifest.

use ::url::{Origin, Url};
use common::api::catalogue::{HelmSource, Source};

use crate::http::bound;
use crate::registry::manifest::BlobDescriptor;
use crate::registry::{self, RegistryAccessError, RegistryClient};
use crate::url::{self, UrlError};
use crate::{FetchedPackage, SourceAccess};

/// The media type of the layer in a registry.
const LAYER: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

/// Why there is no provenance file.
#[derive(Debug, thiserror::Error)]
pub enum ProvenanceError {
    /// The source is not a chart of a repository or a registry.
    #[error("only charts of repositories and registries have provenance files")]
    NoChart,
    /// The chart has no provenance file.
    #[error("{location} has no provenance file; helm package --sign makes one")]
    Missing {
        /// `HOST/PATH@sha256:…`.
        location: String,
    },
    /// The provenance file cannot be read.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The provenance file cannot be read.
    #[error(transparent)]
    Registry(#[from] RegistryAccessError),
}

/// Fetches the provenance file of the chart `fetched`, which comes from `source`.
///
/// # Errors
/// [`ProvenanceError`].
pub async fn fetch(
    source: &Source,
    fetched: &FetchedPackage,
    access: &SourceAccess<'_>,
) -> Result<Vec<u8>, ProvenanceError> {
    let chart = source.helm.as_ref().ok_or(ProvenanceError::NoChart)?;
    match chart.url.strip_prefix("oci://") {
        Some(path) => fetch_from_registry(chart, path, fetched, access).await,
        None => {
            let location = format!("{}.prov", fetched.location);
            let is_own = origin(&location) == origin(&chart.url);
            let access = SourceAccess {
                credentials: access.credentials.filter(|_| is_own),
                ..*access
            };
            Ok(url::fetch(&location, &access).await?.bytes)
        }
    }
}

async fn fetch_from_registry(
    chart: &HelmSource,
    path: &str,
    fetched: &FetchedPackage,
    access: &SourceAccess<'_>,
) -> Result<Vec<u8>, ProvenanceError> {
    let path = path.trim_end_matches('/');
    let reference = registry::reference(&format!("{path}/{}", chart.chart))?;
    let mut registry = RegistryClient::open(&reference, chart.plain_http, access)?;
    let resolved = fetched.resolved.as_deref().unwrap_or_default();
    let digest = resolved.rsplit('@').next().unwrap_or_default();
    let found = registry.image(digest).await?;
    let is_provenance = |layer: &&BlobDescriptor| layer.media_type == LAYER;
    let Some(layer) = found.manifest.layers.iter().find(is_provenance) else {
        return Err(ProvenanceError::Missing {
            location: format!("{}@{digest}", registry::repository(&reference)),
        });
    };
    Ok(registry.blob(layer).await?.read(bound::SMALL).await?)
}

fn origin(location: &str) -> Option<Origin> {
    Url::parse(location).ok().map(|url| url.origin())
}
