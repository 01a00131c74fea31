//! A registry with an artifact of one add-on, and a catalogue of it.

use std::path::PathBuf;

use addons_tests::servers::registry::signing::Cosign;
use addons_tests::servers::registry::{Door, Layer, Registry, tar};
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// A user, a registry, and the owner of a key.
pub struct Rig {
    pub stage: Stage,
    pub registry: Registry,
    pub cosign: Cosign,
}

impl Rig {
    pub async fn new(what: &str) -> Result<Self> {
        Ok(Self {
            stage: Stage::new(what).await?,
            registry: Registry::start(Door::Open).await?,
            cosign: Cosign::new()?,
        })
    }

    /// The ConfigMap of the add-on.
    pub fn manifests(&self, value: &str) -> String {
        config_map("web", value)
    }

    /// Pushes a version; its digest.
    pub async fn push(&self, tag: &str, value: &str) -> Result<String> {
        let layer = Layer {
            media_type: TAR,
            bytes: tar(&[("web.yaml", self.manifests(value))])?,
            title: None,
        };
        self.registry.push("web", tag, CONFIG, &[layer]).await
    }

    /// The bytes of a manifest.
    pub async fn manifest(&self, name: &str) -> Result<Vec<u8>> {
        let url = format!("{}/v2/web/manifests/{name}", self.registry.url());
        let accept = "application/vnd.oci.image.index.v1+json";
        let client = reqwest::Client::new();
        let answer = client.get(url).header("Accept", accept).send().await?;
        Ok(answer.error_for_status()?.bytes().await?.to_vec())
    }

    /// Versions of these tags.
    pub fn versions(&self, tags: &[&str]) -> Vec<Value> {
        let versions = tags.iter().map(|tag| {
            let image = format!("{}/web:{tag}", self.registry.host);
            json!({"version": tag, "source": {"docker": {"image": image, "plainHTTP": true}}})
        });
        versions.collect()
    }

    /// Adds the catalogue with these tags, or replaces it; its name.
    pub async fn add(&self, policy: &Value, tags: &[&str]) -> Result<String> {
        self.add_versions(policy, &self.versions(tags)).await
    }

    /// The same with any versions.
    pub async fn add_versions(&self, policy: &Value, versions: &[Value]) -> Result<String> {
        let file = self.file(policy, versions)?;
        let line = format!("catalogue add {}", file.display());
        self.stage.run(&line).await?.done()?;
        Ok("team".to_owned())
    }

    /// Writes the catalogue to a file.
    pub fn file(&self, policy: &Value, versions: &[Value]) -> Result<PathBuf> {
        let mut versions = versions.to_vec();
        for version in &mut versions {
            version["defaultNamespace"] = json!(self.stage.namespace);
        }
        let mut spec = json!({"addons": [{"name": "web", "versions": versions}]});
        if !policy.is_null() {
            spec["signature"] = policy.clone();
        }
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
            "metadata": {"name": "team", "namespace": self.stage.namespace}, "spec": spec,
        });
        self.stage.write("team.json", &catalogue.to_string())
    }

    /// The command that installs a version.
    pub fn install(&self, version: &str) -> String {
        format!("install web@{version} --yes")
    }

    /// Whether a command fails and says all of these words.
    pub async fn refused(&self, line: &str, words: &[&str]) -> Result<()> {
        let said = self.stage.run(line).await?.ended(1)?;
        for words in words {
            let has = said.stderr.contains(words);
            ensure!(has, "{line}: {words}: {}", said.stderr);
        }
        Ok(())
    }

    /// What is installed.
    pub async fn value(&self) -> Result<String> {
        let object = self.stage.must("configmap", "web").await?;
        let value = object["data"]["key"].as_str();
        Ok(value.context("no value")?.to_owned())
    }
}
