//! Syncs a directory: every add-on in it is installed or upgraded, and every add-on that left it is uninstalled (semantics 21).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_engine::addon_manager;
use addons_plan::Deletion;
use addons_plan::choices::Choices;
use addons_plan::inventory::Inventory;
use addons_render::hooks::{self, Occasion};
use addons_render::random::Random;
use common::api::catalogue::{AddonVersion, CatalogueClass, Method};
use common::api::installation::{AddonInstallation, Reconcile};
use common::api::names::InstallationName;
use common::catalogue::author::Author;
use common::catalogue::due::Due;
use common::catalogue::select::Rules;
use common::catalogue::{Entry, Origin};
use common::directory::allowed::AllowList;
use common::directory::gone::{Gone, gone};
use common::directory::legacy::is_other_version;
use common::directory::{Addon, Directory, NAMESPACE, Reason};
use common::manifest::key::ObjectKey;

use crate::error::OperationError;
use crate::event::Finding;
use crate::inputs::{Data, Inputs};
use crate::intent::Edits;
use crate::plan::{Plan, plan_gone};
use crate::records::name_of;
use crate::render::Rendered;
use crate::resolve::{Resolution, Resolver};
use crate::resolved::Resolved;
use crate::stage::{Failed, Stage, Staged};

/// Why a directory, or an add-on in it, is not synced. Nothing of it was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSynced {
    /// The directory has no manifest, so nothing is uninstalled because of it.
    #[error(
        "directory {directory} holds no manifest, and {installations} of the installations came from it: nothing is uninstalled"
    )]
    Empty {
        /// The directory.
        directory: String,
        /// How many installations came from it.
        installations: usize,
    },
    /// More than half of the add-ons that came from the directory are missing from it, so nothing is uninstalled because of it.
    #[error("{gone} of the {of} add-ons of directory {directory} are gone: nothing is uninstalled")]
    MostlyGone {
        /// The directory.
        directory: String,
        /// How many installations no longer have a manifest.
        gone: usize,
        /// How many installations came from it.
        of: usize,
    },
    /// An installation from elsewhere has the name of an add-on.
    #[error("{path}: the installation {installation} does not come from this directory")]
    NameTaken {
        /// The installation.
        installation: InstallationName,
        /// The file or folder.
        path: String,
    },
}

/// A directory that was read.
#[derive(Clone, Debug, Default)]
pub struct DirectorySync {
    /// Its absolute path, with which installations are recorded.
    pub path: String,
    /// Its content.
    pub directory: Directory,
    /// The kinds that may be pruned.
    pub allowed: AllowList,
    /// Why nothing is deleted now, if that is so.
    pub holds: Option<String>,
    /// Installations that are left alone because another manager keeps setting a field of them back.
    pub contested: BTreeSet<String>,
    /// Whether names carry versions by the naming rule of 2015: an older version that no installation owns is deleted once the new one is
    /// ready (semantics 21.7).
    pub legacy_names: bool,
}

impl DirectorySync {
    /// Whether an object is an older version of an object of the add-on, and no add-on of the directory contains or ignores it.
    fn supersedes(&self, addon: &Addon, key: &ObjectKey) -> bool {
        let written = |addon: &Addon| -> Vec<ObjectKey> {
            let objects = addon.manifests.iter().map(|manifest| &*manifest.object);
            objects.filter_map(ObjectKey::of).collect()
        };
        let is_other = written(addon).into_iter().any(|mut wanted| {
            wanted.namespace.get_or_insert_with(|| NAMESPACE.to_owned());
            is_other_version(key, &wanted)
        });
        let is_there = |addon: &Addon| {
            let mut wanted = written(addon).into_iter();
            addon.holds(key).is_some() || wanted.any(|wanted| key.is_meant_by(&wanted, NAMESPACE))
        };
        is_other
            && self.holds.is_none()
            && self.allowed.allows(key)
            && !self.directory.addons.iter().any(is_there)
    }
}

/// An add-on of a directory, whose objects need not be fetched.
#[derive(Clone, Debug)]
pub struct Found {
    /// The add-on.
    pub addon: Addon,
    /// The directory that contains it.
    pub sync: Arc<DirectorySync>,
    /// Older versions of its objects that no installation owns, by the naming rule of 2015.
    pub superseded: Vec<Deletion>,
}

impl Found {
    /// Wraps an error with the place of the add-on.
    pub(crate) fn failure(
        &self,
        installation: &InstallationName,
        error: OperationError,
    ) -> OperationError {
        OperationError::InDirectory {
            path: self.addon.path.clone(),
            installation: installation.clone(),
            directory: self.sync.path.clone(),
            error: Box::new(error),
        }
    }

    /// Returns the recorded objects that are kept although the add-on does not contain them, with the reasons.
    pub(crate) fn held(&self, inventory: &Inventory) -> BTreeMap<ObjectKey, String> {
        let keys = inventory.objects.keys();
        let held = keys.filter_map(|key| {
            let why = self.addon.holds(key);
            let why = why.or_else(|| forbidden(&self.sync.allowed, key));
            let why = why.or_else(|| self.sync.holds.clone());
            Some((key.clone(), why?))
        });
        held.collect()
    }
}

/// Returns why the allow-list does not let an object be pruned.
pub(crate) fn forbidden(allowed: &AllowList, key: &ObjectKey) -> Option<String> {
    (!allowed.allows(key)).then(|| "its kind is not in the prune allow-list".to_owned())
}

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
