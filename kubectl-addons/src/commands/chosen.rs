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
use addons_operation::{Offer, OperationError, Records, Target, records::name_of};

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
pub(super) async fn find(session: &Session, source: &Source, typed: &str) -> Result<Found> {
    let mut wish = Target::parse(typed);
    let catalogue = session.ctx().catalogue(&choices::offer(source)).await?;
    // That needs no cluster.
    let Err(unknown) = check_known(session, &catalogue, &wish) else {
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
    let Some(index) = reference.index.clone() else {
        return Err(unknown.into());
    };
    output::note(&format!(
        "no catalogue has {}; shown from {index}, which it is installed from",
        wish.name
    ));
    wish.name.clone_from(&reference.name);
    let offer = Offer::Indexes(vec![index]);
    let catalogue = session.ctx().catalogue(&offer).await?;
    check_known(session, &catalogue, &wish)?;
    Ok(Found { wish, catalogue })
}

/// The entry that a name stands for and that fits.
///
/// # Errors
/// As [`find`]; none fits.
pub(super) async fn entry(
    session: &Session,
    source: &Source,
    fit: &Fit,
    typed: &str,
) -> Result<(Entry, Selection)> {
    let found = find(session, source, typed).await?;
    let facts = super::facts(session, &found.catalogue, fit).await?;
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
