//! The plan of an uninstallation.

use std::collections::{BTreeMap, BTreeSet};

use addons_engine::EngineError;
use addons_plan::choices::Choices;
use addons_plan::closing::ClosingStep;
use addons_plan::desired::Desired;
use addons_plan::facts::{RecordFacts, WantedRecord};
use addons_plan::inventory::Inventory;
use addons_plan::planner::{self, Goal, PlanInput};
use addons_plan::prune::KeptKind;
use addons_plan::restored::RecordCoverage;
use addons_plan::snapshot::SnapshotRequest;
use addons_plan::{InstallationPlan, Verb};
use common::api::installation::{AddonInstallation, AddonInstallationStatus, format};
use common::api::names::{InstallationName, owner_hash};
use common::manifest::key::ObjectKey;

use super::installation::read_recorded;
use super::planned::{OnFailure, Plan, PlannedInstallation};
use super::{gitops, release, requirements};
use crate::builtin;
use crate::context::Context;
use crate::error::OperationError;
use crate::event::Finding;
use crate::records::name_of;
use crate::resolve::{Resolver, origin, verdict};
use crate::stage::FailedInstallation;
use crate::tools::PlannedRemoval;

/// What is uninstalled, and how.
#[derive(Clone, Debug, Default)]
pub struct UninstallRequest {
    /// The names of the installations.
    pub names: Vec<String>,
    /// Uninstall everything in the namespaces of the command except core, suspended and directory installations.
    pub all: bool,
    /// Keep the objects, and delete the record only.
    pub keep: bool,
    /// Keep the objects, and give them back to the tool that they were adopted from.
    pub give_back: bool,
    /// Kinds that are deleted although they hold data.
    pub delete: BTreeSet<KeptKind>,
    /// Include what Argo CD or Flux applies from Git.
    pub force: bool,
}

impl UninstallRequest {
    fn goal(&self) -> Goal<'static> {
        if self.give_back {
            Goal::Release
        } else {
            Goal::Uninstall { keep: self.keep }
        }
    }
}

/// Plans an uninstallation. Dependents are uninstalled before what they require.
///
/// # Errors
/// No such installation; the verdict is a denial; installations that stay require one that is uninstalled; the errors of the server.
pub async fn plan_uninstall(
    resolver: &Resolver<'_>,
    removal: &UninstallRequest,
) -> Result<Plan, OperationError> {
    let namespace = resolver.ctx.settings().namespace.as_deref();
    let records = if removal.all {
        let records = resolver.records.in_namespace(namespace);
        records
            .filter(|record| may_uninstall(resolver.ctx, record))
            .filter(|record| !origin::is_of_directory(resolver.ctx, record))
            .collect()
    } else {
        resolver.records.find_all(&removal.names, namespace)?
    };
    plan_removal(resolver, records, removal).await
}

/// Whether an installation that was not named may be uninstalled. Core add-ons and suspended ones stay, which is reported as a finding.
pub(crate) fn may_uninstall(ctx: &Context, record: &AddonInstallation) -> bool {
    let stays = if record.spec.core_addon {
        Finding::CoreStays(name_of(record))
    } else if record.spec.suspend {
        Finding::Suspended(name_of(record))
    } else {
        return true;
    };
    ctx.report_finding(stays);
    false
}

/// As [`plan_uninstall`], for records.
///
/// # Errors
/// Those of [`plan_uninstall`].
pub async fn plan_removal(
    resolver: &Resolver<'_>,
    records: Vec<&AddonInstallation>,
    removal: &UninstallRequest,
) -> Result<Plan, OperationError> {
    let leave = Exemptions {
        together: records.iter().map(|record| name_of(record)).collect(),
        ..Exemptions::default()
    };
    let installations = plan_all(resolver, records, removal, &leave, &[]).await?;
    let choices = Choices {
        delete: removal.delete.clone(),
        keep: removal.keep,
        force: removal.force,
        ..Choices::default()
    };
    Plan::without_rendering(choices, installations)
}

/// Adds to a plan the uninstallation of `gone` after everything else is installed. Objects that the plan takes over from them are not
/// deleted.
///
/// # Errors
/// Those of [`plan_removal`].
pub(crate) async fn with_uninstallations(
    resolver: &Resolver<'_>,
    applied: Plan,
    gone: &[AddonInstallation],
) -> Result<Plan, OperationError> {
    let removal = UninstallRequest {
        delete: applied.choices.delete.clone(),
        force: applied.choices.force,
        ..UninstallRequest::default()
    };
    let leave = Exemptions {
        together: gone.iter().map(name_of).collect(),
        taken: desired_objects(&applied),
        ..Exemptions::default()
    };
    let installed: Vec<AddonInstallation> =
        applied.installations.iter().map(record_after).collect();
    let gone = gone.iter().collect();
    let gone = plan_all(resolver, gone, &removal, &leave, &installed).await?;
    let mut installations = applied.installations;
    installations.extend(gone);
    let Plan {
        choices,
        up_to_date,
        failed,
        defines,
        ..
    } = applied;
    Plan::new(choices, installations, up_to_date, failed, defines)
}

