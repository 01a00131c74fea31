//! Syncs a directory: every add-on in it is installed or upgraded, and every add-on that left it is uninstalled (semantics 21).

pub mod found;
mod left_out;

use std::sync::Arc;

use addons_engine::addon_manager;
use addons_plan::Deletion;
use addons_plan::choices::Choices;
use addons_plan::inventory::Inventory;
use common::api::catalogue::{AddonVersion, CatalogueClass};
use common::api::installation::{AddonInstallation, ReconcilePolicy};
use common::api::names::InstallationName;
use common::catalogue::author::Author;
use common::catalogue::select::SelectionRules;
use common::catalogue::{CatalogueEntry, Origin};
use common::directory::{DirectoryEntry, IgnoreReason, NAMESPACE};
use common::directory::{RemovedInstallations, find_removed};

use self::found::DirectorySync;
use crate::error::{DirectorySyncError, OperationError};
use crate::event::Finding;
use crate::intent::Edits;
use crate::plan::{Plan, plan_separately};
use crate::records::name_of;
use crate::resolve::resolved::{GivenObjects, Resolved};
use crate::resolve::{Resolution, Resolver};
use crate::stage::FailedInstallation;

impl Resolver<'_> {
    /// Resolves the installations of a directory: installs, upgrades and repairs them. An error in one add-on does not affect the others.
    ///
    /// # Errors
    /// The objects for the naming rule of 2015 cannot be listed.
    pub async fn resolve_directory(
        &self,
        sync: &DirectorySync,
    ) -> Result<Resolution, OperationError> {
        let mut resolution = Resolution {
            leaving: self.removed_records(sync).into_iter().cloned().collect(),
            ..Resolution::default()
        };
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
        Ok(resolution)
    }

    /// Resolves one add-on; `None` if there is nothing to install.
    async fn resolve_directory_addon(
        &self,
        addon: &DirectoryEntry,
        sync: &DirectorySync,
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
            deprecated: None,
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
        let inventory = Inventory::from_status(resolved.status());
        resolved.given = Some(Arc::new(GivenObjects {
            path: addon.path.clone(),
            number: addon.number,
            manifests: addon.manifests.clone(),
            digest: addon.digest.clone(),
            warnings: addon.warnings.clone(),
            kept: sync.kept_objects(addon, &inventory),
            superseded,
        }));
        let resolved = self
            .complete(resolved, &Edits::default(), &Default::default())
            .await?;
        Ok(Some(resolved))
    }

    /// Returns the installations that came from a directory.
    fn records_of_directory<'a>(
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

    fn removed_records<'a>(&'a self, sync: &'a DirectorySync) -> Vec<&'a AddonInstallation> {
        let names = self.find_removed_installations(sync).names;
        let records = self.records_of_directory(sync);
        records
            .filter(|record| names.contains(&name_of(record).name))
            .collect()
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
        let records = self.removed_records(sync);
        let kept = records.iter().map(|record| {
            let inventory = Inventory::from_status(record.status.as_ref());
            (name_of(record), sync.unprunable_objects(&inventory))
        });
        plan_separately(self, &records, kept.collect(), applied, choices).await
    }
}
