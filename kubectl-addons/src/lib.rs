//! The plugin `kubectl addons`: the command-line edge of the library `addons-operation`, with one file per command in [`commands`].
//!
//! [`cli`] defines what can be typed, [`choices`] converts it for operations, [`session`] holds flags and context, [`change`] announces a
//! plan, executes it and reports, [`fleet`] changes many clusters in waves, [`input`] reads files, [`prompt`] asks for confirmation and
//! values, [`display`] shows events, [`events`] prints them for programs, [`words`] turns values into sentences, [`output`] prints,
//! [`failure`] reports errors, and [`exit`] defines the exit codes. The crate `common` and the crates below it make the decisions.

pub mod again;
pub mod change;
pub mod choices;
pub mod cli;
pub mod commands;
pub mod completion;
pub mod contained;
pub mod display;
pub mod events;
pub mod exit;
pub mod failure;
pub mod fleet;
pub mod input;
pub mod interrupt;
pub mod output;
pub mod partial;
pub mod progress;
pub mod prompt;
pub mod refusal;
pub mod serve;
pub mod session;
pub mod set_place;
pub mod settings;
pub mod turn;
pub mod words;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use addons_operation::render::jail;
use addons_sources::scratch;
use anyhow::Result;
use cli::{Cli, CliCommand};
use exit::Exit;
use fleet::Fleet;
use output::style;
use session::Session;

/// How long the program waits for threads of cancelled work.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// Runs the program with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    words::typed::remember(&args);
    if args.get(1).is_some_and(|first| first == jail::ARGUMENT) {
        let served = jail::serve(std::io::stdin().lock(), std::io::stdout().lock());
        return served.map_or_else(
            |error| failure::report_failure(&error.into()).into(),
            |()| ExitCode::SUCCESS,
        );
    }
    // The provider of every TLS connection. This fails only if one is already installed.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    if let Some(answer) = completion::answer_request(&args) {
        output::print_text(&answer);
        return ExitCode::SUCCESS;
    }
    let cli = match cli::parse(&args) {
        Ok(cli) => cli,
        Err(error) => {
            style::choose(words::typed::color_choice());
            return output::print_usage(&error).into();
        }
    };
    style::choose(cli.global.color);
    if cli.global.verbosity >= 6 {
        output::requests::trace_requests();
    }
    if cli.command.has_events() {
        events::enable_events();
    }
    interrupt::spawn_signal_thread();
    // A single thread: the API server is the bottleneck, and every run pays for start-up and memory.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return failure::report_failure(&anyhow::Error::from(error).context("cannot start"))
                .into();
        }
    };
    let exit: Exit = match runtime.block_on(run(&cli)) {
        Ok(exit) => exit,
        Err(error) => failure::report_failure(&error),
    };
    output::print_held();
    events::emit_end(exit);
    // Do not wait longer for a credential helper or a name server that does not respond.
    runtime.shutdown_timeout(SHUTDOWN);
    scratch::remove_all();
    exit.into()
}

/// Runs the command on its cluster, or on each of several.
async fn run(cli: &Cli) -> Result<Exit> {
    let timeout = cli.command.timeout();
    match Fleet::from_cli(cli).await? {
        Some(fleet) => fleet::command::run(&fleet, &cli.command).await,
        None => {
            fleet::check_single_cluster(&cli.command)?;
            let mut session = Session::with_timeout(cli.global.clone(), timeout);
            if let CliCommand::Reconcile(_) = cli.command {
                session = session.unattended()?;
            }
            commands::run(&session, &cli.command).await
        }
    }
}
