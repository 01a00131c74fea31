//! The plan of one installation: marks its objects, reads the live objects, plans.

use std::collections::BTreeSet;
use std::sync::Arc;

use addons_plan::InstallationPlan;
use addons_plan::choices::Choices;
use addons_plan::desired::{Desired, DesiredContext, needed_kinds};
use addons_plan::facts::{EntryFacts, RecordFacts, WantedRecord};
use addons_plan::inventory::Inventory;
use addons_plan::planner::{self, Goal, PlanInput, Wanted};
use addons_plan::release_records::ReleaseRecords;
use addons_plan::restored::Memory;
use addons_plan::snapshot::{Reads, Snapshot};
use common::api::installation::{AddonInstallationStatus, ClusterIdentity, HelmRelease, format};
use common::api::names::{InstallationName, owner_hash};
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::KindTable;
use common::pin::{self, OtherCluster};
use common::values::mask::Mask;
use common::values::replaced::were_replaced;

use addons_engine::{Cluster, EngineError, definitions, snapshot};

use super::assemble::Neighbours;
use super::planned::{OnFailure, Planned};
use super::{generated, old, owners};
use crate::chart::CompleteChart;
use crate::error::OperationError;
use crate::former;
use crate::release;
use crate::render::Rendered;
use crate::resolve::Resolver;
use crate::resolved::Resolved;

/// Plans an install or upgrade. It reads the live state of the desired and recorded objects, and writes nothing.
///
/// # Errors
/// A kind is not served, another owner has an object, or a prune needs a flag; the errors of the server.
pub(super) async fn one(
    resolver: &Resolver<'_>,
    neighbours: &Neighbours,
    resolved: &Resolved,
    mut rendered: Rendered,
    choices: &Choices,
) -> Result<Planned, OperationError> {
    let cluster = resolver.ctx.cluster().await?;
    let existing = resolved.existing.as_ref();
    let identity = pinned(resolver, resolved).await?;
    let mut inventory = Inventory::of(existing.and_then(|record| record.status.as_ref()));
    let served = served(cluster, neighbours, &rendered, &inventory).await?;
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
    let (helm_release, release_records) = release_of(resolver, resolved, &rendered, adopt).await?;
    let (mut desired, generated) =
        generated::desired(cluster, resolved, &mut rendered, &given, &inventory, adopt).await?;
    desired.share(&rendered.definitions);
    let checks = adopt && !choices.force_adopt;
    let mut reads = reads(&desired, &inventory, &served, resolved, checks);
    reads.deletable = planner::deletable(&desired, &inventory, &choices.delete);
    let (served, mut snapshot) = snapshot::read(cluster, served, &reads).await?;
    let kinds = neighbours.with_definitions(&served);
    let recorded = (&mut inventory, &mut snapshot);
    let old = old::find(resolver.ctx, resolved, &desired, recorded).await?;
    let spec = &resolved.wanted.spec;
    let wanted = Wanted {
        desired: &desired,
        to: &rendered.target(resolved, helm_release.clone()),
        target_namespace: resolved.target_namespace(),
        create_namespace: spec.create_namespace,
        record_namespace: resolved.record_namespace(),
        coming: &neighbours.namespaces,
        conflicts: spec.conflicts,
        reconcile: spec.upkeep(),
        due: rendered.is_due,
        allow_prune: choices.allow_prune,
        adopt,
        revision: resolved.revision,
    };
    let mut claims = neighbours.claims_besides(resolver, &resolved.name, &snapshot);
    let (ctx, records) = (resolver.ctx, &resolver.records);
    owners::complete(ctx, records, &resolved.name, &snapshot, &mut claims).await?;
    let mut plan = planner::plan(&PlanInput {
        installation: &resolved.name,
        addon: &spec.addon_ref.name,
        from: resolved.installed(),
        goal: goal(wanted, choices),
        inventory: &inventory,
        memory: Memory::to_install(existing),
        snapshot: &snapshot,
        kinds: &kinds,
        claims: &claims,
        unmarked: &old.keys,
        delete_kinds: &choices.delete,
        held: &resolved.held(&inventory),
        resting: &resting(&rendered, resolved, &inventory),
    })?;
    let is_replaced = plan.to.as_ref();
    let is_replaced = is_replaced.is_some_and(|to| were_replaced(resolved.status(), to));
    plan.mask = Arc::new(with_secrets(mask, &desired).with_former(is_replaced));
    plan.generated = generated.objects;
    definitions::check(cluster, &mut plan).await?;
    former::records(cluster, resolved, (&snapshot, &claims), adopt, &mut plan).await?;
    warn(&mut plan, [&rendered.warnings, &notes, &old.warnings]);
    plan.helm_release = helm_release.filter(|_| rendered.is_due);
    plan.release_records = release_records;
    of_records(resolver, resolved, identity, &mut plan).await?;
    Ok(planned(plan, resolved, desired, rendered.release))
}

