//! Syncs a directory: every add-on in it is installed or upgraded, and every add-on that left it is uninstalled (semantics 21).

pub mod found;

use std::collections::BTreeSet;
use std::sync::Arc;

use addons_engine::addon_manager;
use addons_plan::Deletion;
use addons_plan::choices::Choices;
use addons_render::hooks::{self, Occasion};
use addons_render::random::Random;
use common::api::catalogue::{AddonVersion, CatalogueClass, Method};
use common::api::installation::{AddonInstallation, Reconcile};
use common::api::names::InstallationName;
use common::catalogue::author::Author;
use common::catalogue::due::Due;
use common::catalogue::select::Rules;
use common::catalogue::{Entry, Origin};
use common::directory::gone::{Gone, gone};
use common::directory::{Addon, NAMESPACE, Reason};

use self::found::{DirectorySync, Found};
use crate::error::{NotSynced, OperationError};
use crate::event::Finding;
use crate::inputs::{Data, Inputs};
use crate::intent::Edits;
use crate::plan::{Plan, plan_gone};
use crate::records::name_of;
use crate::render::Rendered;
use crate::resolve::{Resolution, Resolver};
use crate::resolved::Resolved;
use crate::stage::{Failed, Stage, Staged};

impl Resolver<'_> {
    /// Resolves the installations of a directory. An error in one add-on does not affect the others.
    ///
    /// # Errors
    /// The objects for the naming rule of 2015 cannot be listed.
    pub(crate) async fn directory(
        &self,
        sync: &Arc<DirectorySync>,
        resolution: &mut Resolution,
    ) -> Result<(), OperationError> {
        let versioned = if sync.legacy_names {
            addon_manager::versioned(self.ctx.cluster().await?).await?
        } else {
            Vec::new()
        };
        if let Ok(cluster) = self.ctx.cluster().await
            && let Some(pod) = addon_manager::pod(cluster).await
        {
            self.ctx.find(Finding::OriginalRuns { pod });
        }
        for addon in &sync.directory.addons {
            for problem in &addon.problems {
                resolution.failed.push(Failed {
                    name: addon.path.clone(),
                    error: problem.clone().into(),
                });
            }
            let ignored = addon.ignored.iter();
            for ignored in ignored.filter(|ignored| ignored.why != Reason::SameObject) {
                self.ctx.find(Finding::Unmanaged(ignored.clone()));
            }
            if addon.is_left_alone() || sync.contested.contains(&addon.installation) {
                continue;
            }
            let mut superseded = versioned.clone();
            superseded.retain(|old| sync.supersedes(addon, &old.target.key));
            match self.found(addon, sync, superseded).await {
                Ok(found) => resolution.installations.extend(found),
                Err(error) => resolution.failed.push(Failed {
                    name: addon.path.clone(),
                    error,
                }),
            }
        }
        Ok(())
    }

    /// Resolves one add-on; `None` if there is nothing to install.
    async fn found(
        &self,
        addon: &Addon,
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
                return Err(NotSynced::NameTaken {
                    installation: name,
                    path: addon.path.clone(),
                }
                .into());
            }
            Some(record) if record.spec.suspend => {
                self.ctx.find(Finding::Suspended(name));
                return Ok(None);
            }
            None if addon.manifests.is_empty() => return Ok(None),
            _ => {}
        }
        let entry = Entry {
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
        let mut resolved = Resolved::new(name, existing, entry, Rules::Channels);
        resolved.wanted.spec.reconcile = Reconcile::Ensure;
        // The addon-manager usually installed what is in the directory.
        resolved.adopts = true;
        resolved.found = Some(Arc::new(Found {
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
    pub(crate) fn installed_of<'a>(
        &'a self,
        sync: &'a DirectorySync,
    ) -> impl Iterator<Item = &'a AddonInstallation> {
        let records = self.records.within(Some(self.namespace()));
        records.filter(|record| record.spec.addon_ref.directory.as_ref() == Some(&sync.path))
    }

    /// Returns those that no longer have a manifest. Suspended ones stay.
    #[must_use]
    pub fn gone(&self, sync: &DirectorySync) -> Gone {
        let records = self.installed_of(sync);
        let records = records.filter(|record| !record.spec.suspend);
        let names: Vec<String> = records.map(|record| name_of(record).name).collect();
        gone(&sync.directory, names.iter().map(String::as_str))
    }

    /// Plans to uninstall them, each separately. `applied` is installed first, and takes over objects from them.
    ///
    /// # Errors
    /// The objects of the command have no order.
    pub async fn plan_gone(
        &self,
        sync: &DirectorySync,
        applied: &Plan,
        choices: &Choices,
    ) -> Result<Plan, OperationError> {
        let gone = self.gone(sync).names;
        let records = self.installed_of(sync);
        let records: Vec<_> = records
            .filter(|record| gone.contains(&name_of(record).name))
            .collect();
        plan_gone(self, &records, &sync.allowed, applied, choices).await
    }
}

/// Returns the objects of add-ons from a directory as if they had been rendered. They are always planned, because edits of live objects are
/// repaired (semantics 21.1).
pub(crate) fn rendered(found: Vec<Resolved>, choices: &Choices) -> Vec<Staged<Rendered>> {
    let rendered = found.into_iter().filter_map(|resolved| {
        let found = resolved.found.clone()?;
        let inputs = Inputs::given(&resolved, Data::None);
        let due = resolved.due(&inputs, Some(&found.addon.digest));
        let manifests = found.addon.manifests.clone();
        let occasion = match due {
            Due::No => Occasion::Repair,
            _ => resolved.occasion(),
        };
        let kept = hooks::of_occasion(manifests, occasion, Method::Manifest);
        let mut warnings = found.addon.warnings.clone();
        warnings.extend(kept.left_out.iter().map(ToString::to_string));
        let rendered = Rendered {
            inputs,
            manifests: kept.manifests,
            random: Random::default(),
            release: None,
            manifest_hash: found.addon.digest.clone(),
            resolved: None,
            signature: None,
            location: found.addon.path.clone(),
            definitions: BTreeSet::new(),
            resting: kept.resting,
            warnings,
            is_due: due != Due::No || choices.repair,
        };
        let stage = Stage::Due(rendered);
        Some(Staged { resolved, stage })
    });
    rendered.collect()
}
