//! The manifests of a version, read where they lie. Documents are split and named line by line, without the parser under
//! test: all of them are in block style.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use addons_tests::shared;
use anyhow::{Context as _, Result, ensure};

use super::chain::Chain;

/// What identifies one document.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// `apps/v1`
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, where it names one.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// One version of an add-on.
pub struct Manifest {
    /// The whole manifest.
    pub text: String,
    /// Its documents.
    pub documents: Vec<Document>,
    /// What was left out of it.
    pub left_out: BTreeSet<String>,
}

/// Whether the whole chain is there.
pub fn is_there(chain: &Chain) -> bool {
    let mut paths = chain.versions.values().flatten();
    paths.all(|path| shared::path(&format!("corpus/{path}")).is_some())
}

/// The manifest of a version, without what the chain leaves out.
pub fn manifest(chain: &Chain, version: &str) -> Result<Manifest> {
    let paths = chain.versions.get(version).context("no such version")?;
    let mut manifest = Manifest {
        text: String::new(),
        documents: Vec::new(),
        left_out: BTreeSet::new(),
    };
    for path in paths {
        let root = shared::path(&format!("corpus/{path}")).context("not in the corpus")?;
        for file in files(&root)? {
            let relative = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy();
            if leaves_out(chain, &relative) {
                manifest.left_out.insert(relative.into_owned());
                continue;
            }
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            manifest.add(chain, &text);
        }
    }
    for replaced in &chain.replaced {
        if replaced.version == version {
            ensure!(
                manifest.text.contains(&replaced.from),
                "nothing to replace: {replaced:?}"
            );
            manifest.text = manifest.text.replace(&replaced.from, &replaced.to);
        }
    }
    Ok(manifest)
}

impl Manifest {
    fn add(&mut self, chain: &Chain, text: &str) {
        let mut document = String::new();
        for line in text.lines().chain(["---"]) {
            if line.trim_end() != "---" {
                document.push_str(line);
                document.push('\n');
                continue;
            }
            let named = Document::of(&document);
            if leaves_out(chain, &named.key()) {
                self.left_out.insert(named.key());
            } else if !named.kind.is_empty() {
                self.text.push_str(&document);
                self.text.push_str("---\n");
                self.documents.push(named);
            }
            document.clear();
        }
    }
}

impl Document {
    fn of(text: &str) -> Self {
        let mut document = Self::default();
        let mut section = "";
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim().trim_matches(['"', '\'']).to_owned();
            match (section, key) {
                (_, "apiVersion") => document.api_version = value,
                (_, "kind") => document.kind = value,
                ("metadata", "  name") => document.name = value,
                ("metadata", "  namespace") => document.namespace = Some(value),
                _ => {}
            }
            if !line.starts_with([' ', '#', '-']) {
                section = key;
            }
        }
        document
    }

    fn key(&self) -> String {
        let Self {
            kind,
            name,
            namespace,
            ..
        } = self;
        match namespace {
            Some(namespace) => format!("{namespace}/{kind} {name}"),
            None => format!("{kind} {name}"),
        }
    }
}

fn leaves_out(chain: &Chain, what: &str) -> bool {
    chain.left_out.iter().any(|left| left.what == what)
}

/// The file itself, or the manifests below a folder in the order of their paths.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    if root.is_file() {
        return Ok(vec![root.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        let extension = path.extension().unwrap_or_default();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if extension == "yaml" || extension == "yml" {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
