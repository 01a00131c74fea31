//! The plugin `kubectl addons`: the edge of the library `addons-operation`, with a file a verb in [`commands`].
//!
//! [`cli`] says what can be typed, [`choices`] turns it into what operations take, [`session`] holds flags and context,
//! [`change`] announces a plan, asks, executes and reports, [`fleet`] runs a command on many clusters, [`input`] reads files, [`prompt`] asks for values,
//! [`display`] shows events, [`events`] prints them for programs, [`words`] makes sentences of values, [`output`] prints, [`exit`] knows the exit codes. Decisions are made in the crate `common`.

pub mod again;
pub mod change;
pub mod choices;
pub mod cli;
pub mod commands;
pub mod completion;
pub mod display;
pub mod events;
pub mod exit;
pub mod fleet;
pub mod input;
pub mod interrupt;
pub mod output;
pub mod partial;
pub mod progress;
pub mod prompt;
pub mod serve;
pub mod session;
pub mod settings;
pub mod usage;
pub mod words;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use addons_operation::jail;
use addons_sources::scratch;
use anyhow::Result;
use cli::{Cli, Command};
use exit::Exit;
use fleet::Fleet;
use session::Session;

/// For threads that clean up behind what was cut off.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// Runs the program with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if args.get(1).is_some_and(|first| first == jail::ARGUMENT) {
        let served = jail::serve(std::io::stdin().lock(), std::io::stdout().lock());
        return served.map_or_else(
            |error| output::failure(&error.into()).into(),
            |()| ExitCode::SUCCESS,
        );
    }
    // One provider for every TLS connection; it fails only where one was installed before.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    if let Some(answer) = completion::answer(&args) {
        output::data(&answer);
        return ExitCode::SUCCESS;
    }
    let cli = match cli::parse(&args) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error).into(),
    };
    if cli.global.verbosity >= 6 {
        output::requests::trace();
    }
    if cli.command.has_events() {
        events::begin();
    }
    interrupt::watch();
    // One thread: the API server is the limit, and start-up and memory are part of every run.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return output::failure(&anyhow::Error::from(error).context("cannot start")).into();
        }
    };
    let exit: Exit = match runtime.block_on(run(&cli)) {
        Ok(exit) => exit,
        Err(error) => output::failure(&error),
    };
    events::end(exit);
    // A credential helper or a name server that does not answer is not waited for any longer.
    runtime.shutdown_timeout(SHUTDOWN);
    scratch::remove_all();
    exit.into()
}

/// Runs the command on its cluster, or on each of several.
async fn run(cli: &Cli) -> Result<Exit> {
    let timeout = cli.command.timeout();
    match Fleet::of(cli).await? {
        Some(fleet) => fleet::run(&fleet, &cli.command).await,
        None => {
            fleet::check_one(&cli.command)?;
            let mut session = Session::within(cli.global.clone(), timeout);
            if let Command::Reconcile(_) = cli.command {
                session = session.unattended()?;
            }
            commands::run(&session, &cli.command).await
        }
    }
}
