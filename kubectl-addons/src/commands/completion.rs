//! `completion SHELL`: the script that completes `kubectl-addons` in a shell. `completion --install`: the program that kubectl asks.

mod install;

use anyhow::{Context as _, Result};
use clap_complete::env::Shells;

use crate::cli::reading::{Completion, Shell};
use crate::completion::VARIABLE;
use crate::exit::Exit;
use crate::output;

/// Prints the script, or writes the program: `kubectl addons` itself is completed by kubectl, which asks a program on the PATH.
///
/// # Errors
/// Those of the library that writes the script; no folder for the program, or one that cannot be written.
pub fn run(args: &Completion) -> Result<Exit> {
    match args.shell {
        Some(shell) => print(shell),
        None => install::run(args.to.as_deref()),
    }
}

fn print(shell: Shell) -> Result<Exit> {
    output::data(&script(shell)?);
    Ok(Exit::Done)
}

/// The script that completes `kubectl-addons` in a shell; releases hold it as a file.
///
/// # Errors
/// Those of the library that writes it.
pub fn script(shell: Shell) -> Result<String> {
    let shell = match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Powershell => "powershell",
    };
    let shells = Shells::builtins();
    let completer = shells
        .completer(shell)
        .with_context(|| format!("no completion for {shell}"))?;
    let mut script = HEADER.to_vec();
    completer.write_registration(
        VARIABLE,
        "kubectl_addons",
        "kubectl-addons",
        "kubectl-addons",
        &mut script,
    )?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

const HEADER: &[u8] = b"# Completes kubectl-addons. For `kubectl addons`, run once: kubectl addons completion --install\n";
