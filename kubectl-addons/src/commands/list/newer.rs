//! Finds the newer version that an installation could have.

use anyhow::Result;
use common::api::installation::AddonInstallation;
use common::catalogue::due::{DueReason, DueVerdict, decide_due};
use common::catalogue::select::{ClusterVersions, EntryRequest, choose};
use common::catalogue::{Catalogue, version_label};
use common::manifest::digest::sha256_trimmed;

use crate::session::Session;
use addons_operation::resolve::origin::catalogue_of;

/// Looks for newer versions, and collects the origins that could not be read.
pub(super) struct NewerVersions {
    /// Whether indexes are read as well. A list that does not ask for newer versions fetches nothing.
    reads_indexes: bool,
    /// The installations whose index cannot be read: `kubectl-addons/web: …`.
    pub unread: Vec<String>,
    /// Whether the cluster of the installations cannot be reached: what fits it is not known.
    pub is_lost: bool,
}

impl NewerVersions {
    pub(super) fn new(reads_indexes: bool) -> Self {
        Self {
            reads_indexes,
            unread: Vec::new(),
            is_lost: false,
        }
    }

    /// Returns the version that `upgrade` would install. `catalogue` is the one of the cluster, for `facts`.
    ///
    /// # Errors
    /// The version of the cluster cannot be read.
    pub(super) async fn find_newer(
        &mut self,
        session: &Session,
        record: &AddonInstallation,
        catalogue: &Catalogue,
        facts: &ClusterVersions,
    ) -> Result<Option<String>> {
        let reference = &record.spec.addon_ref;
        let is_index_unread = reference.index.is_some() && !self.reads_indexes;
        if reference.directory.is_some() || reference.from.is_some() || is_index_unread {
            return Ok(None);
        }
        if reference.index.is_none() {
            return Ok(newest_version(session, record, catalogue, facts));
        }
        match catalogue_of(session.ctx(), record).await {
            Ok(index) => {
                let facts = session.fit_for(&index, None, None).await?;
                Ok(newest_version(session, record, &index, &facts))
            }
            Err(error) => {
                self.unread.push(error.chain());
                Ok(None)
            }
        }
    }
}

fn newest_version(
    session: &Session,
    record: &AddonInstallation,
    catalogue: &Catalogue,
    facts: &ClusterVersions,
) -> Option<String> {
    let reference = &record.spec.addon_ref;
    let installed = record.installed().cloned().unwrap_or_default();
    let request = EntryRequest {
        addon: &reference.name,
        catalogue: reference.catalogue.as_deref(),
        ..EntryRequest::default()
    };
    let entries = catalogue.entries.iter();
    let choice = choose(entries, &request, facts, session.rules());
    let (rules, values) = (choice.rules, &installed.values_hash);
    let entry = choice.chosen?;
    // A manifest in the catalogue itself need not be fetched.
    let inline = entry.version.source.inline.as_ref();
    let hash = inline.map(|inline| sha256_trimmed(inline.manifest.as_bytes()));
    let label = version_label(&entry.version.version, &entry.version.id);
    let due = decide_due(
        &installed,
        entry,
        &record.spec,
        rules,
        hash.as_deref(),
        values,
    );
    match due {
        // A lower version is only installed if the user asks for it.
        DueVerdict::No | DueVerdict::Downgrade { .. } => None,
        DueVerdict::Yes {
            reason:
                DueReason::ManifestChanged | DueReason::RegistryChanged | DueReason::HealthChecksChanged,
        } => Some(format!("{label} (changed)")),
        _ => Some(label),
    }
}
