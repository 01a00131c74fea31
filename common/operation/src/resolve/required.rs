//! Finds the add-ons that new installations require and that are missing, as `install` would choose them (semantics 17.7).

use std::collections::{BTreeMap, BTreeSet};

use addons_plan::requires::{RequirementProblem, accepts_version};
use common::catalogue::Catalogue;
use common::catalogue::select::EntryRequest;

use super::choose::choose;
use super::resolved::Resolved;
use super::{Resolution, Resolver};
use crate::error::OperationError;
use crate::intent::VersionedName;
use crate::plan::assemble::name_foreign_installs;
use crate::plan::requirements;

/// A missing add-on that others require.
#[derive(Clone, Debug)]
pub struct RequiredAddon {
    /// Its name, with a version if the newest one that fits the cluster is not one of those that are required.
    pub addon: VersionedName,
    /// The add-ons that require it, with their versions.
    pub by: String,
    /// The version that is installed.
    pub version: String,
    /// The catalogue or index that has it.
    pub found_in: String,
}

impl Resolver<'_> {
    /// Returns the add-ons that the installations of a command require, that neither the cluster nor the command has, and that can be
    /// installed. Returns none if something else is wrong with the requirements, which the plan then says: an add-on of another tool, one
    /// in the wrong version, or one that no catalogue has.
    ///
    /// # Errors
    /// The catalogues or the version of the cluster cannot be read.
    pub async fn find_required(
        &self,
        resolution: &Resolution,
    ) -> Result<Vec<RequiredAddon>, OperationError> {
        let changes = |one: &&Resolved| {
            let installed = one.installed();
            installed.is_none_or(|it| it.version != one.entry.version.version)
        };
        let due: Vec<&Resolved> = resolution.installations.iter().filter(changes).collect();
        let Err(unmet) = requirements::check(&due, &self.records, &BTreeMap::new()) else {
            return Ok(Vec::new());
        };
        let unmet = name_foreign_installs(self.ctx, unmet).await;
        let mut missing: BTreeMap<&str, Missing<'_>> = BTreeMap::new();
        for problem in &unmet.problems {
            let RequirementProblem::Unmet {
                addon,
                requires,
                constraint,
                there,
                elsewhere: None,
                ..
            } = problem
            else {
                return Ok(Vec::new());
            };
            if !there.is_empty() {
                return Ok(Vec::new());
            }
            let missing = missing.entry(requires).or_default();
            missing.by.insert(addon);
            missing.constraints.extend(constraint.as_deref());
        }
        let catalogue = self.ctx.catalogue(&self.offer).await?;
        let mut required = Vec::new();
        for (name, missing) in missing {
            let Some(one) = self.choose_required(&catalogue, name, &missing).await? else {
                return Ok(Vec::new());
            };
            required.push(one);
        }
        Ok(required)
    }

    /// Chooses a version as `install NAME` does, among those that are required.
    async fn choose_required(
        &self,
        catalogue: &Catalogue,
        name: &str,
        missing: &Missing<'_>,
    ) -> Result<Option<RequiredAddon>, OperationError> {
        let mut accepted = catalogue.clone();
        accepted.entries.retain(|entry| {
            let version = &entry.version.version;
            let mut constraints = missing.constraints.iter();
            constraints.all(|constraint| accepts_version(constraint, version))
        });
        let request = EntryRequest {
            addon: name,
            ..EntryRequest::default()
        };
        let fit = self.ctx.cluster_facts_for(catalogue.versions()).await?;
        let rules = self.ctx.settings().rules;
        let Ok((entry, _)) = choose(&accepted, &request, &fit, rules) else {
            return Ok(None);
        };
        let newest = choose(catalogue, &request, &fit, rules).ok();
        let is_newest = newest.is_some_and(|(newest, _)| newest.key() == entry.key());
        let version = entry.version.version.clone();
        let by: Vec<&str> = missing.by.iter().copied().collect();
        Ok(Some(RequiredAddon {
            addon: VersionedName {
                name: name.to_owned(),
                version: (!is_newest).then(|| version.clone()),
            },
            by: by.join(", "),
            version,
            found_in: entry.origin.to_string(),
        }))
    }
}

/// What is required of a missing add-on.
#[derive(Default)]
struct Missing<'a> {
    by: BTreeSet<&'a str>,
    constraints: Vec<&'a str>,
}
