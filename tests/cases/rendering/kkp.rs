//! Every add-on of KKP for every variant of `golden/kkp`: 450 texts, byte for byte.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose input is broken has failed"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use addons_gotemplate::{RenderedTemplates, TemplateFile};
use addons_render::kkp::{KkpOptions, RenderError, render};
use addons_render::package::{Package, PackagedFile};
use addons_tests::{shared, tally::Tally};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

#[derive(Deserialize)]
struct Variant {
    provider: String,
    variant: String,
    data: String,
    #[serde(rename = "overwriteRegistry")]
    registry: Option<String>,
}

#[derive(Deserialize)]
struct Index {
    outputs: BTreeMap<String, Output>,
}

#[derive(Deserialize)]
struct Output {
    file: String,
    sha256: String,
}

/// The `*.yaml` files of an add-on, in walk order.
fn add_on(folder: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "yaml")
            {
                let name = path
                    .strip_prefix(folder)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                let bytes = std::fs::read(&path).unwrap();
                files.push(PackagedFile { path: name, bytes });
            }
        }
    }
    let package = Package::from_folder(files).unwrap();
    let files = package.files().iter();
    files
        .map(|file| {
            (
                file.path.clone(),
                String::from_utf8(file.bytes.clone()).unwrap(),
            )
        })
        .collect()
}

fn rendered(
    files: &[(String, String)],
    data: &serde_json::Value,
    registry: Option<&str>,
) -> Result<RenderedTemplates, RenderError> {
    let templates: Vec<TemplateFile<'_>> = files
        .iter()
        .map(|(name, text)| TemplateFile { name, text })
        .collect();
    let options = KkpOptions {
        registry: registry.map(|registry| registry.parse().unwrap()),
        ..KkpOptions::default()
    };
    render(&templates, data, &options)
}

#[test]
fn every_add_on_is_rendered_as_kkp_does() {
    let mut tally = Tally::new("rendering::kkp");
    let (Some(golden), Some(corpus)) = (
        shared::path("golden/kkp"),
        shared::path("corpus/kkp/main/addons"),
    ) else {
        return tally.left_out("450 renders: ../shared is not beside the checkout");
    };
    let read = |file: &str| std::fs::read_to_string(golden.join(file)).unwrap();
    let variants: Vec<Variant> = serde_json::from_str(&read("variants.json")).unwrap();
    let index: Index = serde_json::from_str(&read("index.json")).unwrap();
    let mut add_ons = BTreeMap::new();
    for entry in std::fs::read_dir(&corpus).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() && !name.starts_with('.') {
            add_ons.insert(name, add_on(&entry.path()));
        }
    }
    let mut wrong = Vec::new();
    let mut expected = index.outputs.len();
    let begun = Instant::now();
    for variant in &variants {
        let data = serde_json::from_str(&read(&variant.data)).unwrap();
        for (name, files) in &add_ons {
            let column = format!("{}/{}/{name}", variant.provider, variant.variant);
            let output = &index.outputs[&column];
            expected -= 1;
            tally.ran();
            match rendered(files, &data, variant.registry.as_deref()) {
                Ok(rendered) => {
                    let digest = Sha256::digest(rendered.text.as_bytes());
                    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                    if digest != output.sha256 || rendered.text != read(&output.file) {
                        wrong.push(format!("{column}: another text than {}", output.file));
                    }
                    assert_eq!(rendered.starts.len(), files.len());
                }
                Err(error) => wrong.push(format!("{column}: {error}")),
            }
        }
    }
    tally.note(format!(
        "{:?} for all, with reading and comparing",
        begun.elapsed()
    ));
    assert_eq!(expected, 0, "texts that nobody rendered");
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
