//! Manual pages and the reference: every command is in them.

use std::collections::BTreeSet;

use addons_tests::reference::{commands, fields, manual};
use addons_tests::{crds, reference};
use anyhow::{Context as _, Result, ensure};
use common::manifest::yaml::{YamlOptions, documents};

/// The paths of all commands, in words.
fn all(command: &clap::Command, path: &str, found: &mut BTreeSet<String>) {
    for next in command.get_subcommands() {
        if next.get_name() != "help" && !next.is_hide_set() {
            let path = format!("{path} {}", next.get_name());
            all(next, &path, found);
            found.insert(path);
        }
    }
}

#[test]
fn every_command_has_its_section_and_its_manual_page() -> Result<()> {
    let mut expected = BTreeSet::new();
    all(
        &kubectl_addons::cli::command(),
        "kubectl addons",
        &mut expected,
    );
    ensure!(expected.len() > 30, "{expected:?}");
    let page = commands::page();
    let sections = page.lines().filter_map(|line| line.strip_prefix("## "));
    let sections: BTreeSet<String> = sections
        .filter(|title| title.starts_with("kubectl"))
        .map(str::to_owned)
        .collect();
    ensure!(sections == expected, "{sections:?}");

    let pages = manual::pages()?;
    let names = pages
        .iter()
        .map(|(name, _)| name.clone())
        .collect::<BTreeSet<_>>();
    let mut files: BTreeSet<String> = expected
        .iter()
        .map(|path| format!("{}.1", path.replace(' ', "-")))
        .collect();
    files.insert("kubectl-addons.1".to_owned());
    ensure!(names == files, "{names:?}");
    for (name, text) in &pages {
        let text = String::from_utf8_lossy(text);
        ensure!(
            text.contains(".TH") && text.contains("SYNOPSIS"),
            "{name}: {text}"
        );
    }
    let install = pages
        .iter()
        .find(|(name, _)| name == "kubectl-addons-install.1");
    let (_, text) = install.context("no page of install")?;
    let text = String::from_utf8_lossy(text);
    ensure!(
        text.contains("kubectl addons install") && text.contains("dry\\-run"),
        "{text}"
    );
    Ok(())
}

#[test]
fn every_option_and_every_field_is_described() -> Result<()> {
    for (name, text) in reference::files()? {
        for line in text.lines().filter(|line| line.starts_with("| `")) {
            ensure!(!line.ends_with("|  |"), "{name}: {line}");
        }
    }
    let mut count = 0;
    for (file, text) in crds::files()? {
        let mut crd = documents(text.as_bytes(), &YamlOptions::default());
        let crd = crd.next().with_context(|| file.clone())??.value;
        let found = fields::fields(&crd);
        let paths: Vec<&str> = found.iter().map(|field| field.path.as_str()).collect();
        ensure!(paths.contains(&"spec"), "{file}: {paths:?}");
        count += paths.len();
    }
    ensure!(count > 100, "{count} fields");
    Ok(())
}
