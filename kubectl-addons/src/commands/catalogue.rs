//! `catalogue …`: manages the catalogues of a cluster.

mod add;
mod create;
mod list;
mod objects;
mod publish;
mod push;
mod remove;
mod show;
mod sync;
mod validate;

use anyhow::Result;

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
        CatalogueCommand::Publish(args) => publish::run(session, args).await,
        CatalogueCommand::Push(args) => push::run(session, args).await,
        CatalogueCommand::Sync(args) => sync::run(session, args).await,
        CatalogueCommand::View(args) => show::view(session, args).await,
        CatalogueCommand::Validate(args) => validate::run(session, args).await,
    }
}
