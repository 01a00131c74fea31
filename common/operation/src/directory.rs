//! Syncs a directory: every add-on in it is installed or upgraded, and every add-on that left it is uninstalled (semantics 21).

pub mod found;

use std::collections::BTreeSet;
use std::sync::Arc;

use addons_engine::addon_manager;
use addons_plan::Deletion;
use addons_plan::choices::Choices;
use addons_render::hooks::{self, Occasion};
use addons_render::random::RandomFields;
use common::api::catalogue::{AddonVersion, CatalogueClass, Method};
use common::api::installation::{AddonInstallation, ReconcilePolicy};
use common::api::names::InstallationName;
use common::catalogue::author::Author;
use common::catalogue::due::DueVerdict;
use common::catalogue::select::SelectionRules;
use common::catalogue::{CatalogueEntry, Origin};
use common::directory::{DirectoryEntry, IgnoreReason, NAMESPACE};
use common::directory::{RemovedInstallations, find_removed};

use self::found::{DirectorySync, DirectorySyncAddon};
use crate::error::{DirectorySyncError, OperationError};
use crate::event::Finding;
use crate::inputs::{Inputs, RenderData};
use crate::intent::Edits;
use crate::plan::{Plan, plan_separately};
use crate::records::name_of;
use crate::render::Rendered;
use crate::resolve::{Resolution, Resolver};
use crate::resolved::Resolved;
use crate::stage::{FailedInstallation, StageResult, Staged};

