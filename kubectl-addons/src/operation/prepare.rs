//! From the objects of a candidate to a plan: mark, read the live state, plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_engine::{definitions, snapshot};
use anyhow::Result;
use common::api::installation::{HelmRelease, Installed};
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;
use common::plan::desired::{Desired, DesiredContext, needed_kinds};
use common::plan::inventory::Inventory;
use common::plan::planner::{self, Goal, PlanInput, Wanted};
use common::plan::prune::limit::PruneLimit;
use common::plan::schema::Schemas;
use common::plan::snapshot::Snapshot;
use common::plan::{InstallationName, Plan};

use crate::cli::operation::Delete;
use crate::session::Session;

use super::candidate::Candidate;
use super::chart::Ready;
use super::content::{Rendered, masked};
use super::known::{Known, name_of};
use super::release;
use common::api::installation::AddonInstallation;

/// A plan, and the record that goes with it.
#[derive(Debug)]
pub struct Prepared {
    /// The record as it should be; for an uninstallation, as it is.
    pub record: AddonInstallation,
    /// What will happen.
    pub plan: Plan,
    /// Its wanted objects: the order of the command is made of them. None for an uninstallation.
    pub desired: Desired,
    /// The chart that helm installs, where it does.
    pub release: Option<Ready>,
    /// Installations of the same command that it requires: installed before it, uninstalled after it.
    pub requires: Vec<InstallationName>,
    /// What it was made with.
    pub basis: Basis,
}

/// What a plan was made with.
#[derive(Debug)]
pub struct Basis {
    /// What was there.
    pub snapshot: Snapshot,
    /// What the cluster served.
    pub kinds: Arc<KindTable>,
}

/// What the user said about the plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanFlags {
    /// Whether something is due; otherwise only drift of `reconcile: Ensure` is repaired.
    pub due: bool,
    /// How much of what is installed may be pruned.
    pub allow_prune: PruneLimit,
    /// Kinds that are deleted although they hold data.
    pub delete: Delete,
}

/// What other add-ons of the same command will bring.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Kinds that they define.
    pub kinds: KindTable,
    /// Namespaces among their objects.
    pub namespaces: BTreeSet<String>,
    /// Objects that they own.
    pub claims: BTreeMap<ObjectKey, InstallationName>,
    /// What their definitions, and this add-on's own, say of custom resources.
    pub schemas: Schemas,
}

/// Plans an install or upgrade: reads the live state of the wanted and recorded objects, writes nothing.
///
/// # Errors
/// Kinds that are not served, objects that are not ours, a prune that needs a flag; and what the server refuses.
pub async fn prepare(
    session: &Session,
    known: &Known,
    surroundings: &Surroundings,
    candidate: Candidate,
    content: Rendered,
    flags: PlanFlags,
) -> Result<Prepared> {
    let cluster = session.cluster().await?;
    let status = candidate
        .existing
        .as_ref()
        .and_then(|record| record.status.as_ref());
    let inventory = status
        .map(|status| Inventory::from_groups(&status.inventory))
        .unwrap_or_default();
    let mut needed = needed_kinds(&content.manifests);
    needed.extend(
        inventory
            .objects
            .keys()
            .map(|key| (key.group.clone(), key.kind.clone())),
    );
    // A kind that another add-on of this command will define is no reason to ask the server for it again.
    needed.retain(|(group, kind)| surroundings.kinds.preferred(group, kind).is_none());
    let served = cluster.kinds(&needed).await?;
    let kinds = served.with(&surroundings.kinds);
    let mask = candidate.inputs.mask();
    let hidden = |error| masked(error, &mask);
    let notes = surroundings.schemas.check(&content.manifests);
    let notes = notes.map_err(|error| hidden(error.into()))?;
    let target_namespace = candidate.target_namespace().to_owned();
    let context = DesiredContext {
        installation: &candidate.name,
        target_namespace: &target_namespace,
        kinds: &kinds,
        mask: &mask,
    };
    let helm_release = content.release.as_ref().map(|ready| HelmRelease {
        name: ready.release.clone(),
        namespace: target_namespace.clone(),
    });
    release::check_mode(&candidate.name.name, status, helm_release.as_ref())?;
    let desired =
        Desired::new(content.manifests, &context).map_err(|error| hidden(error.into()))?;
    let mut reads = planner::reads(&desired, &inventory);
    reads.namespaces.insert(target_namespace.clone());
    let snapshot = snapshot::read(cluster, &served, &reads).await?;
    let mut claims = known.claims(&candidate.name);
    claims.extend(surroundings.claims.clone());

    let spec = &candidate.wanted.spec;
    let to = Installed {
        manifest_hash: content.manifest_hash,
        resolved: content.resolved,
        helm_release: helm_release.clone(),
        ..candidate.target()
    };
    let mut plan = planner::plan(&PlanInput {
        installation: &candidate.name,
        addon: &spec.addon_ref.name,
        from: status.and_then(|status| status.installed.as_ref()),
        goal: Goal::Install(Wanted {
            desired: &desired,
            to: &to,
            target_namespace: &target_namespace,
            create_namespace: spec.create_namespace,
            coming: &surroundings.namespaces,
            conflicts: spec.conflicts,
            reconcile: spec.reconcile,
            due: flags.due,
            allow_prune: flags.allow_prune,
        }),
        inventory: &inventory,
        snapshot: &snapshot,
        kinds: &kinds,
        claims: &claims,
        delete_kinds: &flags.delete.kinds(),
    })?;
    definitions::check(cluster, &mut plan).await?;
    plan.helm_release = helm_release.filter(|_| flags.due);
    plan.warnings.extend(content.warnings);
    plan.warnings.extend(notes);
    for warning in &mut plan.warnings {
        *warning = mask.text(warning);
    }
    plan.mask = mask;
    Ok(Prepared {
        record: candidate.wanted,
        plan,
        desired,
        release: content.release,
        requires: Vec::new(),
        basis: Basis {
            snapshot,
            kinds: served,
        },
    })
}

/// Plans an uninstallation.
///
/// # Errors
/// What the server refuses.
pub async fn prepare_uninstall(
    session: &Session,
    record: AddonInstallation,
    keep: bool,
    delete: Delete,
) -> Result<Prepared> {
    let cluster = session.cluster().await?;
    let name = name_of(&record);
    let status = record.status.clone().unwrap_or_default();
    let inventory = Inventory::from_groups(&status.inventory);
    let needed = inventory
        .objects
        .keys()
        .map(|key| (key.group.clone(), key.kind.clone()))
        .collect();
    let kinds = cluster.kinds(&needed).await?;
    let reads = planner::reads(&Desired::default(), &inventory);
    let snapshot = snapshot::read(cluster, &kinds, &reads).await?;
    let mut plan = planner::plan(&PlanInput {
        installation: &name,
        addon: &record.spec.addon_ref.name,
        from: status.installed.as_ref(),
        goal: Goal::Uninstall { keep },
        inventory: &inventory,
        snapshot: &snapshot,
        kinds: &kinds,
        claims: &BTreeMap::new(),
        delete_kinds: &delete.kinds(),
    })?;
    plan.helm_release = release::recorded(&status).filter(|_| !keep).cloned();
    definitions::check(cluster, &mut plan).await?;
    Ok(Prepared {
        record,
        plan,
        desired: Desired::default(),
        release: None,
        requires: Vec::new(),
        basis: Basis { snapshot, kinds },
    })
}
