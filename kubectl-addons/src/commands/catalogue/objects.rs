//! The catalogues that a cluster stores: their names, what they hold, and who asks to change them.

use addons_admission::Requester;
use addons_engine::identity;
use anyhow::Result;
use common::api::catalogue::{AddonCatalogue, CatalogueClass};

use crate::session::Session;

/// Returns the name of a catalogue, or an empty text.
pub(super) fn catalogue_name(object: &AddonCatalogue) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

/// `1 version`, `2 versions`.
pub(super) fn format_count(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

/// `3 add-ons, 1 version`, or `3 add-ons by reference`.
pub(super) fn count_content(object: &AddonCatalogue) -> String {
    let addons = &object.spec.addons;
    if object.spec.reference().is_some() {
        return format!("{} by reference", format_count(addons.len(), "add-on"));
    }
    let versions = addons.iter().map(|addon| addon.versions.len()).sum();
    format!(
        "{}, {}",
        format_count(addons.len(), "add-on"),
        format_count(versions, "version")
    )
}

/// Returns who makes the request. Asks the server only for core catalogues, where the verdict depends on it.
pub(super) async fn find_requester(
    session: &Session,
    objects: &[&AddonCatalogue],
) -> Result<Requester> {
    if objects
        .iter()
        .all(|object| object.spec.class != CatalogueClass::Core)
    {
        return Ok(Requester::default());
    }
    Ok(identity::whoami(session.cluster().await?).await?)
}
