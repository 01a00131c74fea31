//! What a release is made of, packed from stand-ins for its programs: the scripts of `deploy/release`, the manifest for krew by krew's own
//! programs, and the steps of the workflow that runs them.

mod krew;
mod pages;
mod sbom;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use addons_tests::release::{self, PROGRAMS, TARGETS};
use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// In place of the plugin.
const STAND_IN: &str = "#!/bin/sh\necho \"stand-in $*\"\n";

/// Runs a script of `deploy/release`, and fails where it does.
fn script(name: &str, args: &[&Path], variables: &[(&str, &str)]) -> Result<()> {
    let output = Command::new(Path::new(ROOT).join("deploy/release").join(name))
        .args(args)
        .envs(variables.iter().copied())
        .output()
        .with_context(|| format!("cannot start {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {said}");
    Ok(())
}

/// A release of version 1.2.3 whose files will lie at a URL.
fn packed(url: &str) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for (_, target) in TARGETS {
        for (_, program) in PROGRAMS {
            let path = folder.path().join(target).join(program);
            fs::create_dir_all(folder.path().join(target))?;
            fs::write(&path, STAND_IN)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    let files = folder.path().join("files");
    release::texts(&files)?;
    fs::write(files.join("kubectl-addons-linux-amd64.cdx.json"), "{}\n")?;
    let args = [folder.path(), Path::new("1.2.3"), Path::new(url)];
    script("package", &args, &[("SOURCE_DATE_EPOCH", "1700000000")])?;
    Ok(folder)
}

fn digest(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Writes two files, as another user on another day would: other modes for the group, other times, another order.
fn two_files(folder: &Path, mode: u32, first: &str, second: &str) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    for name in [first, second] {
        let path = folder.join(name);
        fs::write(&path, name)?;
        let executable = if name == "run" { 0o100 } else { 0 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode | executable))?;
    }
    Ok(folder.to_owned())
}

#[test]
fn the_same_files_give_the_same_archive() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let one = two_files(&folder.path().join("one"), 0o644, "notes", "run")?;
    let two = two_files(&folder.path().join("two"), 0o600, "run", "notes")?;
    let touched = Command::new("touch")
        .args(["--date=2001-02-03"])
        .arg(two.join("run"))
        .status()?;
    ensure!(touched.success(), "touch: {touched}");
    let archive = |of: &Path, name: &str, time: &str| {
        let file = folder.path().join(name);
        script("archive", &[of, &file], &[("SOURCE_DATE_EPOCH", time)])?;
        digest(&file)
    };
    let first = archive(&one, "one.tar.gz", "1700000000")?;
    ensure!(first == archive(&two, "two.tar.gz", "1700000000")?);
    ensure!(first != archive(&one, "three.tar.gz", "1700000001")?);
    fs::write(two.join("notes"), "others")?;
    ensure!(first != archive(&two, "four.tar.gz", "1700000000")?);
    Ok(())
}

#[test]
fn the_sums_and_the_manifest_name_what_was_packed() -> Result<()> {
    let folder = packed("https://example.org/o/r/releases/download/v1.2.3")?;
    let release = folder.path().join("release");
    let sums = fs::read_to_string(release.join("SHA256SUMS"))?;
    let sums: BTreeMap<&str, &str> = sums
        .lines()
        .filter_map(|line| line.split_once("  ").map(|(sum, name)| (name, sum)))
        .collect();
    let mut names = Vec::new();
    for entry in fs::read_dir(&release)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .context("a name")?
            .to_owned();
        if name != "SHA256SUMS" {
            let sum = digest(&path)?;
            ensure!(
                sums.get(name.as_str()) == Some(&sum.as_str()),
                "{name}: {sum}, {sums:#?}"
            );
            names.push(name);
        }
    }
    ensure!(names.len() == sums.len() && names.len() == 6, "{names:?}");
    let manifest = fs::read_to_string(release.join("addons.yaml"))?;
    ensure!(
        !manifest.contains('@'),
        "a placeholder is left:\n{manifest}"
    );
    ensure!(
        manifest.contains("homepage: \"https://example.org/o/r\""),
        "{manifest}"
    );
    for (arch, _) in TARGETS {
        let file = format!("kubectl-addons-1.2.3-linux-{arch}.tar.gz");
        let sum = sums.get(file.as_str()).with_context(|| file.clone())?;
        let expected = format!(
            "uri: \"https://example.org/o/r/releases/download/v1.2.3/{file}\"\n    sha256: \"{sum}\""
        );
        ensure!(manifest.contains(&expected), "{expected}\n{manifest}");
    }
    Ok(())
}

/// A build that lacks something says what, before it compiles anything.
#[test]
fn a_build_without_its_tools_says_what_is_missing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let output = Command::new(Path::new(ROOT).join("deploy/release/compile"))
        .arg(folder.path())
        .env("PATH", "/usr/bin:/bin")
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && said.contains("fix: cargo install --locked cargo-zigbuild"),
        "{said}"
    );
    Ok(())
}

/// The workflow runs what is in the repository, and nothing that these tests do not know.
#[test]
fn the_workflow_runs_scripts_that_are_there() -> Result<()> {
    let path = Path::new(ROOT).join(".github/workflows/release.yaml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut found = 0;
    for word in text
        .split_whitespace()
        .filter(|word| word.starts_with("deploy/"))
    {
        let file = Path::new(ROOT).join(word);
        let metadata = fs::metadata(&file).with_context(|| word.to_owned())?;
        if word.starts_with("deploy/release/") {
            ensure!(
                metadata.permissions().mode() & 0o111 != 0,
                "{word} cannot be executed"
            );
            found += 1;
        }
    }
    ensure!(found >= 2, "{found} scripts");
    Ok(())
}
