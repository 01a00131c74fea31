//! What kops' many-addons index installs, as one add-on, in three variants.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use common::api::names;
use serde_json::Value;

/// How many objects the last variant drops.
const DROPPED: usize = 65;

/// The objects as they are written, comments and all, for parsing is part of what is measured.
pub(crate) struct Set {
    documents: Vec<Document>,
}

struct Document {
    text: String,
    kind: String,
    group: String,
}

impl Set {
    /// Reads the index and its manifests.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let index = fs::read_to_string(folder.join("bootstrap-channel.yaml"))?;
        let index: Value = serde_saphyr::from_str(&index)?;
        let addons = index.pointer("/spec/addons").and_then(Value::as_array);
        let mut documents = Vec::new();
        let mut defined = Vec::new();
        for addon in addons.context("an index without add-ons")? {
            let manifest = addon.get("manifest").and_then(Value::as_str);
            let path = folder.join(manifest.context("an entry without a manifest")?);
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            for text in format!("\n{text}").split("\n---\n") {
                let object: Value = serde_saphyr::from_str(text)?;
                let word = |pointer: &str| {
                    let word = object.pointer(pointer).and_then(Value::as_str);
                    word.unwrap_or_default().to_owned()
                };
                let kind = word("/kind");
                if kind.is_empty() {
                    continue;
                }
                if kind == "CustomResourceDefinition" {
                    defined.push((word("/spec/group"), word("/spec/names/kind")));
                }
                let version = word("/apiVersion");
                let group = version.split_once('/').map_or("", |(group, _)| group);
                documents.push(Document {
                    text: text.trim().to_owned(),
                    kind,
                    group: group.to_owned(),
                });
            }
        }
        documents.retain(|document| {
            let called = [
                "MutatingWebhookConfiguration",
                "ValidatingWebhookConfiguration",
                "APIService",
            ];
            !called.contains(&document.kind.as_str())
                && !defined.contains(&(document.group.clone(), document.kind.clone()))
        });
        ensure!(
            documents.len() == 162,
            "{} objects instead of 162",
            documents.len()
        );
        Ok(Self { documents })
    }

    pub(crate) fn objects(&self) -> usize {
        self.documents.len()
    }

    /// Everything.
    pub(crate) fn all(&self) -> String {
        join(self.documents.iter().map(|document| document.text.clone()))
    }

    /// Another image in one Deployment.
    pub(crate) fn one_changed(&self) -> String {
        let mut left = 1;
        join(self.documents.iter().map(|document| {
            if document.kind != "Deployment" || left == 0 {
                return document.text.clone();
            }
            left -= 1;
            document
                .text
                .replacen("image: ", "image: bench.example/", 1)
        }))
    }

    /// As [`Set::one_changed`], without the last objects of kinds that are pruned without a flag.
    pub(crate) fn pruned(&self) -> String {
        let changed = self.one_changed();
        let mut kept: Vec<_> = changed.split("\n---\n").collect();
        let mut left = DROPPED;
        let mut number = self.documents.len();
        while left > 0 && number > 0 {
            number -= 1;
            let kind = self
                .documents
                .get(number)
                .map(|document| document.kind.as_str());
            if kind != Some("CustomResourceDefinition") {
                kept.remove(number);
                left -= 1;
            }
        }
        join(kept.into_iter().map(str::to_owned))
    }
}

/// Writes `index.yaml` and the manifest that it names.
pub(crate) fn write_index(folder: &Path, version: &str, manifest: &str) -> Result<()> {
    let hash = names::hex_prefix(manifest.trim().as_bytes(), 64);
    fs::write(folder.join("bench.yaml"), manifest)?;
    let index = format!(
        "kind: Addons\nmetadata:\n  name: bench\nspec:\n  addons:\n  - name: bench\n    version: {version}\n    \
         manifest: bench.yaml\n    manifestHash: {hash}\n"
    );
    fs::write(folder.join("index.yaml"), index)?;
    Ok(())
}

fn join(documents: impl Iterator<Item = String>) -> String {
    documents.collect::<Vec<_>>().join("\n---\n")
}
