//! Installations as a set declares them (semantics 17): the file has their whole spec, and records get it.

use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;
use common::catalogue::select::Request;

use crate::choose::choose;
use crate::error::OperationError;
use crate::intent::Edits;
use crate::origin::catalogue_of;
use crate::resolve::{Answers, Resolver};
use crate::resolved::Resolved;

impl Resolver<'_> {
    /// The record for an installation of a set.
    pub(crate) async fn declared(
        &self,
        declared: &AddonInstallation,
        answers: &Answers,
    ) -> Result<Resolved, OperationError> {
        let name = InstallationName {
            namespace: self.namespace().to_owned(),
            name: declared.metadata.name.clone().unwrap_or_default(),
        };
        let existing = self.records.get(&name).cloned();
        if existing.as_ref().is_some_and(|record| record.spec.suspend) && declared.spec.suspend {
            return Err(OperationError::Suspended(name));
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
            if spec.target_namespace.is_none() {
                spec.target_namespace.clone_from(&before.target_namespace);
            }
        }
        let wanted = AddonInstallation {
            spec,
            ..declared.clone()
        };
        let reference = &wanted.spec.addon_ref;
        let request = Request {
            addon: &reference.name,
            version: reference.version.as_deref(),
            id: reference.id.as_deref(),
            catalogue: reference.catalogue.as_deref(),
        };
        let catalogue = catalogue_of(self.ctx, &wanted).await?;
        let fit = self.ctx.fit_for(catalogue.versions()).await?;
        let rules = self.ctx.settings().rules;
        let (entry, selection) = choose(&catalogue, &request, &fit, rules)?;
        self.warn(&entry, &selection.warnings);
        let mut resolved = Resolved::new(name, existing, entry, selection.rules);
        resolved.is_asked_for = reference.version.is_some();
        resolved.wanted.spec = wanted.spec;
        self.complete(resolved, &Edits::default(), answers).await
    }
}
