//! `catalogue remove NAME…`

use addons_admission::validate;
use addons_engine::catalogues;
use addons_operation::catalogue::find_named;
use anyhow::Result;

use super::objects;
use crate::cli::reading::CatalogueRemoveArgs;
use crate::exit::Exit;
use crate::session::Session;
use crate::{change, output, prompt};
use addons_operation::Records;
use addons_operation::resolve::verdict;

/// Removes catalogues. What was installed from them stays; if anything was, the user is asked. All are validated before the first one is
/// removed.
///
/// # Errors
/// A catalogue does not exist, a core installation needs one, the user declined, or the server refuses.
pub async fn run(session: &Session, args: &CatalogueRemoveArgs) -> Result<Exit> {
    let existing = session.ctx().catalogues().await?;
    let mut objects = Vec::new();
    for name in &args.names {
        objects.push(find_named(existing, name)?);
    }
    let known = Records::read(session.ctx()).await?;
    let requester = objects::find_requester(session, &objects).await?;
    let mut facts = verdict::collect_facts(session.ctx(), &known, Default::default(), true).await?;
    let mut is_in_use = false;
    for object in &objects {
        let judged = validate::validate_catalogue_deletion(object, &requester, &facts);
        let what = format!("removing catalogue {}", objects::catalogue_name(object));
        verdict::conclude(session.ctx(), &what, &judged)?;
        is_in_use |= !judged.warnings.is_empty();
        facts
            .catalogues
            .retain(|other| other.name() != objects::catalogue_name(object));
    }
    if args.dry_run {
        let cluster = session.cluster().await?;
        for object in objects {
            catalogues::delete(cluster, object, true).await?;
            output::note(&format!(
                "remove catalogue {}",
                objects::catalogue_name(object)
            ));
        }
        output::note(change::UNCHANGED);
        return Ok(Exit::Done);
    }
    if is_in_use && !args.yes {
        prompt::confirm("Remove? [y/N] ")?;
    }
    for object in objects {
        catalogues::delete(session.cluster().await?, object, false).await?;
        output::note(&format!(
            "catalogue {} removed",
            objects::catalogue_name(object)
        ));
    }
    Ok(Exit::Done)
}
