//! Installations as a set declares them (semantics 17): the file has their whole spec, and records get it. Those that were applied
//! under the name of the set carry it as a label, so that what the file does not have any more can be uninstalled.

use addons_plan::prune::limit::PruneLimit;
use common::api::installation::AddonInstallation;
use common::api::names::{InstallationName, LABEL_SET};
use common::catalogue::select::Request;
use kube::ResourceExt as _;

use crate::choose::choose;
use crate::context::Context;
use crate::error::OperationError;
use crate::event::Finding;
use crate::intent::Edits;
use crate::origin::catalogue_of;
use crate::plan::may_go;
use crate::records::name_of;
use crate::resolve::{Answers, Resolution, Resolver};
use crate::resolved::Resolved;

/// A set, and what becomes of its members that its file does not have any more.
#[derive(Clone, Debug, Default)]
pub struct DeclaredSet {
    /// The installations of the file.
    pub installations: Vec<AddonInstallation>,
    /// The name of the set: its installations become members of it.
    pub name: Option<String>,
    /// How many of its members may be uninstalled because the file does not have them any more; `None` = all of them stay.
    pub prune: Option<PruneLimit>,
}

/// Why a set is not applied. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// Most of its members are not in the file any more: a file that was cut off, or that of another set, looks like that.
    #[error("{} of the {of} installations of set {set} are no longer in the file: {}", gone.len(), gone.join(", "))]
    MostlyGone {
        /// The set.
        set: String,
        /// The installations that are not in the file.
        gone: Vec<String>,
        /// How many members the set has.
        of: usize,
    },
    /// Two sets would undo each other.
    #[error("installation {installation} is a member of set {other}, and this is set {set}")]
    OfOtherSet {
        /// The installation.
        installation: InstallationName,
        /// The set that it is a member of.
        other: String,
        /// The set that is applied.
        set: String,
    },
}

/// The set that an installation is a member of.
pub(crate) fn set_of(record: &AddonInstallation) -> Option<&str> {
    record.labels().get(LABEL_SET).map(String::as_str)
}

impl Resolver<'_> {
    /// The installations of a set, and those that are gone from it. What is suspended in the cluster stays as it is, whatever the file
    /// says of it (semantics 12), and is still in the set.
    ///
    /// # Errors
    /// [`MemberError::MostlyGone`].
    pub(crate) async fn declared(
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
                self.ctx.find(Finding::Suspended(name));
                continue;
            }
            let member = set.name.as_deref();
            let called = name.name.clone();
            resolution.add(&called, self.member(name, one, member, answers).await);
        }
        resolution.gone = self.left(set)?;
        Ok(())
    }

    /// The members of a set that its file does not have any more. Core add-ons and suspended ones stay.
    ///
    /// # Errors
    /// [`MemberError::MostlyGone`].
    pub(crate) fn left(&self, set: &DeclaredSet) -> Result<Vec<AddonInstallation>, MemberError> {
        let (Some(name), Some(allowed)) = (&set.name, set.prune) else {
            return Ok(Vec::new());
        };
        let records = self.records.within(Some(self.namespace()));
        let members: Vec<&AddonInstallation> = records
            .filter(|record| set_of(record) == Some(name))
            .collect();
        let is_gone = |record: &&AddonInstallation| {
            let mut installations = set.installations.iter();
            !installations.any(|one| one.metadata.name == record.metadata.name)
        };
        let gone = members.iter().copied().filter(is_gone);
        let gone: Vec<_> = gone.filter(|record| may_go(self.ctx, record)).collect();
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

    /// The record for an installation of a set. `member`: the name of the set, where it has one.
    async fn member(
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
        // What a record got by default stays: these fields never change.
        if let Some(before) = before {
            let origin = &before.addon_ref;
            let names_none = reference.catalogue.is_none()
                && reference.index.is_none()
                && reference.directory.is_none();
            if names_none {
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
            *index = Context::location(index)?;
        }
        let mut wanted = AddonInstallation {
            spec,
            ..declared.clone()
        };
        wanted.metadata.namespace = Some(name.namespace.clone());
        // What is installed from this index already was allowed to.
        let index = &wanted.spec.addon_ref.index;
        let same = existing.as_ref();
        if let Some(same) = same.filter(|record| record.spec.addon_ref.index == *index) {
            wanted.status.clone_from(&same.status);
            wanted.metadata.generation = same.metadata.generation;
        }
        let reference = &wanted.spec.addon_ref;
        let request = Request {
            addon: &reference.name,
            version: reference.version.as_deref(),
            id: reference.id.as_deref(),
            catalogue: reference.catalogue.as_deref(),
        };
        let catalogue = catalogue_of(self.ctx, &wanted).await;
        let catalogue = catalogue.map_err(|error| match error {
            // Of what is not installed yet there is nothing to mend but the file.
            OperationError::NoIndex { error, .. } if existing.is_none() => *error,
            error => error,
        })?;
        let fit = self.ctx.fit_for(catalogue.versions()).await?;
        let rules = self.ctx.settings().rules;
        let (entry, selection) = choose(&catalogue, &request, &fit, rules)?;
        self.warn(&entry, &selection.warnings);
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