/// Returns the recorded objects that are hooks which a repair leaves out.
fn resting(rendered: &Rendered, resolved: &Resolved, inventory: &Inventory) -> BTreeSet<ObjectKey> {
    let recorded = inventory.objects.keys().filter(|key| {
        let mut written = rendered.resting.iter();
        written.any(|written| key.is_meant_by(written, resolved.target_namespace()))
    });
    recorded.cloned().collect()
}

/// Adds earlier warnings, and masks content of Secrets in all of them.
fn warn(plan: &mut InstallationPlan, before: [&[String]; 3]) {
    let warnings = plan.warnings.iter().chain(before.into_iter().flatten());
    plan.warnings = warnings.map(|warning| plan.mask.text(warning)).collect();
}

/// Returns the plan with the content that it was made from.
fn planned(
    mut plan: InstallationPlan,
    resolved: &Resolved,
    desired: Desired,
    release: Option<CompleteChart>,
) -> Planned {
    let superseded = resolved.found.iter().map(|found| &found.superseded);
    let superseded = superseded.filter(|objects| !objects.is_empty());
    plan.prune.extend(superseded.cloned());
    Planned {
        plan,
        record: resolved.record().clone(),
        fallback: resolved.fallback(),
        on_failure: OnFailure::Stays,
        entry: resolved.found.is_none().then(|| resolved.entry.clone()),
        desired,
        release,
    }
}

/// Returns the goal: to install the desired objects, or only to own those that exist.
fn goal<'a>(wanted: Wanted<'a>, choices: &Choices) -> Goal<'a> {
    if choices.only_owners {
        Goal::Adopt(wanted)
    } else {
        Goal::Install(wanted)
    }
}

/// Returns what has to be read: the desired and recorded objects, and the target namespace. With `checks`, also whether Argo CD or Flux
/// applies objects that are not recorded.
fn reads(
    desired: &Desired,
    inventory: &Inventory,
    kinds: &KindTable,
    resolved: &Resolved,
    checks: bool,
) -> Reads {
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

/// Adds facts of the entry and of the records to a plan.
async fn of_records(
    resolver: &Resolver<'_>,
    resolved: &Resolved,
    identity: Option<ClusterIdentity>,
    plan: &mut InstallationPlan,
) -> Result<(), OperationError> {
    plan.cluster = identity;
    plan.entry = Some(EntryFacts::of(&resolved.entry));
    plan.wanted = WantedRecord::of(resolved.record());
    plan.record = resolved.existing.as_ref().map(RecordFacts::of);
    if let Some(kops) = &resolved.kops {
        plan.kops = Some(kops.record(resolver.ctx, resolved).await?);
    }
    Ok(())
}

/// Returns the identity of the cluster of the objects, if its kube-system may be read. Refuses a record of another cluster, and a new one
/// in a namespace whose records are pinned to another cluster (semantics 6.5).
async fn pinned(
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
    resolver.ctx.check_other().await?;
    check_beside(resolver, &resolved.name, status, found.as_ref())?;
    Ok(found)
}

/// Refuses an installation that is not pinned yet if its namespace leads to another cluster than before.
pub(super) fn check_beside(
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
    pin::strayed(beside, found).map_or(Ok(()), Err)
}

/// Adds the content of Secrets in the manifest to the mask.
fn with_secrets(mask: Mask, desired: &Desired) -> Mask {
    let secrets = desired.objects.iter().filter(|(key, _)| key.is_secret());
    mask.with_objects(secrets.map(|(_, wanted)| &*wanted.object))
}

/// Returns the release that helm installs, and the records it continues from. It must match the recorded release, and the installation must
/// have created it.
async fn release_of(
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
pub(super) async fn live_recorded(
    cluster: &Cluster,
    inventory: &Inventory,
    more: Reads,
) -> Result<(Arc<KindTable>, Snapshot), OperationError> {
    let recorded = inventory.objects.keys();
    let needed = recorded.map(|key| (key.group.clone(), key.kind.clone()));
    let kinds = cluster.kinds(&needed.collect()).await?;
    let recorded = planner::reads(&Desired::default(), inventory, &kinds);
    let reads = Reads {
        owner: more.owner,
        deletable: more.deletable,
        leaving: more.leaving,
        ..recorded
    };
    Ok(snapshot::read(cluster, kinds, &reads).await?)
}

/// Returns the served kinds of the desired and recorded objects. Kinds that an add-on of the command defines are left out:
/// [`Neighbours::of`] has read them.
async fn served(
    cluster: &Cluster,
    neighbours: &Neighbours,
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
