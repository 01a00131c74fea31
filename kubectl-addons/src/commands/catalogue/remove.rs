//! `catalogue remove NAME…`

use addons_engine::catalogues;
use anyhow::Result;
use common::admission::validate;

use crate::cli::reading::CatalogueRemove;
use crate::exit::Exit;
use crate::output;
use crate::session::Session;
use addons_operation::Records;
use addons_operation::verdict;

/// Removes catalogues; what was installed from them stays. All are judged before the first one is removed.
///
/// # Errors
/// No such catalogue; a core installation that needs one; what the server refuses.
pub async fn run(session: &Session, args: &CatalogueRemove) -> Result<Exit> {
    let existing = session.ctx().catalogues().await?;
    let objects: Result<Vec<_>> = args
        .names
        .iter()
        .map(|name| super::named(existing, name))
        .collect();
    let objects = objects?;
    let known = Records::read(session.ctx()).await?;
    let requester = super::requester(session, &objects).await?;
    let mut facts = verdict::facts(session.ctx(), &known, Default::default(), true).await?;
    for object in &objects {
        let judged = validate::catalogue_deletion(object, &requester, &facts);
        let what = format!("removing catalogue {}", super::name(object));
        verdict::conclude(session.ctx(), &what, &judged)?;
        facts
            .catalogues
            .retain(|other| other.name() != super::name(object));
    }
    for object in objects {
        let namespace = &session.global().system_namespace;
        catalogues::delete(session.cluster().await?, namespace, super::name(object)).await?;
        output::note(&format!("catalogue {} removed", super::name(object)));
    }
    Ok(Exit::Done)
}
