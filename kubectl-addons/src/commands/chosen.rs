//! What the name of an add-on stands for in a command that only reads: an entry on offer, or one of what an installation came from.

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

/// Where a command looks for add-ons, and what has to fit.
pub(super) struct Offered<'a> {
    pub source: &'a Source,
    /// To which sources and images are rewritten, instead of what the catalogue or the installation says.
    pub registry: Option<&'a str>,
    pub fit: &'a Fit,
}

/// A name, and the catalogue that has it.
pub(super) struct Found {
    /// The name of the add-on there, and the version that was asked for.
    pub wish: Target,
    pub catalogue: Arc<Catalogue>,
}

impl Found {
    pub(super) fn request(&self) -> Request<'_> {
        request(&self.wish)
    }
}

/// Looks for a name on offer. Where no catalogue has it, and the flags name no other place, the index that an installation of this name
/// came from is read.
///
/// # Errors
/// No such add-on; an installation from a directory, which only `sync` reads; an index or catalogue that cannot be read.
pub(super) async fn find(session: &Session, offered: &Offered<'_>, typed: &str) -> Result<Found> {
    let mut wish = Target::parse(typed);
    let source = offered.source;
    let catalogue = session.ctx().catalogue(&choices::offer(source)).await?;
    // That needs no cluster.
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

/// A catalogue whose sources and images are those of a registry.
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

/// The entry that a name stands for and that fits.
///
/// # Errors
/// As [`find`]; none fits.
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

/// Whether the catalogue knows the name.
fn check_known(session: &Session, catalogue: &Catalogue, wish: &Target) -> Result<(), ChooseError> {
    let facts = ClusterFacts::default();
    match choose(catalogue, &request(wish), &facts, session.rules()) {
        Err(unknown @ (ChooseError::Unknown { .. } | ChooseError::Unread { .. })) => Err(unknown),
        _ => Ok(()),
    }
}

/// The installation of this name. Without a cluster there is none.
async fn installed(session: &Session, name: &str) -> Option<AddonInstallation> {
    let records = Records::read(session.ctx()).await.ok()?;
    let namespace = session.global().namespace.as_deref();
    records.find(name, namespace).ok().cloned()
}
