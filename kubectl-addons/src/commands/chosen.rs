//! Finds the add-on that a name stands for in a command that only reads: an entry on offer, or one from the origin of an installation.

use std::sync::Arc;

use anyhow::Result;
use common::api::installation::AddonInstallation;
use common::catalogue::select::{ClusterFacts, Request, Selection};
use common::catalogue::{Catalogue, Entry};

use crate::choices;
use crate::cli::operation::Source;
use crate::cli::reading::Fit;
use crate::output;
use crate::session::Session;
use addons_operation::choose::{ChooseError, choose};
use addons_operation::origin::catalogue_of;
use addons_operation::{OperationError, Records, Target, records::name_of};

/// Where a command looks for add-ons, and which facts they have to fit.
pub(super) struct Offered<'a> {
    pub source: &'a Source,
    /// The registry that sources and images are rewritten to, instead of that of the catalogue or the installation.
    pub registry: Option<&'a str>,
    pub fit: &'a Fit,
}

/// A parsed name, and the catalogue that has it.
pub(super) struct Found {
    /// The name of the add-on in the catalogue, and the version that was asked for.
    pub wish: Target,
    pub catalogue: Arc<Catalogue>,
}

impl Found {
    pub(super) fn request(&self) -> Request<'_> {
        request(&self.wish)
    }
}

/// Finds a name on offer. If no catalogue has it, and no flag names another source, reads the index that an installation of this name came
/// from.
///
/// # Errors
/// The add-on is unknown, the installation comes from a directory (which only `sync` reads), or an index or catalogue cannot be read.
pub(super) async fn find(session: &Session, offered: &Offered<'_>, typed: &str) -> Result<Found> {
    let mut wish = Target::parse(typed);
    let source = offered.source;
    let catalogue = session.ctx().catalogue(&choices::offer(source)).await?;
    // This check needs no cluster.
    let Err(unknown) = check_known(session, &catalogue, &wish) else {
        let catalogue = rewritten(catalogue, offered.registry);
        return Ok(Found { wish, catalogue });
    };
    let is_elsewhere = source.channel.is_some() || source.catalogue.is_some();
    let record = match is_elsewhere {
        true => None,
        false => installed(session, &wish.name).await,
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
    let Some(index) = &reference.index else {
        return Err(unknown.into());
    };
    output::note(&format!(
        "no catalogue has {}; shown from {index}, which it is installed from",
        wish.name
    ));
    wish.name.clone_from(&reference.name);
    let catalogue = catalogue_of(session.ctx(), &record).await?;
    check_known(session, &catalogue, &wish)?;
    let registry = offered.registry.or(record.spec.registry.as_deref());
    let catalogue = rewritten(catalogue, registry);
    Ok(Found { wish, catalogue })
}

/// Sets the registry of all entries of a catalogue.
pub(super) fn rewritten(catalogue: Arc<Catalogue>, registry: Option<&str>) -> Arc<Catalogue> {
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
/// As [`find`], or no entry fits.
pub(super) async fn entry(
    session: &Session,
    offered: &Offered<'_>,
    typed: &str,
) -> Result<(Entry, Selection)> {
    let found = find(session, offered, typed).await?;
    let facts = super::facts(session, &found.catalogue, offered.fit).await?;
    let chosen = choose(&found.catalogue, &found.request(), &facts, session.rules())?;
    Ok(chosen)
}

fn request(wish: &Target) -> Request<'_> {
    Request {
        addon: &wish.name,
        version: wish.version.as_deref(),
        ..Request::default()
    }
}

/// Checks that the catalogue knows the name.
fn check_known(session: &Session, catalogue: &Catalogue, wish: &Target) -> Result<(), ChooseError> {
    let facts = ClusterFacts::default();
    match choose(catalogue, &request(wish), &facts, session.rules()) {
        Err(unknown @ (ChooseError::Unknown { .. } | ChooseError::Unread { .. })) => Err(unknown),
        _ => Ok(()),
    }
}

/// Finds the installation of this name. `None` without a cluster.
async fn installed(session: &Session, name: &str) -> Option<AddonInstallation> {
    let records = Records::read(session.ctx()).await.ok()?;
    let namespace = session.global().namespace.as_deref();
    records.find(name, namespace).ok().cloned()
}