/// Returns the record of an installation after the plan.
fn record_after(planned: &PlannedInstallation) -> AddonInstallation {
    let mut record = planned.record.clone();
    let status = record.status.get_or_insert_default();
    status.installed.clone_from(&planned.plan.to);
    record
}

/// Returns the desired objects of a plan, and the installations that contain them.
fn desired_objects(applied: &Plan) -> BTreeMap<ObjectKey, InstallationName> {
    let taken = applied.installations.iter().flat_map(|planned| {
        let keys = planned.desired.objects.keys();
        keys.map(|key| (key.clone(), planned.plan.installation.clone()))
    });
    taken.collect()
}

/// Plans every uninstallation of a command, each before what it requires. `installed` are the installations that the command installs
/// before.
async fn plan_all(
    resolver: &Resolver<'_>,
    records: Vec<&AddonInstallation>,
    removal: &UninstallRequest,
    leave: &Exemptions,
    installed: &[AddonInstallation],
) -> Result<Vec<PlannedInstallation>, OperationError> {
    check_each(resolver, &records, removal.force).await?;
    let mut records =
        requirements::order_uninstallations(resolver.ctx, records, &resolver.records, installed)?;
    // The installation of the policies comes first: what they guard can be deleted when they are deleted.
    records.sort_by_key(|record| !builtin::is_policies_record(record));
    // Plan installations with a definition or a namespace last: what another one keeps may be of that kind or in that namespace.
    let mut turns: Vec<(usize, &AddonInstallation)> = records.iter().enumerate().collect();
    turns.sort_by_key(|(_, record)| has_shared(record));
    let mut staying = BTreeMap::new();
    let mut installations = Vec::new();
    for (place, record) in turns {
        let mut planned = plan_record(resolver, record.clone(), removal, leave, &staying).await?;
        let plan = &mut planned.plan;
        plan.requires = requirements::required_among(record, &records);
        let kept = plan.retained.iter().chain(&plan.unreachable);
        staying.extend(kept.map(|key| (key.clone(), name_of(record))));
        installations.push((place, planned));
    }
    installations.sort_by_key(|(place, _)| *place);
    Ok(installations
        .into_iter()
        .map(|(_, planned)| planned)
        .collect())
}

/// Checks whether records may be deleted, and returns each before those that it requires. `force` includes what Argo CD or Flux applies
/// from Git.
///
/// # Errors
/// One is suspended; the verdict is a denial; installations that stay require one of them.
pub(crate) async fn check_removal(
    resolver: &Resolver<'_>,
    records: Vec<&AddonInstallation>,
    force: bool,
) -> Result<Vec<AddonInstallation>, OperationError> {
    check_each(resolver, &records, force).await?;
    let known = &resolver.records;
    Ok(requirements::order_uninstallations(
        resolver.ctx,
        records,
        known,
        &[],
    )?)
}

async fn check_each(
    resolver: &Resolver<'_>,
    records: &[&AddonInstallation],
    force: bool,
) -> Result<(), OperationError> {
    for record in records {
        if record.spec.suspend {
            return Err(OperationError::Suspended(name_of(record)));
        }
        if !force {
            gitops::check_deletion(record)?;
        }
        verdict::check_deletion(resolver.ctx, record, &resolver.facts).await?;
    }
    Ok(())
}

/// Whether an installation has recorded a definition or a namespace.
fn has_shared(record: &AddonInstallation) -> bool {
    let inventory = Inventory::from_status(record.status.as_ref());
    let mut keys = inventory.objects.keys();
    keys.any(|key| KeptKind::from_key(key).is_some_and(KeptKind::is_shared))
}

/// What an uninstallation does not delete.
#[derive(Debug, Default)]
struct Exemptions {
    /// The installations of the command, whose objects keep nothing.
    together: Vec<InstallationName>,
    /// Objects that another installation takes over.
    taken: BTreeMap<ObjectKey, InstallationName>,
    /// Recorded objects that are kept, with the reasons, by installation.
    kept: BTreeMap<InstallationName, BTreeMap<ObjectKey, String>>,
}

impl Exemptions {
    /// Returns the values of the owner label of the installations of the command.
    fn owners(&self) -> impl Iterator<Item = String> {
        let names = self.together.iter();
        names.map(|name| owner_hash(&name.namespace, &name.name))
    }
}

