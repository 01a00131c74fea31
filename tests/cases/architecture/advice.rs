//! Only the edges name commands and flags of the plugin: a library returns a reason, and its caller knows the command.

use anyhow::{Result, ensure};
use syn::visit::{self, Visit};
use syn::{Attribute, ItemFn, ItemMod, LitStr, Macro};

use super::graph::is_for_tests;
use super::modules::sources;

/// (file, why its texts name a command or a flag)
const EXCEPTIONS: [(&str, &str); 17] = [
    (
        "common/admission/src/answer.rs",
        "a warning of the webhook, which kubectl prints",
    ),
    (
        "common/admission/src/rules/installation/guards.rs",
        "a denial of the webhook, which kubectl prints",
    ),
    (
        "common/admission/src/rules/namespace.rs",
        "a denial of the webhook, which kubectl prints",
    ),
    (
        "common/airgap/src/contents.rs",
        "a warning, which is kept as text",
    ),
    (
        "common/airgap/src/export.rs",
        "what needs an image that a person named",
    ),
    (
        "common/engine/src/execute/ending.rs",
        "a failure, which the record keeps as text",
    ),
    (
        "common/engine/src/former.rs",
        "a command of helm, in an error",
    ),
    (
        "common/loops/src/fights.rs",
        "a condition, whose reader sees nothing else",
    ),
    (
        "common/operation/src/builtin/webhook.rs",
        "a flag of the webhook's own program",
    ),
    (
        "common/operation/src/execute/continued.rs",
        "the command that continues an operation, for every caller",
    ),
    (
        "common/operation/src/error/plan.rs",
        "a flag of the webhook's own program",
    ),
    (
        "common/operation/src/adopt/records.rs",
        "warnings, which plan files keep as text",
    ),
    (
        "common/operation/src/plan/replay.rs",
        "a difference, which names what the plan was made with",
    ),
    ("common/plan/src/decide.rs", "a flag of kubectl label"),
    (
        "common/plan/src/planner.rs",
        "a warning, which plan files keep as text",
    ),
    (
        "common/plan/src/recreate.rs",
        "an error that is also a difference of a plan file",
    ),
    (
        "common/src/oci/layout.rs",
        "the program that writes archives",
    ),
];

/// Crates that run other programs, which have flags, too.
const RUNNERS: [&str; 2] = ["common/helm/", "common/sources/"];

#[derive(Default)]
struct Reader {
    found: Vec<String>,
}

impl Reader {
    fn see_tokens(&mut self, tokens: &str) {
        for literal in literals(tokens) {
            self.see(&literal);
        }
    }

    fn see(&mut self, text: &str) {
        let is_flag = |word: &str| {
            let name = word.trim_start_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let name = name.strip_prefix("--").unwrap_or_default();
            name.starts_with(|c: char| c.is_ascii_lowercase())
        };
        // Flags of kubectl follow its name.
        let is_of_kubectl = text.contains("kubectl ") && !text.contains("kubectl addons");
        let names_flag = !is_of_kubectl && text.split_whitespace().any(is_flag);
        if text.contains("kubectl addons ") || names_flag {
            self.found.push(text.to_owned());
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        // Comments and descriptions of schemas are not texts of a program.
        if attribute.path().is_ident("error")
            && let Ok(list) = attribute.meta.require_list()
        {
            self.see_tokens(&list.tokens.to_string());
        }
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.see_tokens(&called.tokens.to_string());
    }

    fn visit_lit_str(&mut self, literal: &'ast LitStr) {
        self.see(&literal.value());
    }
}

/// The string literals of macro arguments, without their quotes.
fn literals(tokens: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut letters = tokens.chars();
    while letters.by_ref().any(|letter| letter == '"') {
        let mut literal = String::new();
        while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
            literal.push(letter);
            if letter == '\\' {
                literal.extend(letters.next());
            }
        }
        found.push(literal);
    }
    found
}

#[test]
fn libraries_name_no_command_of_the_plugin() -> Result<()> {
    let (mut wrong, mut seen) = (Vec::new(), Vec::new());
    for (name, syntax) in sources(&["common"])? {
        if RUNNERS.iter().any(|runner| name.starts_with(runner)) {
            continue;
        }
        let mut reader = Reader::default();
        reader.visit_file(&syntax);
        if reader.found.is_empty() {
            continue;
        }
        match EXCEPTIONS.iter().find(|(file, _)| *file == name) {
            Some((file, _)) => seen.push(*file),
            None => wrong.push(format!("{name}: {}", reader.found.join(" | "))),
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    let exceptions = EXCEPTIONS.iter().map(|(file, _)| *file);
    let gone: Vec<&str> = exceptions.filter(|file| !seen.contains(file)).collect();
    ensure!(gone.is_empty(), "exceptions that are not needed: {gone:?}");
    Ok(())
}
