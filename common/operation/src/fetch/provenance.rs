//! Provenance files of charts.

use addons_helm::HelmError;
use addons_helm::provenance::{self, ChartProvenance};
use addons_sources::provenance::{self as file, ProvenanceError};
use addons_sources::registry::chart;
use common::catalogue::CatalogueEntry;

use super::LocatedSource;
use crate::context::Context;
use crate::error::OperationError;
use crate::render;

/// Why a chart is not verified.
#[derive(Debug, thiserror::Error)]
pub enum UnprovenError {
    /// The chart cannot be read, or there is no helm.
    #[error(transparent)]
    Operation(Box<OperationError>),
    /// The chart has no provenance file.
    #[error(transparent)]
    File(#[from] ProvenanceError),
    /// No key in the keyring signed it, or the file belongs to another archive.
    #[error(transparent)]
    Helm(#[from] HelmError),
}

impl From<OperationError> for UnprovenError {
    fn from(error: OperationError) -> Self {
        Self::Operation(Box::new(error))
    }
}

/// Fetches a chart and verifies it with its provenance file. `keyring` has public keys in the format of `gpg --export`. The signature
/// policy of the catalogue is ignored.
///
/// # Errors
/// [`UnprovenError`].
pub async fn verify(
    ctx: &Context,
    entry: &CatalogueEntry,
    keyring: &[u8],
) -> Result<ChartProvenance, UnprovenError> {
    let mut resolved = render::resolve_uninstalled(ctx, entry);
    resolved.entry.signature = None;
    let located = LocatedSource::new(ctx, &resolved).await?;
    if let Some(source) = &located.source.helm {
        chart::forget(source, &located.access(ctx)).await;
    }
    let fetched = super::package(ctx, &resolved).await?.fetched;
    let provenance = file::fetch(&located.source, &fetched, &located.access(ctx)).await?;
    let helm = ctx.helm().await?;
    let proven = provenance::verify(helm, &fetched.package, &provenance, keyring).await?;
    // For a chart in a registry, the digest is that of the manifest, by which others name it.
    let manifest = fetched
        .resolved
        .as_deref()
        .and_then(|resolved| resolved.split_once('@'));
    Ok(match manifest {
        Some((_, digest)) => ChartProvenance {
            digest: digest.to_owned(),
            ..proven
        },
        None => proven,
    })
}
