//! The add-ons of KKP, and what they have to render to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use addons_tests::shared;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::measure::{self, Taken};

/// Provider and variant.
pub(crate) const VARIANT: &str = "aws/canal-1.35";
const DATA: &str = "golden/kkp/aws/data.json";

/// Everything that is rendered for one provider.
pub(crate) struct Addons {
    pub(crate) folders: Vec<PathBuf>,
    data: PathBuf,
    /// Name → sha256 of the golden text.
    expected: BTreeMap<String, String>,
}

impl Addons {
    /// Those of the corpus beside the checkout.
    pub(crate) fn find() -> Result<Self> {
        let found = |path| {
            shared::path(path)
                .with_context(|| format!("../shared/{path} is not beside the checkout"))
        };
        let (addons, data) = (found("corpus/kkp/main/addons")?, found(DATA)?);
        let index = fs::read(found("golden/kkp/index.json")?)?;
        let index: Value = serde_json::from_slice(&index)?;
        let outputs = index["outputs"].as_object().context("outputs")?;
        let own = outputs.iter().filter_map(|(key, output)| {
            let name = key.strip_prefix(VARIANT)?.strip_prefix('/')?;
            Some((name.to_owned(), output["sha256"].as_str()?.to_owned()))
        });
        let expected: BTreeMap<String, String> = own.collect();
        ensure!(!expected.is_empty(), "golden/kkp has no {VARIANT}");
        let folders = expected.keys().map(|name| addons.join(name)).collect();
        Ok(Self {
            folders,
            data,
            expected,
        })
    }

    /// `TIMES DATA FOLDER…`
    pub(crate) fn arguments(&self, times: usize) -> Vec<String> {
        let paths = std::iter::once(&self.data).chain(&self.folders);
        let paths = paths.map(|path| path.display().to_string());
        std::iter::once(times.to_string()).chain(paths).collect()
    }

    /// That a program printed `SHA256  NAME` of every add-on, and all of them right.
    pub(crate) fn verify(&self, stdout: &[u8]) -> Result<()> {
        let stdout = String::from_utf8_lossy(stdout);
        let sums = stdout.lines().filter_map(|line| line.split_once("  "));
        let sums: BTreeMap<&str, &str> = sums.map(|(sum, name)| (name, sum)).collect();
        for (name, expected) in &self.expected {
            match sums.get(name.as_str()) {
                Some(sum) if sum == expected => {}
                found => bail!("{name}: sha256 {found:?} instead of {expected}"),
            }
        }
        Ok(())
    }

    /// All of them by the command, one process each: times add up, of memory the largest counts.
    pub(crate) fn by_command(&self, plugin: &Path) -> Result<Taken> {
        let mut all = Taken::default();
        for folder in &self.folders {
            let [folder_name, data] = [folder, &self.data].map(|path| path.display().to_string());
            let arguments = [
                "render",
                "--dir",
                &folder_name,
                "--method",
                "go-template",
                "--data",
                &data,
                "-o",
                "raw",
            ];
            let taken = measure::run(plugin, &arguments.map(str::to_owned))?;
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let expected = self.expected.get(name.as_ref());
            let sum = sha256(&taken.stdout);
            ensure!(
                expected == Some(&sum),
                "{name}: sha256 {sum} instead of {expected:?}"
            );
            all.wall += taken.wall;
            all.cpu += taken.cpu;
            all.peak_bytes = all.peak_bytes.max(taken.peak_bytes);
        }
        Ok(all)
    }
}

/// Lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}
