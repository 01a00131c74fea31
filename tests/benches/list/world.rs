//! A cluster with many installations: 10 add-ons, each installed into 100 namespaces.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::plugin::Output;
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::within;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::say;

/// Add-ons of the catalogue.
pub(crate) const ADDONS: usize = 10;
/// Namespaces that each of them is installed into.
pub(crate) const NAMESPACES: usize = 100;

/// How long that may take until all of them are ready.
const LONGEST: Duration = Duration::from_secs(900);

/// What an add-on consists of beside two ConfigMaps: objects of a kind that tells health are read for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Settings,
    Workload,
}

/// In the order in which they are measured.
pub(crate) const CONTENTS: [Content; 2] = [Content::Settings, Content::Workload];

/// What one command took.
pub(crate) struct Row {
    pub(crate) output: Output,
    /// By verb.
    pub(crate) requests: BTreeMap<String, usize>,
}

pub(crate) struct World {
    stage: Stage,
}

impl World {
    pub(crate) async fn start() -> Result<Self> {
        say("starting the API server …");
        let cluster = ControlPlane::start(Options::default()).await?;
        // The watchdog of the harness ends it with this process.
        let stage = Stage::on(cluster, "list").await?;
        stage.run("init").await?.done()?;
        Ok(Self { stage })
    }

    /// Installs everything, or upgrades it to other content.
    pub(crate) async fn install(&mut self, content: Content) -> Result<()> {
        say(&format!(
            "installing {} with {content:?} …",
            ADDONS * NAMESPACES
        ));
        let addons: Vec<Value> = (0..ADDONS)
            .map(|addon| catalogue_entry(addon, content))
            .collect();
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
            "metadata": {"name": "many"}, "spec": {"addons": addons},
        });
        self.stage.apply(&catalogue.to_string()).await?;
        let mut set = String::new();
        for addon in 0..ADDONS {
            for namespace in 0..NAMESPACES {
                let record = json!({
                    "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
                    "metadata": {"name": format!("addon-{addon}.{namespace:02}")},
                    "spec": {
                        "addonRef": {"name": format!("addon-{addon}"), "catalogue": "many"},
                        "targetNamespace": format!("{}-{namespace:02}", self.stage.namespace),
                    },
                });
                writeln!(set, "---\n{record}")?;
            }
        }
        let file = self.stage.write("set.yaml", &set)?;
        let apply = format!(
            "apply -f {} --yes --wait=false --timeout 20m",
            file.display()
        );
        self.stage.run(&apply).await?.done()?;
        self.settle().await
    }

    /// Waits until all of them are ready: the controllers create 20 objects a second.
    async fn settle(&self) -> Result<()> {
        within(LONGEST, "all of them are ready", async || {
            let said = self.stage.run("list -o json").await?.done()?;
            let listed: Value = serde_json::from_str(&said.stdout)?;
            let rows = listed["items"].as_array().cloned().unwrap_or_default();
            ensure!(rows.len() == ADDONS * NAMESPACES, "{} rows", rows.len());
            let other = rows.into_iter().find(|row| row["phase"] != "Ready");
            Ok(other.map_or(Ok(()), |other| Err(other.to_string())))
        })
        .await
    }

    pub(crate) async fn list(&self) -> Result<Output> {
        self.stage.run("list").await
    }

    pub(crate) async fn get(&self) -> Result<Output> {
        let args = [
            "get",
            "addoninstallations",
            "--namespace",
            &self.stage.namespace,
        ];
        self.stage.plugin.kubectl(&args).await
    }

    /// Waits for a program to end well; the row has the requests that came meanwhile.
    pub(crate) async fn measure(
        &self,
        program: impl Future<Output = Result<Output>>,
    ) -> Result<Row> {
        let mark = self.stage.cluster.audit().mark()?;
        let output = program.await?.done()?;
        let lines = output.stdout.lines().count();
        ensure!(lines == ADDONS * NAMESPACES + 1, "{lines} lines");
        let requests = self.stage.cluster.audit().since(mark)?;
        let requests = requests.by(&self.stage.namespace).by_verb("");
        Ok(Row { output, requests })
    }
}

fn catalogue_entry(addon: usize, content: Content) -> Value {
    let name = format!("addon-{addon}");
    let mut manifest =
        config_map(&format!("{name}-settings"), "1") + &config_map(&format!("{name}-more"), "1");
    let version = match content {
        Content::Settings => "1.0.0",
        Content::Workload => {
            manifest += &deployment(&name, 0, None);
            "2.0.0"
        }
    };
    json!({"name": name, "versions": [{"version": version, "source": {"inline": {"manifest": manifest}}}]})
}
