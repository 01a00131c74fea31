//! Every promise of `SECURITY.md` names a test that exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// The end of the header of a table whose last column names tests.
const HEADER: &str = "| test |";
/// The programs of tests: cargo prints the names of their tests without the program.
const PROGRAMS: [&str; 4] = ["cluster", "fuzz", "offline", "sources"];
/// The crates whose unit tests the page may name, with the folder of their sources.
const CRATES: [(&str, &str); 11] = [
    ("common", "common/src"),
    ("addons_admission", "common/admission/src"),
    ("addons_clusters", "common/clusters/src"),
    ("addons_engine", "common/engine/src"),
    ("addons_helm", "common/helm/src"),
    ("addons_loops", "common/loops/src"),
    ("addons_operation", "common/operation/src"),
    ("addons_plan", "common/plan/src"),
    ("addons_render", "common/render/src"),
    ("addons_sources", "common/sources/src"),
    ("addons_webhook", "webhook/src"),
];

/// A source file whose tests are collected.
struct Module<'a> {
    /// The path of the module: `guard::facts`; empty for the root of a program.
    path: String,
    file: PathBuf,
    /// The folder of its submodules.
    folder: PathBuf,
    tests: &'a mut BTreeSet<String>,
}

/// The names of all tests, as cargo prints them; unit tests begin with their crate.
pub(super) fn tests() -> Result<BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = BTreeSet::new();
    let cases = root.join("cases");
    let programs = PROGRAMS.map(|name| (String::new(), format!("{name}.rs"), cases.clone()));
    let crates = CRATES.map(|(name, folder)| {
        let folder = root.join("..").join(folder);
        (name.to_owned(), "lib.rs".to_owned(), folder)
    });
    for (path, file, folder) in programs.into_iter().chain(crates) {
        let module = Module {
            path,
            file: folder.join(file),
            folder,
            tests: &mut tests,
        };
        module.collect()?;
    }
    Ok(tests)
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}::{name}"),
    }
}

impl Module<'_> {
    /// Adds the names of the tests in the file and in its submodules.
    fn collect(self) -> Result<()> {
        let text = fs::read_to_string(&self.file).with_context(|| format!("{:?}", self.file))?;
        let (mut path, mut folder) = (self.path.clone(), self.folder.clone());
        // The end of the module in braces that a line is in: rustfmt indents it as its beginning.
        let mut end = None;
        let (mut place, mut is_test) = (None, false);
        for line in text.lines() {
            let code = line.trim_start();
            if end.as_deref() == Some(line) {
                (path, folder, end) = (self.path.clone(), self.folder.clone(), None);
            } else if let Some(named) = code.strip_prefix("#[path = \"") {
                place = Some(named.trim_end_matches("\"]").to_owned());
            } else if code.starts_with("#[test]") || code.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(name) = declared(code, "mod ") {
                let rest = code.rsplit(name).next().unwrap_or_default();
                if rest == " {" && end.is_none() {
                    (path, folder) = (join(&path, name), folder.join(name));
                    let indent = line.len() - code.len();
                    end = Some(format!("{}}}", &line[..indent]));
                } else if rest == ";" {
                    let beside = folder.join(format!("{name}.rs"));
                    let (file, inner) = match place.take() {
                        Some(place) => {
                            let file = self.file.with_file_name(place);
                            (file.clone(), file.with_file_name(""))
                        }
                        None if beside.exists() => (beside, folder.join(name)),
                        None => (folder.join(name).join("mod.rs"), folder.join(name)),
                    };
                    let module = Module {
                        path: join(&path, name),
                        file,
                        folder: inner,
                        tests: &mut *self.tests,
                    };
                    module.collect()?;
                }
            } else if let Some(name) = declared(code, "fn ")
                && std::mem::take(&mut is_test)
            {
                self.tests.insert(join(&path, name));
            }
        }
        Ok(())
    }
}

/// The name that a line declares with this keyword.
fn declared<'a>(code: &'a str, keyword: &str) -> Option<&'a str> {
    let (before, rest) = code.split_once(keyword)?;
    let words = ["", "pub ", "pub(crate) ", "pub(super) ", "async "];
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    words.contains(&before).then(|| &rest[..end])
}

/// The rows of the tables of tests in a page, without the headers.
fn rows(page: &str) -> Vec<&str> {
    let mut rows = Vec::new();
    let mut is_table = false;
    for line in page.lines() {
        if line.starts_with('|') && line.ends_with(HEADER) {
            is_table = true;
        } else if !line.starts_with('|') {
            is_table = false;
        } else if is_table && !line.starts_with("|---") {
            rows.push(line);
        }
    }
    rows
}

/// What is wrong with the last cell of a row.
fn problem(row: &str, tests: &BTreeSet<String>) -> Option<String> {
    let cells = row.strip_suffix('|').unwrap_or(row);
    let cell = cells.rsplit('|').next().unwrap_or_default();
    let names: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
    if names.is_empty() {
        return Some(format!("no test: {row}"));
    }
    let unknown = names.into_iter().filter(|name| !tests.contains(*name));
    let unknown: Vec<_> = unknown.collect();
    (!unknown.is_empty()).then(|| format!("no such test: {}", unknown.join(", ")))
}

#[test]
fn every_promise_names_a_test_that_exists() -> Result<()> {
    let tests = tests()?;
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../SECURITY.md"))?;
    let rows = rows(&page);
    ensure!(rows.len() > 20, "only {} rows", rows.len());
    let wrong = rows.iter().filter_map(|row| problem(row, &tests));
    let wrong: Vec<_> = wrong.collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn a_test_that_does_not_exist_is_noticed() -> Result<()> {
    let tests = tests()?;
    let own = "architecture::promises::a_test_that_does_not_exist_is_noticed";
    for (cell, is_right) in [
        (format!("`{own}`"), true),
        (
            format!(
                "`{own}`, `addons_engine::limits::tests::a_text_takes_more_memory_than_it_has_bytes`"
            ),
            true,
        ),
        (format!("`{own}`, `{own}s`"), false),
        (
            "`promises::a_test_that_does_not_exist_is_noticed`".to_owned(),
            false,
        ),
        // It is a function, and no test.
        ("`architecture::promises::rows`".to_owned(), false),
        (String::new(), false),
    ] {
        let page = format!("| promise | test |\n|---|---|\n| a | {cell} |\n");
        let [row] = rows(&page)[..] else {
            anyhow::bail!("{page}");
        };
        let found = problem(row, &tests);
        ensure!(found.is_none() == is_right, "{cell}: {found:?}");
    }
    Ok(())
}
