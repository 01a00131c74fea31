//! The plan of one installation: marks its objects, reads the live objects, plans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_plan::InstallationPlan;
use addons_plan::choices::Choices;
use addons_plan::closing::ClosingStep;
use addons_plan::desired::{Desired, DesiredContext, needed_kinds};
use addons_plan::facts::{EntryFacts, RecordFacts, WantedRecord};
use addons_plan::inventory::Inventory;
use addons_plan::planner::{self, Goal, PlanInput, WantedObjects};
use addons_plan::release_records::ReleaseRecords;
use addons_plan::restored::RecordCoverage;
use addons_plan::snapshot::{Snapshot, SnapshotRequest};
use addons_plan::teardown::TeardownTurn;
use common::api::installation::{AddonInstallationStatus, ClusterIdentity, HelmRelease, format};
use common::api::names::{InstallationName, owner_hash};
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::KindTable;
use common::pin::{self, OtherCluster};
use common::values::mask::SecretMask;
use common::values::secret::secrets_were_replaced;

use addons_engine::{Cluster, EngineError, definitions, snapshot};

use super::assemble::CommandAddons;
use super::planned::{OnFailure, PlannedInstallation};
use super::release;
use super::{generated, owners, unrecorded};
use crate::error::OperationError;
use crate::render::Rendered;
use crate::render::chart::CompleteChart;
use crate::resolve::Resolver;
use crate::resolve::resolved::Resolved;
use crate::tools::Planning;

/// Plans an install or upgrade. It reads the live state of the desired and recorded objects, and writes nothing.
///
/// # Errors
/// A kind is not served, another owner has an object, or a prune needs a flag; the errors of the server.
pub(super) async fn plan_installation(
    resolver: &Resolver<'_>,
    neighbours: &CommandAddons,
    resolved: &Resolved,
    mut rendered: Rendered,
    choices: &Choices,
) -> Result<PlannedInstallation, OperationError> {
    let cluster = resolver.ctx.cluster().await?;
    let existing = resolved.existing.as_ref();
    let identity = check_pin(resolver, resolved).await?;
    let mut inventory = Inventory::from_status(existing.and_then(|record| record.status.as_ref()));
    let served = served_kinds(cluster, neighbours, &rendered, &inventory).await?;
    let kinds = neighbours.with_definitions(&served);
    let mask = rendered.inputs.mask();
    let checked = neighbours.schemas.check(&rendered.manifests);
    let notes = checked.map_err(|error| OperationError::from(error).masked(&mask))?;
    let given = DesiredContext {
        installation: &resolved.name,
        target_namespace: resolved.target_namespace(),
        kinds: &kinds,
        mask: &mask,
    };
    let adopt = choices.adopt || resolved.adopts;
    let (helm_release, release_records) =
        find_release(resolver, resolved, &rendered, adopt).await?;
    let (mut desired, generated) =
        generated::build_desired(cluster, resolved, &mut rendered, &given, &inventory, adopt)
            .await?;
    desired.mark_shared(&rendered.definitions);
    let checks = adopt && !choices.force_adopt;
    let mut reads = objects_to_read(&desired, &inventory, &served, resolved, checks);
    reads.deletable = planner::deletable(&desired, &inventory, &choices.delete);
    let (served, mut snapshot) = snapshot::read(cluster, served, &reads).await?;
    let kinds = neighbours.with_definitions(&served);
    let recorded = (&mut inventory, &mut snapshot);
    let unrecorded = unrecorded::find(resolver.ctx, resolved, &desired, recorded).await?;
    let spec = &resolved.wanted.spec;
    let wanted = WantedObjects {
        desired: &desired,
        to: &rendered.target(resolved, helm_release.clone()),
        target_namespace: resolved.target_namespace(),
        create_namespace: spec.create_namespace,
        record_namespace: resolved.record_namespace(),
        shared_manager: resolved.shared.as_ref().map(|shared| shared.manager),
        coming: &neighbours.namespaces,
        conflicts: spec.conflicts,
        reconcile: spec.effective_reconcile(),
        due: rendered.is_due,
        allow_prune: choices.allow_prune,
        adopt,
        revision: resolved.revision,
    };
    let mut claims = neighbours.claims_of_others(resolver, &resolved.name, &snapshot);
    let (ctx, records) = (resolver.ctx, &resolver.records);
    owners::complete_claims(ctx, records, &resolved.name, &snapshot, &mut claims).await?;
    let nothing = BTreeMap::new();
    let kept = resolved.given.as_ref();
    let kept = kept.map_or(&nothing, |given| &given.kept);
    let mut plan = planner::plan(&PlanInput {
        installation: &resolved.name,
        addon: &spec.addon_ref.name,
        from: resolved.installed(),
        goal: to_goal(wanted, choices),
        inventory: &inventory,
        memory: RecordCoverage::for_install(existing),
        snapshot: &snapshot,
        kinds: &kinds,
        claims: &claims,
        unmarked: &unrecorded.keys,
        delete_kinds: &choices.delete,
        held: kept,
        resting: &resting_hooks(&rendered, resolved, &inventory),
    })?;
    let is_replaced = plan.to.as_ref();
    let is_replaced = is_replaced.is_some_and(|to| secrets_were_replaced(resolved.status(), to));
    plan.mask = Arc::new(mask_secrets(mask, &desired).with_former(is_replaced));
    plan.generated = generated.objects;
    definitions::check_definitions(cluster, &mut plan).await?;
    let planning = Planning {
        resolved,
        snapshot: &snapshot,
        claims: &claims,
        adopts: adopt,
    };
    for tool in ctx.settings().tools {
        tool.plan(ctx, planning, &mut plan).await?;
    }
    add_warnings(
        &mut plan,
        [&rendered.warnings, &notes, &unrecorded.warnings],
    );
    let run = helm_release.zip(release_records);
    plan.close(run.map(|(release, records)| ClosingStep::Run { release, records }));
    add_record_facts(resolved, identity, &mut plan);
    Ok(to_planned(plan, resolved, desired, rendered.release))
}

