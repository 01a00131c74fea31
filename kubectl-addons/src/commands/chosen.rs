//! Finds the add-on that a name stands for in a command that only reads: an entry on offer that fits, or one from the origin of an
//! installation. Catalogues that cannot be read are missing from the offer.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use common::api::installation::{AddonFrom, AddonInstallation};
use common::catalogue::select::{ClusterVersions, EntryRequest, Selection};
use common::catalogue::{Catalogue, CatalogueEntry};

use crate::cli::operation::SourceArgs;
use crate::cli::reading::FitArgs;
use crate::session::Session;
use crate::words::{delegated, hint};
use crate::{choices, output};
use addons_operation::resolve::choose::{ChooseError, choose};
use addons_operation::resolve::origin::catalogue_of;
use addons_operation::{OperationError, Records, VersionedName, records::name_of};

/// Where a command looks for add-ons, and which facts they have to fit.
pub(super) struct LookupScope<'a> {
    pub source: &'a SourceArgs,
    /// The registry that sources and images are rewritten to, instead of that of the catalogue or the installation.
    pub registry: Option<&'a str>,
    pub fit: &'a FitArgs,
}

/// A parsed name, and the catalogue that has it.
pub(super) struct FoundAddon {
    /// The name of the add-on in the catalogue, and the version that was asked for.
    pub wish: VersionedName,
    pub catalogue: Arc<Catalogue>,
}

impl FoundAddon {
    pub(super) fn request(&self) -> EntryRequest<'_> {
        request_for(&self.wish)
    }
}

/// Finds a name on offer. If no catalogue has it, and no flag names another source, reads the index that an installation of this name came
/// from.
///
/// # Errors
/// The add-on is unknown, the installation comes from a directory (which only `sync` reads), or an index or catalogue cannot be read.
pub(super) async fn find_addon(
    session: &Session,
    offered: &LookupScope<'_>,
    typed: &str,
) -> Result<FoundAddon> {
    let mut wish = VersionedName::parse(typed);
    let source = offered.source;
    let catalogue = session
        .ctx()
        .catalogue(&choices::parse_offer(source))
        .await?;
    // This check needs no cluster.
    let Err(unknown) = check_known(session, &catalogue, &wish) else {
        let catalogue = rewrite_registry(catalogue, offered.registry);
        return Ok(FoundAddon { wish, catalogue });
    };
    let is_elsewhere = source.channel.is_some() || source.catalogue.is_some();
    let record = match is_elsewhere {
        true => None,
        false => find_installed(session, &wish.name).await,
    };
    let Some(record) = record else {
        return Err(unknown.into());
    };
    let reference = &record.spec.addon_ref;
    if let Some(directory) = &reference.directory {
        let error = OperationError::OfDirectory {
            installation: name_of(&record),
            directory: directory.clone(),
        };
        return Err(error.into());
    }
    let own = reference.from.as_deref().map(AddonFrom::location);
    let Some(origin) = reference.index.clone().or(own) else {
        return Err(unknown.into());
    };
    output::note(&format!(
        "no catalogue has {}; shown from {origin}, which it is installed from",
        wish.name
    ));
    wish.name.clone_from(&reference.name);
    let catalogue = catalogue_of(session.ctx(), &record).await?;
    check_known(session, &catalogue, &wish)?;
    let registry = offered.registry.or(record.spec.registry.as_deref());
    let catalogue = rewrite_registry(catalogue, registry);
    Ok(FoundAddon { wish, catalogue })
}

/// Sets the registry of all entries of a catalogue.
pub(super) fn rewrite_registry(
    catalogue: Arc<Catalogue>,
    registry: Option<&str>,
) -> Arc<Catalogue> {
    let Some(registry) = registry else {
        return catalogue;
    };
    let mut rewritten = Catalogue::clone(&catalogue);
    for entry in &mut rewritten.entries {
        entry.registry = Some(registry.to_owned());
    }
    Arc::new(rewritten)
}

/// Chooses the entry of a name that fits.
///
/// # Errors
/// As [`find_addon`], or no entry fits.
pub(super) async fn choose_entry(
    session: &Session,
    offered: &LookupScope<'_>,
    typed: &str,
) -> Result<(CatalogueEntry, Selection)> {
    let found = find_addon(session, offered, typed).await?;
    let facts = fit_facts(session, &found.catalogue, offered.fit).await?;
    let chosen = choose(&found.catalogue, &found.request(), &facts, session.rules())?;
    Ok(chosen)
}

fn request_for(wish: &VersionedName) -> EntryRequest<'_> {
    EntryRequest {
        addon: &wish.name,
        version: wish.version.as_deref(),
        ..EntryRequest::default()
    }
}

/// Returns the facts that `search`, `show`, `images` and `export` select versions by: those of the cluster, or the typed versions.
pub(super) async fn fit_facts(
    session: &Session,
    catalogue: &Catalogue,
    fit: &FitArgs,
) -> Result<ClusterVersions> {
    let (k8s, kkp) = (fit.k8s.as_deref(), fit.kkp.as_deref());
    let facts = session.fit_for(catalogue, k8s, kkp).await;
    if fit.k8s.is_some() {
        return facts;
    }
    let facts = facts.context(
        "cannot determine which versions fit; without a cluster, pass a version with --k8s",
    )?;
    // A copy lists only what fits.
    let mut sources = catalogue.versions().map(|version| &version.source);
    if facts.kubernetes.is_none() && sources.any(|source| source.catalogue.is_none()) {
        let namespace = session.ctx().settings().records_namespace();
        output::note(&delegated::explain_unknown_fit(namespace));
    }
    Ok(facts)
}

/// Warns about catalogues by reference whose file cannot be read, because their add-ons are missing in the output.
pub(super) fn warn_of_unread(catalogue: &Catalogue) {
    for unread in &catalogue.unread {
        let (name, why) = (&unread.catalogue, &unread.why);
        let fix = hint::indent_lines(&hint::unread_catalogue_hints(name));
        output::warn(&format!("catalogue {name}: {why}{fix}"));
    }
}

/// Checks that the catalogue knows the name.
fn check_known(
    session: &Session,
    catalogue: &Catalogue,
    wish: &VersionedName,
) -> Result<(), ChooseError> {
    let facts = ClusterVersions::default();
    match choose(catalogue, &request_for(wish), &facts, session.rules()) {
        Err(unknown @ (ChooseError::Unknown { .. } | ChooseError::Unread { .. })) => Err(unknown),
        _ => Ok(()),
    }
}

/// Finds the installation of this name. `None` without a cluster.
async fn find_installed(session: &Session, name: &str) -> Option<AddonInstallation> {
    let records = Records::read(session.ctx()).await.ok()?;
    let namespace = session.global().namespace.as_deref();
    records.find(name, namespace).ok().cloned()
}
