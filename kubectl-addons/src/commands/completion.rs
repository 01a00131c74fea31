//! `completion SHELL`: the script that completes `kubectl-addons` in a shell.

use anyhow::{Context as _, Result};
use clap_complete::env::Shells;

use crate::cli::reading::{Completion, Shell};
use crate::completion::VARIABLE;
use crate::exit::Exit;
use crate::output;

/// Prints the script. `kubectl addons` itself is completed by kubectl, which asks a program on the PATH.
///
/// # Errors
/// None but those of the library that writes the script.
pub fn run(args: &Completion) -> Result<Exit> {
    let shell = match args.shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Powershell => "powershell",
    };
    let shells = Shells::builtins();
    let completer = shells
        .completer(shell)
        .with_context(|| format!("no completion for {shell}"))?;
    let mut script = format!(
        "# Completes kubectl-addons. For `kubectl addons`, kubectl {PROGRAM}:\n\
         #   ln -s \"$(command -v kubectl-addons)\" SOME-FOLDER-ON-YOUR-PATH/kubectl_complete-addons\n"
    )
    .into_bytes();
    completer.write_registration(
        VARIABLE,
        "kubectl_addons",
        "kubectl-addons",
        "kubectl-addons",
        &mut script,
    )?;
    output::data(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}

const PROGRAM: &str =
    "asks a program kubectl_complete-addons, which is this one under another name";
