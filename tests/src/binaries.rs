//! The programs of this workspace that tests, benchmarks and the demo run.
//!
//! They are programs of this package, because cargo builds those before it runs a test or benchmark of the package, in the same
//! build. So each lies beside the running program: `target/debug/tested-plugin` for `target/debug/deps/cluster-0123`.

use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

/// The plugin, `kubectl-addons`.
///
/// # Errors
/// Where it is not there.
pub fn plugin() -> Result<PathBuf> {
    find("tested-plugin")
}

/// The admission webhook, `addons-webhook`.
///
/// # Errors
/// Where it is not there.
pub fn webhook() -> Result<PathBuf> {
    find("tested-webhook")
}

/// The program that runs another one and writes what that took.
///
/// # Errors
/// Where it is not there.
pub fn measured() -> Result<PathBuf> {
    find("measured")
}

/// The example of `addons-operation`, which installs an add-on without the plugin.
///
/// # Errors
/// Where it is not there.
pub fn example() -> Result<PathBuf> {
    find("tested-example")
}

fn find(name: &str) -> Result<PathBuf> {
    let running = env::current_exe()?;
    let folder = running.parent().context("this program lies in no folder")?;
    // Tests and benchmarks lie one folder deeper than programs.
    let folder = match folder.file_name() {
        Some(deps) if deps == "deps" => folder.parent().unwrap_or(folder),
        _ => folder,
    };
    let path = folder.join(format!("{name}{}", env::consts::EXE_SUFFIX));
    ensure!(
        path.is_file(),
        "{} is missing; fix: cargo build --package addons-tests --bins",
        path.display()
    );
    Ok(path)
}
