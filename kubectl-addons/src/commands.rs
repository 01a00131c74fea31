//! The commands, one per file.

pub mod adopt;
pub mod apply;
pub mod catalogue;
pub mod channel;
mod chosen;
pub mod completion;
pub mod core;
mod delegated;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod history;
pub mod images;
pub mod import;
pub mod init;
pub mod install;
mod labelled;
pub mod list;
pub mod options;
pub mod plan;
pub mod preflight;
pub mod reconcile;
mod reference;
pub mod render;
pub mod review;
pub mod rollback;
pub mod schema;
pub mod search;
pub mod set;
pub mod show;
pub mod status;
pub mod sync;
pub mod uninstall;
pub mod upgrade;
pub mod values;
pub mod verify;
pub mod version;

use anyhow::Result;

use crate::cli::CliCommand;
use crate::cli::channel::ChannelCommand;
use crate::exit::Exit;
use crate::fleet;
use crate::session::Session;

/// Runs a command.
///
/// # Errors
/// Those of the command.
pub async fn run(session: &Session, command: &CliCommand) -> Result<Exit> {
    match command {
        CliCommand::Init(args) => init::run(session, args).await,
        CliCommand::Catalogue(verb) => catalogue::run(session, verb).await,
        CliCommand::Search(args) => search::run(session, args).await,
        CliCommand::Show(args) => show::run(session, args).await,
        CliCommand::Images(args) => images::run(session, args).await,
        CliCommand::Export(args) => export::run(session, args).await,
        CliCommand::Import(args) => import::run(session, args).await,
        CliCommand::Install(args) => install::run(session, args).await,
        CliCommand::Upgrade(args) => upgrade::run(session, args).await,
        CliCommand::History(args) => history::run(session, args).await,
        CliCommand::Rollback(args) => rollback::run(session, args).await,
        CliCommand::Reconcile(args) => reconcile::run(session, args).await,
        CliCommand::Adopt(args) => adopt::run(session, args).await,
        CliCommand::Uninstall(args) => uninstall::run(session, args).await,
        CliCommand::List(args) => list::run(session, args).await,
        CliCommand::Status(args) => status::run(session, args).await,
        CliCommand::Values(args) => values::run(session, args).await,
        CliCommand::Diff(args) => diff::run(session, args).await,
        CliCommand::Plan(args) => plan::run(session, args).await,
        CliCommand::Apply(args) => match &args.set {
            Some(set) => set::run(session, args, set).await,
            None => fleet::apply::run(session, args).await,
        },
        CliCommand::Render(args) => render::run(session, args).await,
        CliCommand::Verify(args) => verify::run(session, args).await,
        CliCommand::Channel(ChannelCommand::Apply(args)) => channel::apply(session, args).await,
        CliCommand::Channel(ChannelCommand::List(args)) => channel::list(session, args).await,
        CliCommand::Core(verb) => core::run(session, verb).await,
        CliCommand::Sync(args) => sync::run(session, args).await,
        CliCommand::Preflight(args) => preflight::run(session, args).await,
        CliCommand::Doctor(args) => doctor::run(session, args).await,
        CliCommand::Schema(args) => Ok(schema::run(args)),
        CliCommand::Version(args) => version::run(session, args).await,
        CliCommand::Completion(args) => completion::run(args),
        CliCommand::Options => Ok(options::run()),
    }
}
