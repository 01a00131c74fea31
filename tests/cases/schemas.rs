//! The JSON schemas for editors: those that the plugin prints, and what they take.

use std::path::Path;
use std::process::Command;

use addons_tests::{binaries, schemas};
use anyhow::{Context as _, Result, ensure};
use common::manifest::yaml::{YamlDocument, YamlOptions, documents};
use common::schema;
use serde_json::Value;

fn read(path: &str) -> Result<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let read: Result<Vec<YamlDocument>, _> = documents(&bytes, &YamlOptions::default()).collect();
    Ok(read?.into_iter().map(|document| document.value).collect())
}

#[test]
fn the_plugin_prints_what_the_types_say() -> Result<()> {
    for (file, text) in schemas::files()? {
        let name = file.trim_end_matches(".json");
        let output = Command::new(binaries::plugin()?)
            .args(["schema", name])
            .output()?;
        ensure!(
            output.status.success() && output.stdout == text.as_bytes(),
            "{name}"
        );
    }
    Ok(())
}

#[test]
fn a_schema_takes_what_is_valid_and_nothing_else() -> Result<()> {
    let files = schemas::files()?;
    let (_, text) = files.first().context("no schema")?;
    let schema: Value = serde_json::from_str(text)?;
    let mut judged = 0;
    for file in [
        "data/cli/catalogue.yaml",
        "data/demo/catalogue.yaml",
        "data/proposal.yaml",
    ] {
        for document in read(file)? {
            if document["kind"] == "AddonCatalogue" {
                let found = schema::find_strict_problems(&schema, &document);
                ensure!(found.is_empty(), "{file}: {found:?}");
                judged += 1;
            }
        }
    }
    ensure!(judged > 2, "only {judged} catalogues were judged");
    let misspelt = read("data/cli/misspelt.yaml")?;
    let found = schema::find_strict_problems(&schema, misspelt.first().context("empty")?);
    ensure!(
        matches!(found.as_slice(), [(path, _)] if path == "spec.addons[0].versions[0].constraint"),
        "{found:?}"
    );
    Ok(())
}
