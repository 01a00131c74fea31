//! A user of the cluster who also has a proxy between them and the API server.

use std::sync::{Mutex, PoisonError};

use crate::plugin::{Output, Plugin};
use crate::proxy::{Fault, Proxy};
use anyhow::{Context as _, Result, ensure};
use kube::Client;
use kube::api::PostParams;
use kube::core::Request;
use serde_json::{Value, json};

use super::addon;
use crate::stage::Stage;

/// Name of the rigged user at their proxy.
const CLIENT: &str = "rigged";

/// A user with a namespace of their own, directly ([`Rig::stage`]) and through a proxy ([`Rig::through`]).
pub struct Rig {
    /// The user at the API server.
    pub stage: Stage,
    /// The proxy.
    pub proxy: Proxy,
    /// The same user behind the proxy.
    pub through: Plugin,
    /// Path and object of what belongs to somebody else.
    foreign: Mutex<Vec<(String, Value)>>,
}

impl Rig {
    /// A new user. In their namespace there is a ConfigMap `foreign` that belongs to nobody, as does a ClusterRole.
    pub async fn new(what: &str) -> Result<Self> {
        Self::of(Stage::new(what).await?).await
    }

    /// The same for a user who is there already.
    pub async fn of(stage: Stage) -> Result<Self> {
        let proxy = Proxy::start(&stage.cluster)?;
        let user = stage.cluster.user(&stage.namespace, &["system:masters"])?;
        let kubeconfig = proxy.client(CLIENT, &user)?;
        let through = Plugin::new(&stage.cluster, &kubeconfig)?.system_namespace(&stage.namespace);
        let rig = Self {
            stage,
            proxy,
            through,
            foreign: Mutex::default(),
        };
        let namespace = rig.stage.namespace.clone();
        rig.foreign_config_map(&namespace).await?;
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": format!("{namespace}-foreign")},
        });
        rig.foreign("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role)
            .await?;
        Ok(rig)
    }

    /// Somebody else's ConfigMap.
    pub async fn foreign_config_map(&self, namespace: &str) -> Result<()> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign"}, "data": {"key": "mine"},
        });
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        self.foreign(&path, &object).await
    }

    /// Somebody else's object of the kind that the add-on brings.
    pub async fn foreign_widget(&self) -> Result<()> {
        let namespace = &self.stage.namespace;
        let group = addon::group(namespace);
        let object = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "foreign"},
        });
        let path = format!("/apis/{group}/v1/namespaces/{namespace}/widgets");
        self.foreign(&path, &object).await
    }

    async fn foreign(&self, path: &str, object: &Value) -> Result<()> {
        let request =
            Request::new(path).create(&PostParams::default(), object.to_string().into())?;
        let created: Value = self.stage.cluster.client().await?.request(request).await?;
        let name = created["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{path}/{name}");
        let mut foreign = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        foreign.push((path, created));
        Ok(())
    }

    /// That nothing which belongs to others was changed or created again.
    pub async fn foreign_is_untouched(&self) -> Result<()> {
        let client = self.stage.cluster.client().await?;
        let foreign = self
            .foreign
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for (path, before) in foreign {
            let now = get(&client, &path).await?;
            let now = now.with_context(|| format!("{path} was deleted"))?;
            ensure!(now == before, "{now:#}\ninstead of\n{before:#}");
        }
        Ok(())
    }

    /// Deletes what slows the cluster down while others work: the definition and the Pods.
    pub async fn clear(&self) -> Result<()> {
        let client = self.stage.cluster.client().await?;
        let group = addon::group(&self.stage.namespace);
        let target = addon::target(&self.stage);
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for path in [
            format!("{definitions}/widgets.{group}"),
            format!("/apis/apps/v1/namespaces/{target}/deployments/manager"),
        ] {
            let request = hyper::Request::delete(path).body(Vec::new())?;
            match client.request::<Value>(request).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                result => drop(result?),
            }
        }
        Ok(())
    }

    /// Runs the plugin through the proxy with the arguments separated by blanks.
    pub async fn run(&self, line: &str) -> Result<Output> {
        self.through.run(&words(line)).await
    }

    /// Runs the plugin through the proxy with a fault that stops it for good; then it is killed. Whether it came to that.
    pub async fn run_until(&self, line: &str, stop: Fault) -> Result<bool> {
        self.proxy.fault(stop);
        let mut process = self.through.start(&words(line))?;
        let leash = process.leash();
        let mut ended = tokio::task::spawn_blocking(move || process.wait());
        let stopped = tokio::select! {
            () = self.proxy.stopped(CLIENT) => true,
            ended = &mut ended => {
                ended??;
                false
            }
        };
        drop(leash);
        if stopped {
            ended.await??;
        }
        self.proxy.heal();
        Ok(stopped)
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// One object, `None` where there is none.
pub async fn get(client: &Client, path: &str) -> Result<Option<Value>> {
    let request = hyper::Request::get(path).body(Vec::new())?;
    match client.request::<Value>(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        result => Ok(Some(result?)),
    }
}
