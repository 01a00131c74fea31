//! Every `kubectl addons …` in code blocks and code spans of the pages is one that the plugin understands.

use addons_tests::page::{Page, ROOT};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

use super::{none, pages};

/// How a line of code begins that holds a command, before `kubectl addons`: as typed, or as messages print it.
const PROMPTS: [&str; 8] = [
    "",
    "$",
    "core-team$",
    "look:",
    "fix:",
    "accept:",
    "restore:",
    "run:",
];
/// The language of blocks that hold output only.
const OUTPUT: &str = "text";
/// What ends a command in a line of code.
const ENDS: [&str; 8] = ["|", "||", "&&", ";", ">", ">>", "<", "#"];
/// Values that stand for those of a flag or argument with a syntax of its own. Other words in capitals are fine as they are.
const PLACEHOLDERS: [(&str, &str); 8] = [
    ("DURATION", "5m"),
    (
        "DIGEST",
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ),
    ("VERSION", "1.36.3"),
    ("N%", "60%"),
    ("POLICY", "take"),
    ("METHOD", "helm"),
    ("SHELL", "bash"),
    ("HOST[/PATH]", "mirror.example.org/addons"),
];
/// Errors of clap about a command that is only named, without what it takes.
const ONLY_NAMED: [&str; 2] = [
    "MissingRequiredArgument",
    "DisplayHelpOnMissingArgumentOrSubcommand",
];

/// The commands in the code blocks of a page, with the number of their first line. In a block with prompts, other lines are
/// output: only what a message offers there is a command.
fn typed(page: &Page) -> Vec<(usize, String)> {
    let mut commands: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for line in &page.lines {
        if line.language.as_deref().is_none_or(|name| name == OUTPUT) {
            goes_on = false;
            continue;
        }
        let text = line.text.trim();
        if let Some((_, command)) = commands.last_mut().filter(|_| goes_on) {
            command.push(' ');
            command.push_str(text.trim_end_matches('\\'));
            goes_on = text.ends_with('\\');
            continue;
        }
        let Some(at) = text.find("kubectl addons ") else {
            continue;
        };
        let (before, command) = text.split_at(at);
        let before: Vec<&str> = before
            .split_whitespace()
            .filter(|word| !word.contains('='))
            .collect();
        if PROMPTS.contains(&before.join(" ").as_str()) {
            goes_on = command.ends_with('\\');
            commands.push((line.number, command.trim_end_matches('\\').to_owned()));
        }
    }
    commands
}

/// Every command line that a text stands for: optional words in brackets left out, alternatives one by one, and values for
/// [`PLACEHOLDERS`].
fn expanded(command: &str) -> Vec<Vec<String>> {
    let words = command.split_whitespace();
    let words = words.take_while(|word| !ENDS.contains(word));
    let mut lines = vec![Vec::new()];
    let mut brackets = 0_usize;
    for word in words {
        let (opened, closed) = (word.matches('[').count(), word.matches(']').count());
        // `NAME[@VERSION]` is one word; `[-f FILE]` is optional.
        if brackets > 0 || word.starts_with('[') {
            brackets = (brackets + opened).saturating_sub(closed);
            continue;
        }
        let word = word.trim_end_matches('…').trim_matches('\'');
        if word.is_empty() {
            continue;
        }
        let (stem, last) = word.split_once('=').map_or(("", word), |(flag, values)| {
            (&word[..flag.len() + 1], values)
        });
        let chosen = last.split('|').map(|one| valued(&format!("{stem}{one}")));
        let chosen: Vec<String> = chosen.collect();
        lines = lines
            .iter()
            .flat_map(|line: &Vec<String>| {
                let with = |word: &String| [line.as_slice(), std::slice::from_ref(word)].concat();
                chosen.iter().map(with)
            })
            .collect();
    }
    lines
}

fn valued(word: &str) -> String {
    let mut word = word.to_owned();
    for (placeholder, value) in PLACEHOLDERS {
        // A part of a longer word in capitals is another placeholder.
        if word == placeholder
            || word.ends_with(&format!("={placeholder}"))
            || word.ends_with(&format!("@{placeholder}"))
        {
            word = word.replace(placeholder, value);
        }
    }
    word
}

