//! From a candidate to a plan: fetch, verify, parse, mark, read the live state, plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use common::api::catalogue::Method;
use common::api::installation::Installed;
use common::catalogue::channel::resolve_manifest;
use common::catalogue::{Entry, Origin};
use common::engine::{definitions, snapshot};
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;
use common::manifest::parse::{self, Limits};
use common::manifest::{Manifest, digest};
use common::plan::desired::{Desired, DesiredContext, needed_kinds};
use common::plan::inventory::Inventory;
use common::plan::planner::{self, Goal, PlanInput, Wanted};
use common::plan::prune::limit::PruneLimit;
use common::plan::schema::Schemas;
use common::plan::snapshot::Snapshot;
use common::plan::{InstallationName, Plan};

use crate::cli::operation::Delete;
use crate::session::Session;
use crate::source::{Access, url};

use super::candidate::Candidate;
use super::known::{Known, name_of};
use common::api::installation::AddonInstallation;

/// The verified objects of an entry.
#[derive(Debug)]
pub struct Package {
    /// The objects.
    pub manifests: Vec<Manifest>,
    /// The entry's hash, or the sha256 of the trimmed bytes where it has none (semantics 11).
    pub manifest_hash: String,
    /// Where it was read.
    pub location: String,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// A plan, and the record that goes with it.
#[derive(Debug)]
pub struct Prepared {
    /// The record as it should be; for an uninstallation, as it is.
    pub record: AddonInstallation,
    /// What will happen.
    pub plan: Plan,
    /// Its wanted objects: the order of the command is made of them. None for an uninstallation.
    pub desired: Desired,
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

/// Fetches the manifest of an entry, verifies its hash and parses it. Nothing is applied from an unverified source.
///
/// # Errors
/// A source or method that cannot be read; a fetch, a hash or a manifest that fails, each with its place.
pub async fn package(entry: &Entry, access: &Access<'_>) -> Result<Package> {
    let access = Access {
        ambient: matches!(*entry.origin, Origin::Index { .. }),
        ..*access
    };
    let version = &entry.version;
    let name = || format!("{} in {}, {}", entry.addon, entry.origin, entry.place);
    if version.template.method != Method::Manifest {
        bail!("{}: template.method can be manifest only", name());
    }
    let (bytes, location) = match (&version.source.url, &version.source.inline) {
        (Some(url), None) => {
            let base = entry.base_url.as_deref().unwrap_or_default();
            let location = resolve_manifest(base, &url.manifest).with_context(name)?;
            let fetched = url::fetch(&location, &access).await.with_context(name)?;
            (fetched.bytes, fetched.location)
        }
        (None, Some(inline)) => (
            inline.manifest.clone().into_bytes(),
            format!("{}.source.inline", entry.place),
        ),
        _ => bail!("{}: source can be url or inline only", name()),
    };
    let mut warnings = Vec::new();
    let manifest_hash = match &version.manifest_hash {
        Some(expected) => {
            let verified = digest::verify(&bytes, expected)
                .with_context(|| format!("{}: {location}", name()))?;
            if verified == digest::Verified::Unverifiable {
                warnings.push(format!(
                    "manifestHash {expected} is neither sha256 nor sha1 and was not verified"
                ));
            }
            expected.clone()
        }
        None => digest::sha256_trimmed(&bytes),
    };
    let parsed = parse::parse(&bytes, &location, &Limits::default()).with_context(name)?;
    warnings.extend(parsed.warnings);
    Ok(Package {
        manifests: parsed.manifests,
        manifest_hash,
        location,
        warnings,
    })
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
    package: Package,
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
    let mut needed = needed_kinds(&package.manifests);
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
    let notes = surroundings.schemas.check(&package.manifests)?;
    let target_namespace = candidate.target_namespace().to_owned();
    let context = DesiredContext {
        installation: &candidate.name,
        target_namespace: &target_namespace,
        kinds: &kinds,
    };
    let desired = Desired::new(package.manifests, &context)?;
    let (keys, mut namespaces) = planner::reads(&desired, &inventory);
    namespaces.insert(target_namespace.clone());
    let snapshot = snapshot::read(cluster, &served, &keys, &namespaces).await?;
    let mut claims = known.claims(&candidate.name);
    claims.extend(surroundings.claims.clone());

    let spec = &candidate.wanted.spec;
    let to = Installed {
        manifest_hash: package.manifest_hash,
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
    plan.warnings.extend(package.warnings);
    plan.warnings.extend(notes);
    Ok(Prepared {
        record: candidate.wanted,
        plan,
        desired,
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
    let (keys, namespaces) = planner::reads(&Desired::default(), &inventory);
    let snapshot = snapshot::read(cluster, &kinds, &keys, &namespaces).await?;
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
    definitions::check(cluster, &mut plan).await?;
    Ok(Prepared {
        record,
        plan,
        desired: Desired::default(),
        requires: Vec::new(),
        basis: Basis { snapshot, kinds },
    })
}
