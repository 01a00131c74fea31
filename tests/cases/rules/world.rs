//! A cluster whose objects were there before the webhook: some of them it would not admit.

use std::collections::BTreeMap;
use std::sync::Arc;

use addons_tests::control_plane::cluster::client;
use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::raw::{self, Answer};
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result};
use common::api::names::{BREAK_GLASS_GROUP, CORE_GROUP, DISTRIBUTOR_GROUP};
use kube::Client;

use super::row::{Attempt, Who};

const OBJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/rules/world.yaml");

/// The cluster, and who is on it.
pub struct World {
    clients: BTreeMap<Who, Client>,
    webhook: Webhook,
    _cluster: Arc<ControlPlane>,
}

impl World {
    /// Started once: the rows share it.
    pub async fn new() -> Result<Self> {
        let cluster = ControlPlane::alone_api_only().await?;
        definitions::install(&cluster).await?;
        let admin = Plugin::admin(&cluster)?;
        admin.kubectl(&["create", "-f", OBJECTS]).await?.done()?;
        // A finalizer holds it.
        let delete = [
            "delete",
            "addoncatalogue",
            "leaving",
            "-n",
            "kubectl-addons",
            "--wait=false",
        ];
        admin.kubectl(&delete).await?.done()?;
        let mut clients = BTreeMap::new();
        for (who, name, groups) in [
            (Who::Admin, "admin", &["system:masters"][..]),
            (Who::Core, "core", &["system:masters", CORE_GROUP]),
            (Who::Glass, "glass", &["system:masters", BREAK_GLASS_GROUP]),
            (
                Who::Distributor,
                "distributor",
                &["system:masters", DISTRIBUTOR_GROUP],
            ),
        ] {
            let user = cluster.user(name, groups)?;
            clients.insert(who, client(&user.kubeconfig).await?);
        }
        let webhook = Webhook::start(&cluster, &[]).await?;
        Ok(Self {
            clients,
            webhook,
            _cluster: cluster,
        })
    }

    /// Tries it, as a dry run.
    pub async fn attempt(&self, attempt: &Attempt) -> Result<Answer> {
        let client = self.clients.get(&attempt.who).context("an unknown user")?;
        let (send, path) = attempt.sent()?;
        raw::attempt(client, send, &path, &attempt.body()).await
    }

    /// What the webhook counted.
    pub async fn metrics(&self) -> Result<String> {
        let url = format!("{}/metrics", self.webhook.health_url());
        Ok(reqwest::get(url).await?.text().await?)
    }
}
