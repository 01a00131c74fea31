//! The starter catalogue against the bytes that it pins, where they lie beside the checkout.

use std::fs;
use std::path::Path;

use addons_advice::preflight::lifecycle::{ApiFate, KubernetesRelease, Lifecycle};
use addons_tests::starter::{HOST, Project, Version, files, recipe};
use addons_tests::tally::Tally;
use addons_tests::{binaries, shared};
use anyhow::{Context as _, Result, ensure};
use common::manifest::key::Gvk;
use common::manifest::yaml::{YamlOptions, documents};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const CATALOGUE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../deploy/catalogue/catalogue.yaml"
);

/// The file beside the checkout that was copied from this path of this commit.
fn copied(sources: &Value, project: &Project, version: &Version) -> Option<String> {
    let files = &sources[format!("{}@{}", project.repository, version.commit)];
    let mut files = files.as_object()?.iter();
    let found = files.find(|(_, path)| path.as_str() == Some(&version.path));
    found.map(|(file, _)| file.clone())
}

#[test]
fn every_pin_is_that_of_real_bytes() -> Result<()> {
    let mut tally = Tally::new("starter::every_pin_is_that_of_real_bytes");
    let Some(sources) = shared::path("corpus/sources.json") else {
        tally.left_out("corpus is not beside the checkout");
        return Ok(());
    };
    let sources: Value = serde_json::from_slice(&fs::read(sources)?)?;
    for project in recipe()?.projects {
        let licence = shared::path(&format!("corpus/upstream/{}/LICENSE", project.name))
            .or_else(|| shared::path(&format!("corpus/upstream/{}/LICENSE.md", project.name)));
        let licence = fs::read_to_string(licence.with_context(|| project.name.clone())?)?;
        ensure!(
            project.licence == "Apache-2.0" && licence.contains("Apache License"),
            "{}",
            project.name
        );
        for version in &project.versions {
            let what = format!("{} {}", project.name, version.version);
            let file = copied(&sources, &project, version);
            let file = file.with_context(|| format!("{what}: its bytes are not in the corpus"))?;
            let path = shared::path(&format!("corpus/{file}")).with_context(|| file.clone())?;
            let bytes = fs::read(&path)?;
            let sum: String = Sha256::digest(&bytes)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            ensure!(sum == version.sha256, "{what}: {sum}");
            let needed = needed(&bytes).with_context(|| what.clone())?;
            ensure!(needed == version.k8s_version, "{what}: {needed}");
            tally.ran();
        }
    }
    Ok(())
}

/// The range of releases that serve every API of a manifest.
fn needed(manifest: &[u8]) -> Result<String> {
    let table = Lifecycle::default();
    let mut oldest = KubernetesRelease { major: 1, minor: 0 };
    for document in documents(manifest, &YamlOptions::default()) {
        let object = document?.value;
        let (Some(version), Some(kind)) = (object["apiVersion"].as_str(), object["kind"].as_str())
        else {
            continue;
        };
        let api = Gvk::new(version, kind);
        if let Some(ApiFate::NotYet { introduced }) = table.fate(&api, oldest) {
            oldest = introduced;
        }
        let newest = table.fate(&api, table.newest());
        ensure!(
            !matches!(newest, Some(ApiFate::Removed { .. })),
            "{version} {kind} was removed"
        );
    }
    Ok(format!(">={oldest}.0"))
}

#[test]
fn it_is_a_catalogue_of_whole_commits() -> Result<()> {
    let text = fs::read_to_string(CATALOGUE)?;
    let generated = files()?;
    let (_, expected) = generated.first().context("no catalogue")?;
    ensure!(&text == expected, "generate catalogue writes another one");
    for project in recipe()?.projects {
        for version in project.versions {
            let is_hex = |text: &str, length| {
                text.len() == length && text.chars().all(|c| c.is_ascii_hexdigit())
            };
            ensure!(
                is_hex(&version.commit, 40) && is_hex(&version.sha256, 64),
                "{version:?}"
            );
            let url = format!("{HOST}/{}/{}", project.repository, version.commit);
            ensure!(text.contains(&url), "{url}");
        }
    }
    let output = std::process::Command::new(binaries::plugin()?)
        .args(["catalogue", "validate", CATALOGUE])
        .current_dir(Path::new(CATALOGUE).parent().context("a folder")?)
        .output()?;
    ensure!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
