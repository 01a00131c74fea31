//! The plan of a command that installs or upgrades. Each installation is planned with what the others bring.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_engine::{Cluster, refusals, snapshot};
use addons_plan::choices::Choices;
use addons_plan::claims::Claims;
use addons_plan::dangling::DanglingCandidates;
use addons_plan::inventory::Inventory;
use addons_plan::requires::{RequirementProblem, RequiresError};
use addons_plan::snapshot::Snapshot;
use addons_plan::{InstallationPlan, recreate};
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;
use common::manifest::Manifest;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;
use common::manifest::kinds::traits::defined_kind;
use common::schema::CrdSchemas;
use serde_json::Value;

use super::file_order::Numbers;
use super::installation::plan_installation;
use super::moves::Moves;
use super::planned::{Plan, PlannedInstallation, retain_untaken};
use super::required_types::RequiredTypes;
use super::requirements;
use crate::context::Context;
use crate::error::OperationError;
use crate::event::Finding;
use crate::render::Rendered;
use crate::resolve::resolved::Resolved;
use crate::resolve::{Resolver, policies};
use crate::stage::{FailedInstallation, StageResult, Staged};

/// What the add-ons of one command bring.
#[derive(Debug)]
pub(super) struct CommandAddons {
    /// The kinds that they define.
    pub(super) kinds: KindTable,
    /// The definitions themselves.
    definitions: Vec<Arc<Value>>,
    /// The namespaces among their objects.
    pub(super) namespaces: BTreeSet<String>,
    /// The objects that change their owner.
    pub(super) moves: Moves,
    /// The inventories that already planned installations will have.
    pub(super) claims: BTreeMap<InstallationName, Inventory>,
    /// The schemas of custom resources from their definitions.
    pub(super) schemas: CrdSchemas,
}

/// Plans the rendered installations. If one of them fails, the others are still planned. `leaving` are installations that are
/// uninstalled afterwards, and whose objects others may take over.
///
/// # Errors
/// A requirement is neither installed nor part of the command; the objects have no order; an object that was named to be recreated cannot
/// be.
pub async fn plan(
    resolver: &Resolver<'_>,
    rendered: Vec<Staged<Rendered>>,
    leaving: &[&AddonInstallation],
    choices: &Choices,
) -> Result<Plan, OperationError> {
    let (ctx, records) = (resolver.ctx, &resolver.records);
    let mut up_to_date = Vec::new();
    let mut failed = Vec::new();
    let mut due = Vec::new();
    for Staged { resolved, stage } in rendered {
        match stage {
            StageResult::Due(rendered) => due.push((resolved, rendered)),
            StageResult::UpToDate => up_to_date.push(resolved),
            StageResult::Failed(error) => failed.push(failed_installation(&resolved, error)),
        }
    }
    let (due, refused) = policies::separate_allowed(ctx, due).await;
    failed.extend(
        refused
            .into_iter()
            .map(|(one, error)| failed_installation(&one, error)),
    );
    let candidates: Vec<&Resolved> = due.iter().map(|(resolved, _)| resolved).collect();
    let available = resolver.available_versions(&candidates).await?;
    let order = match requirements::order_installations(ctx, &candidates, records, &available) {
        Ok(order) => order,
        // A failed installation is missing for those that require it: report the cause, not the consequence.
        Err(refusal) => {
            return Err(match failed.into_iter().next() {
                Some(one) => one.error,
                None => name_foreign_installs(ctx, refusal).await.into(),
            });
        }
    };
    let manifests = due.iter().flat_map(|(_, rendered)| &rendered.manifests);
    let mut neighbours = CommandAddons::collect(ctx.cluster().await?, manifests).await?;
    neighbours.moves = Moves::find(&due, leaving);
    let required = RequiredTypes::new(
        due.iter()
            .map(|(resolved, rendered)| (&resolved.name, rendered.manifests.as_slice())),
        choices.wait_for_types,
    );
    let numbers = Numbers::from_resolved(due.iter().map(|(resolved, _)| resolved));
    let mut installations = Vec::new();
    for ((resolved, rendered), mut first) in due.into_iter().zip(order) {
        let awaited = match required.wait_for(ctx, &resolved).await {
            Ok(awaited) => awaited,
            Err(error) => {
                failed.push(failed_installation(&resolved, error));
                continue;
            }
        };
        first.extend(awaited.first);
        first.extend(numbers.lower_numbered(&resolved));
        let is_due = rendered.is_due;
        match plan_installation(resolver, &neighbours, &resolved, rendered, choices).await {
            Ok(mut planned) => {
                neighbours.add_claims(&planned);
                if is_due || !planned.plan.is_empty() {
                    planned.plan.requires = first;
                    planned.plan.types = awaited.types;
                    installations.push(planned);
                } else {
                    report_warnings(ctx, &resolved, &planned);
                    up_to_date.push(resolved);
                }
            }
            Err(error) => failed.push(failed_installation(&resolved, error)),
        }
    }
    retain_untaken(&mut installations);
    numbers.check(ctx, &mut installations);
    let mut installations = apply_acceptances(installations, choices)?;
    let mut in_place = BTreeSet::new();
    if !installations.is_empty() {
        let plans = installations.iter_mut().map(|planned| &mut planned.plan);
        let mut plans: Vec<&mut InstallationPlan> = plans.collect();
        in_place = refusals::find_refusals(ctx.cluster().await?, &mut plans).await?;
        neighbours
            .warn_of_dangling(resolver, &mut installations)
            .await?;
    }
    let plans = installations.iter();
    let plans: Vec<_> = plans
        .map(|planned| (&planned.plan, planned.continues()))
        .collect();
    // The named object may belong to an installation that cannot be planned.
    let needless = match failed.is_empty() {
        true => recreate::check(&plans, &choices.recreate, &in_place).err(),
        false => None,
    };
    let plan = Plan::new(
        choices.clone(),
        installations,
        up_to_date,
        failed,
        records.uninitialised,
    )?;
    Ok(Plan { needless, ..plan })
}

