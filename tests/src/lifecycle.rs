//! The table of Kubernetes' APIs, read from Kubernetes' own sources.
//!
//! Which release introduced, deprecated and removed an API stands in the generated methods of its Go types. A removed one leaves these
//! sources some releases later, so several releases are read, and the newest that has an API is right. Needs Go, which fetches them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The releases, oldest first; the last one is the newest that `preflight` knows.
const RELEASES: [&str; 5] = ["v0.21.14", "v0.24.17", "v0.31.2", "v0.34.3", "v0.37.1"];
/// The modules whose types an API server serves.
const MODULES: [&str; 3] = [
    "k8s.io/api",
    "k8s.io/apiextensions-apiserver",
    "k8s.io/kube-aggregator",
];
/// The file of each version of a group.
const GENERATED: &str = "zz_generated.prerelease-lifecycle.go";

/// Group, version and kind.
type Api = (String, String, String);

/// What the methods of one type say; releases as `1.22`.
#[derive(Default)]
struct Row {
    introduced: String,
    deprecated: String,
    removed: String,
    replacement: String,
}

/// `lifecycle.tsv`: the table of all releases.
///
/// # Errors
/// Go that is missing or cannot download the modules; sources of another shape.
pub fn files() -> Result<Vec<(String, String)>> {
    Ok(vec![("lifecycle.tsv".to_owned(), read_all()?)])
}

fn read_all() -> Result<String> {
    let mut rows = BTreeMap::new();
    for release in RELEASES {
        for module in MODULES {
            read(&go_module(module, release)?, &mut rows)?;
        }
    }
    table(&rows)
}

/// The folder of a Go module, fetched where it is not there yet.
///
/// # Errors
/// Go that is missing or cannot download the module.
pub fn go_module(module: &str, release: &str) -> Result<PathBuf> {
    let wanted = format!("{module}@{release}");
    let output = Command::new("go")
        .args(["mod", "download", "-json", &wanted])
        .current_dir(std::env::temp_dir())
        .output()
        .context("cannot start go")?;
    let said: Value = serde_json::from_slice(&output.stdout).with_context(|| wanted.clone())?;
    let folder = said["Dir"].as_str();
    let folder = folder.with_context(|| format!("{wanted}: {}", said["Error"]))?;
    Ok(PathBuf::from(folder))
}

/// Reads every generated file below a folder.
fn read(folder: &Path, rows: &mut BTreeMap<Api, Row>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, rows)?;
        } else if path.file_name().is_some_and(|name| name == GENERATED) {
            let version = folder.file_name().unwrap_or_default().to_string_lossy();
            types(&path, &group(folder)?, &version, rows)
                .with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// The name of the group, which is a constant beside the types.
fn group(folder: &Path) -> Result<String> {
    let path = folder.join("register.go");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let line = text.lines().find(|line| line.contains("GroupName = "));
    let name = line.and_then(quoted).and_then(|all| all.into_iter().next());
    name.with_context(|| format!("{}: no GroupName", path.display()))
}

/// Reads the methods of one file. What an older release says of a type is forgotten.
fn types(path: &Path, group: &str, version: &str, rows: &mut BTreeMap<Api, Row>) -> Result<()> {
    let text = fs::read_to_string(path)?;
    let mut found: BTreeMap<String, Row> = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((kind, method)) = line
            .strip_prefix("func (in *")
            .and_then(|rest| rest.split_once(") APILifecycle"))
        else {
            continue;
        };
        let body = lines.next().context("cut off")?.trim();
        let body = body.strip_prefix("return ").context(body.to_owned())?;
        let row = found.entry(kind.to_owned()).or_default();
        match method.split('(').next() {
            Some("Introduced") => row.introduced = release(body)?,
            Some("Deprecated") => row.deprecated = release(body)?,
            Some("Removed") => row.removed = release(body)?,
            Some("Replacement") => {
                let parts = quoted(body).context(body.to_owned())?;
                row.replacement = parts.join("/");
            }
            _ => bail!("the method {method} is not known"),
        }
    }
    // Lists are not objects.
    found.retain(|kind, _| !kind.ends_with("List"));
    for (kind, row) in found {
        rows.insert((group.to_owned(), version.to_owned(), kind), row);
    }
    Ok(())
}

/// `1, 22` as `1.22`.
fn release(body: &str) -> Result<String> {
    let (major, minor) = body.split_once(", ").context(body.to_owned())?;
    let (major, minor): (u16, u16) = (major.parse()?, minor.parse()?);
    Ok(format!("{major}.{minor}"))
}

/// What stands in quotes.
fn quoted(line: &str) -> Option<Vec<String>> {
    let parts: Vec<_> = line.split('"').collect();
    let inner = parts.iter().skip(1).step_by(2);
    (parts.len() > 2).then(|| inner.map(|part| (*part).to_owned()).collect())
}

fn table(rows: &BTreeMap<Api, Row>) -> Result<String> {
    let newest = RELEASES.last().context("no release")?;
    let minor = newest.split('.').nth(1).context("no minor version")?;
    let mut text = format!(
        "# known\t1.{minor}\n# group\tversion\tkind\tintroduced\tdeprecated\tremoved\treplacement\n"
    );
    for ((group, version, kind), row) in rows {
        let columns = [
            group,
            version,
            kind,
            &row.introduced,
            &row.deprecated,
            &row.removed,
            &row.replacement,
        ];
        let columns = columns.map(|column| if column.is_empty() { "-" } else { column });
        text.push_str(&columns.join("\t"));
        text.push('\n');
    }
    Ok(text)
}
