//! Programs, and what they take.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use addons_tests::binaries;
use addons_tests::control_plane::binaries::which;
use addons_tests::guard::Folder;
use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

/// What a program said and took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) stdout: Vec<u8>,
    pub(crate) wall: Duration,
    /// In user and kernel mode.
    pub(crate) cpu: Duration,
    /// Of resident memory.
    pub(crate) peak_bytes: u64,
}

/// The program in Go, in a folder that goes with it.
pub(crate) struct Peer {
    path: PathBuf,
    _folder: Folder,
}

#[derive(Deserialize)]
struct Report {
    wall_us: u64,
    user_us: u64,
    system_us: u64,
    peak_bytes: u64,
}

/// Runs a program to its end, which has to be a good one.
pub(crate) fn run(program: &Path, arguments: &[String]) -> Result<Taken> {
    let folder = tempfile::tempdir()?;
    let report = folder.path().join("report");
    let output = Command::new(binaries::measured()?)
        .args([report.as_os_str(), program.as_os_str()])
        .args(arguments)
        .env("HOME", folder.path())
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .output()?;
    ensure!(
        output.status.success(),
        "{} ended with {}: {}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Report = serde_json::from_slice(&std::fs::read(report)?)?;
    Ok(Taken {
        stdout: output.stdout,
        wall: Duration::from_micros(report.wall_us),
        cpu: Duration::from_micros(report.user_us + report.system_us),
        peak_bytes: report.peak_bytes,
    })
}

/// Builds the program of `benches/render/peer`; its modules come through Go's proxy once.
pub(crate) fn peer() -> Result<Peer> {
    let Some(go) = which("go") else {
        bail!("it is built by Go 1.26 or later (https://go.dev/dl)");
    };
    let folder = Folder::new("kubectl-addons-peer-")?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/render/peer");
    let peer = Peer {
        path: folder.path().join("peer"),
        _folder: folder,
    };
    let output = Command::new(go)
        .args(["build", "-trimpath", "-ldflags=-s -w", "-o"])
        .arg(&peer.path)
        .arg(".")
        .env("CGO_ENABLED", "0")
        .current_dir(&source)
        .output()
        .context("cannot start go build")?;
    ensure!(
        output.status.success(),
        "go build failed in {}:\n{}",
        source.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(peer)
}

impl Peer {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
