//! The command that the user typed, with one flag more: what accepts a protection must do everything else that was asked for.

use addons_operation::shell::word;
use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

use crate::cli;

/// Flags whose value may be a secret. It is not repeated: what is printed may be kept.
const PRIVATE: [&str; 4] = ["--set", "--set-string", "--set-json", "--token"];

/// The command of this process with these flags, or `the same command with FLAGS`; `None` where it does not take them.
pub(super) fn with(flags: &[String]) -> Option<String> {
    extended(&std::env::args_os().collect::<Vec<_>>(), flags)
}

/// `diff` of what the command of this process would install; `None` where that is more than `diff` can be told.
pub(super) fn diff() -> Option<String> {
    compared(&std::env::args_os().collect::<Vec<_>>())
}

/// The flags of the command of this process that say where add-ons come from and what they fit, behind a blank.
pub(super) fn source() -> String {
    flags(
        &std::env::args_os().collect::<Vec<_>>(),
        &["--channel", "--catalogue", "--k8s", "--kkp"],
    )
}

/// The same for the flags that choose clusters.
pub(super) fn clusters() -> String {
    flags(
        &std::env::args_os().collect::<Vec<_>>(),
        &["--clusters", "--context"],
    )
}

/// These flags with their values, as they were typed.
fn flags(args: &[OsString], names: &[&str]) -> String {
    let mut words = typed(args).unwrap_or_default().into_iter();
    let mut text = String::new();
    while let Some(typed) = words.next() {
        let (name, value) = match typed.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (typed.as_str(), None),
        };
        if names.contains(&name) {
            let value = value.or_else(|| words.next()).unwrap_or_default();
            text.push_str(&format!(" {name} {}", word(&value)));
        }
    }
    text
}

/// Whether the command of this process has a flag.
pub(super) fn takes(flag: &str) -> bool {
    has(&std::env::args_os().collect::<Vec<_>>(), flag)
}

/// Whether the command of this process is `install`.
pub(super) fn is_install() -> bool {
    verb(&std::env::args_os().collect::<Vec<_>>()).is_some_and(|verb| verb.get_name() == "install")
}

fn has(args: &[OsString], flag: &str) -> bool {
    verb(args).is_some_and(|verb| verb.get_arguments().any(|known| is(known, flag)))
}

/// The command that was typed; `None` where the words are not a command line.
fn verb(args: &[OsString]) -> Option<Command> {
    let mut all = cli::command();
    all.build();
    let matches = all.try_get_matches_from_mut(args).ok()?;
    all.find_subcommand(matches.subcommand_name()?).cloned()
}

fn extended(args: &[OsString], flags: &[String]) -> Option<String> {
    let mut words = typed(args)?;
    // What was typed with another value is replaced; a flag that may be repeated is not.
    for flag in flags
        .iter()
        .filter(|flag| flag.starts_with("--") && *flag != "--recreate")
    {
        remove(&mut words, flag);
    }
    let end = words.iter().position(|word| word == "--");
    let at = end.unwrap_or(words.len());
    words.splice(at..at, flags.iter().cloned());
    if accepted(&words).is_none() {
        // What is installed already is upgraded.
        let verb = words.iter_mut().find(|word| *word == "install")?;
        *verb = "upgrade".to_owned();
        accepted(&words)?;
    }
    Some(if is_private(&words) {
        format!("the same command with {}", joined(flags))
    } else {
        command(&words)
    })
}

fn compared(args: &[OsString]) -> Option<String> {
    let words = typed(args)?;
    let verb = words
        .iter()
        .position(|word| word == "install" || word == "upgrade")?;
    let is_renamed = |word: &String| word.starts_with("--name") || word == "-";
    if words.iter().any(is_renamed) {
        return None;
    }
    let mut all = cli::command();
    all.build();
    let (from, diff) = (
        all.find_subcommand(words.get(verb)?)?,
        all.find_subcommand("diff")?,
    );
    let globals = || all.get_arguments();
    let mut kept = Vec::new();
    let mut words = words.iter().enumerate();
    while let Some((at, word)) = words.next() {
        if at == verb {
            kept.push("diff".to_owned());
            continue;
        }
        let Some(flag) = from
            .get_arguments()
            .chain(globals())
            .find(|flag| is(flag, word))
        else {
            kept.push(word.clone());
            continue;
        };
        let value = takes_next(flag, word).then(|| words.next()).flatten();
        let is_kept = diff
            .get_arguments()
            .chain(globals())
            .any(|known| known.get_long() == flag.get_long());
        if is_kept {
            kept.push(word.clone());
            kept.extend(value.map(|(_, value)| value.clone()));
        }
    }
    accepted(&kept)?;
    (!is_private(&kept)).then(|| command(&kept))
}

/// The words behind the program's name; `None` where they are not those of a command that was read.
fn typed(args: &[OsString]) -> Option<Vec<String>> {
    let words = args.iter().skip(1);
    words
        .map(|word| word.to_str().map(str::to_owned))
        .collect::<Option<Vec<_>>>()
}

