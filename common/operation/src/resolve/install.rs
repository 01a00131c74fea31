//! Resolves a new installation.

use std::sync::Arc;

use common::api::installation::{AddonInstallation, AddonInstallationSpec, AddonRef};
use common::api::names::{self, INDEX_BUILTIN, InstallationName};
use common::catalogue::select::EntryRequest;
use common::catalogue::{Catalogue, CatalogueEntry, Origin};

use super::choose::choose;
use super::origin::{self, catalogue_of};
use super::policies;
use super::resolved::Resolved;
use super::{Answers, Resolver};
use crate::context::{Context, IndexLocation, Offer};
use crate::error::OperationError;
use crate::intent::NewInstallation;

impl Resolver<'_> {
    /// Resolves a new installation, or the existing one with its name.
    ///
    /// # Errors
    /// No entry fits, the verdict is a denial, or the server cannot be reached.
    pub async fn resolve_install(
        &self,
        new: &NewInstallation,
        answers: &Answers,
    ) -> Result<Resolved, OperationError> {
        self.check_indexes(&self.provisional_record(new)).await?;
        let catalogue = self.offered_catalogue(new).await?;
        let request = EntryRequest {
            addon: &new.addon.name,
            version: new.addon.version.as_deref(),
            ..EntryRequest::default()
        };
        let rules = self.ctx.settings().rules;
        let fit = self.ctx.cluster_facts_for(catalogue.versions()).await?;
        let (entry, selection) = choose(&catalogue, &request, &fit, rules)?;
        self.report_warnings(&entry, &selection.warnings);
        let name = match &new.name {
            Some(name) => name.clone(),
            None => self.default_name(&catalogue, &entry, new.target_namespace.as_deref()),
        };
        let name = InstallationName {
            namespace: self.namespace().to_owned(),
            name,
        };
        let existing = self.records.get(&name).cloned();
        if existing.as_ref().is_some_and(|record| record.spec.suspend) {
            return Err(OperationError::Suspended(name));
        }
        let mut resolved = Resolved::new(name, existing, entry, selection.rules);
        let is_named = matches!(self.offer, Offer::Entry(_));
        resolved.is_asked_for = is_named || new.addon.version.is_some();
        // The webhook guards the entry that a core record names (semantics 18.1).
        if new.addon.version.is_some() || new.core {
            resolved.pin();
        }
        let spec = &mut resolved.wanted.spec;
        let target = new.target_namespace.clone();
        spec.target_namespace = target.or(spec.target_namespace.take());
        spec.core_addon |= new.core;
        self.complete(resolved, &new.edits, answers).await
    }

    /// Returns the record of an installation as far as it is known before its catalogue is read.
    fn provisional_record(&self, new: &NewInstallation) -> AddonInstallation {
        let name = new.name.clone();
        let name = InstallationName {
            namespace: self.namespace().to_owned(),
            name: name.unwrap_or_else(|| names::installation_name(&new.addon.name)),
        };
        if let Some(existing) = self.records.get(&name) {
            return existing.clone();
        }
        let mut wanted = AddonInstallation::new(&name.name, AddonInstallationSpec::default());
        wanted.metadata.namespace = Some(name.namespace);
        wanted.spec.addon_ref.name.clone_from(&new.addon.name);
        wanted.spec.core_addon = new.core;
        wanted
    }

    /// Checks the indexes that the caller names for an installation before any of them is read (semantics 19.2).
    pub(super) async fn check_indexes(
        &self,
        installation: &AddonInstallation,
    ) -> Result<(), OperationError> {
        let Offer::Indexes(indexes) = &self.offer else {
            return Ok(());
        };
        for IndexLocation { location, .. } in indexes {
            if location == INDEX_BUILTIN {
                continue;
            }
            let location = Context::absolute_location(location)?;
            let before = &installation.spec.addon_ref;
            if before.index.as_ref() == Some(&location) && origin::is_admitted(installation) {
                continue;
            }
            let mut wanted = installation.clone();
            wanted.spec.addon_ref = AddonRef {
                name: before.name.clone(),
                index: Some(location),
                ..AddonRef::default()
            };
            policies::check_source(self.ctx, &wanted).await?;
        }
        Ok(())
    }

    /// Returns the catalogue for a new installation: the offer or, if it does not have the name, the origin of the installation with that
    /// name.
    async fn offered_catalogue(
        &self,
        new: &NewInstallation,
    ) -> Result<Arc<Catalogue>, OperationError> {
        let offered = self.ctx.catalogue(&self.offer).await?;
        let name = InstallationName {
            namespace: self.namespace().to_owned(),
            name: new.addon.name.clone(),
        };
        let is_named = new.name.is_none() && matches!(self.offer, Offer::Catalogues);
        let existing = self.records.get(&name).filter(|record| {
            let reference = &record.spec.addon_ref;
            let has_own = reference.index.is_some() || reference.from.is_some();
            let has_own = has_own && reference.name == new.addon.name;
            is_named && has_own && !offered.names().contains(&new.addon.name.as_str())
        });
        match existing {
            Some(record) => catalogue_of(self.ctx, record).await,
            None => Ok(offered),
        }
    }

    /// Returns the default name of an installation: that of the add-on. kops distinguishes entries with the same name by their namespaces,
    /// so the second of them gets a name with a hash (semantics 5).
    fn default_name(
        &self,
        catalogue: &Catalogue,
        entry: &CatalogueEntry,
        target: Option<&str>,
    ) -> String {
        let name = names::installation_name(&entry.addon);
        let target = target.or(entry.version.default_namespace.as_deref());
        let (Origin::Index { location }, Some(target)) = (&*entry.origin, target) else {
            return name;
        };
        let taken = self.records.get(&InstallationName {
            namespace: self.namespace().to_owned(),
            name: name.clone(),
        });
        let Some(spec) = taken.map(|record| &record.spec) else {
            return name;
        };
        let mut others = catalogue
            .entries
            .iter()
            .filter(|other| other.addon == entry.addon);
        let is_the_only_one =
            others.all(|other| other.version.default_namespace == entry.version.default_namespace);
        let is_same = spec
            .addon_ref
            .index
            .as_deref()
            .is_none_or(|index| index == location && is_the_only_one)
            || spec
                .target_namespace
                .as_deref()
                .is_none_or(|at| at == target);
        if is_same {
            name
        } else {
            names::second_name(&name, target)
        }
    }
}
