//! What a release holds beside its programs: manual pages, completions, and lists of what the programs are made of.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use kubectl_addons::cli::reading::Shell;
use kubectl_addons::commands::completion;
use serde_json::{Value, json};

use crate::reference::manual;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// One line for each platform of a release, which the scripts read too.
const PLATFORMS: &str = include_str!("../../deploy/release/platforms");
/// The programs of a release: the member, and the program.
const PLUGIN: (&str, &str) = ("kubectl-addons", "kubectl-addons");
const WEBHOOK: (&str, &str) = ("webhook", "addons-webhook");

/// A system and an architecture that a release has programs for.
#[derive(Clone, Copy, Debug)]
pub struct Platform {
    /// The system, as Kubernetes and krew name it: `linux`, `darwin`, `windows`.
    pub os: &'static str,
    /// The architecture, as Kubernetes and krew name it: `amd64`, `arm64`.
    pub arch: &'static str,
    /// The target of Rust.
    pub target: &'static str,
}

impl Platform {
    /// The member and the name of each program: the webhook runs in clusters only, where nodes are Linux.
    #[must_use]
    pub fn programs(&self) -> Vec<(&'static str, &'static str)> {
        match self.os {
            "linux" => vec![PLUGIN, WEBHOOK],
            _ => vec![PLUGIN],
        }
    }

    /// The file of a program, in its folder and in its archive.
    #[must_use]
    pub fn file(&self, program: &str) -> String {
        match self.os {
            "windows" => format!("{program}.exe"),
            _ => program.to_owned(),
        }
    }

    /// The archive of a program.
    #[must_use]
    pub fn archive(&self, program: &str, version: &str) -> String {
        let ending = match self.os {
            "windows" => "zip",
            _ => "tar.gz",
        };
        format!("{program}-{version}-{}-{}.{ending}", self.os, self.arch)
    }
}

/// The platforms of a release.
///
/// # Errors
/// A line of `deploy/release/platforms` that does not have three words.
pub fn platforms() -> Result<Vec<Platform>> {
    let platforms = PLATFORMS.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let [os, arch, target] = words[..] else {
            bail!("deploy/release/platforms: {line}: is not SYSTEM ARCHITECTURE TARGET");
        };
        Ok(Platform { os, arch, target })
    });
    platforms.collect()
}

/// Writes them all below a folder.
///
/// # Errors
/// A folder that cannot be written; cargo that fails.
pub fn write(folder: &Path) -> Result<()> {
    texts(folder)?;
    for platform in platforms()? {
        for (member, program) in platform.programs() {
            let text = format!("{:#}\n", sbom(member, platform.target)?);
            let name = format!("{program}-{}-{}.cdx.json", platform.os, platform.arch);
            put(&folder.join(name), text)?;
        }
    }
    Ok(())
}

/// Writes the manual pages and the completions, which are the same on each platform.
///
/// # Errors
/// A folder that cannot be written.
pub fn texts(folder: &Path) -> Result<()> {
    for (name, text) in manual::pages()? {
        put(&folder.join("man/man1").join(name), text)?;
    }
    for (shell, name) in [
        (Shell::Bash, "kubectl-addons.bash"),
        (Shell::Zsh, "_kubectl-addons"),
        (Shell::Fish, "kubectl-addons.fish"),
        (Shell::Powershell, "kubectl-addons.ps1"),
    ] {
        put(
            &folder.join("completions").join(name),
            completion::completion_script(shell)?,
        )?;
    }
    Ok(())
}

fn put(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// The software bill of materials of a member, in CycloneDX: every package that is compiled into it for a target, with the
/// checksum that Cargo.lock pins. It names no time, so that the same sources give the same bytes.
///
/// # Errors
/// cargo that fails, or a package that is not in Cargo.lock.
pub fn sbom(member: &str, target: &str) -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--package", member, "--edges", "normal"])
        .args(["--target", target, "--prefix", "none", "--no-dedupe"])
        .args(["--format", "{p}\t{l}"])
        .current_dir(ROOT)
        .output()
        .context("cannot start cargo tree")?;
    ensure!(
        output.status.success(),
        "cargo tree of {member}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let path = Path::new(ROOT).join("Cargo.lock");
    let lock = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let checksums = checksums(&lock);
    let mut components = BTreeMap::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let (package, licence) = line.split_once('\t').unwrap_or((line, ""));
        let mut words = package.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else {
            continue;
        };
        let key = (name.to_owned(), version.trim_start_matches('v').to_owned());
        let checksum = checksums.get(&key);
        let checksum =
            checksum.with_context(|| format!("{name} {version} is not in Cargo.lock"))?;
        let value = component(&key.0, &key.1, checksum.as_deref(), licence);
        components.insert(key, value);
    }
    let is_root = |(name, _): &(String, String)| name == member;
    let root = components.keys().find(|key| is_root(key)).cloned();
    let root = root.and_then(|key| components.remove(&key));
    let root = root.with_context(|| format!("cargo tree does not list {member}"))?;
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": root,
            "properties": [{"name": "target", "value": target}],
        },
        "components": components.into_values().collect::<Vec<_>>(),
    }))
}

fn component(name: &str, version: &str, checksum: Option<&str>, licence: &str) -> Value {
    // Packages of this workspace have no checksum, and are in no registry.
    let purl = format!("pkg:cargo/{name}@{version}");
    let kind = if [PLUGIN, WEBHOOK].iter().any(|(member, _)| *member == name) {
        "application"
    } else {
        "library"
    };
    let mut value = json!({"type": kind, "bom-ref": purl, "name": name, "version": version});
    if let Some(checksum) = checksum {
        value["purl"] = json!(purl);
        value["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if !licence.is_empty() {
        // Older packages write `MIT/Apache-2.0`.
        value["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    value
}

/// Name and version of each package of a Cargo.lock, and its checksum, which those of the workspace do not have.
#[must_use]
pub fn checksums(lock: &str) -> BTreeMap<(String, String), Option<String>> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let mut lines = package.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            value.map(|value| value.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version)) = (field("name"), field("version")) {
            found.insert((name, version), field("checksum"));
        }
    }
    found
}