/// Applies the acceptances of the caller to the plans.
fn apply_acceptances(
    mut installations: Vec<PlannedInstallation>,
    choices: &Choices,
) -> Result<Vec<PlannedInstallation>, OperationError> {
    if !choices.recreate.is_empty() && !installations.is_empty() {
        let plans = installations.iter_mut().map(|planned| &mut planned.plan);
        recreate::allow_recreations(plans, &choices.recreate)?;
    }
    if !choices.migrate_stored_versions {
        return Ok(installations);
    }
    let accepted = installations.into_iter();
    Ok(accepted
        .map(|planned| planned.with(InstallationPlan::accepting_migrations))
        .collect())
}

/// Adds to an error about missing add-ons what other tools have installed of them.
pub(crate) async fn name_foreign_installs(
    ctx: &Context,
    mut error: RequiresError,
) -> RequiresError {
    if error.problems.iter().all(|it| it.missing_addon().is_none()) {
        return error;
    }
    let mut installs = Vec::new();
    for tool in ctx.settings().tools {
        installs.extend(tool.find_installs(ctx).await);
    }
    for problem in &mut error.problems {
        let missing = problem.missing_addon();
        let install = missing.and_then(|name| installs.iter().find(|it| it.is_addon(name)));
        let install = install.cloned().map(Box::new);
        if let RequirementProblem::Unmet { elsewhere, .. } = problem {
            *elsewhere = install;
        }
    }
    error
}

fn failed_installation(resolved: &Resolved, error: OperationError) -> FailedInstallation {
    match &resolved.given {
        Some(given) => FailedInstallation {
            name: given.path.clone(),
            error: given.wrap_error(resolved, error),
        },
        None => FailedInstallation {
            name: resolved.name.to_string(),
            error,
        },
    }
}