/// Plans to uninstall installations separately, so that a failure of one does not affect the others. `kept` are recorded objects that
/// stay, with the reasons. `applied` is installed before, and takes over objects.
///
/// # Errors
/// Those of [`Plan::new`].
pub(crate) async fn plan_separately(
    resolver: &Resolver<'_>,
    records: &[&AddonInstallation],
    kept: BTreeMap<InstallationName, BTreeMap<ObjectKey, String>>,
    applied: &Plan,
    choices: &Choices,
) -> Result<Plan, OperationError> {
    let leave = Exemptions {
        together: records.iter().map(|record| name_of(record)).collect(),
        taken: desired_objects(applied),
        kept,
    };
    let removal = UninstallRequest {
        delete: choices.delete.clone(),
        ..UninstallRequest::default()
    };
    let (mut installations, mut failed) = (Vec::new(), Vec::new());
    let staying = BTreeMap::new();
    for record in records {
        let planned = async {
            verdict::check_deletion(resolver.ctx, record, &resolver.facts).await?;
            requirements::order_uninstallations(
                resolver.ctx,
                vec![*record],
                &resolver.records,
                &[],
            )?;
            plan_record(resolver, (*record).clone(), &removal, &leave, &staying).await
        };
        match planned.await {
            Ok(planned) => installations.push(planned),
            Err(error) => failed.push(FailedInstallation {
                name: name_of(record).to_string(),
                error,
            }),
        }
    }
    Plan::new(choices.clone(), installations, Vec::new(), failed, false)
}

/// Plans one uninstallation. `staying` are the objects that other installations of the command keep.
async fn plan_record(
    resolver: &Resolver<'_>,
    record: AddonInstallation,
    removal: &UninstallRequest,
    leave: &Exemptions,
    staying: &BTreeMap<ObjectKey, InstallationName>,
) -> Result<PlannedInstallation, OperationError> {
    let cluster = resolver.ctx.cluster().await?;
    let name = name_of(&record);
    format::check_status(&record).map_err(EngineError::from)?;
    let status = record.status.clone().unwrap_or_default();
    if !removal.keep
        && let Some(other) = resolver.ctx.other_cluster(&record).await?
    {
        return Err(other.into());
    }
    let inventory = Inventory::from_groups(&status.inventory);
    let owner = owner_hash(&name.namespace, &name.name);
    let mut reads = SnapshotRequest {
        owner: Some(owner.clone()),
        leaving: leave.owners().chain([owner]).collect(),
        ..SnapshotRequest::default()
    };
    if !removal.keep && !removal.give_back {
        reads.deletable = planner::deletable(&Desired::default(), &inventory, &removal.delete);
    }
    let (kinds, snapshot) = read_recorded(cluster, &inventory, reads).await?;
    let mut claims = resolver.records.claims(&name, &leave.together, &snapshot);
    claims.taken.clone_from(&leave.taken);
    claims.retained.extend(
        staying
            .iter()
            .map(|(key, name)| (key.clone(), name.clone())),
    );
    let nothing = BTreeMap::new();
    let kept = leave.kept.get(&name).unwrap_or(&nothing);
    let mut plan = planner::plan(&PlanInput {
        installation: &name,
        addon: &record.spec.addon_ref.name,
        from: status.installed.as_ref(),
        goal: removal.goal(),
        inventory: &inventory,
        memory: RecordCoverage::from_record(Some(&record)),
        snapshot: &snapshot,
        kinds: &kinds,
        claims: &claims,
        unmarked: &BTreeSet::new(),
        delete_kinds: &removal.delete,
        held: kept,
        resting: &BTreeSet::new(),
    })?;
    let release =
        release::recorded_release(&status).filter(|_| !removal.keep && !removal.give_back);
    if let Some(release) = release.cloned() {
        let records = release::check(resolver.ctx, &name, &release, Some(&status), false).await?;
        plan.close([ClosingStep::Run { release, records }]);
    }
    let planned = PlannedRemoval {
        record: &record,
        status: &status,
        keeps: removal.keep,
        gives_back: removal.give_back,
    };
    for tool in resolver.ctx.settings().tools {
        tool.plan_removal(resolver.ctx, planned, &mut plan).await?;
    }
    plan.delete_namespace = namespace_to_delete(&status, &plan);
    plan.wanted = WantedRecord::from_record(&record);
    plan.record = Some(RecordFacts::from_record(&record));
    Ok(PlannedInstallation {
        plan,
        record,
        fallback: None,
        on_failure: OnFailure::Stays,
        entry: None,
        desired: Desired::default(),
        release: None,
    })
}

/// Returns the namespace that an uninstallation deletes because the installation created it, unless objects stay in it (semantics 7.2).
fn namespace_to_delete(
    status: &AddonInstallationStatus,
    plan: &InstallationPlan,
) -> Option<String> {
    let created = status.created_namespace.as_ref();
    let name = &created.filter(|_| plan.verb == Verb::Uninstall)?.name;
    let mut staying = plan.released().chain(&plan.retained);
    let is_there = |key: &ObjectKey| key.namespace.as_ref() == Some(name);
    (!staying.any(is_there)).then(|| name.clone())
}