/// Why the plugin does not understand a command line. `is_span`: pages name commands without what they take.
fn misunderstood(line: &[String], is_span: bool) -> Option<String> {
    let args = std::iter::once("kubectl-addons").chain(line.iter().skip(2).map(String::as_str));
    let error = kubectl_addons::cli::parse(&args.map(Into::into).collect::<Vec<_>>()).err()?;
    let kind = format!("{:?}", error.kind());
    let is_verb = |word: &String| word.chars().all(|c| c.is_ascii_lowercase());
    let is_named = is_span && line.iter().all(is_verb) && ONLY_NAMED.contains(&kind.as_str());
    if !error.use_stderr() || is_named {
        return None;
    }
    let said = error.to_string();
    Some(said.lines().next().unwrap_or_default().to_owned())
}

#[test]
fn the_plugin_understands_every_command() -> Result<()> {
    let mut tally = Tally::new("pages::the_plugin_understands_every_command");
    let mut wrong = Vec::new();
    for page in pages()? {
        let spans = page.spans();
        let spans = spans.filter(|(_, span)| span.starts_with("kubectl addons "));
        let spans = spans.map(|(number, span)| (number, span.to_owned(), true));
        let typed = typed(&page);
        let typed = typed
            .into_iter()
            .map(|(number, line)| (number, line, false));
        for (number, command, is_span) in spans.chain(typed) {
            for line in expanded(&command) {
                tally.ran();
                if let Some(why) = misunderstood(&line, is_span) {
                    let line = line.join(" ");
                    wrong.push(format!("{}:{number}: {line}: {why}", page.name));
                }
            }
        }
    }
    none(&wrong)
}

#[test]
fn what_is_a_command() {
    let lines = |command| expanded(command).into_iter().map(|line| line.join(" "));
    for (command, expected) in [
        ("plan web -o dot | dot -Tsvg", vec!["plan web -o dot"]),
        (
            "install NAME[@VERSION]… [-f FILE] [--yes]",
            vec!["install NAME[@VERSION]"],
        ),
        (
            "show web@VERSION --dry-run=client|server",
            vec![
                "show web@1.36.3 --dry-run=client",
                "show web@1.36.3 --dry-run=server",
            ],
        ),
        (
            "apply FILE --timeout DURATION # or",
            vec!["apply FILE --timeout 5m"],
        ),
    ] {
        assert_eq!(lines(command).collect::<Vec<_>>(), expected, "{command}");
    }
}

/// The commands that string literals of a source file name, with the number of their line. What a message fills in stands for a
/// name; what follows a command in a sentence is not part of it.
fn offered(source: &str) -> Vec<(usize, String)> {
    let own = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    for (index, line) in own.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for rest in line.split("kubectl addons ").skip(1) {
            let end = rest.find(['"', '`', '\\']).unwrap_or(rest.len());
            let mut command = vec!["kubectl".to_owned(), "addons".to_owned()];
            for word in rest[..end].split_whitespace() {
                let last = word.ends_with([',', ';', ')', ':']);
                let word = word.trim_end_matches([',', ';', ')', ':', '.']);
                let is_verb = command.len() == 2;
                command.push(match word.starts_with('{') {
                    true if is_verb => "upgrade".to_owned(),
                    true if word.contains("}/{") => "NAMESPACE/NAME".to_owned(),
                    true => "NAME".to_owned(),
                    false => word.to_owned(),
                });
                if last {
                    break;
                }
            }
            found.push((index + 1, command.join(" ")));
        }
    }
    found
}

#[test]
fn the_plugin_understands_every_command_of_its_messages() -> Result<()> {
    let mut tally = Tally::new("pages::the_plugin_understands_every_command_of_its_messages");
    let mut wrong = Vec::new();
    let mut commands = 0;
    for path in super::files(&[".rs"])? {
        // Tests of the plugin type what it must not understand.
        let name = path.strip_prefix(ROOT).unwrap_or(&path);
        if name.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        let name = name.display().to_string();
        for (number, command) in offered(&std::fs::read_to_string(&path)?) {
            for line in expanded(&command) {
                tally.ran();
                commands += 1;
                if let Some(why) = misunderstood(&line, true) {
                    wrong.push(format!("{name}:{number}: {}: {why}", line.join(" ")));
                }
            }
        }
    }
    ensure!(
        commands > 20,
        "only {commands} commands were found in messages"
    );
    none(&wrong)
}

#[test]
fn what_a_message_offers() {
    let source = r#"
        // kubectl addons nothing
        format!("fix:    kubectl addons uninstall {names}, which removes {all}")
        "run again: kubectl addons {verb} {} -n {}\n  look: kubectl addons list"
        "#;
    let found: Vec<String> = offered(source).into_iter().map(|(_, line)| line).collect();
    assert_eq!(
        found,
        [
            "kubectl addons uninstall NAME",
            "kubectl addons upgrade NAME -n NAME",
            "kubectl addons list"
        ]
    );
}
