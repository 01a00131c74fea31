//! The clusters: a namespace for each here, and a few real API servers that play them.

use std::path::PathBuf;
use std::time::Duration;

use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::proxy::{Action, Fault, Proxy};
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result};
use common::api::installation::AddonInstallation;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::{Client, Resource};
use serde_json::{Value, json};

use super::say;

/// Add-ons in each cluster.
pub(crate) const ADDONS: usize = 10;
/// API servers that play the clusters.
pub(crate) const SERVERS: usize = 3;
/// How late each answer of the slow cluster comes.
const DELAY: Duration = Duration::from_secs(2);
/// Objects that are created at the same time.
const AT_ONCE: usize = 16;

/// The cluster of the records, and the others.
pub(crate) struct World {
    pub(crate) stage: Stage,
    pub(crate) servers: Vec<ControlPlane>,
    /// In front of the slow cluster.
    proxy: Proxy,
    client: Client,
    /// How many clusters there are; the last one is slow.
    clusters: usize,
}

impl World {
    pub(crate) async fn start(clusters: usize) -> Result<Self> {
        say("starting the API servers …");
        let home = ControlPlane::start(Options::default()).await?;
        definitions::install(&home).await?;
        let client = home.client().await?;
        // The watchdog of the harness ends it with this process.
        let stage = Stage::on(home, "fleet").await?;
        let mut servers = Vec::new();
        for _ in 0..SERVERS {
            servers.push(ControlPlane::start(Options::default()).await?);
        }
        let proxy = Proxy::start(servers.first().context("no server")?)?;
        proxy.fault(Fault::always(Action::Delay(DELAY)));
        Ok(Self {
            stage,
            servers,
            proxy,
            client,
            clusters,
        })
    }

    /// The catalogue, the namespaces that stand for the clusters, and their kubeconfigs.
    pub(crate) async fn stand(&self) -> Result<()> {
        say(&format!("creating {} namespaces …", self.clusters));
        let addons: Vec<Value> = (0..ADDONS)
            .map(|addon| {
                let manifest = config_map("content", &addon.to_string());
                let version =
                    json!({"version": "1.0.0", "source": {"inline": {"manifest": manifest}}});
                json!({"name": name(addon), "versions": [version]})
            })
            .collect();
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
            "metadata": {"name": "fleet"}, "spec": {"addons": addons},
        });
        self.stage.apply(&catalogue.to_string()).await?;
        let namespaces = (0..self.clusters).map(|cluster| {
            let labels = json!({"kubectl-addons.dev/kubeconfig-secret": "kubeconfig"});
            (
                None,
                json!({"metadata": {"name": self.namespace(cluster), "labels": labels}}),
            )
        });
        self.create::<Namespace>(namespaces.collect()).await?;
        let mut secrets = Vec::new();
        for cluster in 0..self.clusters {
            let kubeconfig = std::fs::read_to_string(self.kubeconfig(cluster)?)?;
            let secret =
                json!({"metadata": {"name": "kubeconfig"}, "stringData": {"value": kubeconfig}});
            secrets.push((Some(self.namespace(cluster)), secret));
        }
        self.create::<Secret>(secrets).await
    }

    /// The records of some clusters.
    pub(crate) async fn record(&self, clusters: std::ops::Range<usize>) -> Result<()> {
        let mut records = Vec::new();
        for cluster in clusters {
            let namespace = self.namespace(cluster);
            for addon in 0..ADDONS {
                let name = name(addon);
                let record = json!({
                    "metadata": {"name": name},
                    "spec": {
                        "addonRef": {"name": name, "catalogue": "fleet"}, "reconcile": "Ensure",
                        "targetNamespace": format!("{namespace}-{name}"),
                    },
                });
                records.push((Some(namespace.clone()), record));
            }
        }
        self.create::<AddonInstallation>(records).await
    }

    /// How many records of the slow cluster are ready, and of all others.
    pub(crate) async fn ready(&self) -> Result<(usize, usize)> {
        let all = Api::<AddonInstallation>::all(self.client.clone());
        let all = all.list(&ListParams::default()).await?;
        let slow = self.namespace(self.clusters - 1);
        let is_ready = |record: &&AddonInstallation| {
            let status = serde_json::to_value(&record.status).unwrap_or_default();
            status["phase"] == "Ready"
        };
        let ready = all.iter().filter(is_ready);
        let (slow, others): (Vec<_>, Vec<_>) =
            ready.partition(|record| record.metadata.namespace.as_ref() == Some(&slow));
        Ok((slow.len(), others.len()))
    }

    fn namespace(&self, cluster: usize) -> String {
        format!("{}-{cluster:03}", self.stage.namespace)
    }

    fn kubeconfig(&self, cluster: usize) -> Result<PathBuf> {
        if cluster + 1 == self.clusters {
            return Ok(self.proxy.kubeconfig().to_owned());
        }
        let server = self.servers.get(cluster % SERVERS).context("no server")?;
        Ok(server.kubeconfig().to_owned())
    }

    /// Creates objects, each in its namespace.
    async fn create<K>(&self, objects: Vec<(Option<String>, Value)>) -> Result<()>
    where
        K: Resource<DynamicType = ()>,
    {
        let resource = ApiResource::erase::<K>(&());
        let creating = objects.into_iter().map(|(namespace, mut object)| {
            object["apiVersion"] = json!(resource.api_version);
            object["kind"] = json!(resource.kind);
            let resource = &resource;
            async move {
                let object: DynamicObject = serde_json::from_value(object)?;
                let client = self.client.clone();
                let api: Api<DynamicObject> = match namespace {
                    Some(namespace) => Api::namespaced_with(client, &namespace, resource),
                    None => Api::all_with(client, resource),
                };
                api.create(&PostParams::default(), &object).await?;
                Ok::<_, anyhow::Error>(())
            }
        });
        stream::iter(creating)
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(())
    }
}

fn name(addon: usize) -> String {
    format!("addon-{addon}")
}
