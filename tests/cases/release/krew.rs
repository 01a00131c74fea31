//! The manifest as krew takes it: its own check, which downloads and installs each platform, and then the plugin as a user has it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use addons_control_plane::programs;
use addons_tests::release::platforms;
use addons_tests::servers::http::{Answer, Server};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};

use super::packed;

fn said(output: &Output) -> String {
    let text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    text.concat()
}

/// A program with kubectl and krew on its PATH.
fn run(program: &Path, tools: &Path, root: &Path, args: &[&str]) -> Result<Output> {
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        root.join("bin").display(),
        tools.display()
    );
    Command::new(program)
        .args(args)
        .env_clear()
        .env("PATH", path)
        .env("HOME", tools)
        .env("KREW_ROOT", root)
        .output()
        .with_context(|| format!("cannot run {}", program.display()))
}

#[test]
#[cfg_attr(not(full), ignore = "FULL=1: needs krew")]
fn krew_takes_the_manifest_and_installs_the_plugin() -> Result<()> {
    let mut tally = Tally::new("release::krew");
    let krew = programs::krew()?;
    let kubectl = programs::locate()?.kubectl;
    let tools = tempfile::tempdir()?;
    symlink(&kubectl, tools.path().join("kubectl"))?;
    symlink(krew.join("kubectl-krew"), tools.path().join("kubectl-krew"))?;

    // The port is known only when the server runs.
    let shared = std::sync::Arc::new(std::sync::OnceLock::<std::path::PathBuf>::new());
    let folder = std::sync::Arc::clone(&shared);
    let server = Server::start(None, move |seen| {
        let file = folder
            .get()
            .map(|folder| folder.join(seen.uri.trim_start_matches('/')));
        match file.and_then(|file| fs::read(file).ok()) {
            Some(bytes) => Answer::ok(bytes),
            None => Answer::status(404),
        }
    })?;
    let release = packed(&server.url(""))?;
    let release = release.path().join("release");
    let _ = shared.set(release.clone());
    let manifest = release.join("addons.yaml");
    let manifest = manifest.to_str().context("a path")?;
    let root = tools.path().join("krew");

    let check = krew.join("validate-krew-manifest");
    let output = run(&check, tools.path(), &root, &["-manifest", manifest])?;
    let text = said(&output);
    let expected = format!("all {} spec.platforms installed fine", platforms()?.len());
    ensure!(
        output.status.success() && text.contains(&expected),
        "{text}"
    );
    tally.ran();

    let kubectl = tools.path().join("kubectl");
    let install = ["krew", "install", "--manifest", manifest];
    let output = run(&kubectl, tools.path(), &root, &install)?;
    ensure!(output.status.success(), "{}", said(&output));
    let output = run(&kubectl, tools.path(), &root, &["addons", "version"])?;
    ensure!(said(&output) == "stand-in version\n", "{}", said(&output));
    tally.ran();

    // Another byte in an archive is another file.
    let archive = release.join("kubectl-addons-1.2.3-linux-amd64.tar.gz");
    let mut bytes = fs::read(&archive)?;
    bytes.push(0);
    fs::write(&archive, bytes)?;
    let output = run(&check, tools.path(), &root, &["-manifest", manifest])?;
    ensure!(!output.status.success(), "{}", said(&output));
    tally.ran();
    Ok(())
}
