//! The plugin `kubectl addons`: flags and output at the edge, the main job in [`operation`], a file a verb in [`commands`].
//!
//! [`cli`] says what can be typed, [`session`] reads what commands need, [`source`] and [`location`] fetch indexes and
//! manifests, [`output`] prints, [`exit`] knows the exit codes. Decisions are made in the crate `common`.

pub mod cli;
pub mod commands;
pub mod completion;
pub mod definitions;
pub mod exit;
pub mod health;
pub mod operation;
pub mod output;
pub mod progress;
pub mod session;
pub mod settings;
pub mod usage;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use exit::Exit;
use session::Session;

/// For threads that clean up behind what was cut off.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// Runs the program with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    // One provider for every TLS connection; it fails only where one was installed before.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(answer) = completion::answer(&args) {
        output::data(&answer);
        return ExitCode::SUCCESS;
    }
    let cli = match cli::parse(args) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error).into(),
    };
    output::trace_requests(cli.global.verbosity);
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
    let session = Session::new(cli.global);
    let exit: Exit = match runtime.block_on(commands::run(&session, &cli.command)) {
        Ok(exit) => exit,
        Err(error) => output::failure(&error),
    };
    drop(session);
    // A credential helper or a name server that does not answer is not waited for any longer.
    runtime.shutdown_timeout(SHUTDOWN);
    exit.into()
}
