//! The programs of this workspace, built as they are now.

use std::collections::BTreeMap;
use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;

/// The plugin, `kubectl-addons`.
///
/// # Errors
/// Where the workspace does not build.
pub fn plugin() -> Result<PathBuf> {
    find("kubectl-addons")
}

/// The admission webhook, `addons-webhook`.
///
/// # Errors
/// Where the workspace does not build.
pub fn webhook() -> Result<PathBuf> {
    find("addons-webhook")
}

/// The program that runs another one and says what that took.
///
/// # Errors
/// Where the workspace does not build.
pub fn measured() -> Result<PathBuf> {
    find("measured")
}

fn find(name: &str) -> Result<PathBuf> {
    static BUILT: OnceLock<Result<BTreeMap<String, PathBuf>, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    let built = built.as_ref().map_err(|error| anyhow!("{error}"))?;
    let path = built.get(name);
    path.cloned()
        .with_context(|| format!("the workspace has no binary {name}"))
}

/// Builds all binaries in the profile of this very process: a test runs what the sources say, and a benchmark the
/// release build.
fn build() -> Result<BTreeMap<String, PathBuf>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--workspace", "--bins"])
        .args(["--message-format", "json-render-diagnostics", "--profile"])
        .arg(profile(&env::current_exe()?))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .stdin(Stdio::null());
    let output = command.output().context("cannot start cargo build")?;
    if !output.status.success() {
        let _ = std::io::stderr().write_all(&output.stderr);
        bail!("cargo build --workspace --bins failed; its messages are above");
    }
    let messages = String::from_utf8(output.stdout)?;
    let executables = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| {
            let path = message.get("executable")?.as_str()?;
            let name = message.get("target")?.get("name")?.as_str()?;
            Some((name.to_owned(), PathBuf::from(path)))
        });
    Ok(executables.collect())
}

/// The profile is known by its folder: `target/debug/deps/cluster-0123`, `target/release/demo`.
fn profile(executable: &Path) -> &str {
    let folders = executable.ancestors().skip(1);
    let names = folders.filter_map(|folder| folder.file_name()?.to_str());
    match names.into_iter().find(|name| *name != "deps") {
        Some("debug") | None => "dev",
        Some(name) => name,
    }
}
