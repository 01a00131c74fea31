//! A chain of versions and what each step is expected to do, as it stands in `tests/data/upgrades`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// Keys of objects as users read them: `namespace/Kind name`, `Kind name`.
pub type Keys = BTreeSet<String>;

/// One add-on through its versions.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Chain {
    /// Files and folders of the corpus by version; of a folder every manifest below it.
    pub versions: BTreeMap<String, Vec<String>>,
    /// What cannot run here, and why.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// What is written otherwise than in the corpus, and why.
    #[serde(default)]
    pub replaced: Vec<Replaced>,
    /// Services of type LoadBalancer, which get an address as a cloud would give them one.
    #[serde(default)]
    pub balanced: Vec<Balanced>,
    /// A label, `key=value`, that the nodes need.
    #[serde(default)]
    pub node_label: Option<String>,
    /// In order.
    pub steps: Vec<Step>,
}

/// Something of the corpus that is not part of the add-on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The key of an object, or the path of a file in its folder.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A text of one version that is replaced by another one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replaced {
    /// The version.
    pub version: String,
    /// What stands in the corpus.
    pub from: String,
    /// What is installed.
    pub to: String,
    /// Why.
    pub why: String,
}

/// A Service of type LoadBalancer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balanced {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// One command and what becomes of the objects.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// What it shows.
    pub what: String,
    /// Objects that somebody else makes before it.
    #[serde(default)]
    pub live: String,
    /// The version that it leads to; none: the add-on is uninstalled.
    pub to: Option<String>,
    /// Flags beside those of every step.
    #[serde(default)]
    pub flags: Vec<String>,
    /// The exit code.
    #[serde(default)]
    pub exit: i32,
    /// What the user reads.
    #[serde(default)]
    pub says: Vec<String>,
    /// Objects that were not there before.
    #[serde(default)]
    pub created: Keys,
    /// Objects that are applied again.
    #[serde(default)]
    pub changed: Keys,
    /// Objects that are deleted and created again.
    #[serde(default)]
    pub recreated: Keys,
    /// Objects that are deleted. Of an uninstallation this is everything that is not retained.
    #[serde(default)]
    pub pruned: Keys,
    /// Objects that are not wanted any more and stay.
    #[serde(default)]
    pub retained: Keys,
    /// Objects that the cluster itself deletes once they did their work.
    #[serde(default)]
    pub vanishing: Keys,
}

impl Chain {
    /// Reads `tests/data/upgrades/NAME.yaml`.
    pub fn read(name: &str) -> Result<Self> {
        let path = format!("{}/data/upgrades/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
        serde_saphyr::from_str(&text).with_context(|| path)
    }
}
