//! Rolls back to an earlier revision: its spec and its entry are planned like any other change (semantics 12.3).

mod kept;

use addons_engine::{EngineError, revisions};
use addons_plan::Verb;
use addons_plan::history::{self, RevisionRequest, StoredRevision};
use common::api::installation::AddonInstallation;
use common::api::names::ANNOTATION_DEFAULTED;
use common::catalogue::select::SelectionRules;
use common::catalogue::{CatalogueEntry, version_label};
use kube::ResourceExt as _;

use super::origin::catalogue_of;
use super::policies;
use super::resolved::Resolved;
use super::{Answers, Resolver};
use crate::error::{OperationError, RollbackError};
use crate::event::Finding;
use crate::fetch::LocatedSource;
use crate::intent::Edits;
use crate::records::name_of;

impl Resolver<'_> {
    /// Resolves a rollback to a revision.
    pub(crate) async fn resolve_rollback(
        &self,
        name: &str,
        to: &RevisionRequest,
        answers: &Answers,
    ) -> Result<Resolved, OperationError> {
        let namespace = self.ctx.settings().namespace.as_deref();
        let record = self.records.find(name, namespace)?;
        let kept = self.list_revisions(record).await?;
        let is_interrupted = history::is_interrupted(record);
        // An interrupted rollback continues with its revision.
        let begun = history::find_interrupted_rollback(&kept, record)
            .filter(|_| *to == RevisionRequest::Previous);
        let target = match begun {
            Some(begun) => begun,
            None => history::find_rollback_target(&kept, to, is_interrupted).map_err(|why| {
                RollbackError::NoRevision {
                    installation: name_of(record),
                    why,
                }
            })?,
        };
        let entry = self.find_revision_entry(record, target).await?;
        self.resolve_restored(record, target, entry, answers).await
    }

    /// Returns the revisions of an installation that may be rolled back, newest first.
    pub(crate) async fn list_revisions(
        &self,
        record: &AddonInstallation,
    ) -> Result<Vec<StoredRevision>, OperationError> {
        let installation = name_of(record);
        if record.spec.suspend {
            return Err(OperationError::Suspended(installation));
        }
        if let Some(directory) = &record.spec.addon_ref.directory {
            let directory = directory.clone();
            return Err(OperationError::OfDirectory {
                installation,
                directory,
            });
        }
        Ok(revisions::list(self.ctx.home().await?, record).await?)
    }

    /// Resolves the record with the spec of a revision and its entry.
    pub(crate) async fn resolve_restored(
        &self,
        record: &AddonInstallation,
        target: &StoredRevision,
        entry: CatalogueEntry,
        answers: &Answers,
    ) -> Result<Resolved, OperationError> {
        let existing = Some(record.clone());
        let mut resolved = Resolved::new(name_of(record), existing, entry, recorded_rules(target));
        resolved.is_asked_for = true;
        resolved.revision = Some(target.number);
        resolved.wanted.spec = target.spec_to_restore(&record.spec, &resolved.entry.version);
        set_defaulted(&mut resolved.wanted, target);
        if !target.spec.values_from.is_empty() {
            self.ctx
                .report_finding(Finding::SecretsOfToday(resolved.name.clone()));
        }
        self.complete(resolved, &Edits::default(), answers).await
    }

    /// Checks whether the content of a revision may be read: policies allow it, and the Secret of its source exists where credentials are
    /// looked up now. In the system namespace, both are those of its catalogue.
    pub(crate) async fn check_reachable(
        &self,
        record: &AddonInstallation,
        target: &StoredRevision,
        entry: &CatalogueEntry,
    ) -> Result<(), OperationError> {
        let name = name_of(record);
        if name.namespace == self.ctx.settings().system_namespace {
            return Ok(());
        }
        let existing = Some(record.clone());
        let mut back = Resolved::new(name, existing, entry.clone(), recorded_rules(target));
        back.wanted.spec = target.spec_to_restore(&record.spec, &entry.version);
        policies::check_before_fetch(self.ctx, &back).await?;
        LocatedSource::new(self.ctx, &back).await.map(drop)
    }

    /// Resolves a record that a rollback holds at its restored entry, or that was interrupted during the rollback (semantics 12.3). Returns
    /// `None` if no rollback does, or its revision is not kept or cannot be read. Core add-ons are held at the version that they name.
    pub(crate) async fn resolve_held(
        &self,
        record: &AddonInstallation,
    ) -> Result<Option<Resolved>, OperationError> {
        let begun = history::interrupted_rollback_target(record);
        if record.spec.core_addon || begun.is_none() && !history::is_held_by_rollback(record) {
            return Ok(None);
        }
        let kept = match revisions::list(self.ctx.home().await?, record).await {
            Ok(kept) => kept,
            Err(EngineError::Forbidden { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let back = match begun {
            Some(target) => history::find_by_content(&kept, target),
            None => kept.iter().find(|one| one.operation.verb == Verb::Rollback),
        };
        let Some(back) = back else {
            return Ok(None);
        };
        let Some(entry) = self
            .find_kept_entry(record, &record.spec.addon_ref, back)
            .await?
        else {
            return Ok(None);
        };
        let mut resolved = Resolved::new(
            name_of(record),
            Some(record.clone()),
            entry,
            recorded_rules(back),
        );
        resolved.wanted.spec = record.spec.clone();
        resolved.is_asked_for = true;
        resolved.revision = begun.map(|_| back.number);
        Ok(Some(resolved))
    }

    /// Returns a revision, to read what it holds.
    ///
    /// # Errors
    /// It is not kept, or the server cannot be reached or refuses the request.
    pub async fn find_revision(
        &self,
        record: &AddonInstallation,
        number: i64,
    ) -> Result<StoredRevision, OperationError> {
        let kept = revisions::list(self.ctx.home().await?, record).await?;
        let found = history::find_by_number(&kept, number).cloned();
        let found = found.map_err(|why| RollbackError::NoRevision {
            installation: name_of(record),
            why,
        });
        Ok(found?)
    }

    /// Returns the entry of a revision: the one that was kept with it, else the same one in its catalogue. That of a core add-on is only
    /// taken from its catalogue, because the webhook guards catalogues and core records, but no revisions (semantics 12.3).
    ///
    /// # Errors
    /// Neither has the entry, or a catalogue cannot be read.
    pub async fn find_revision_entry(
        &self,
        record: &AddonInstallation,
        revision: &StoredRevision,
    ) -> Result<CatalogueEntry, OperationError> {
        let is_core = record.spec.core_addon;
        let reference = &revision.spec.addon_ref;
        if !is_core && let Some(entry) = self.find_kept_entry(record, reference, revision).await? {
            return Ok(entry);
        }
        let mut then = record.clone();
        then.spec.addon_ref = revision.spec.addon_ref.clone();
        if then.spec.addon_ref.index != record.spec.addon_ref.index {
            // It is not known whether another index may be read.
            then.status = None;
        }
        let catalogue = catalogue_of(self.ctx, &then).await?;
        let installed = &revision.operation.installed;
        let is_same = |entry: &&CatalogueEntry| {
            entry.addon == then.spec.addon_ref.name
                && entry.version.version == installed.version
                && history::entry_digest(&entry.version) == revision.entry_digest
        };
        let found = catalogue.entries.iter().find(is_same).cloned();
        found.ok_or_else(|| {
            let reference = &then.spec.addon_ref;
            let origin = match (&reference.catalogue, &reference.index) {
                (Some(catalogue), _) => Some(format!("catalogue {catalogue}")),
                (None, Some(index)) => Some(format!("index {index}")),
                (None, None) => None,
            };
            let version = version_label(&installed.version, &installed.id);
            RollbackError::EntryLost {
                installation: name_of(record),
                revision: revision.number,
                version,
                is_core,
                origin,
            }
            .into()
        })
    }
}

/// Returns a record as it was with a revision, to read its values.
#[must_use]
pub fn record_at_revision(
    record: &AddonInstallation,
    revision: &StoredRevision,
) -> AddonInstallation {
    let mut then = record.clone();
    then.spec = revision.spec.clone();
    set_defaulted(&mut then, revision);
    then
}

/// Sets which values a record got by default, as in a revision.
fn set_defaulted(record: &mut AddonInstallation, revision: &StoredRevision) {
    let annotations = record.annotations_mut();
    match &revision.defaulted {
        Some(defaulted) => {
            annotations.insert(ANNOTATION_DEFAULTED.to_owned(), defaulted.clone());
        }
        None => {
            annotations.remove(ANNOTATION_DEFAULTED);
        }
    }
}

/// Returns the rules that chose the version of a revision.
fn recorded_rules(revision: &StoredRevision) -> SelectionRules {
    let recorded = revision.operation.installed.rules;
    recorded.map_or(SelectionRules::Channels, SelectionRules::from)
}
