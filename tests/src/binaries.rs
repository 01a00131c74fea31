//! The programs of this workspace, built as they are now.
//!
//! Where `ADDONS_TESTS_BINARIES` names a folder, they are taken from there: `cargo demo` has just built them.

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
/// Where it does not build.
pub fn plugin() -> Result<PathBuf> {
    static BUILT: Built = Built::new();
    find(&BUILT, "--bin", "kubectl-addons")
}

/// The admission webhook, `addons-webhook`.
///
/// # Errors
/// Where it does not build.
pub fn webhook() -> Result<PathBuf> {
    static BUILT: Built = Built::new();
    find(&BUILT, "--bin", "addons-webhook")
}

/// The program that runs another one and says what that took.
///
/// # Errors
/// Where it does not build.
pub fn measured() -> Result<PathBuf> {
    static BUILT: Built = Built::new();
    find(&BUILT, "--bin", "measured")
}

/// The example of `addons-operation`, which installs an add-on without the plugin.
///
/// # Errors
/// Where it does not build.
pub fn example() -> Result<PathBuf> {
    static BUILT: Built = Built::new();
    find(&BUILT, "--example", "install")
}

/// A program that was built once in this process, or why it could not be.
type Built = OnceLock<Result<PathBuf, String>>;

fn find(built: &Built, kind: &str, name: &str) -> Result<PathBuf> {
    if let Some(folder) = env::var_os("ADDONS_TESTS_BINARIES") {
        return Ok(PathBuf::from(folder).join(name));
    }
    let path = built.get_or_init(|| build(kind, name).map_err(|error| format!("{error:#}")));
    path.clone().map_err(|error| anyhow!("{error}"))
}

/// Builds a program in the profile of this very process: a test runs what the sources say, and a benchmark the release
/// build. `--workspace`, for with other features than those of all members everything would be compiled again.
fn build(kind: &str, name: &str) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--workspace", kind, name])
        .args(["--message-format", "json-render-diagnostics", "--profile"])
        .arg(profile(&env::current_exe()?))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .stdin(Stdio::null());
    let output = command.output().context("cannot start cargo build")?;
    if !output.status.success() {
        let _ = std::io::stderr().write_all(&output.stderr);
        bail!("cargo build --workspace {kind} {name} failed; its messages are above");
    }
    let messages = String::from_utf8(output.stdout)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| {
            let is_named = message.get("target")?.get("name")? == name;
            let path = message.get("executable")?.as_str()?;
            is_named.then(|| PathBuf::from(path))
        })
        .with_context(|| format!("cargo build {kind} {name} made no program"))
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
