//! The origin of an installation's entries.

use super::choose::choose;
use std::sync::Arc;

use common::api::installation::{AddonInstallation, Installed};
use common::catalogue::orphan::{self, MissingOrigin};
use common::catalogue::select::{ClusterVersions, EntryRequest};
use common::catalogue::{Catalogue, CatalogueEntry};

use super::policies;
use crate::catalogue::find_named;
use crate::context::{Context, Offer};
use crate::error::OperationError;
use crate::event::Finding;
use crate::records::name_of;

/// Whether an installation comes from a directory, which only `sync` reads. Reports a finding if so, because commands for all installations
/// leave it alone.
pub(crate) fn is_of_directory(ctx: &Context, record: &AddonInstallation) -> bool {
    let Some(directory) = &record.spec.addon_ref.directory else {
        return false;
    };
    ctx.report_finding(Finding::OfDirectory {
        installation: name_of(record),
        directory: directory.clone(),
    });
    true
}

/// Whether the spec of a record was carried out: its index was then allowed, and stays readable for repairs (semantics 19.2).
pub(crate) fn is_admitted(record: &AddonInstallation) -> bool {
    let status = record.status.as_ref();
    let observed = status.and_then(|status| status.observed_generation);
    record.installed().is_some() && observed == record.metadata.generation
}

/// Returns the catalogue or index that a record's entries come from.
///
/// # Errors
/// The index cannot be read, the catalogue does not exist, or the origin is a directory, which only `sync` reads.
pub async fn catalogue_of(
    ctx: &Context,
    record: &AddonInstallation,
) -> Result<Arc<Catalogue>, OperationError> {
    let reference = &record.spec.addon_ref;
    let installation = name_of(record);
    if let Some(entry) = CatalogueEntry::from_installation(reference) {
        return Ok(Arc::new(Catalogue::from_entry(entry)));
    }
    match (&reference.index, &reference.directory) {
        (Some(index), _) => {
            if !is_admitted(record) {
                policies::check_source(ctx, record).await?;
            }
            let index = ctx.index_for(index, &installation.namespace);
            let read = ctx.fetch_index(&index).await.map_err(Box::new);
            read.map_err(|error| OperationError::NoIndex {
                installation,
                error,
            })
        }
        (None, Some(directory)) => Err(OperationError::OfDirectory {
            installation,
            directory: directory.clone(),
        }),
        (None, None) => {
            let catalogues = ctx.catalogues().await?;
            let lost = orphan::find_missing_origin(record, catalogues);
            match lost {
                Some(lost) if record.installed().is_some() => {
                    return Err(OperationError::Orphaned { installation, lost });
                }
                // Nothing was installed from it, so the name may be misspelt.
                Some(MissingOrigin::Catalogue { catalogue }) => {
                    find_named(catalogues, &catalogue)?;
                }
                _ => {}
            }
            ctx.catalogue(&Offer::Catalogues).await
        }
    }
}

/// Returns the entry of the version that a record names, or else of the installed version, whether it fits the cluster or not.
///
/// # Errors
/// Its origin cannot be read, or no longer has the entry.
pub async fn find_entry(
    ctx: &Context,
    record: &AddonInstallation,
) -> Result<CatalogueEntry, OperationError> {
    let reference = &record.spec.addon_ref;
    let catalogue = catalogue_of(ctx, record).await?;
    let installed = record.installed();
    let of_installed = |field: fn(&Installed) -> &str| {
        let text = installed.map(field).filter(|text| !text.is_empty());
        text.filter(|_| reference.version.is_none())
    };
    let request = EntryRequest {
        addon: &reference.name,
        version: reference
            .version
            .as_deref()
            .or_else(|| of_installed(|installed| &installed.version)),
        id: reference
            .id
            .as_deref()
            .or_else(|| of_installed(|installed| &installed.id)),
        catalogue: reference.catalogue.as_deref(),
    };
    let any = ClusterVersions::default();
    let (entry, _) = choose(&catalogue, &request, &any, ctx.settings().rules)?;
    Ok(entry)
}
