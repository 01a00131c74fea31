//! Resolves an intent to the wanted installations: chooses entries, completes and validates records.

pub mod choose;
mod install;
pub mod named;
pub mod origin;
pub(crate) mod policies;
pub mod recorded;
pub mod required;
pub mod resolved;
pub mod rollback;
pub mod successor;
pub mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_admission::AdmissionFacts;
use addons_versions::tolerant;
use common::api::installation::AddonInstallation;
use common::api::installation::core_guard::is_guarded;
use common::api::names::InstallationName;
use common::catalogue::select::{EntryRequest, Selection};
use common::catalogue::{Catalogue, CatalogueEntry, content};
use common::values;
use futures::future::try_join;
use serde_json::{Value, json};

use self::choose::choose;
use self::named::named_entry;
use self::origin::catalogue_of;
use self::resolved::Resolved;
use crate::context::{Context, Offer};
use crate::error::OperationError;
use crate::event::Finding;
use crate::intent::{Edits, Intent, NewInstallation, VersionedName};
use crate::plan::requirements::AvailableVersions;
use crate::records::{Records, name_of};
use crate::stage::FailedInstallation;
use crate::tools;

/// The inputs of a resolution, read once: records, catalogues, version.
pub struct Resolver<'a> {
    /// The context of the command.
    pub ctx: &'a Context,
    /// What entries are chosen from.
    pub offer: Offer,
    /// The records of the cluster.
    pub records: Records,
    /// The facts for verdicts.
    pub facts: AdmissionFacts,
}

/// The answers to questions for values that a form requires, by installation.
pub type Answers = BTreeMap<InstallationName, Value>;

/// The result of resolving an intent.
#[derive(Debug, Default)]
pub struct Resolution {
    /// The wanted installations.
    pub installations: Vec<Resolved>,
    /// The installations that failed.
    pub failed: Vec<FailedInstallation>,
    /// The installations to uninstall after the wanted ones were installed.
    pub to_uninstall: Vec<AddonInstallation>,
    /// Installations of which another plan is to uninstall what the wanted ones do not take over.
    pub leaving: Vec<AddonInstallation>,
}

impl Resolution {
    /// Returns the resolution if every installation could be resolved.
    ///
    /// # Errors
    /// That of the first installation that could not be resolved.
    pub fn whole(mut self) -> Result<Self, OperationError> {
        if self.failed.is_empty() {
            return Ok(self);
        }
        Err(self.failed.remove(0).error)
    }

    pub(crate) fn add(&mut self, name: &str, resolved: Result<Resolved, OperationError>) {
        match resolved {
            Ok(resolved) => self.installations.push(resolved),
            Err(error) => self.failed.push(FailedInstallation {
                name: name.to_owned(),
                error,
            }),
        }
    }
}

impl<'a> Resolver<'a> {
    /// Reads records, catalogues and version in three concurrent requests.
    ///
    /// # Errors
    /// A request fails.
    pub async fn new(ctx: &'a Context, offer: Offer) -> Result<Self, OperationError> {
        let resolver = Self::read(ctx, offer).await?;
        let asked = ctx.settings().namespace.as_ref();
        let is_meant = |asked: &&String| **asked != resolver.records.system;
        // A remote cluster is used with the rights of its kubeconfig.
        if let Some(asked) = asked.filter(is_meant)
            && !resolver.records.is_remote
        {
            ctx.report_finding(Finding::OtherNamespace(asked.clone()));
        }
        Ok(resolver)
    }

    /// As [`Resolver::new`], for installations that do not use the rights of the caller, so that no finding is reported.
    pub(crate) async fn read(ctx: &'a Context, offer: Offer) -> Result<Self, OperationError> {
        // An installation from an index needs no catalogues. Missing rights are reported where they are needed.
        let asks_catalogues = !matches!(offer, Offer::Indexes(_) | Offer::Nothing);
        let catalogues = async {
            if !asks_catalogues {
                return Ok(false);
            }
            Ok(ctx.readable_catalogues().await?.is_some())
        };
        let records_and_catalogues = try_join(Records::read(ctx), catalogues);
        let (_, (records, has_catalogues)) =
            try_join(ctx.cluster_facts(), records_and_catalogues).await?;
        if let Some(asked) = &ctx.settings().namespace {
            records.check_local(asked)?;
        }
        Self::with_records(ctx, offer, records, has_catalogues).await
    }

