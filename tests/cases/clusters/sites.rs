//! A cluster of records on which only one loop works, and namespaces in it that stand for another cluster.

use std::path::Path;
use std::sync::Arc;

use addons_tests::control_plane::{ControlPlane, Own};
use addons_tests::objects;
use addons_tests::plugin::Output;
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{other, secret};

/// The cluster of the records.
static HOME: Own = Own::new();

/// Records of add-on `web`, each in a namespace of its own, with objects in a namespace of the same name there.
pub(super) struct Fleet {
    pub(super) stage: Stage,
    pub(super) other: Arc<ControlPlane>,
}

impl Fleet {
    pub(super) async fn new(what: &str) -> Result<Self> {
        let (stage, other) = (Stage::of_module(&HOME, what).await?, other().await?);
        Ok(Self { stage, other })
    }

    /// The version that the catalogue offers from now on.
    pub(super) async fn offer(&self, version: &str, value: &str) -> Result<()> {
        let manifest = config_map("web", value);
        let version = json!({
            "version": version, "constraints": {"k8sVersion": "<1.99.0"},
            "source": {"inline": {"manifest": manifest}},
        });
        let file = self.stage.catalogue("web", &version)?;
        let add = format!("catalogue add {}", file.display());
        self.stage.run(&add).await?.done().map(drop)
    }

    /// The name of a namespace, here and there.
    pub(super) fn namespace(&self, site: &str) -> String {
        format!("{}-{site}", self.stage.namespace)
    }

    /// Makes a namespace stand for the cluster of a kubeconfig.
    pub(super) async fn stand(&self, site: &str, kubeconfig: &Path) -> Result<()> {
        let name = self.namespace(site);
        let kubeconfig = std::fs::read_to_string(kubeconfig)?;
        let items = [
            json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {"kubectl-addons.dev/kubeconfig-secret": "other"}},
            }),
            secret(&name, "other", "Opaque", "value", &kubeconfig),
        ];
        self.apply(&items).await
    }

    /// Labels a namespace with the Secret that leads to its cluster.
    pub(super) async fn lead(&self, site: &str, secret: &str) -> Result<()> {
        let label = format!("kubectl-addons.dev/kubeconfig-secret={secret}");
        let name = self.namespace(site);
        let args = ["label", "--overwrite", "namespace", &name, &label];
        self.stage.plugin.kubectl(&args).await?.done().map(drop)
    }

    /// Writes the record of a namespace, as a person does.
    pub(super) async fn record(&self, site: &str) -> Result<()> {
        let name = self.namespace(site);
        let record = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": name},
            "spec": {
                "addonRef": {"name": "web", "catalogue": "web"}, "targetNamespace": name, "reconcile": "Ensure",
            },
        });
        self.apply(&[record]).await
    }

    pub(super) async fn apply(&self, items: &[Value]) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let args = ["apply", "-f", "-"];
        let applied = self.stage.plugin.kubectl_with_input(&args, &list).await?;
        applied.done().map(drop)
    }

    /// `kubectl ARGS -n` with the namespace here.
    pub(super) async fn kubectl(&self, site: &str, args: &[&str]) -> Result<Output> {
        let name = self.namespace(site);
        let args = [args, &["-n", &name]].concat();
        self.stage.plugin.kubectl(&args).await?.done()
    }

    /// The record of a namespace as it is stored.
    pub(super) async fn stored(&self, site: &str) -> Result<Option<Value>> {
        let path = objects::path("addoninstallation", &self.namespace(site), "web");
        objects::read(&self.stage.cluster.client().await?, &path.context("known")?).await
    }

    /// What the ConfigMap of a namespace holds there.
    pub(super) async fn there(&self, site: &str) -> Result<Option<String>> {
        let path = objects::path("configmap", &self.namespace(site), "web").context("known")?;
        let found = objects::read(&self.other.client().await?, &path).await?;
        Ok(found.and_then(|found| Some(found["data"]["key"].as_str()?.to_owned())))
    }

    /// Edits that ConfigMap, as another manager.
    pub(super) async fn edit(&self, site: &str, value: &str) -> Result<()> {
        let path = objects::path("configmap", &self.namespace(site), "web").context("known")?;
        let edit = http::Request::patch(&path)
            .header("content-type", "application/merge-patch+json")
            .body(json!({"data": {"key": value}}).to_string().into_bytes())?;
        let client = self.other.client().await?;
        client.request::<Value>(edit).await?;
        Ok(())
    }

    /// Waits until the ConfigMap holds this and the record says that it is ready.
    pub(super) async fn is(&self, site: &str, value: &str) -> Result<()> {
        until(&format!("{site} has {value}"), async || {
            let (found, record) = (self.there(site).await?, self.stored(site).await?);
            let status = record.map(|record| record["status"].clone());
            let is_ready = status.as_ref().is_some_and(|it| it["phase"] == "Ready");
            let is = is_ready && found.as_deref() == Some(value);
            Ok(is
                .then_some(())
                .ok_or_else(|| format!("{found:?} {status:?}")))
        })
        .await
    }

    /// Waits until a record has a condition with this reason, and returns its status.
    pub(super) async fn reason(&self, site: &str, reason: &str) -> Result<Value> {
        until(&format!("{site} says {reason}"), async || {
            let record = self.stored(site).await?.unwrap_or_default();
            let conditions = record["status"]["conditions"].as_array();
            let mut all = conditions.into_iter().flatten();
            let found = all.find(|one| one["reason"] == reason && one["status"] == "True");
            Ok(found.cloned().ok_or_else(|| record["status"].to_string()))
        })
        .await
    }

    /// Waits until the record is gone.
    pub(super) async fn gone(&self, site: &str) -> Result<()> {
        until(&format!("the record of {site} is gone"), async || {
            let record = self.stored(site).await?;
            Ok(record.map_or(Ok(()), |record| Err(record.to_string())))
        })
        .await
    }
}
