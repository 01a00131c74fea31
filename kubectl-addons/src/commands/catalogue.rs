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

use crate::cli::reading::Catalogue;
use crate::exit::Exit;
use crate::session::Session;

/// Runs a `catalogue` command.
///
/// # Errors
/// Those of the command.
pub async fn run(session: &Session, verb: &Catalogue) -> Result<Exit> {
    match verb {
        Catalogue::Create(args) => create::run(session, args).await,
        Catalogue::Add(args) => add::run(session, args).await,
        Catalogue::List(args) => list::run(session, args).await,
        Catalogue::Show(args) => show::run(session, args).await,
        Catalogue::Remove(args) => remove::run(session, args).await,
        Catalogue::Push(args) => push::run(session, args).await,
        Catalogue::Sync(args) => sync::run(session, args).await,
        Catalogue::View(args) => show::view(session, args).await,
        Catalogue::Validate(args) => validate::run(session, args).await,
    }
}

/// Returns the name of a catalogue, or an empty text.
fn name(object: &AddonCatalogue) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

/// `1 version`, `2 versions`.
fn count(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

/// `3 add-ons, 1 version`, or `3 add-ons by reference`.
fn counts(object: &AddonCatalogue) -> String {
    let addons = &object.spec.addons;
    if object.spec.reference().is_some() {
        return format!("{} by reference", count(addons.len(), "add-on"));
    }
    let versions = addons.iter().map(|addon| addon.versions.len()).sum();
    format!(
        "{}, {}",
        count(addons.len(), "add-on"),
        count(versions, "version")
    )
}

/// Finds the catalogue with this name.
fn named<'a>(objects: &'a [AddonCatalogue], wanted: &str) -> Result<&'a AddonCatalogue> {
    if let Some(found) = objects.iter().find(|object| name(object) == wanted) {
        return Ok(found);
    }
    let visible = objects
        .iter()
        .filter(|object| object.spec.class != CatalogueClass::Core);
    match nearest(wanted, visible.map(name)) {
        Some(near) => bail!("no catalogue named {wanted}; did you mean {near}?"),
        None => Err(OperationError::UnknownCatalogue {
            name: wanted.to_owned(),
        }
        .into()),
    }
}

/// Returns who makes the request. Asks the server only for core catalogues, where the verdict depends on it.
async fn requester(session: &Session, objects: &[&AddonCatalogue]) -> Result<Requester> {
    if objects
        .iter()
        .all(|object| object.spec.class != CatalogueClass::Core)
    {
        return Ok(Requester::default());
    }
    Ok(identity::whoami(session.cluster().await?).await?)
}