/// Returns the recorded objects that are hooks which a repair leaves out.
fn resting_hooks(
    rendered: &Rendered,
    resolved: &Resolved,
    inventory: &Inventory,
) -> BTreeSet<ObjectKey> {
    let recorded = inventory.objects.keys().filter(|key| {
        let mut written = rendered.resting.iter();
        written.any(|written| key.is_described_by(written, resolved.target_namespace()))
    });
    recorded.cloned().collect()
}

/// Adds earlier warnings, and masks content of Secrets in all of them.
fn add_warnings(plan: &mut InstallationPlan, before: [&[String]; 3]) {
    let warnings = plan.warnings.iter().chain(before.into_iter().flatten());
    plan.warnings = warnings
        .map(|warning| plan.mask.mask_text(warning))
        .collect();
}

/// Returns the plan with the content that it was made from.
fn to_planned(
    mut plan: InstallationPlan,
    resolved: &Resolved,
    desired: Desired,
    release: Option<CompleteChart>,
) -> PlannedInstallation {
    let superseded = resolved.given.iter();
    let superseded = superseded.flat_map(|given| given.superseded.iter().cloned());
    plan.close(superseded.map(|deletion| ClosingStep::Delete {
        turn: TeardownTurn::Superseded,
        deletion,
    }));
    PlannedInstallation {
        plan,
        record: resolved.record().clone(),
        fallback: resolved.fallback(),
        on_failure: OnFailure::Stays,
        entry: resolved.given.is_none().then(|| resolved.entry.clone()),
        desired,
        release,
    }
}

/// Returns the goal: to install the desired objects, or only to own those that exist.
fn to_goal<'a>(wanted: WantedObjects<'a>, choices: &Choices) -> Goal<'a> {
    if choices.only_owners {
        Goal::Adopt(wanted)
    } else {
        Goal::Install(wanted)
    }
}

/// Returns what has to be read: the desired and recorded objects, and the target namespace. With `checks`, also whether Argo CD or Flux
/// applies objects that are not recorded.
fn objects_to_read(
    desired: &Desired,
    inventory: &Inventory,
    kinds: &KindTable,
    resolved: &Resolved,
    checks: bool,
) -> SnapshotRequest {
    let mut reads = planner::reads(desired, inventory, kinds);
    let target = resolved.target_namespace().to_owned();
    let record = resolved.record_namespace().map(str::to_owned);
    reads.namespaces.extend(record.into_iter().chain([target]));
    let owner = owner_hash(&resolved.name.namespace, &resolved.name.name);
    reads.leaving.insert(owner.clone());
    reads.owner = Some(owner);
    if checks {
        let wanted = desired.objects.keys();
        let unrecorded = wanted.filter(|key| !inventory.objects.contains_key(*key));
        reads.adoptable = unrecorded.cloned().collect();
    }
    reads
}

/// Adds facts of the entry and of the records to a plan, and the update of the record of another tool.
fn add_record_facts(
    resolved: &Resolved,
    identity: Option<ClusterIdentity>,
    plan: &mut InstallationPlan,
) {
    plan.cluster = identity;
    plan.entry = Some(EntryFacts::from_entry(&resolved.entry));
    plan.wanted = WantedRecord::from_record(resolved.record());
    plan.record = resolved.existing.as_ref().map(RecordFacts::from_record);
    if let Some(shared) = &resolved.shared {
        plan.close(shared.closing.iter().cloned());
    }
}

