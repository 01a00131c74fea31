//! `sync`: a directory is the truth, on a real control plane.

mod adopted;
mod asked;
mod beside;
mod classes;
mod compared;
mod contested;
mod corpus;
mod elected;
mod gone;
mod legacy;
mod lost;
mod pod;
mod printed;
mod unreadable;
mod watched;

use std::fs;
use std::path::PathBuf;

use addons_tests::stage::Stage;
use anyhow::Result;

/// A user with a directory of manifests.
struct Directory {
    stage: Stage,
    path: PathBuf,
}

impl Directory {
    async fn new(what: &str) -> Result<Self> {
        let stage = Stage::new(what).await?;
        // Tests ask for records before the first one is made.
        stage.run("init").await?.done()?;
        let path = stage.plugin.home().join("addons");
        fs::create_dir_all(&path)?;
        Ok(Self { stage, path })
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        self.stage.write(&format!("addons/{file}"), text).map(drop)
    }

    fn remove(&self, file: &str) -> Result<()> {
        let path = self.path.join(file);
        if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
        Ok(())
    }

    /// `sync DIR FLAGS`
    fn line(&self, flags: &str) -> String {
        format!("sync {} {flags}", self.path.display())
    }

    /// A ConfigMap of the stage's namespace with these labels.
    fn config_map(&self, name: &str, value: &str, labels: &str) -> String {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {}, labels: {{{labels}}}}}\ndata: {{key: {value:?}}}\n---\n",
            self.stage.namespace
        )
    }

    fn reconciled(&self, name: &str, value: &str) -> String {
        self.config_map(name, value, "addonmanager.kubernetes.io/mode: Reconcile")
    }

    fn ensured(&self, name: &str, value: &str) -> String {
        self.config_map(name, value, "addonmanager.kubernetes.io/mode: EnsureExists")
    }

    /// The value of a ConfigMap; `None` where it is gone.
    async fn value(&self, name: &str) -> Result<Option<String>> {
        let found = self.stage.get("configmap", name).await?;
        Ok(found.and_then(|object| Some(object["data"]["key"].as_str()?.to_owned())))
    }

    /// The names of the installations that came from the directory.
    async fn installed(&self) -> Result<Vec<String>> {
        let args = ["get", "addoninstallations", "-o", "name"];
        let output = self.stage.kubectl(&args).await?;
        let lines = output.stdout.lines();
        let names = lines.map(|line| line.rsplit('/').next().unwrap_or_default().to_owned());
        Ok(names.collect())
    }
}
