//! From a due candidate to a plan: fetch, verify, parse, mark, read the live state, plan.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use common::api::catalogue::Method;
use common::api::installation::{Conflicts, Installed, Reconcile};
use common::api::names;
use common::catalogue::Entry;
use common::catalogue::channel::resolve_manifest;
use common::engine::{Cluster, snapshot};
use common::manifest::Manifest;
use common::manifest::digest;
use common::manifest::kinds::KindTable;
use common::manifest::parse;
use common::plan::desired::{Desired, DesiredContext};
use common::plan::inventory::Inventory;
use common::plan::planner::{self, PlanInput, PlanOptions};
use common::plan::{Plan, Verb};

use crate::session::Session;
use crate::source;

use super::candidate::Candidate;

/// The verified objects of an entry.
pub struct Package {
    /// The objects.
    pub manifests: Vec<Manifest>,
    /// The entry's hash, or the sha256 of the trimmed bytes where it has none (semantics 11).
    pub manifest_hash: String,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// A plan, and the record that goes with it.
pub struct Prepared {
    /// What is wanted.
    pub candidate: Candidate,
    /// What will happen.
    pub plan: Plan,
}

/// Fetches the manifest of an entry, verifies its hash and parses it. Nothing is applied from an unverified source.
///
/// # Errors
/// A source or method that needs more than this; a fetch, a hash or a manifest that fails, each with its place.
pub async fn package(entry: &Entry) -> Result<Package> {
    let version = &entry.version;
    let name = format!("{} ({}, {})", entry.addon, entry.origin, entry.place);
    if version.template.method != Method::Manifest {
        bail!("{name}: only template.method manifest can be rendered");
    }
    let (bytes, file) = match (&version.source.url, &version.source.inline) {
        (Some(url), None) => {
            let base = entry.base_url.as_deref().unwrap_or_default();
            let location = resolve_manifest(base, &url.manifest).with_context(|| name.clone())?;
            let fetched = source::fetch(&location).await.with_context(|| name.clone())?;
            (fetched.bytes, fetched.location)
        }
        (None, Some(inline)) => (inline.manifest.clone().into_bytes(), format!("{}.source.inline", entry.place)),
        _ => bail!("{name}: manifests can be read from source url and inline only"),
    };
    let mut warnings = Vec::new();
    let manifest_hash = match &version.manifest_hash {
        Some(expected) => {
            let verified = digest::verify(&bytes, expected).with_context(|| format!("{name}: {file}"))?;
            if verified == digest::Verified::Unverifiable {
                warnings.push(format!("{name}: manifestHash {expected} is neither sha256 nor sha1 and was not verified"));
            }
            expected.clone()
        }
        None => digest::sha256_trimmed(&bytes),
    };
    let parsed = parse::parse(&bytes, &file, &parse::Limits::default()).with_context(|| name.clone())?;
    warnings.extend(parsed.warnings);
    Ok(Package { manifests: parsed.manifests, manifest_hash, warnings })
}

/// Options of the plan that the user gave.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrepareOptions {
    /// Accept an empty set, or one that prunes most of what is there.
    pub allow_prune: bool,
    /// Restore what was edited or deleted even where nothing else is due.
    pub repair: bool,
}

/// Plans an install or upgrade.
///
/// # Errors
/// See [`package`]; kinds that are not served; objects that are not ours; a prune that needs a flag.
pub async fn prepare(session: &Session, candidate: Candidate, package: Package, options: PrepareOptions) -> Result<Prepared> {
    let cluster = session.cluster().await?;
    let existing = candidate.existing.as_ref().and_then(|record| record.status.as_ref());
    let inventory = existing.map(|status| Inventory::from_groups(&status.inventory)).unwrap_or_default();
    let kinds = kinds_of(cluster, &package.manifests, &inventory).await?;
    let target_namespace = candidate.target_namespace();
    let context = DesiredContext { installation: &candidate.name, target_namespace, kinds: &kinds };
    let desired = Desired::build(package.manifests, &context)?;

    let mut keys: BTreeSet<_> = desired.keys().cloned().collect();
    keys.extend(inventory.objects.keys().cloned());
    let namespaces = BTreeSet::from([target_namespace.to_owned()]);
    let snapshot = snapshot::read(cluster, &kinds, &keys, &namespaces).await?;

    let spec = &candidate.wanted.spec;
    let installed = existing.and_then(|status| status.installed.clone());
    let mut plan = planner::plan(&PlanInput {
        installation: &candidate.name,
        addon: &spec.addon_ref.name,
        verb: if installed.is_some() { Verb::Upgrade } else { Verb::Install },
        from: installed,
        to: Some(Installed { manifest_hash: package.manifest_hash, ..candidate.target() }),
        create_namespace: spec.create_namespace,
        target_namespace,
        conflicts: spec.conflicts,
        desired: &desired,
        inventory: &inventory,
        snapshot: &snapshot,
        kinds: &kinds,
        options: PlanOptions { allow_prune: options.allow_prune, ..PlanOptions::default() },
    })?;
    plan.warnings.extend(package.warnings);
    Ok(Prepared { candidate, plan })
}

/// The served kinds that the wanted and the recorded objects need.
async fn kinds_of(cluster: &Cluster, manifests: &[Manifest], inventory: &Inventory) -> Result<std::sync::Arc<KindTable>> {
    let mut in_set = KindTable::default();
    let mut needed = BTreeSet::new();
    for manifest in manifests {
        in_set.insert_crd(&manifest.object);
        if let Some(gvk) = common::manifest::key::Gvk::of(&manifest.object) {
            needed.insert((gvk.group, gvk.kind));
        }
    }
    needed.extend(inventory.objects.keys().map(|key| (key.group.clone(), key.kind.clone())));
    // A kind that the set itself defines is no reason to ask the server again.
    needed.retain(|(group, kind)| in_set.preferred(group, kind).is_none());
    Ok(cluster.kinds(&needed).await?)
}
