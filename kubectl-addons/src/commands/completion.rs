//! `completion SHELL`: prints the script that completes `kubectl-addons` in a shell. `completion --install`: writes the program that
//! kubectl runs for it.

mod install;

use anyhow::{Context as _, Result};
use clap_complete::env::Shells;

use crate::cli::reading::{CompletionArgs, Shell};
use crate::completion::VARIABLE;
use crate::exit::Exit;
use crate::output;

/// Prints the script, or writes the program: kubectl completes `kubectl addons` itself, by running a program on the PATH.
///
/// # Errors
/// The library cannot write the script, or there is no writable folder for the program.
pub fn run(args: &CompletionArgs) -> Result<Exit> {
    match args.shell {
        Some(shell) => print(shell),
        None => install::run(args.to.as_deref()),
    }
}

fn print(shell: Shell) -> Result<Exit> {
    output::print_text(&completion_script(shell)?);
    Ok(Exit::Done)
}

/// Returns the script that completes `kubectl-addons` in a shell. Releases ship it as a file.
///
/// # Errors
/// The library cannot write the script.
pub fn completion_script(shell: Shell) -> Result<String> {
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