/// Returns the identity of the cluster of the objects, if its kube-system may be read. Refuses a record of another cluster, and a new one
/// in a namespace whose records are pinned to another cluster (semantics 6.5).
async fn check_pin(
    resolver: &Resolver<'_>,
    resolved: &Resolved,
) -> Result<Option<ClusterIdentity>, OperationError> {
    let existing = resolved.existing.as_ref();
    let status = existing.and_then(|record| record.status.as_ref());
    existing
        .map_or(Ok(()), format::check)
        .map_err(EngineError::from)?;
    let found = resolver.ctx.cluster_identity().await?;
    pin::check(&resolved.name, status, found.as_ref())?;
    resolver.ctx.check_not_same_cluster().await?;
    check_namespace_pin(resolver, &resolved.name, status, found.as_ref())?;
    Ok(found)
}

/// Refuses an installation that is not pinned yet if its namespace leads to another cluster than before.
pub(super) fn check_namespace_pin(
    resolver: &Resolver<'_>,
    name: &InstallationName,
    status: Option<&AddonInstallationStatus>,
    found: Option<&ClusterIdentity>,
) -> Result<(), OtherCluster> {
    if status.is_some_and(|status| status.cluster.is_some()) {
        return Ok(());
    }
    let namespace = Some(name.namespace.as_str());
    let all = resolver.records.all.iter();
    let beside = all.filter(|record| record.metadata.namespace.as_deref() == namespace);
    pin::find_other_cluster(beside, found).map_or(Ok(()), Err)
}

/// Adds the content of Secrets in the manifest to the mask.
fn mask_secrets(mask: SecretMask, desired: &Desired) -> SecretMask {
    let secrets = desired.objects.iter().filter(|(key, _)| key.is_secret());
    mask.with_objects(secrets.map(|(_, wanted)| &*wanted.object))
}

/// Returns the release that helm installs, and the records it continues from. It must match the recorded release, and the installation must
/// have created it.
async fn find_release(
    resolver: &Resolver<'_>,
    resolved: &Resolved,
    rendered: &Rendered,
    accepts: bool,
) -> Result<(Option<HelmRelease>, Option<ReleaseRecords>), OperationError> {
    let release = rendered.release.as_ref().map(|chart| HelmRelease {
        name: chart.release.clone(),
        namespace: resolved.target_namespace().to_owned(),
    });
    let existing = resolved.existing.as_ref();
    let status = existing.and_then(|record| record.status.as_ref());
    release::check_mode(&resolved.name.name, status, release.as_ref())?;
    let records = match release.as_ref().filter(|_| rendered.is_due) {
        Some(release) => {
            Some(release::check(resolver.ctx, &resolved.name, release, status, accepts).await?)
        }
        None => None,
    };
    Ok((release, records))
}

/// Reads the live objects that an installation has recorded. `more` says what else to read.
pub(super) async fn read_recorded(
    cluster: &Cluster,
    inventory: &Inventory,
    more: SnapshotRequest,
) -> Result<(Arc<KindTable>, Snapshot), OperationError> {
    let recorded = inventory.objects.keys();
    let needed = recorded.map(|key| (key.group.clone(), key.kind.clone()));
    let kinds = cluster.kinds(&needed.collect()).await?;
    let recorded = planner::reads(&Desired::default(), inventory, &kinds);
    let reads = SnapshotRequest {
        owner: more.owner,
        deletable: more.deletable,
        leaving: more.leaving,
        ..recorded
    };
    Ok(snapshot::read(cluster, kinds, &reads).await?)
}

/// Returns the served kinds of the desired and recorded objects. Kinds that an add-on of the command defines are left out:
/// [`CommandAddons::collect`] has read them.
async fn served_kinds(
    cluster: &Cluster,
    neighbours: &CommandAddons,
    rendered: &Rendered,
    inventory: &Inventory,
) -> Result<Arc<KindTable>, OperationError> {
    let mut needed = needed_kinds(&rendered.manifests);
    let recorded = inventory.objects.keys();
    needed.extend(recorded.map(|key| (key.group.clone(), key.kind.clone())));
    let is_defined = |group: &str, kind: &str| neighbours.kinds.preferred(group, kind).is_some();
    needed.retain(|(group, kind)| !is_defined(group, kind));
    let wanted = rendered.manifests.iter();
    let wanted = wanted.filter_map(|manifest| Gvk::of(&manifest.object));
    let wanted: Vec<Gvk> = wanted
        .filter(|gvk| !is_defined(&gvk.group, &gvk.kind))
        .collect();
    Ok(cluster.kinds_in_versions(&needed, &wanted).await?)
}
