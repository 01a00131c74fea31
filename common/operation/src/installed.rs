//! The current catalogue entry of a record.

use common::api::installation::{AddonInstallation, Installed};
use common::catalogue::CatalogueEntry;
use common::catalogue::select::{ClusterVersions, EntryRequest};

use crate::choose::choose;
use crate::context::Context;
use crate::error::OperationError;
use crate::origin::catalogue_of;

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
