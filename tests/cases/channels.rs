//! `channel apply` beside kops' own tool: by the same records, with the same effects.

mod adopted;
mod authority;
mod contested;
mod eras;
mod md5;
mod merged;
mod nodes;
mod original;
mod parity;
mod records;
mod removed;
mod taken_over;
mod versions;

use addons_tests::stage::{Stage, sha256};
use anyhow::{Context as _, Result};
use serde_json::Value;

/// An entry of an index; its namespace is that of the stage.
struct Entry<'a> {
    name: &'a str,
    /// Further fields, each on a line of its own: `id: a`.
    fields: &'a [&'a str],
    manifest: &'a str,
}

impl Entry<'_> {
    fn hash(&self) -> String {
        sha256(self.manifest.trim())
    }
}

/// Writes an index with the manifests of its entries, and returns its location.
fn index(stage: &Stage, file: &str, entries: &[Entry<'_>]) -> Result<String> {
    let mut text = String::from("kind: Addons\nmetadata:\n  name: test\nspec:\n  addons:\n");
    for (i, entry) in entries.iter().enumerate() {
        let manifest = format!("{i}-{}.yaml", entry.hash());
        stage.write(&manifest, entry.manifest)?;
        text.push_str(&format!(
            "  - name: {}\n    namespace: {}\n    manifest: {manifest}\n    manifestHash: {}\n",
            entry.name,
            stage.namespace,
            entry.hash(),
        ));
        for field in entry.fields {
            text.push_str(&format!("    {field}\n"));
        }
    }
    let path = stage.write(file, &text)?;
    Ok(format!("file://{}", path.display()))
}

/// Text of kops' record of an add-on, in the namespace of the stage.
async fn record(stage: &Stage, addon: &str) -> Result<Option<String>> {
    let namespace = stage.must("namespace", &stage.namespace).await?;
    let annotations = &namespace["metadata"]["annotations"];
    let text = annotations.get(format!("addons.k8s.io/{addon}"));
    text.map(|text| Ok(text.as_str().context("no text")?.to_owned()))
        .transpose()
}

/// Applies a manifest as kops does.
async fn applied_by_kops(stage: &Stage, manifest: &str) -> Result<()> {
    let args = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=kops",
        "-n",
        &stage.namespace,
        "-f",
        "-",
    ];
    stage
        .plugin
        .kubectl_with_input(&args, manifest)
        .await?
        .done()
        .map(drop)
}

/// Writes kops' record of an add-on, as kops does.
async fn recorded_by_kops(stage: &Stage, addon: &str, text: &str) -> Result<()> {
    let annotation = format!("addons.k8s.io/{addon}={text}");
    let args = [
        "annotate",
        "namespace",
        &stage.namespace,
        "--overwrite",
        &annotation,
    ];
    stage.plugin.kubectl(&args).await?.done().map(drop)
}

/// The rows that `channel apply` prints with `-o json`.
async fn rows(stage: &Stage, index: &str) -> Result<Vec<Value>> {
    let output = stage
        .run(&format!("channel apply {index} -o json"))
        .await?
        .done()?;
    let items: Value = serde_json::from_str(&output.stdout)?;
    Ok(items["items"].as_array().context("items")?.clone())
}
