//! Decides which catalogue the entry of a stored revision belongs to (semantics 12.4).

use addons_plan::history::StoredRevision;
use common::api::installation::{AddonInstallation, AddonRef};
use common::catalogue::{CatalogueEntry, version_label};

use super::RollbackError;
use crate::context::{Context, Offer};
use crate::error::OperationError;
use crate::fetch::signature;
use crate::records::name_of;
use crate::resolve::Resolver;
use crate::resolve::choose::check_read;

impl Resolver<'_> {
    /// Returns the entry of a revision, or `None` if none was kept. In the system namespace it belongs to its catalogue. Elsewhere, authors
    /// of revisions must get neither the credentials of a catalogue nor past its policies: the entry belongs to a catalogue that lists it
    /// now, else it counts as named by the tenant. `reference` is the reference of the installation.
    pub(super) async fn find_kept_entry(
        &self,
        record: &AddonInstallation,
        reference: &AddonRef,
        revision: &StoredRevision,
    ) -> Result<Option<CatalogueEntry>, OperationError> {
        if let Some(own) = CatalogueEntry::from_installation(reference) {
            return Ok(Some(own));
        }
        let Some(entry) = revision.entry_as_installed() else {
            return Ok(None);
        };
        let installation = name_of(record);
        if installation.namespace == self.ctx.settings().system_namespace {
            return signature::with_current_policy(self.ctx, entry)
                .await
                .map(Some);
        }
        if let Some(claimed) = revision.claimed_catalogues(reference)
            && self.ctx.readable_catalogues().await?.is_some()
        {
            let today = self.ctx.catalogue(&Offer::Catalogues).await?;
            if let Some(listed) = revision.find_listed_entry(reference, &today) {
                return Ok(Some(listed));
            }
            check_read(&today, &entry.addon, reference.catalogue.as_deref())?;
            if let Some(catalogue) = find_bypassed_catalogue(self.ctx, &entry, &claimed).await? {
                let version = &entry.version;
                return Err(RollbackError::Unlisted {
                    installation,
                    revision: revision.number,
                    version: version_label(&version.version, &version.id),
                    catalogue,
                }
                .into());
            }
        }
        let place = format!(
            "revision {} of {installation}, which no catalogue lists",
            revision.number
        );
        Ok(revision.to_unlisted_entry(reference, place))
    }
}

/// Returns the catalogue whose signature requirement an entry that it does not list would bypass.
async fn find_bypassed_catalogue(
    ctx: &Context,
    entry: &CatalogueEntry,
    claimed: &[&str],
) -> Result<Option<String>, OperationError> {
    let objects = ctx.contents().await?.objects;
    Ok(signature::find_requiring(objects, &entry.addon, claimed).map(str::to_owned))
}
