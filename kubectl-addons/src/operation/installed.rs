//! The entry that a record was installed from, as it stands now.

use anyhow::{Result, bail};
use common::api::installation::AddonInstallation;
use common::catalogue::select::{ClusterFacts, Request};
use common::catalogue::{Catalogue, Entry};

use crate::session::Session;

use super::choose::choose;
use super::known::name_of;

/// The entry of the version that a record names, whether it fits the cluster or not.
///
/// # Errors
/// Its origin cannot be read, or holds it no more.
pub async fn entry(session: &Session, record: &AddonInstallation) -> Result<Entry> {
    let reference = &record.spec.addon_ref;
    let catalogue = match (&reference.index, &reference.directory) {
        (Some(index), _) => session.index(index).await?,
        (None, Some(directory)) => bail!(
            "{} comes from directory {directory}, which has no entries",
            name_of(record)
        ),
        (None, None) => Catalogue::of_objects(session.catalogues().await?),
    };
    let request = Request {
        addon: &reference.name,
        version: reference.version.as_deref(),
        id: reference.id.as_deref(),
        catalogue: reference.catalogue.as_deref(),
    };
    let (entry, _) = choose(
        &catalogue,
        &request,
        &ClusterFacts::default(),
        session.rules(),
    )?;
    Ok(entry)
}
