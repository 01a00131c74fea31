//! kops' records as they were read.

use common::api::installation::Installed;
use common::catalogue::CatalogueEntry;
use common::catalogue::channel::ChannelVersion;
use common::catalogue::due::{DueReason, DueVerdict, compare};
use common::catalogue::select::SelectionRules;
use common::manifest::digest;

/// kops' record of one add-on, as it was read.
#[derive(Clone, Debug)]
pub struct KopsState {
    /// The namespace of the entry, which carries the annotation.
    pub namespace: String,
    /// The index, as kops records it.
    pub channel: String,
    /// The text of the annotation.
    pub text: Option<String>,
    /// Its content; `None` if it is missing or cannot be read.
    pub found: Option<ChannelVersion>,
    /// The rules that compare it with the entry. kops 1.22 and later record no version: until our first write the channels rules decide, or
    /// every add-on of such a cluster would be due.
    pub(super) rules: SelectionRules,
}

impl KopsState {
    /// Whether the annotation, and not our own record, says what is installed: kops has changed the add-on since, we never applied it, or
    /// its hash says nothing of the content, and kops compares it as text.
    #[must_use]
    pub fn decides(&self, installed: Option<&Installed>) -> bool {
        match (&self.found, installed) {
            (Some(found), Some(installed)) => {
                installed.adopted || has_opaque_hash(found) || !is_same_content(found, installed)
            }
            _ => true,
        }
    }

    /// Returns whether the add-on is due according to the annotation, if the annotation decides.
    pub(crate) fn due(
        &self,
        entry: &CatalogueEntry,
        installed: Option<&Installed>,
    ) -> Option<DueVerdict> {
        if !self.decides(installed) {
            return None;
        }
        let Some(found) = &self.found else {
            let reason = match installed {
                Some(_) => DueReason::NotRecorded,
                None => DueReason::NotInstalled,
            };
            return Some(DueVerdict::Yes { reason });
        };
        Some(compare(
            found.replacement_key(),
            entry.replacement_key(),
            self.rules,
        ))
    }
}

/// Whether an annotation says the same as our record of what is installed.
fn is_same_content(found: &ChannelVersion, installed: &Installed) -> bool {
    let same = |theirs: &Option<String>, ours: &str| theirs.as_deref().unwrap_or_default() == ours;
    let hash = found.manifest_hash.as_ref();
    // kops 1.22 and later drop the version.
    (found.version.is_none() || same(&found.version, &installed.version))
        && same(&found.id, &installed.id)
        && hash.is_none_or(|hash| *hash == installed.manifest_hash)
}

/// Whether the hash of an annotation cannot be verified, as an md5.
fn has_opaque_hash(found: &ChannelVersion) -> bool {
    let hash = found.manifest_hash.as_ref();
    hash.is_some_and(|hash| digest::check_hash(hash).is_err())
}