    /// Resolves an intent to the wanted installations. If one fails, the others are still resolved.
    ///
    /// # Errors
    /// A name that no installation has; an index that cannot be read; a set that most of its members left.
    pub async fn resolve(
        &self,
        intent: &Intent,
        answers: &Answers,
    ) -> Result<Resolution, OperationError> {
        let mut resolution = Resolution::default();
        match intent {
            Intent::Install(new) => {
                for one in new {
                    resolution.add(&one.addon.name, self.resolve_install(one, answers).await);
                    if let Some(replaced) = &one.replaces {
                        let namespace = Some(self.namespace());
                        let record = self.records.find(replaced, namespace)?;
                        resolution.to_uninstall.push(record.clone());
                    }
                }
            }
            Intent::Upgrade {
                installations,
                edits,
            } => {
                self.upgrade_all(&mut resolution, installations, edits, answers)
                    .await?;
            }
            Intent::InstallOrUpgrade { named, edits } => {
                let (new, installed): (Vec<_>, Vec<_>) =
                    named.iter().partition(|one| self.is_new(one));
                for one in &new {
                    resolution.add(&one.addon.name, self.resolve_install(one, answers).await);
                }
                for one in &installed {
                    let target = std::slice::from_ref(&one.addon);
                    self.upgrade_all(&mut resolution, target, &one.edits, answers)
                        .await?;
                }
                if named.is_empty() {
                    self.upgrade_all(&mut resolution, &[], edits, answers)
                        .await?;
                }
            }
            Intent::Declared(set) => self.resolve_set(set, &mut resolution, answers).await?,
            Intent::Rollback { installation, to } => resolution.add(
                installation,
                self.resolve_rollback(installation, to, answers).await,
            ),
        }
        Ok(resolution)
    }

    /// Whether no installation has the name.
    fn is_new(&self, named: &NewInstallation) -> bool {
        let namespace = self.ctx.settings().namespace.as_deref();
        let mut there = self.records.in_namespace(namespace);
        let name = Some(&named.addon.name);
        named.name.is_some() || !there.any(|record| record.metadata.name.as_ref() == name)
    }

    /// Resolves upgrades of the named installations, or of all that are not suspended. A name without a version releases the version that
    /// its record names.
    async fn upgrade_all(
        &self,
        resolution: &mut Resolution,
        targets: &[VersionedName],
        edits: &Edits,
        answers: &Answers,
    ) -> Result<(), OperationError> {
        let namespace = self.ctx.settings().namespace.as_deref();
        let mut records = Vec::new();
        for target in targets {
            let record = match self.records.find(&target.name, namespace) {
                Ok(record) => record,
                Err(error) => return Err(self.explain_unknown(error).await),
            };
            let edits = edits.for_name(&target.name);
            records.push((record, target.version.as_deref(), edits));
        }
        if targets.is_empty() {
            let all = self.records.in_namespace(namespace);
            let all = all.filter(|record| !origin::is_of_directory(self.ctx, record));
            records.extend(all.map(|record| (record, None, edits.clone())));
        }
        let namespaces: BTreeSet<String> = records
            .iter()
            .map(|(record, ..)| name_of(record).namespace)
            .filter(|at| *at != self.records.system && !self.records.is_remote)
            .collect();
        for at in namespaces {
            self.ctx.report_finding(Finding::OtherNamespace(at));
        }
        for (record, version, edits) in records {
            let name = name_of(record);
            if record.spec.suspend {
                self.ctx.report_finding(Finding::Suspended(name));
                continue;
            }
            let chosen = match targets {
                [] => self.resolve_followed(record).await,
                // Its core set says which version it has, and the reconciler refuses another one.
                _ if version.is_none() && is_guarded(record) => self.choose_recorded(record).await,
                _ => self.resolve_version(record, version).await,
            };
            if let Ok(Resolved { entry, .. }) = &chosen
                && let Some(deprecation) = &entry.deprecated
            {
                self.report_successor(record, deprecation).await?;
            }
            let resolved = match chosen {
                Ok(resolved) => self.complete(resolved, &edits, answers).await,
                Err(error) => Err(error),
            };
            resolution.add(&name.name, resolved);
        }
        Ok(())
    }

    /// Notes on the error for a name that no installation has whether an add-on of that name can be installed.
    async fn explain_unknown(&self, mut error: OperationError) -> OperationError {
        if let OperationError::UnknownInstallation { name, offered, .. } = &mut error
            && let Ok(catalogue) = self.ctx.catalogue(&self.offer).await
        {
            *offered = catalogue.names().contains(&name.as_str());
        }
        error
    }

