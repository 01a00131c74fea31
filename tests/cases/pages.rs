//! The pages of the project: their size, their links, the commands that they name, and the rules that code and pages cite.

mod commands;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use addons_tests::page::{Page, ROOT};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};

/// Lines of the README.
const MOST_LINES: usize = 200;
/// Characters of a line that is neither code nor a row of a table.
const WIDEST: usize = 100;

/// Files of the checkout with one of these endings, sorted; nothing that is built or ignored, and of what is hidden only `.github`.
fn files(endings: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(ROOT)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                let is_hidden = name.starts_with('.') && name != ".github";
                if !is_hidden && name != "target" {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn pages() -> Result<Vec<Page>> {
    let pages: Result<Vec<Page>> = files(&[".md"])?.into_iter().map(Page::read).collect();
    let pages = pages?;
    ensure!(pages.len() > 1, "there are no pages below {ROOT}");
    Ok(pages)
}

/// Fails with every line of `wrong`.
fn none(wrong: &[String]) -> Result<()> {
    ensure!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    Ok(())
}

/// The anchors of a page.
///
/// # Errors
/// The page cannot be read.
pub(crate) fn anchors_of(name: &str) -> Result<BTreeSet<String>> {
    Ok(Page::named(name)?.anchors())
}

#[test]
fn pages_are_narrow_and_the_readme_is_short() -> Result<()> {
    let mut wrong = Vec::new();
    for page in pages()? {
        if page.name == "README.md" && page.lines.len() > MOST_LINES {
            let count = page.lines.len();
            wrong.push(format!("README.md: {count} lines, {MOST_LINES} at most"));
        }
        for line in page.prose() {
            let place = format!("{}:{}", page.name, line.number);
            let width = line.text.chars().count();
            if width > WIDEST && !line.text.starts_with('|') {
                wrong.push(format!("{place}: {width} characters, {WIDEST} at most"));
            }
            if line.text.matches('`').count() % 2 == 1 {
                wrong.push(format!("{place}: a code span does not end on its line"));
            }
        }
    }
    none(&wrong)
}

/// The targets of the links in a line: `](TARGET)`, outside of code spans.
fn targets(text: &str) -> Vec<String> {
    let outside: Vec<&str> = text.split('`').step_by(2).collect();
    let outside = outside.join("`");
    let links = outside.split("](").skip(1);
    let targets = links.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
    targets.collect()
}

#[test]
fn links_lead_somewhere() -> Result<()> {
    let mut tally = Tally::new("pages::links_lead_somewhere");
    let mut wrong = Vec::new();
    for page in pages()? {
        let folder = page.path.parent().context("a page without a folder")?;
        for line in page.prose() {
            for target in targets(&line.text) {
                tally.ran();
                if target.contains("://") {
                    continue;
                }
                if let Err(problem) = resolve(&page, folder, &target) {
                    wrong.push(format!("{}:{}: {problem}", page.name, line.number));
                }
            }
        }
    }
    none(&wrong)
}

/// Looks for the file of a relative link and, in a page, for the heading.
fn resolve(page: &Page, folder: &Path, target: &str) -> Result<()> {
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    let path = if file.is_empty() {
        page.path.clone()
    } else {
        folder.join(file)
    };
    ensure!(path.exists(), "{target}: there is no such file");
    if let Some(anchor) = anchor {
        let anchors = Page::read(path)?.anchors();
        ensure!(anchors.contains(anchor), "{target}: no such heading");
    }
    Ok(())
}

/// The rules and paragraphs that a line cites: `semantics 3`, `semantics 3 and 11.2`, `semantics 1.5, 2, 14`.
fn cited(text: &str) -> Vec<String> {
    let mut numbers = Vec::new();
    for mut rest in text.split("semantics ").skip(1) {
        loop {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
            let (number, _) = rest.split_at(end.unwrap_or(rest.len()));
            // The full stop of a sentence is not part of the number.
            let number = number.trim_end_matches('.');
            if number.is_empty() {
                break;
            }
            numbers.push(number.to_owned());
            let tail = &rest[number.len()..];
            let next = [", and ", ", ", " and "];
            let Some(tail) = next.iter().find_map(|word| tail.strip_prefix(word)) else {
                break;
            };
            rest = tail;
        }
    }
    numbers
}

/// The numbers of the rules of `semantics.md` and of their paragraphs.
///
/// # Errors
/// They do not count from 1.
fn rules(semantics: &Page) -> Result<BTreeSet<String>> {
    let (mut rules, mut rule, mut paragraph) = (BTreeSet::new(), 0, 0);
    for line in semantics.prose() {
        let heading = line.text.strip_prefix("## ");
        if let Some((number, _)) = heading.and_then(|text| text.split_once(". ")) {
            (rule, paragraph) = (rule + 1, 0);
            ensure!(number == rule.to_string(), "rule {number} is the {rule}th");
            rules.insert(number.to_owned());
        }
        let text = line.text.strip_prefix("**");
        if let Some((number, _)) = text.and_then(|text| text.split_once("** "))
            && number.starts_with(|c: char| c.is_ascii_digit())
        {
            paragraph += 1;
            let expected = format!("{rule}.{paragraph}");
            ensure!(number == expected, "{number} instead of {expected}");
            rules.insert(expected);
        }
    }
    ensure!(rule > 1 && rules.len() > rule, "only {rules:?}");
    Ok(rules)
}

/// Documents that lay beside the checkout of some author: no reader has them.
const ELSEWHERE: [&str; 5] = [
    concat!("product", ".md"),
    concat!("architecture", ".md"),
    concat!("research", "/"),
    concat!("transcripts", ".md"),
    concat!("words", ".md"),
];

#[test]
fn no_citation_leads_out_of_the_repository() -> Result<()> {
    let mut wrong = Vec::new();
    for path in files(&[".rs", ".md", ".toml"])? {
        let text = fs::read_to_string(&path)?;
        for (line, number) in text.lines().zip(1..) {
            let cited = ELSEWHERE.iter().find(|document| line.contains(**document));
            if let Some(document) = cited {
                wrong.push(format!("{}:{number}: {document}", path.display()));
            }
        }
    }
    none(&wrong)
}

#[test]
fn every_rule_that_is_cited_is_there() -> Result<()> {
    let mut tally = Tally::new("pages::every_rule_that_is_cited_is_there");
    let semantics = Page::named("common/semantics.md")?;
    let rules = rules(&semantics)?;
    let mut wrong = Vec::new();
    for path in files(&[".rs", ".md"])? {
        let text = fs::read_to_string(&path)?;
        for (index, line) in text.lines().enumerate() {
            for number in cited(line) {
                tally.ran();
                if !rules.contains(&number) {
                    let name = path.strip_prefix(ROOT).unwrap_or(&path);
                    let place = format!("{}:{}", name.display(), index + 1);
                    wrong.push(format!("{place}: semantics.md has no rule {number}"));
                }
            }
        }
    }
    none(&wrong)
}

#[test]
fn what_is_a_citation_and_what_a_link() {
    assert_eq!(
        cited("(semantics 9 and 10.4), semantics 1, 2, then semantics 3."),
        ["9", "10.4", "1", "2", "3"]
    );
    assert_eq!(targets("[a](b.md#c) and `[x](y)`, [d](e)"), ["b.md#c", "e"]);
}
