//! An API server each, with one layer of admission or none, and the same objects.

use std::time::Duration;

use addons_tests::control_plane::cluster::client;
use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::webhook::Webhook;
use anyhow::Result;
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;
use common::api::names::{API_VERSION, SYSTEM_NAMESPACE};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::{process, say};

/// The add-on that installations refer to.
pub(crate) const ADDON: &str = "web";
/// Entries of all catalogues.
pub(crate) const ENTRIES: usize = CATALOGUES * ADDONS * VERSIONS;
/// Few enough entries in each that it fits into an object with the fields that its manager owns.
const CATALOGUES: usize = 5;
const ADDONS: usize = 20;
const VERSIONS: usize = 100;

/// What judges the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Nothing,
    /// The policies of deploy/policies, in CEL.
    Policies,
    Webhook,
}

impl Layer {
    pub(crate) const ALL: [Self; 3] = [Self::Nothing, Self::Policies, Self::Webhook];
}

/// An API server.
pub(crate) struct World {
    pub(crate) layer: Layer,
    cluster: ControlPlane,
    webhook: Option<Webhook>,
}

impl World {
    pub(crate) async fn start(layer: Layer) -> Result<Self> {
        say(&format!("starting an API server: {layer:?} …"));
        let cluster = definitions::cluster(Options::api_only()).await?;
        let (client, params) = (cluster.client().await?, PostParams::default());
        let namespace: Namespace =
            serde_json::from_value(json!({"metadata": {"name": SYSTEM_NAMESPACE}}))?;
        Api::all(client.clone()).create(&params, &namespace).await?;
        let catalogues = Api::<AddonCatalogue>::namespaced(client, SYSTEM_NAMESPACE);
        for number in 0..CATALOGUES {
            catalogues.create(&params, &catalogue(number)?).await?;
        }
        let webhook = match layer {
            Layer::Webhook => Some(Webhook::start(&cluster, &[]).await?),
            Layer::Nothing | Layer::Policies => None,
        };
        if layer == Layer::Policies {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/policies");
            let admin = Plugin::new(&cluster, cluster.kubeconfig())?;
            admin.kubectl(&["apply", "-k", folder]).await?.done()?;
        }
        Ok(Self {
            layer,
            cluster,
            webhook,
        })
    }

    /// The records, for a user whom no layer exempts.
    pub(crate) async fn records(&self) -> Result<Api<AddonInstallation>> {
        let user = self.cluster.user("bench", &["system:masters"])?;
        let client = client(&user.kubeconfig).await?;
        Ok(Api::namespaced(client, SYSTEM_NAMESPACE))
    }

    /// What the webhook took since its start, where there is one.
    pub(crate) fn taken(&mut self) -> Result<Option<Taken>> {
        let Some(webhook) = &mut self.webhook else {
            return Ok(None);
        };
        let id = webhook.process().id();
        let (_, memory) = process::memory(id)?;
        let cpu = process::cpu(id)?;
        Ok(Some(Taken { memory, cpu }))
    }
}

/// What a process took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The most bytes that were resident.
    pub(crate) memory: u64,
    pub(crate) cpu: Duration,
}

fn catalogue(number: usize) -> Result<AddonCatalogue> {
    let version = |patch: usize| json!({"version": format!("1.0.{patch}"), "source": {"url": {"manifest": "m.yaml"}}, "template": {"method": "go-template"}});
    let addon = |at: usize| -> Value {
        let name = match (number, at) {
            (0, 0) => ADDON.to_owned(),
            _ => format!("addon-{number}-{at}"),
        };
        let versions: Vec<Value> = (0..VERSIONS).map(version).collect();
        json!({"name": name, "versions": versions})
    };
    let addons: Vec<Value> = (0..ADDONS).map(addon).collect();
    Ok(serde_json::from_value(json!({
        "apiVersion": API_VERSION, "kind": "AddonCatalogue", "metadata": {"name": format!("large-{number}")},
        "spec": {"addons": addons},
    }))?)
}
