//! The plugin `kubectl addons`: flags and output at the edge, the main job in [`operation`], a file a verb in [`commands`].
//!
//! `cli` says what can be typed, [`session`] reads what commands need, [`source`] and [`location`] fetch indexes and
//! manifests, [`output`] prints, [`exit`] knows the exit codes. Decisions are made in the crate `common`.

pub mod cli;
pub mod commands;
pub mod definitions;
pub mod exit;
pub mod health;
pub mod location;
pub mod operation;
pub mod output;
pub mod progress;
pub mod session;
pub mod settings;
pub mod source;
pub mod usage;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Channel, Cli, Command};
use exit::Exit;
use session::Session;

/// Runs the program with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    // One provider for every TLS connection; it fails only where one was installed before.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let cli = Cli::parse();
    // One thread: the API server is the limit, and start-up and memory are part of every run.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output::failure(&anyhow::Error::from(error).context("cannot start")).into(),
    };
    let exit = runtime.block_on(async {
        let session = Session::new(cli.global.clone());
        match run(&session, &cli.command).await {
            Ok(exit) => exit,
            Err(error) => output::failure(&error),
        }
    });
    exit.into()
}

async fn run(session: &Session, command: &Command) -> anyhow::Result<Exit> {
    match command {
        Command::Install(args) => commands::install::run(session, args).await,
        Command::Upgrade(args) => commands::upgrade::run(session, args).await,
        Command::Uninstall(args) => commands::uninstall::run(session, args).await,
        Command::List(args) => commands::list::run(session, args).await,
        Command::Status(args) => commands::status::run(session, args).await,
        Command::Diff(args) => commands::diff::run(session, args).await,
        Command::Channel(Channel::Apply(args)) => commands::channel::apply(session, args).await,
        _ => Ok(Exit::Usage),
    }
}
