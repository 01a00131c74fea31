//! Installations as a set declares them: the file has their whole spec, and records get it (semantics 17.8). If the set has a name, its
//! installations carry it as a label, so that those that leave the file can be uninstalled (semantics 17.9).

use common::api::installation::AddonInstallation;
use common::api::names::{InstallationName, LABEL_SET};
use common::catalogue::select::EntryRequest;
use kube::ResourceExt as _;

use crate::context::Context;
use crate::error::{MemberError, OperationError};
use crate::event::Finding;
use crate::intent::{DeclaredSet, Edits};
use crate::plan::may_uninstall;
use crate::records::name_of;
use crate::resolve::choose::choose;
use crate::resolve::origin::catalogue_of;
use crate::resolve::resolved::Resolved;
use crate::resolve::{Answers, Resolution, Resolver};

/// Returns the set that an installation is a member of.
pub(crate) fn set_of(record: &AddonInstallation) -> Option<&str> {
    record.labels().get(LABEL_SET).map(String::as_str)
}

impl Resolver<'_> {
    /// Resolves the installations of a set, and finds the members that left it. Suspended installations stay unchanged, whatever the file
    /// says, and remain members (semantics 12.1).
    ///
    /// # Errors
    /// [`MemberError::MostlyGone`].
    pub(crate) async fn resolve_set(
        &self,
        set: &DeclaredSet,
        resolution: &mut Resolution,
        answers: &Answers,
    ) -> Result<(), MemberError> {
        for one in &set.installations {
            let name = InstallationName {
                namespace: self.namespace().to_owned(),
                name: one.metadata.name.clone().unwrap_or_default(),
            };
            let existing = self.records.get(&name);
            if existing.is_some_and(|record| record.spec.suspend) {
                self.ctx.report_finding(Finding::Suspended(name));
                continue;
            }
            let member = set.name.as_deref();
            let called = name.name.clone();
            resolution.add(
                &called,
                self.resolve_member(name, one, member, answers).await,
            );
        }
        resolution.to_uninstall = self.find_removed_members(set)?;
        Ok(())
    }

    /// Returns the members of a set that are no longer in its file. Core add-ons and suspended ones stay.
    ///
    /// # Errors
    /// [`MemberError::MostlyGone`].
    pub(crate) fn find_removed_members(
        &self,
        set: &DeclaredSet,
    ) -> Result<Vec<AddonInstallation>, MemberError> {
        let (Some(name), Some(allowed)) = (&set.name, set.prune) else {
            return Ok(Vec::new());
        };
        let records = self.records.in_namespace(Some(self.namespace()));
        let members: Vec<&AddonInstallation> = records
            .filter(|record| set_of(record) == Some(name))
            .collect();
        let is_gone = |record: &&AddonInstallation| {
            let mut installations = set.installations.iter();
            !installations.any(|one| one.metadata.name == record.metadata.name)
        };
        let gone = members.iter().copied().filter(is_gone);
        let gone: Vec<_> = gone
            .filter(|record| may_uninstall(self.ctx, record))
            .collect();
        if !allowed.admits(gone.len(), members.len()) {
            return Err(MemberError::MostlyGone {
                set: name.clone(),
                gone: gone
                    .into_iter()
                    .map(|record| name_of(record).name)
                    .collect(),
                of: members.len(),
            });
        }
        Ok(gone.into_iter().cloned().collect())
    }

    /// Resolves one installation of a set. `member` is the name of the set, if it has one.
    async fn resolve_member(
        &self,
        name: InstallationName,
        declared: &AddonInstallation,
        member: Option<&str>,
        answers: &Answers,
    ) -> Result<Resolved, OperationError> {
        let existing = self.records.get(&name).cloned();
        let of = existing.as_ref().and_then(set_of);
        if let (Some(set), Some(other)) = (member, of)
            && set != other
        {
            let (other, set) = (other.to_owned(), set.to_owned());
            return Err(MemberError::OfOtherSet {
                installation: name,
                other,
                set,
            }
            .into());
        }
        let mut spec = declared.spec.clone();
        let reference = &mut spec.addon_ref;
        let before = existing.as_ref().map(|record| &record.spec);
        // The record keeps its default values of these fields, which never change.
        if let Some(before) = before {
            let origin = &before.addon_ref;
            if reference.catalogue.is_none() && reference.is_of_catalogue() {
                reference.catalogue.clone_from(&origin.catalogue);
            }
            spec.core_addon |= before.core_addon;
            if spec.core_addon && spec.addon_ref.digest.is_none() {
                spec.addon_ref.digest.clone_from(&origin.digest);
            }
            if spec.target_namespace.is_none() {
                spec.target_namespace.clone_from(&before.target_namespace);
            }
        }
        if let Some(index) = &mut spec.addon_ref.index {
            *index = Context::absolute_location(index)?;
        }
        let mut wanted = AddonInstallation {
            spec,
            ..declared.clone()
        };
        wanted.metadata.namespace = Some(name.namespace.clone());
        // An installation that already comes from this index was allowed to.
        let index = &wanted.spec.addon_ref.index;
        let same = existing.as_ref();
        if let Some(same) = same.filter(|record| record.spec.addon_ref.index == *index) {
            wanted.status.clone_from(&same.status);
            wanted.metadata.generation = same.metadata.generation;
        }
        let reference = &wanted.spec.addon_ref;
        let request = EntryRequest {
            addon: &reference.name,
            version: reference.version.as_deref(),
            id: reference.id.as_deref(),
            catalogue: reference.catalogue.as_deref(),
        };
        let catalogue = catalogue_of(self.ctx, &wanted).await;
        let catalogue = catalogue.map_err(|error| match error {
            // If nothing is installed yet, only the file can be corrected.
            OperationError::NoIndex { error, .. } if existing.is_none() => *error,
            error => error,
        })?;
        let fit = self.ctx.cluster_facts_for(catalogue.versions()).await?;
        let rules = self.ctx.settings().rules;
        let (entry, selection) = choose(&catalogue, &request, &fit, rules)?;
        self.report_warnings(&entry, &selection.warnings);
        let mut resolved = Resolved::new(name, existing, entry, selection.rules);
        resolved.is_asked_for = reference.version.is_some();
        resolved.wanted.spec = wanted.spec;
        if let Some(set) = member {
            let labels = resolved.wanted.labels_mut();
            labels.insert(LABEL_SET.to_owned(), set.to_owned());
        }
        self.complete(resolved, &Edits::default(), answers).await
    }
}
