//! `catalogue …`: manages the catalogues of a cluster.

mod add;
mod contained;
mod create;
mod list;
mod push;
mod remove;
mod show;
mod sync;
mod validate;

use addons_admission::Requester;
use addons_engine::identity;
use addons_operation::OperationError;
use anyhow::{Result, bail};
use common::api::catalogue::{AddonCatalogue, CatalogueClass};
use common::nearest::nearest;

use crate::cli::reading::CatalogueCommand;
use crate::exit::Exit;
use crate::session::Session;

/// Runs a `catalogue` command.
///
/// # Errors
/// Those of the command.
pub async fn run(session: &Session, verb: &CatalogueCommand) -> Result<Exit> {
    match verb {
        CatalogueCommand::Create(args) => create::run(session, args).await,
        CatalogueCommand::Add(args) => add::run(session, args).await,
        CatalogueCommand::List(args) => list::run(session, args).await,
        CatalogueCommand::Show(args) => show::run(session, args).await,
        CatalogueCommand::Remove(args) => remove::run(session, args).await,
        CatalogueCommand::Push(args) => push::run(session, args).await,
        CatalogueCommand::Sync(args) => sync::run(session, args).await,
        CatalogueCommand::View(args) => show::view(session, args).await,
        CatalogueCommand::Validate(args) => validate::run(session, args).await,
    }
}

/// Returns the name of a catalogue, or an empty text.
fn catalogue_name(object: &AddonCatalogue) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

/// `1 version`, `2 versions`.
fn format_count(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

/// `3 add-ons, 1 version`, or `3 add-ons by reference`.
fn count_content(object: &AddonCatalogue) -> String {
    let addons = &object.spec.addons;
    if object.spec.reference().is_some() {
        return format!("{} by reference", format_count(addons.len(), "add-on"));
    }
    let versions = addons.iter().map(|addon| addon.versions.len()).sum();
    format!(
        "{}, {}",
        format_count(addons.len(), "add-on"),
        format_count(versions, "version")
    )
}

/// Finds the catalogue with this name.
fn find_catalogue<'a>(objects: &'a [AddonCatalogue], wanted: &str) -> Result<&'a AddonCatalogue> {
    if let Some(found) = objects
        .iter()
        .find(|object| catalogue_name(object) == wanted)
    {
        return Ok(found);
    }
    let visible = objects
        .iter()
        .filter(|object| object.spec.class != CatalogueClass::Core);
    match nearest(wanted, visible.map(catalogue_name)) {
        Some(near) => bail!("no catalogue named {wanted}; did you mean {near}?"),
        None => Err(OperationError::UnknownCatalogue {
            name: wanted.to_owned(),
        }
        .into()),
    }
}

/// Returns who makes the request. Asks the server only for core catalogues, where the verdict depends on it.
async fn find_requester(session: &Session, objects: &[&AddonCatalogue]) -> Result<Requester> {
    if objects
        .iter()
        .all(|object| object.spec.class != CatalogueClass::Core)
    {
        return Ok(Requester::default());
    }
    Ok(identity::whoami(session.cluster().await?).await?)
}
