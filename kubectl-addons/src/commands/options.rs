//! `options`: shows the flags that every command takes.

use clap::Args as _;

use crate::cli::GlobalArgs;
use crate::exit::Exit;
use crate::output;

/// Prints the global options in the format of a command's help.
#[must_use]
pub fn run() -> Exit {
    let mut command = GlobalArgs::augment_args(clap::Command::new("options"))
        .disable_help_flag(true)
        .max_term_width(110)
        .help_template("{all-args}");
    output::print_text(&command.render_help().to_string());
    Exit::Done
}
