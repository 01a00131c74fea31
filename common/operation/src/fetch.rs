//! Fetches the packages of the installations that are due, with the credentials that their entries name, and verifies them.

pub(crate) mod dependencies;
pub mod provenance;
mod reach;
pub mod signature;

use std::sync::Arc;

use addons_plan::choices::Choices;
use addons_plan::history;
use addons_render::chart::lock::PinnedDependency;
use addons_render::hooks::Occasion;
use addons_render::package::Package;
use common::api::catalogue::{Auth, Source};
use common::api::installation::Signature;
use common::catalogue::Origin;
use common::catalogue::due::{DueReason, DueVerdict};
use common::catalogue::select::SelectionRules;
use common::manifest::digest::{self, HashError};
use futures::StreamExt as _;
use futures::stream;

use addons_sources::credentials::Credentials;
use addons_sources::dependency::ParentSource;
use addons_sources::{Reach, SourceAccess};

use crate::context::Context;
use crate::error::{OperationError, within};
use crate::event::{Activity, Finding, OperationEvent};
use crate::render::authority;
use crate::render::inputs::Inputs;
use crate::resolve::policies;
use crate::resolve::resolved::Resolved;
use crate::stage::{StageResult, Staged};

/// How many add-ons are fetched or rendered at the same time.
pub(crate) const AT_ONCE: usize = 8;

/// The inputs of an installation and its package.
#[derive(Debug)]
pub struct Fetched {
    /// The inputs for rendering.
    pub inputs: Inputs,
    /// The package.
    pub package: VerifiedPackage,
    /// Whether every change is applied; otherwise only drift of `reconcile: Ensure` is repaired.
    pub is_due: bool,
    /// The occasion of the rendering.
    pub occasion: Occasion,
}

/// A package whose hash was verified.
#[derive(Debug)]
pub struct VerifiedPackage {
    /// The content of the source.
    pub fetched: addons_sources::FetchedPackage,
    /// The hash of the entry, or the sha256 of the content if the entry has no verifiable hash (semantics 11.4).
    pub manifest_hash: String,
    /// The signature that vouches for it, if its catalogue requires one.
    pub signature: Option<Signature>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Reads the inputs of each installation, and fetches the packages of those that are due, several at the same time.
pub async fn fetch(
    ctx: &Context,
    resolved: Vec<Resolved>,
    choices: &Choices,
) -> Vec<Staged<Fetched>> {
    let fetching = stream::iter(resolved).map(|resolved| async move {
        let stage = StageResult::from_result(fetch_one(ctx, &resolved, choices).await);
        Staged { resolved, stage }
    });
    fetching.buffered(AT_ONCE).collect().await
}

/// Only the authority is created, and nothing else is applied again.
const NO_AUTHORITY: DueVerdict = DueVerdict::Yes {
    reason: DueReason::NoAuthority,
};

/// Returns the inputs and the package of one installation, or `None` if it is up to date.
async fn fetch_one(
    ctx: &Context,
    resolved: &Resolved,
    choices: &Choices,
) -> Result<Option<Fetched>, OperationError> {
    let inputs = Inputs::read(ctx, resolved).await?;
    let mut due = resolved.check_due(&inputs, None);
    let mut fetched = None;
    if due == DueVerdict::No && resolved.entry.verifiable_hash().is_none() {
        policies::check_host(ctx, resolved).await?;
        let package = package(ctx, resolved).await?;
        due = resolved.check_due(&inputs, Some(&package.manifest_hash));
        fetched = Some(package);
    }
    if due == DueVerdict::No
        && resolved.shared.is_some()
        && !authority::exists(ctx, &resolved.entry).await?
    {
        due = NO_AUTHORITY;
    }
    match &due {
        DueVerdict::Downgrade { from, to } if !choices.allow_downgrade => {
            if resolved.is_asked_for {
                return Err(OperationError::Downgrade {
                    installation: resolved.name.clone(),
                    addon: resolved.entry.addon.clone(),
                    from: from.clone(),
                    to: to.clone(),
                });
            }
            ctx.report_finding(Finding::NewerInstalled {
                installation: resolved.name.clone(),
                installed: from.clone(),
                newest: to.clone(),
            });
            return Ok(None);
        }
        DueVerdict::No if !is_planned_anyway(resolved, choices) => {
            return Ok(None);
        }
        _ => {}
    }
    let is_due = !matches!(due, DueVerdict::No | NO_AUTHORITY) || choices.repair;
    let package = match fetched {
        Some(package) => package,
        None => {
            if is_due {
                policies::check_before_fetch(ctx, resolved).await?;
            }
            package(ctx, resolved).await?
        }
    };
    Ok(Some(Fetched {
        inputs,
        package,
        is_due,
        occasion: if matches!(due, DueVerdict::No | NO_AUTHORITY) {
            Occasion::Repair
        } else {
            resolved.occasion()
        },
    }))
}

/// Whether an installation is planned although nothing is due.
fn is_planned_anyway(resolved: &Resolved, choices: &Choices) -> bool {
    choices.repair
        || (resolved.is_ensured() && !choices.only_due)
        || resolved.retains(&choices.delete)
        // Another tool may have new records of it, or may have taken objects back.
        || choices.adopt
}

/// The source of an entry, and the access to it.
pub struct LocatedSource {
    /// The source, in the private registry if there is one.
    pub source: Source,
    /// Why it is not in the private registry.
    warning: Option<String>,
    /// The credentials from its Secret.
    pub credentials: Option<Arc<Credentials>>,
    /// What it may open on this machine.
    pub reach: Reach,
}

impl LocatedSource {
    /// Locates the source of an entry, and reads the Secret that it names.
    ///
    /// # Errors
    /// The registry is invalid, the source cannot be read, or the Secret is missing; each with the place of the entry.
    pub async fn new(ctx: &Context, resolved: &Resolved) -> Result<Self, OperationError> {
        let name = || describe_entry(resolved);
        let (mut source, mut warning) = (resolved.entry.version.source.clone(), None);
        if let Some(registry) = within(resolved.registry(), name)? {
            let moved = within(registry.rewrite_source(&source), name)?;
            (source, warning) = (moved.source, moved.warning);
        }
        let credentials = match auth(&source) {
            Some(auth) => {
                let namespace = secrets_namespace(ctx, resolved);
                let read = ctx.credentials(namespace, &auth.secret_ref.name).await;
                Some(within(read, name)?)
            }
            None => None,
        };
        Ok(Self {
            reach: reach::reach(ctx, resolved),
            source,
            warning,
            credentials,
        })
    }

