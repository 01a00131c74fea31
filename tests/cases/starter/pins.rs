//! The starter catalogue against the content that it pins, where the corpus lies beside the checkout.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use addons_advice::preflight::lifecycle::{ApiFate, KubernetesRelease, Lifecycle};
use addons_tests::starter::{Corpus, PATH, UpstreamPath, read};
use addons_tests::tally::Tally;
use addons_tests::{binaries, shared};
use addons_versions::{constraint, tolerant};
use anyhow::{Context as _, Result, ensure};
use common::api::catalogue::AddonVersion;
use common::catalogue::version_label;
use common::manifest::digest::sha256;
use common::manifest::key::Gvk;
use common::manifest::yaml::{YamlOptions, documents};
use serde_json::Value;

/// The files of chart folders that the corpus leaves out, as `sha256sum` prints them: READMEs and tests, which count for the hash.
const LEFT_OUT: &str = include_str!("../../data/starter/left-out.sums");

#[test]
fn every_hash_is_that_of_the_content() -> Result<()> {
    let mut tally = Tally::new("starter::every_hash_is_that_of_the_content");
    let Some(folder) = shared::path("corpus/starter") else {
        tally.left_out("corpus is not beside the checkout");
        return Ok(());
    };
    let corpus = Corpus::read(&folder)?;
    for addon in &read()?.spec.addons {
        for version in &addon.versions {
            let what = format!("{} {}", addon.name, version.version);
            let upstream = UpstreamPath::read(version).with_context(|| what.clone())?;
            let Some(listed) = corpus.find(&upstream) else {
                tally.left_out(format!("{what} is not in the corpus"));
                continue;
            };
            let Some(hash) = &version.manifest_hash else {
                tally.left_out(format!(
                    "{what} has no hash, because its chart names another one"
                ));
                continue;
            };
            let content = corpus.content(listed).with_context(|| what.clone())?;
            let found = match listed["archive_sha256"].as_str() {
                // The corpus has only the unpacked archive.
                Some(archive) => archive.to_owned(),
                None if content.is_file() => sha256(&fs::read(&content)?),
                None => sha256(whole_listing(&folder, &content)?.as_bytes()),
            };
            ensure!(found == *hash, "{what}: {found}");
            if content.is_file() {
                check_range(version, &content).with_context(|| what.clone())?;
            }
            tally.ran();
        }
    }
    Ok(())
}

/// Returns the listing of a folder with the files that the corpus leaves out, in the order in which a walk finds them.
fn whole_listing(corpus: &Path, folder: &Path) -> Result<String> {
    let package = addons_sources::folder::read(folder)?;
    let relative = folder.strip_prefix(corpus)?.to_str().context("a name")?;
    let left_out = LEFT_OUT.lines().filter_map(|line| {
        let (sum, path) = line.split_once("  ")?;
        let path = path.strip_prefix(relative)?.strip_prefix('/')?;
        Some((path.to_owned(), sum.to_owned()))
    });
    let there = package.listing();
    let there = there.lines().filter_map(|line| {
        let (sum, path) = line.split_once("  ")?;
        Some((path.to_owned(), sum.to_owned()))
    });
    let lines: BTreeMap<Vec<String>, (String, String)> = there
        .chain(left_out)
        .map(|(path, sum)| (path.split('/').map(str::to_owned).collect(), (sum, path)))
        .collect();
    Ok(lines
        .values()
        .map(|(sum, path)| format!("{sum}  {path}\n"))
        .collect())
}

/// Checks that the range of a version contains no release that lacks an API of its manifest.
fn check_range(version: &AddonVersion, manifest: &Path) -> Result<()> {
    let table = Lifecycle::default();
    let mut oldest = KubernetesRelease { major: 1, minor: 0 };
    for document in documents(&fs::read(manifest)?, &YamlOptions::default()) {
        let object = document?.value;
        let (Some(version), Some(kind)) = (object["apiVersion"].as_str(), object["kind"].as_str())
        else {
            continue;
        };
        let api = Gvk::new(version, kind);
        if let Some(ApiFate::NotYet { introduced }) = table.fate(&api, oldest) {
            oldest = introduced;
        }
    }
    let range = version.constraints.k8s_version.as_deref();
    let range = constraint::Constraint::parse(range.context("no range")?)?;
    for minor in 0..oldest.minor {
        let release = tolerant::parse_kubernetes(&format!("1.{minor}.0"))?;
        ensure!(
            !range.matches(&release),
            "1.{minor} lacks an API; {oldest} is needed"
        );
    }
    Ok(())
}

/// What the corpus says of the end of a project is in the catalogue.
#[test]
fn what_has_ended_is_deprecated() -> Result<()> {
    let mut tally = Tally::new("starter::what_has_ended_is_deprecated");
    let Some(folder) = shared::path("corpus/starter") else {
        tally.left_out("corpus is not beside the checkout");
        return Ok(());
    };
    let corpus = Corpus::read(&folder)?;
    for addon in &read()?.spec.addons {
        let mut paths = addon.versions.iter().filter_map(UpstreamPath::read);
        let ended = paths.any(|path| {
            let listed = corpus.find(&path);
            listed.is_some_and(|listed| listed["end_of_life"] != Value::Null)
        });
        ensure!(ended == addon.deprecated.is_some(), "{}", addon.name);
        tally.ran();
    }
    Ok(())
}

#[test]
fn it_is_a_valid_catalogue_of_whole_commits() -> Result<()> {
    for addon in read()?.spec.addons {
        for version in &addon.versions {
            let label = version_label(&version.version, &version.id);
            let upstream = UpstreamPath::read(version);
            let commit = upstream.with_context(|| addon.name.clone())?.commit;
            let is_whole = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
            ensure!(is_whole, "{} {label}: {commit}", addon.name);
        }
    }
    let output = std::process::Command::new(binaries::plugin()?)
        .args(["catalogue", "validate", PATH])
        .output()?;
    ensure!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
