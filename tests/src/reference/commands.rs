//! The page of all commands: how each is called, and what each of its options does.

use clap::{Arg, ArgAction, Command};

use super::{cell, wrapped};

const HEAD: &str = "\
# Command reference

<!-- Generated: cargo run -p addons-tests --bin generate reference -->

Every command and every option, as `--help` describes them. [Commands](commands.md) groups them by
task, and lists the [exit codes](commands.md#exit-codes) and the
[environment](commands.md#environment).

";

/// The page.
#[must_use]
pub fn page() -> String {
    let mut root = kubectl_addons::cli::command();
    root.build();
    let mut page = HEAD.to_owned();
    page.push_str("## Global options\n\nEvery command takes these.\n\n");
    let globals: Vec<&Arg> = root
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .collect();
    page.push_str(&table("option", globals));
    for command in root.get_subcommands() {
        below(command, "kubectl addons", &mut page);
    }
    page
}

/// A command, and then those below it.
fn below(command: &Command, parent: &str, page: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    page.push_str(&format!("\n## {name}\n\n{}\n", wrapped(&sentence(&about))));
    let usage = command.clone().render_usage().to_string();
    let usage = usage
        .trim_start_matches("Usage: ")
        .replace("\n       ", "\n");
    page.push_str(&format!("\n```text\n{}\n```\n", usage.trim()));
    let aliases: Vec<&str> = command.get_all_aliases().collect();
    if !aliases.is_empty() {
        page.push_str(&format!("\nAlso called `{}`.\n", aliases.join("`, `")));
    }
    let arguments: Vec<&Arg> = command.get_positionals().filter(|arg| shown(arg)).collect();
    if !arguments.is_empty() {
        page.push_str(&format!("\n{}", table("argument", arguments)));
    }
    let options = command
        .get_arguments()
        .filter(|arg| !arg.is_positional() && shown(arg));
    let options: Vec<&Arg> = options.filter(|arg| !arg.is_global_set()).collect();
    if !options.is_empty() {
        page.push_str(&format!("\n{}", table("option", options)));
    }
    let examples = examples(command);
    // Those of a command with others below it stand there.
    if command.get_subcommands().next().is_none() && !examples.is_empty() {
        page.push_str(&format!("\n```\n{examples}\n```\n"));
    }
    for next in command.get_subcommands() {
        below(next, &name, page);
    }
}

fn shown(arg: &Arg) -> bool {
    let is_help = matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    !is_help && !arg.is_hide_set()
}

fn table(head: &str, args: Vec<&Arg>) -> String {
    let rows = args.into_iter().filter(|arg| shown(arg)).map(|arg| {
        let help = arg.get_long_help().or_else(|| arg.get_help());
        let mut text = sentence(&help.map(ToString::to_string).unwrap_or_default());
        let values = arg.get_possible_values();
        let takes_value = arg.get_action().takes_values();
        if takes_value && !values.is_empty() {
            let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
            text.push_str(&format!(" One of `{}`.", names.join("`, `")));
        }
        let defaults = arg.get_default_values();
        let defaults: Vec<_> = defaults
            .iter()
            .map(|value| value.to_string_lossy())
            .collect();
        if takes_value && !defaults.is_empty() {
            text.push_str(&format!(" Default: `{}`.", defaults.join("`, `")));
        }
        if let Some(variable) = arg.get_env() {
            text.push_str(&format!(" Environment: `{}`.", variable.to_string_lossy()));
        }
        format!("| `{}` | {} |\n", cell(&name(arg)), cell(&text))
    });
    format!(
        "| {head} | meaning |\n|---|---|\n{}",
        rows.collect::<String>()
    )
}

/// An option with its value, or an argument.
fn name(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
    let value = values.join(" ");
    if arg.is_positional() {
        return value;
    }
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let names = names.join(", ");
    let takes_value = arg.get_action().takes_values();
    let is_optional = arg
        .get_num_args()
        .is_some_and(|count| count.min_values() == 0);
    match takes_value {
        true if is_optional => format!("{names}[={value}]"),
        true => format!("{names} {value}"),
        false => names,
    }
}

/// Its paragraphs with full stops: clap leaves them out.
fn sentence(text: &str) -> String {
    let paragraphs = text.trim().split("\n\n").map(|paragraph| {
        if paragraph.is_empty() || paragraph.ends_with(['.', ':']) {
            paragraph.to_owned()
        } else {
            format!("{paragraph}.")
        }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// The examples below its help, without what stands around them.
fn examples(command: &Command) -> String {
    let help = command.get_after_long_help();
    let help = help.map(ToString::to_string).unwrap_or_default();
    let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
    lines.collect::<Vec<_>>().join("\n")
}