    /// Returns the access to the source.
    #[must_use]
    pub fn access<'a>(&'a self, ctx: &'a Context) -> SourceAccess<'a> {
        SourceAccess {
            credentials: self.credentials.as_deref(),
            ..ctx.access(&self.reach)
        }
    }
}

/// Fetches the source of an entry and verifies its hash; nothing is applied from an unverified source. The package of a rollback is taken
/// from the cache if it is there: its source may have changed.
///
/// # Errors
/// The source cannot be read, the Secret is missing, or the hash differs; each with the place of the entry.
pub async fn package(
    ctx: &Context,
    resolved: &Resolved,
) -> Result<VerifiedPackage, OperationError> {
    let located = LocatedSource::new(ctx, resolved).await?;
    let access = located.access(ctx);
    let hash = resolved.entry.verifiable_hash();
    if let (true, Some(hash), false) = (is_of_revision(resolved), hash, access.offline) {
        let cached = SourceAccess {
            offline: true,
            hash: Some(hash),
            ..access
        };
        if let Ok(verified) = read_source(ctx, resolved, &located, cached).await {
            return Ok(verified);
        }
    }
    let hash = hash.filter(|_| access.offline);
    read_source(ctx, resolved, &located, SourceAccess { hash, ..access }).await
}

/// Whether the installation is rolled back to a revision, or held at one.
fn is_of_revision(resolved: &Resolved) -> bool {
    let record = resolved.existing.as_ref().filter(|_| resolved.keeps_spec);
    resolved.revision.is_some() || record.is_some_and(history::is_held_by_rollback)
}

async fn read_source(
    ctx: &Context,
    resolved: &Resolved,
    located: &LocatedSource,
    access: SourceAccess<'_>,
) -> Result<VerifiedPackage, OperationError> {
    let entry = &resolved.entry;
    let name = || describe_entry(resolved);
    let source = &located.source;
    let mut warnings: Vec<String> = located.warning.iter().cloned().collect();
    let base = entry.base_url.as_deref().unwrap_or_default();
    let work = Activity::Fetch {
        addon: entry.addon.clone(),
        source: addons_sources::title(source),
    };
    ctx.emit(OperationEvent::Began(work.clone()));
    let fetched = addons_sources::package(source, base, &entry.place, &access).await;
    ctx.emit(OperationEvent::Ended(work));
    let mut fetched = within(fetched, name)?;
    let vouched = signature::check_signature(resolved, source, &fetched, &access).await;
    let vouched = within(vouched, name)?;
    warnings.extend(vouched.warning);
    let registry = within(resolved.registry(), name)?;
    let parent = ParentSource {
        source,
        base,
        registry: registry.as_ref(),
        access,
    };
    let location = fetched.location.clone();
    let place = || format!("{}: {location}", name());
    let made_of = dependencies::fetch(ctx, resolved, &fetched.package, &parent).await;
    let verified = match within(made_of, place)? {
        Some((complete, pinned)) => {
            within(
                signature::check_dependencies(resolved, &pinned, &complete),
                place,
            )?;
            let verified =
                verify_hash_with_dependencies(resolved, &fetched.package, &complete, &pinned);
            fetched.package = complete;
            verified
        }
        None => verify_hash(resolved, &fetched.package).map_err(OperationError::from),
    };
    let (manifest_hash, warning) = within(verified, place)?;
    warnings.extend(warning);
    Ok(VerifiedPackage {
        fetched,
        manifest_hash,
        signature: vouched.signature,
        warnings,
    })
}

/// Adds the charts that its lock file names to a chart folder that the user named; any other folder stays unchanged.
///
/// # Errors
/// The lock file does not fit, or a chart cannot be fetched.
pub async fn with_dependencies(
    ctx: &Context,
    resolved: &Resolved,
    mut verified: VerifiedPackage,
) -> Result<VerifiedPackage, OperationError> {
    // The chart names them, not the user.
    let reach = ctx.reach_of_opened();
    let parent = ParentSource {
        source: &Source::default(),
        base: "",
        registry: None,
        access: ctx.access(&reach),
    };
    let package = &verified.fetched.package;
    let complete = dependencies::fetch(ctx, resolved, package, &parent).await;
    if let Some((complete, _)) = within(complete, || resolved.place())? {
        verified.fetched.package = complete;
    }
    Ok(verified)
}

/// Verifies the content and returns the hash to record, with a warning if nothing could be verified: only an index whose records kops
/// shares, or one under the channels rules, may have an md5 (semantics 11.4).
fn verify_hash(
    resolved: &Resolved,
    package: &Package,
) -> Result<(String, Option<String>), HashError> {
    let is_channels = match resolved.rules {
        SelectionRules::Channels => true,
        SelectionRules::Documented => false,
        SelectionRules::Auto => resolved.entry.version.version.is_empty(),
    };
    let is_of_kops = is_channels || resolved.shared.is_some();
    let takes_md5 = is_of_kops && matches!(*resolved.entry.origin, Origin::Index { .. });
    let of_content = || match package.as_file() {
        Some(file) => digest::sha256_trimmed(&file.bytes),
        None => package.digest(),
    };
    let written = resolved.entry.version.manifest_hash.as_ref();
    let Some(expected) = written.filter(|hash| !hash.is_empty()) else {
        return Ok((of_content(), None));
    };
    match verify_package_hash(package, expected) {
        Ok(_) => Ok((expected.clone(), None)),
        Err(HashError::Md5 { hash }) if takes_md5 => {
            let warning = format!("manifestHash {hash} is an md5 and was not verified");
            Ok((of_content(), Some(warning)))
        }
        Err(error) => Err(error),
    }
}

/// As [`verify_hash`], for a chart with its dependencies. The hash of its folder alone does not cover them.
fn verify_hash_with_dependencies(
    resolved: &Resolved,
    folder: &Package,
    complete: &Package,
    pinned: &[PinnedDependency],
) -> Result<(String, Option<String>), OperationError> {
    let error = match verify_hash(resolved, complete) {
        Ok(verified) => return Ok(verified),
        Err(error) => error,
    };
    if verify_hash(resolved, folder).is_err() {
        return Err(error.into());
    }
    Err(OperationError::PartialHash {
        charts: describe_charts(pinned),
        whole: complete.digest(),
    })
}

/// Returns `NAME VERSION, …` of the dependencies of a chart.
pub(crate) fn describe_charts(charts: &[PinnedDependency]) -> String {
    let charts = charts.iter();
    let charts = charts.map(|chart| format!("{} {}", chart.name, chart.version));
    charts.collect::<Vec<_>>().join(", ")
}

/// Verifies the bytes of a file, or the listing of a folder.
fn verify_package_hash(
    package: &Package,
    expected: &str,
) -> Result<digest::HashAlgorithm, HashError> {
    match package.as_file() {
        Some(file) => digest::verify(&file.bytes, expected),
        None => digest::verify(package.listing().as_bytes(), expected),
    }
}

/// Returns `NAME in catalogue C, spec.addons[0].versions[0]`; for a revision, its number and what it installed, whatever the catalogue
/// lists now.
fn describe_entry(resolved: &Resolved) -> String {
    let entry = &resolved.entry;
    if let Some(revision) = resolved.revision {
        let hash = entry.verifiable_hash();
        let hash = hash.map_or_else(String::new, |hash| format!(", manifestHash {hash}"));
        let version = format!("{} {}", entry.addon, entry.version.version);
        let unlisted = match (&*entry.origin, entry.place.as_str()) {
            (Origin::Index { .. }, "") => ", which no catalogue lists",
            _ => "",
        };
        return format!(
            "revision {revision} ({}{hash}){unlisted}",
            version.trim_end()
        );
    }
    match (&*entry.origin, entry.place.as_str()) {
        // The user typed the location, and no catalogue lists it.
        (Origin::Index { location } | Origin::Installation { location }, "") => location.clone(),
        (origin, place) => format!("{} in {origin}, {place}", entry.addon),
    }
}

/// Returns the credentials that a source names.
fn auth(source: &Source) -> Option<&Auth> {
    source.kind().ok()?.auth()
}

/// Returns the namespace of the Secrets of a source: that of its catalogue. The Secrets of an index are beside the record that names it, or
/// in the system namespace if the user typed it (semantics 16.2).
fn secrets_namespace<'a>(ctx: &'a Context, resolved: &'a Resolved) -> &'a str {
    match &*resolved.entry.origin {
        Origin::Catalogue { namespace, .. } => namespace,
        Origin::Index { .. } if resolved.entry.author.is_typed() => {
            &ctx.settings().system_namespace
        }
        Origin::Index { .. } | Origin::Installation { .. } | Origin::Directory { .. } => {
            &resolved.name.namespace
        }
    }
}