/// Reports the warnings for an up-to-date add-on whose objects were given: those that are not applied are always shown.
fn report_warnings(ctx: &Context, resolved: &Resolved, planned: &PlannedInstallation) {
    if resolved.given.is_some() {
        for warning in &planned.plan.warnings {
            ctx.report_finding(Finding::Stays(warning.clone()));
        }
    }
}

impl CommandAddons {
    /// Collects what the command installs. If the cluster does not serve a kind that the command defines, discovery is refreshed once: the
    /// kind may have been defined since, and objects of it may exist.
    async fn collect<'a>(
        cluster: &Cluster,
        manifests: impl Iterator<Item = &'a Manifest> + Clone,
    ) -> Result<Self, OperationError> {
        let defined = manifests.clone();
        let defined = defined.filter_map(|manifest| defined_kind(&manifest.object));
        let defined: BTreeSet<_> = defined.collect();
        if !defined.is_empty() {
            cluster.kinds(&defined).await?;
        }
        let (mut kinds, mut definitions) = (KindTable::default(), Vec::new());
        let mut namespaces = BTreeSet::new();
        for manifest in manifests.clone() {
            if defined_kind(&manifest.object).is_some() {
                kinds.insert_crd(&manifest.object);
                definitions.push(Arc::clone(&manifest.object));
            }
            let key = ObjectKey::from_object(&manifest.object);
            let namespace = key.filter(|key| key.group.is_empty() && key.kind == "Namespace");
            namespaces.extend(namespace.map(|key| key.name));
        }
        Ok(Self {
            kinds,
            definitions,
            namespaces,
            claims: BTreeMap::new(),
            moves: Moves::default(),
            schemas: CrdSchemas::from_manifests(manifests),
        })
    }

    /// Returns the kinds that the cluster serves once the definitions of the command are applied.
    pub(super) fn with_definitions(&self, served: &KindTable) -> KindTable {
        let mut kinds = served.clone();
        for definition in &self.definitions {
            kinds.apply_definition(definition);
        }
        kinds
    }

    /// Adds warnings about objects that the installations name and that exist nowhere. Reads only objects that neither the command nor another
    /// record has.
    async fn warn_of_dangling(
        &self,
        resolver: &Resolver<'_>,
        installations: &mut [PlannedInstallation],
    ) -> Result<(), OperationError> {
        let parts = installations.iter();
        let parts: Vec<_> = parts.map(|one| (&one.plan, &one.desired)).collect();
        let mut candidates = DanglingCandidates::find(&parts);
        if candidates.is_empty() {
            return Ok(());
        }
        let nothing = Snapshot::default();
        let claims = parts
            .iter()
            .map(|(plan, _)| self.claims_of_others(resolver, &plan.installation, &nothing));
        let claims: Vec<Claims> = claims.collect();
        candidates
            .drop_recorded(|key| claims.iter().any(|claims| claims.objects.contains_key(key)));
        let unknown = candidates.unknown();
        let cluster = resolver.ctx.cluster().await?;
        let snapshot = snapshot::read_existing(cluster, unknown).await?;
        for (part, warning) in candidates.warnings(&snapshot) {
            if let Some(one) = installations.get_mut(part) {
                one.plan.warnings.push(warning);
            }
        }
        Ok(())
    }

    /// Returns the claims of the other installations of the cluster, and of those of the command that are already planned.
    pub(super) fn claims_of_others(
        &self,
        resolver: &Resolver<'_>,
        name: &InstallationName,
        snapshot: &Snapshot,
    ) -> Claims {
        let mut claims = resolver.records.claims(name, &[], snapshot);
        for (name, inventory) in &self.claims {
            claims.add_owner(name);
            claims.add_objects(name, inventory);
        }
        self.moves.add_to_claims(name, &mut claims);
        claims
    }

    fn add_claims(&mut self, planned: &PlannedInstallation) {
        let InstallationPlan {
            installation,
            exact,
            ..
        } = &planned.plan;
        self.claims.insert(installation.clone(), exact.clone());
    }
}