/// Whether the command line takes the words.
fn accepted(words: &[String]) -> Option<()> {
    let args = std::iter::once("kubectl-addons").chain(words.iter().map(String::as_str));
    let args: Vec<OsString> = args.map(Into::into).collect();
    cli::parse(&args).is_ok().then_some(())
}

fn is(flag: &Arg, word: &str) -> bool {
    if let Some(name) = word.strip_prefix("--") {
        let name = name.split('=').next();
        return name.is_some() && name == flag.get_long();
    }
    let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
    letters
        .next()
        .is_some_and(|letter| flag.get_short() == Some(letter))
}

/// Whether the value of a flag is the next word.
fn takes_next(flag: &Arg, word: &str) -> bool {
    let has_value = if word.starts_with("--") {
        word.contains('=')
    } else {
        word.len() > 2
    };
    let takes = matches!(flag.get_action(), ArgAction::Set | ArgAction::Append);
    takes && !has_value && !flag.is_require_equals_set()
}

fn remove(words: &mut Vec<String>, flag: &str) {
    if let Some(at) = words.iter().position(|word| word == flag) {
        let has_value = matches!(flag, "--allow-prune" | "--conflicts");
        let end = at + 1 + usize::from(has_value);
        words.drain(at..words.len().min(end));
    }
    words.retain(|word| word.split_once('=').is_none_or(|(name, _)| name != flag));
}

fn is_private(words: &[String]) -> bool {
    let names = words.iter().map(|word| word.split('=').next());
    names.flatten().any(|name| PRIVATE.contains(&name))
}

fn joined(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|text| word(text)).collect();
    words.join(" ")
}

fn command(words: &[String]) -> String {
    format!("kubectl addons {}", joined(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<OsString> {
        let words = std::iter::once("kubectl-addons").chain(line.split(' '));
        words.map(Into::into).collect()
    }

    #[test]
    fn a_protection_is_accepted_by_the_command_that_was_typed() {
        for (line, flags, expected) in [
            (
                "upgrade many@1.1.0 -n shop",
                "--allow-prune 75%",
                Some("kubectl addons upgrade many@1.1.0 -n shop --allow-prune 75%"),
            ),
            (
                "upgrade web --allow-prune 60%",
                "--allow-prune 75%",
                Some("kubectl addons upgrade web --allow-prune 75%"),
            ),
            (
                "upgrade web --conflicts=fail -y",
                "--conflicts take",
                Some("kubectl addons upgrade web -y --conflicts take"),
            ),
            (
                "upgrade web --recreate Job/a",
                "--recreate Job/b",
                Some("kubectl addons upgrade web --recreate Job/a --recreate Job/b"),
            ),
            (
                "upgrade web --set password=x",
                "--allow-crd-breakage",
                Some("the same command with --allow-crd-breakage"),
            ),
            (
                "apply -f set.yaml",
                "--allow-prune 75%",
                Some("kubectl addons apply -f set.yaml --allow-prune 75%"),
            ),
            (
                "upgrade web --dry-run=server",
                "--recreate Job/b --dry-run",
                Some("kubectl addons upgrade web --recreate Job/b --dry-run"),
            ),
            (
                "install web@1.0.0 --channel i.yaml",
                "--allow-downgrade",
                Some("kubectl addons upgrade web@1.0.0 --channel i.yaml --allow-downgrade"),
            ),
            ("reconcile web", "--allow-prune 75%", None),
        ] {
            let flags: Vec<String> = flags.split(' ').map(str::to_owned).collect();
            assert_eq!(extended(&args(line), &flags).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_flag_is_offered_to_commands_that_have_it() {
        let flag = "--target-namespace";
        assert!(has(&args("-n shop install web"), flag));
        for line in [
            "upgrade web -n shop",
            "-n install upgrade web",
            "delete web",
            "diff web",
        ] {
            assert!(!has(&args(line), flag), "{line}");
        }
    }

    #[test]
    fn a_source_is_repeated() {
        for (line, expected) in [
            (
                "adopt api --channel=my.yaml --dry-run",
                " --channel my.yaml",
            ),
            ("show api --catalogue base", " --catalogue base"),
            ("show api", ""),
        ] {
            let names = ["--channel", "--catalogue"];
            assert_eq!(flags(&args(line), &names), expected);
        }
    }

    #[test]
    fn what_is_compared_is_what_was_asked_for() {
        for (line, expected) in [
            (
                "upgrade many@1.1.0 -n shop --allow-downgrade --timeout 5m -y",
                Some("kubectl addons diff many@1.1.0 -n shop --allow-downgrade"),
            ),
            (
                "install web --channel index.yaml --core --values a.yaml",
                Some("kubectl addons diff web --channel index.yaml --values a.yaml"),
            ),
            (
                "upgrade web --conflicts=take --dry-run -fa.yaml",
                Some("kubectl addons diff web -fa.yaml"),
            ),
            ("upgrade web --set password=x", None),
            ("install web --name shop", None),
            ("reconcile web", None),
            ("apply plan.json", None),
        ] {
            assert_eq!(compared(&args(line)).as_deref(), expected, "{line}");
        }
    }
}
