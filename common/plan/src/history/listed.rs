//! Decides which catalogue a stored revision's entry belongs to. Anyone who may write revisions in a tenant's namespace could make one up,
//! so the entry belongs to a catalogue only if that catalogue lists it now; otherwise it counts as named by the installation (semantics
//! 12.4).

use std::sync::Arc;

use super::StoredRevision;
use common::api::catalogue::{AddonVersion, CatalogueClass, with_digest};
use common::api::installation::AddonRef;
use common::api::names::INDEX_BUILTIN;
use common::catalogue::{Catalogue, CatalogueEntry, Origin};
use common::manifest::digest;

impl StoredRevision {
    /// Finds the entry of a catalogue of today with the same content as the stored one, to be read from where the catalogue says. If it has
    /// no hash that can be verified, it gets that of the installed content, unless its catalogue requires signatures: then only its own
    /// hash may replace a signature. `reference` is how the installation refers to it.
    #[must_use]
    pub fn find_listed_entry(
        &self,
        reference: &AddonRef,
        today: &Catalogue,
    ) -> Option<CatalogueEntry> {
        let kept = self.entry.as_ref()?;
        if kept.addon != reference.name || reference.index.is_some() {
            return None;
        }
        let is_listed = |entry: &&CatalogueEntry| {
            matches!(*entry.origin, Origin::Catalogue { .. })
                && entry.addon == kept.addon
                && is_same_version(&kept.version, &entry.version)
        };
        let listed: Vec<&CatalogueEntry> = today.entries.iter().filter(is_listed).collect();
        let mut all = listed.iter().copied();
        let of_same = all.find(|entry| entry.origin == kept.origin);
        let mut entry = of_same.or(listed.first().copied())?.clone();
        let requires = entry.signature.as_ref().is_some_and(|it| it.required);
        let hash = &self.operation.installed.manifest_hash;
        if entry.verifiable_hash().is_none() && !requires && digest::check_hash(hash).is_ok() {
            entry.version.manifest_hash = Some(hash.clone());
        }
        Some(entry)
    }

    /// Returns the entry as one that the installation names: from its index, or otherwise from no catalogue, whatever the revision says.
    /// `place` is its location in the second case.
    #[must_use]
    pub fn to_unlisted_entry(&self, reference: &AddonRef, place: String) -> Option<CatalogueEntry> {
        let mut entry = self.entry_as_installed()?;
        match find_index(&entry, reference) {
            Some(location) => {
                let location = location.to_owned();
                entry.origin = Arc::new(Origin::Index { location });
            }
            None => {
                entry.origin = Arc::new(Origin::Index { location: place });
                entry.place = String::new();
                entry.class = CatalogueClass::Custom;
                entry.support = None;
                entry.signature = None;
            }
        }
        Some(entry)
    }

    /// Returns the catalogues that an unlisted entry claims to be from; `None` if it is from an index.
    #[must_use]
    pub fn claimed_catalogues<'a>(&'a self, reference: &'a AddonRef) -> Option<Vec<&'a str>> {
        let entry = self.entry.as_ref()?;
        if find_index(entry, reference).is_some() {
            return None;
        }
        let named = reference.catalogue.as_deref();
        let kept = match &*entry.origin {
            Origin::Catalogue { name, .. } => Some(name.as_str()),
            Origin::Index { .. } | Origin::Installation { .. } | Origin::Directory { .. } => None,
        };
        Some(named.into_iter().chain(kept).collect())
    }
}

/// Returns the index of the installation, if the entry is from it. Built-in entries are from no index of a tenant.
fn find_index<'a>(entry: &CatalogueEntry, reference: &'a AddonRef) -> Option<&'a str> {
    let is_of_index = matches!(*entry.origin, Origin::Index { .. });
    let index = reference.index.as_deref();
    index.filter(|index| is_of_index && *index != INDEX_BUILTIN)
}

/// Whether a stored version is one that a catalogue lists, ignoring what a rollback wrote into it: the commit, the digest or the hash of
/// the installed content.
fn is_same_version(kept: &AddonVersion, listed: &AddonVersion) -> bool {
    let mut kept = kept.clone();
    let has_hash = |hash: &String| digest::check_hash(hash).is_ok();
    if !listed.manifest_hash.as_ref().is_some_and(has_hash) {
        kept.manifest_hash.clone_from(&listed.manifest_hash);
    }
    if let (Some(kept), Some(listed)) = (&mut kept.source.git, &listed.source.git) {
        let commit = kept.r#ref.as_ref().and_then(|it| it.commit.as_ref());
        if commit.is_some() {
            kept.r#ref.clone_from(&listed.r#ref);
        }
    }
    if let (Some(kept), Some(listed)) = (&mut kept.source.docker, &listed.source.docker) {
        let pinned = kept.image.rsplit_once('@');
        let pinned = pinned.map(|(_, digest)| with_digest(&listed.image, digest));
        if pinned.as_ref() == Some(&kept.image) {
            kept.image.clone_from(&listed.image);
        }
    }
    kept == *listed
}

#[cfg(test)]
mod tests;