impl Resolver<'_> {
    /// Resolves the installations of a directory. An error in one add-on does not affect the others.
    ///
    /// # Errors
    /// The objects for the naming rule of 2015 cannot be listed.
    pub(crate) async fn resolve_directory(
        &self,
        sync: &Arc<DirectorySync>,
        resolution: &mut Resolution,
    ) -> Result<(), OperationError> {
        let versioned = if sync.legacy_names {
            addon_manager::list_versioned(self.ctx.cluster().await?).await?
        } else {
            Vec::new()
        };
        if let Ok(cluster) = self.ctx.cluster().await
            && let Some(pod) = addon_manager::find_pod(cluster).await
        {
            self.ctx.report_finding(Finding::OriginalRuns { pod });
        }
        for addon in &sync.directory.addons {
            for problem in &addon.problems {
                resolution.failed.push(FailedInstallation {
                    name: addon.path.clone(),
                    error: problem.clone().into(),
                });
            }
            let ignored = addon.ignored.iter();
            for ignored in ignored.filter(|ignored| ignored.why != IgnoreReason::SameObject) {
                self.ctx.report_finding(Finding::Unmanaged(ignored.clone()));
            }
            if addon.is_left_alone() || sync.contested.contains(&addon.installation) {
                continue;
            }
            let mut superseded = versioned.clone();
            superseded.retain(|old| sync.supersedes(addon, &old.target.key));
            match self.resolve_directory_addon(addon, sync, superseded).await {
                Ok(found) => resolution.installations.extend(found),
                Err(error) => resolution.failed.push(FailedInstallation {
                    name: addon.path.clone(),
                    error,
                }),
            }
        }
        Ok(())
    }

    /// Resolves one add-on; `None` if there is nothing to install.
    async fn resolve_directory_addon(
        &self,
        addon: &DirectoryEntry,
        sync: &Arc<DirectorySync>,
        superseded: Vec<Deletion>,
    ) -> Result<Option<Resolved>, OperationError> {
        let name = InstallationName {
            namespace: self.namespace().to_owned(),
            name: addon.installation.clone(),
        };
        let existing = self.records.get(&name).cloned();
        match &existing {
            Some(record) if record.spec.addon_ref.directory.as_ref() != Some(&sync.path) => {
                return Err(DirectorySyncError::NameTaken {
                    installation: name,
                    path: addon.path.clone(),
                }
                .into());
            }
            Some(record) if record.spec.suspend => {
                self.ctx.report_finding(Finding::Suspended(name));
                return Ok(None);
            }
            None if addon.manifests.is_empty() => return Ok(None),
            _ => {}
        }
        let entry = CatalogueEntry {
            addon: addon.name.clone(),
            description: None,
            support: None,
            class: CatalogueClass::default(),
            version: AddonVersion {
                default_namespace: Some(NAMESPACE.to_owned()),
                ..AddonVersion::default()
            },
            origin: Arc::new(Origin::Directory {
                path: sync.path.clone(),
            }),
            base_url: None,
            registry: None,
            signature: None,
            place: String::new(),
            author: Author::default(),
        };
        let mut resolved = Resolved::new(name, existing, entry, SelectionRules::Channels);
        resolved.wanted.spec.reconcile = ReconcilePolicy::Ensure;
        // The addon-manager usually installed what is in the directory.
        resolved.adopts = true;
        resolved.directory_addon = Some(Arc::new(DirectorySyncAddon {
            addon: addon.clone(),
            sync: Arc::clone(sync),
            superseded,
        }));
        let resolved = self
            .complete(resolved, &Edits::default(), &Default::default())
            .await?;
        Ok(Some(resolved))
    }

    /// Returns the installations that came from a directory.
    pub(crate) fn records_of_directory<'a>(
        &'a self,
        sync: &'a DirectorySync,
    ) -> impl Iterator<Item = &'a AddonInstallation> {
        let records = self.records.in_namespace(Some(self.namespace()));
        records.filter(|record| record.spec.addon_ref.directory.as_ref() == Some(&sync.path))
    }

    /// Returns those that no longer have a manifest. Suspended ones stay.
    #[must_use]
    pub fn find_removed_installations(&self, sync: &DirectorySync) -> RemovedInstallations {
        let records = self.records_of_directory(sync);
        let records = records.filter(|record| !record.spec.suspend);
        let names: Vec<String> = records.map(|record| name_of(record).name).collect();
        find_removed(&sync.directory, names.iter().map(String::as_str))
    }

    /// Plans to uninstall them, each separately. `applied` is installed first, and takes over objects from them.
    ///
    /// # Errors
    /// The objects of the command have no order.
    pub async fn plan_removed_installations(
        &self,
        sync: &DirectorySync,
        applied: &Plan,
        choices: &Choices,
    ) -> Result<Plan, OperationError> {
        let gone = self.find_removed_installations(sync).names;
        let records = self.records_of_directory(sync);
        let records: Vec<_> = records
            .filter(|record| gone.contains(&name_of(record).name))
            .collect();
        plan_separately(self, &records, &sync.allowed, applied, choices).await
    }
}

/// Returns the objects of add-ons from a directory as if they had been rendered. They are always planned, because edits of live objects are
/// repaired (semantics 21.1).
pub(crate) fn to_rendered(found: Vec<Resolved>, choices: &Choices) -> Vec<Staged<Rendered>> {
    let rendered = found.into_iter().filter_map(|resolved| {
        let found = resolved.directory_addon.clone()?;
        let inputs = Inputs::without_cluster(&resolved, RenderData::None);
        let due = resolved.check_due(&inputs, Some(&found.addon.digest));
        let manifests = found.addon.manifests.clone();
        let occasion = match due {
            DueVerdict::No => Occasion::Repair,
            _ => resolved.occasion(),
        };
        let kept = hooks::select_for_occasion(manifests, occasion, Method::Manifest);
        let mut warnings = found.addon.warnings.clone();
        warnings.extend(kept.left_out.iter().map(ToString::to_string));
        let rendered = Rendered {
            inputs,
            manifests: kept.manifests,
            random: RandomFields::default(),
            release: None,
            manifest_hash: found.addon.digest.clone(),
            resolved: None,
            signature: None,
            location: found.addon.path.clone(),
            definitions: BTreeSet::new(),
            resting: kept.resting,
            warnings,
            is_due: due != DueVerdict::No || choices.repair,
        };
        let stage = StageResult::Due(rendered);
        Some(Staged { resolved, stage })
    });
    rendered.collect()
}
