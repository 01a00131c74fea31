//! The lists of what the programs are made of, against Cargo.lock.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use addons_tests::release::{checksums, platforms, sbom};
use anyhow::{Context as _, Result, ensure};

use super::ROOT;

/// Linked into both programs.
const IN: [&str; 4] = ["aws-lc-sys", "kube-client", "serde_json", "tokio"];
/// What only tests or builds need.
const OUT: [&str; 4] = ["addons-tests", "cc", "proptest", "s3s"];

#[test]
fn the_packages_are_those_of_the_lock_file() -> Result<()> {
    let lock = fs::read_to_string(Path::new(ROOT).join("Cargo.lock"))?;
    let locked = checksums(&lock);
    ensure!(
        locked.len() > 300,
        "only {} packages in Cargo.lock",
        locked.len()
    );
    for platform in platforms()? {
        for (member, _) in platform.programs() {
            let list = sbom(member, platform.target)?;
            ensure!(list["metadata"]["component"]["name"] == member, "{member}");
            let components = list["components"].as_array().context("no components")?;
            let mut names = BTreeSet::new();
            for component in components {
                let name = component["name"].as_str().context("no name")?;
                let version = component["version"].as_str().context("no version")?;
                let key = (name.to_owned(), version.to_owned());
                let checksum = locked.get(&key).with_context(|| format!("{key:?}"))?;
                let listed = component["hashes"][0]["content"].as_str();
                ensure!(
                    listed == checksum.as_deref(),
                    "{name} {version}: {listed:?}"
                );
                ensure!(component["licenses"].is_array(), "{name}: no licence");
                names.insert(name);
            }
            for name in IN {
                ensure!(names.contains(name), "{member}: {name} is not listed");
            }
            for name in OUT {
                ensure!(!names.contains(name), "{member}: {name} is listed");
            }
            ensure!(
                names.contains("windows-sys") == (platform.os == "windows"),
                "{member}: the list of {} is that of another system",
                platform.target
            );
            ensure!(
                names.contains("clap_complete") == (member == "kubectl-addons"),
                "{member}: the list is that of another program"
            );
        }
    }
    Ok(())
}