    /// Resolves an installation that no one named: to the version that its record names, else to the newest one that fits. Reports newer
    /// versions than a pinned one.
    async fn resolve_followed(
        &self,
        record: &AddonInstallation,
    ) -> Result<Resolved, OperationError> {
        let reference = &record.spec.addon_ref;
        let Some(version) = reference.version.as_deref() else {
            return self.resolve_version(record, None).await;
        };
        let held = self.choose_recorded(record).await?;
        // If no version fits any more, the pinned one remains.
        if let Ok((newest, _)) = self.pick_entry(record, None).await {
            let newest = newest.version.version;
            let is_newer = match (tolerant::parse(&newest), tolerant::parse(version)) {
                (Ok(newest), Ok(version)) => newest > version,
                _ => false,
            };
            if is_newer {
                self.ctx.report_finding(Finding::Pinned {
                    installation: name_of(record),
                    version: version.to_owned(),
                    newest,
                });
            }
        }
        Ok(held)
    }

    /// Resolves the entry for a record, before defaults and the verdict.
    pub(crate) async fn resolve_version(
        &self,
        record: &AddonInstallation,
        version: Option<&str>,
    ) -> Result<Resolved, OperationError> {
        let (entry, selection) = self.pick_entry(record, version).await?;
        self.report_warnings(&entry, &selection.warnings);
        let existing = Some(record.clone());
        let mut resolved = Resolved::new(name_of(record), existing, entry, selection.rules);
        resolved.is_asked_for = version.is_some() || matches!(self.offer, Offer::Entry(_));
        if version.is_some() {
            resolved.pin();
        }
        Ok(resolved)
    }

    /// Chooses the entry for a record, and returns how it was chosen.
    async fn pick_entry(
        &self,
        record: &AddonInstallation,
        version: Option<&str>,
    ) -> Result<(CatalogueEntry, Selection), OperationError> {
        let reference = &record.spec.addon_ref;
        let catalogue = match &self.offer {
            Offer::Catalogues => catalogue_of(self.ctx, record).await?,
            Offer::Entry(entry) => Arc::new(Catalogue::from_entry(named_entry(entry, record)?)),
            offer => {
                self.check_indexes(record).await?;
                self.ctx.catalogue(offer).await?
            }
        };
        let request = EntryRequest {
            addon: &reference.name,
            version,
            id: None,
            // An origin that was asked for replaces the recorded one.
            catalogue: match self.offer {
                Offer::Indexes(_) | Offer::Catalogue(_) | Offer::Entry(_) => None,
                Offer::Catalogues | Offer::Nothing => reference.catalogue.as_deref(),
            },
        };
        let rules = self.ctx.settings().rules;
        let fit = self.ctx.cluster_facts_for(catalogue.versions()).await?;
        Ok(choose(&catalogue, &request, &fit, rules)?)
    }

    pub(crate) async fn complete(
        &self,
        mut resolved: Resolved,
        edits: &Edits,
        answers: &Answers,
    ) -> Result<Resolved, OperationError> {
        for path in resolved.apply_edits(edits)? {
            self.ctx.report_finding(Finding::NotSet {
                installation: resolved.name.clone(),
                path,
            });
        }
        if let Some(answers) = answers.get(&resolved.name) {
            let values = resolved.wanted.spec.values.get_or_insert_with(|| json!({}));
            values::merge::overlay(values, answers);
        }
        resolved.note_edits();
        if let Some(moved) = named::find_moved(&resolved) {
            self.ctx.report_finding(moved);
        }
        match resolved.existing.as_ref().filter(|_| resolved.keeps_spec) {
            Some(existing) => content::check(&existing.spec, &resolved.entry)?,
            None => resolved.accept_content()?,
        }
        tools::complete(self.ctx, &mut resolved).await?;
        verdict::complete_and_check(self.ctx, &mut resolved, &self.facts).await?;
        Ok(resolved)
    }

    /// Returns the namespace of new records (semantics 5): the system namespace, whatever they come from, or the local namespace that was
    /// asked for.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.ctx.settings().records_namespace()
    }

    /// Returns the versions in the catalogues, if an installation requires another add-on.
    pub(crate) async fn available_versions(
        &self,
        due: &[&Resolved],
    ) -> Result<AvailableVersions, OperationError> {
        let mut available: AvailableVersions = BTreeMap::new();
        let mut requirements = due.iter().map(|one| &one.entry.version.requires);
        if requirements.any(|requires| !requires.is_empty()) {
            for entry in &self.ctx.catalogue(&self.offer).await?.entries {
                let versions = available.entry(entry.addon.clone()).or_default();
                versions.push(entry.version.version.clone());
            }
        }
        Ok(available)
    }

    pub(crate) fn report_warnings(&self, entry: &CatalogueEntry, warnings: &[String]) {
        for warning in warnings {
            self.ctx.report_finding(Finding::Selection {
                addon: entry.addon.clone(),
                warning: warning.clone(),
            });
        }
    }
}
