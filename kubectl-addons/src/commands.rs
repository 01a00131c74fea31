//! The commands, one per file.

pub mod adopt;
pub mod apply;
pub mod catalogue;
pub mod channel;
mod chosen;
pub mod completion;
pub mod core;
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
pub mod render;
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

use anyhow::{Context as _, Result};
use common::catalogue::Catalogue;
use common::catalogue::Origin;
use common::catalogue::select::ClusterFacts;

use crate::cli::Command;
use crate::cli::channel::Channel;
use crate::cli::reading::Fit;
use crate::exit::Exit;
use crate::output;
use crate::session::Session;
use crate::words::hint;

/// Runs a command.
///
/// # Errors
/// Those of the command.
pub async fn run(session: &Session, command: &Command) -> Result<Exit> {
    match command {
        Command::Init(args) => init::run(session, args).await,
        Command::Catalogue(verb) => catalogue::run(session, verb).await,
        Command::Search(args) => search::run(session, args).await,
        Command::Show(args) => show::run(session, args).await,
        Command::Images(args) => images::run(session, args).await,
        Command::Export(args) => export::run(session, args).await,
        Command::Import(args) => import::run(session, args).await,
        Command::Install(args) => install::run(session, args).await,
        Command::Upgrade(args) => upgrade::run(session, args).await,
        Command::History(args) => history::run(session, args).await,
        Command::Rollback(args) => rollback::run(session, args).await,
        Command::Reconcile(args) => reconcile::run(session, args).await,
        Command::Adopt(args) => adopt::run(session, args).await,
        Command::Uninstall(args) => uninstall::run(session, args).await,
        Command::List(args) => list::run(session, args).await,
        Command::Status(args) => status::run(session, args).await,
        Command::Values(args) => values::run(session, args).await,
        Command::Diff(args) => diff::run(session, args).await,
        Command::Plan(args) => plan::run(session, args).await,
        Command::Apply(args) => apply::run(session, args).await,
        Command::Render(args) => render::run(session, args).await,
        Command::Verify(args) => verify::run(session, args).await,
        Command::Channel(Channel::Apply(args)) => channel::apply(session, args).await,
        Command::Channel(Channel::List(args)) => channel::list(session, args).await,
        Command::Core(verb) => core::run(session, verb).await,
        Command::Sync(args) => sync::run(session, args).await,
        Command::Preflight(args) => preflight::run(session, args).await,
        Command::Doctor(args) => doctor::run(session, args).await,
        Command::Schema(args) => Ok(schema::run(args)),
        Command::Version(args) => version::run(session, args).await,
        Command::Completion(args) => completion::run(args),
        Command::Options => Ok(options::run()),
    }
}

/// Returns the facts that `search`, `show`, `images` and `export` select versions by: those of the cluster, or the typed versions.
async fn facts(session: &Session, catalogue: &Catalogue, fit: &Fit) -> Result<ClusterFacts> {
    let (k8s, kkp) = (fit.k8s.as_deref(), fit.kkp.as_deref());
    let facts = session.fit_for(catalogue, k8s, kkp).await;
    match fit.k8s {
        Some(_) => facts,
        None => facts.context(
            "cannot determine which versions fit; without a cluster, pass a version with --k8s",
        ),
    }
}

/// Warns about catalogues by reference whose file cannot be read, because their add-ons are missing in the output.
fn warn_of_unread(catalogue: &Catalogue) {
    for unread in &catalogue.unread {
        let (name, why) = (&unread.catalogue, &unread.why);
        let fix = hint::below(&hint::of_unread(name));
        output::warn(&format!("catalogue {name}: {why}{fix}"));
    }
}

/// Shortens an origin for a column: the name of a catalogue, or the last two segments of an index's location.
fn short(origin: &Origin) -> String {
    match origin {
        Origin::Catalogue { name, .. } => name.clone(),
        Origin::Index { location } => {
            let mut segments: Vec<&str> = location.rsplit('/').take(2).collect();
            segments.reverse();
            segments.join("/")
        }
        Origin::Directory { path } => path.clone(),
    }
}
