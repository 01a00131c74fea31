//! What a release is made of, packed from stand-ins for its programs: the scripts of `deploy/release`, and the manifest for krew by
//! krew's own programs.

mod krew;
mod pages;
mod sbom;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use addons_tests::release::{self, platforms};
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
    for platform in platforms()? {
        let programs = folder.path().join(platform.target);
        fs::create_dir_all(&programs)?;
        for (_, program) in platform.programs() {
            let path = programs.join(platform.file(program));
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
    for ending in ["tar.gz", "zip"] {
        fs::write(two.join("notes"), "notes")?;
        let first = archive(&one, &format!("one.{ending}"), "1700000000")?;
        let same = archive(&two, &format!("two.{ending}"), "1700000000")?;
        ensure!(first == same, "{ending}");
        // A zip counts time in steps of two seconds.
        let later = archive(&one, &format!("three.{ending}"), "1700000002")?;
        ensure!(first != later, "{ending}: another time");
        fs::write(two.join("notes"), "others")?;
        let other = archive(&two, &format!("four.{ending}"), "1700000000")?;
        ensure!(first != other, "{ending}: another file");
    }
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
    ensure!(names.len() == sums.len(), "{names:?}");
    let archives: BTreeSet<String> = archives()?.into_iter().collect();
    let packed: BTreeSet<String> = names.into_iter().collect();
    let others = ["addons.yaml", "kubectl-addons-linux-amd64.cdx.json"];
    let others = others.map(str::to_owned);
    ensure!(
        packed == archives.into_iter().chain(others).collect(),
        "{packed:?}"
    );
    let manifest = fs::read_to_string(release.join("addons.yaml"))?;
    ensure!(
        !manifest.contains('@'),
        "a placeholder is left:\n{manifest}"
    );
    ensure!(
        manifest.contains("homepage: \"https://example.org/o/r\""),
        "{manifest}"
    );
    for platform in platforms()? {
        let file = platform.archive("kubectl-addons", "1.2.3");
        let sum = sums.get(file.as_str()).with_context(|| file.clone())?;
        let (os, arch) = (platform.os, platform.arch);
        let program = platform.file("kubectl-addons");
        let expected = format!(
            "matchLabels: {{os: {os}, arch: {arch}}}\n    \
             uri: \"https://example.org/o/r/releases/download/v1.2.3/{file}\"\n    \
             sha256: \"{sum}\"\n    bin: {program}\n"
        );
        ensure!(manifest.contains(&expected), "{expected}\n{manifest}");
    }
    Ok(())
}

/// The archives of version 1.2.3.
fn archives() -> Result<Vec<String>> {
    let mut archives = Vec::new();
    for platform in platforms()? {
        let programs = platform.programs().into_iter();
        archives.extend(programs.map(|(_, program)| platform.archive(program, "1.2.3")));
    }
    Ok(archives)
}

/// A machine that cannot build for a platform packs the others, and the manifest for krew names only these.
#[test]
fn a_release_of_some_platforms_names_no_other() -> Result<()> {
    let folder = packed("https://example.org")?;
    fs::remove_dir_all(folder.path().join("release"))?;
    fs::remove_dir_all(folder.path().join("aarch64-apple-darwin"))?;
    let args = ["1.2.3", "https://example.org", "x86_64-pc-windows-gnu"].map(Path::new);
    let args = [&[folder.path()], args.as_slice()].concat();
    script("package", &args, &[("SOURCE_DATE_EPOCH", "1700000000")])?;
    let manifest = fs::read_to_string(folder.path().join("release/addons.yaml"))?;
    ensure!(
        manifest.matches("selector:").count() == 1 && manifest.contains("os: windows"),
        "{manifest}"
    );
    let whole = script("package", &args[..3], &[]);
    ensure!(whole.is_err(), "a platform is missing, and nothing is said");
    Ok(())
}

/// A build that lacks something says what, before it compiles anything.
#[test]
fn a_build_without_its_tools_says_what_is_missing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let output = Command::new(Path::new(ROOT).join("deploy/release/compile"))
        .arg(folder.path())
        .arg("x86_64-unknown-linux-musl")
        .env("PATH", "/usr/bin:/bin")
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && said.contains("fix: cargo install --locked cargo-zigbuild"),
        "{said}"
    );
    Ok(())
}
