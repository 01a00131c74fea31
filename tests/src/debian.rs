//! Programs out of Debian's packages, unpacked into the cache: nothing is installed, and no rights are needed.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

/// The folder with these packages, which is made where it does not have the file `program` yet.
///
/// # Errors
/// There is no home for a cache, or the packages cannot be had.
pub fn unpacked(folder: &str, packages: &[String], program: &str) -> Result<PathBuf> {
    let cache = cache()?;
    let done = cache.join(folder);
    if done.join(program).is_file() {
        return Ok(done);
    }
    fs::create_dir_all(&cache)?;
    let beside = tempfile::Builder::new()
        .prefix(&format!("{folder}-"))
        .tempdir_in(&cache)?;
    run(Command::new("apt-get")
        .arg("download")
        .args(packages)
        .current_dir(beside.path()))?;
    let unpacked = beside.path().join("unpacked");
    for entry in fs::read_dir(beside.path())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            run(Command::new("dpkg-deb").arg("-x").arg(&path).arg(&unpacked))?;
        }
    }
    // Another run may have been faster: then its result is taken.
    let _ = fs::rename(&unpacked, &done);
    Ok(done)
}

/// A package and what it needs that is not installed.
///
/// # Errors
/// There is no apt-get, or it knows no such package.
pub fn with_missing(package: &str) -> Result<Vec<String>> {
    let line = [
        "install",
        "--print-uris",
        "--yes",
        "--no-install-recommends",
        package,
    ];
    let listed = run(Command::new("apt-get").args(line))?;
    // 'http://…/libopus0_1.3_amd64.deb' libopus0_1.3_amd64.deb 195564 MD5Sum:…
    let files = listed.lines().filter(|line| line.starts_with('\''));
    let names = files.filter_map(|line| line.split_whitespace().nth(1)?.split('_').next());
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    Ok(names.into_iter().collect())
}

fn cache() -> Result<PathBuf> {
    let cache = match (std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => PathBuf::from(home).join(".cache"),
        (None, None) => bail!("neither XDG_CACHE_HOME nor HOME is set"),
    };
    Ok(cache.join("kubectl-addons-tests"))
}

/// What a program says on stdout.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{command:?}"))?;
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "{command:?}: {words}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
