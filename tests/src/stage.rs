//! A user with a namespace of their own, and small add-ons made for it.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::control_plane::audit::{Mark, Requests};
use crate::control_plane::{ControlPlane, Own, definitions};
use crate::objects;
use crate::plugin::{Output, Plugin};
use crate::until::until;
use anyhow::{Context as _, Result};
use kube::Client;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A user with a namespace of their own.
pub struct Stage {
    /// The shared cluster, or one that ends with the last user of it.
    pub cluster: Arc<ControlPlane>,
    /// The user's programs.
    pub plugin: Plugin,
    /// The namespace, whose name is also the prefix of everything cluster-scoped.
    pub namespace: String,
    /// The administrator, whose requests are not counted as the user's.
    client: Client,
    _end: End,
}

impl Stage {
    /// A new user.
    pub async fn new(what: &str) -> Result<Self> {
        Self::on(ControlPlane::shared().await?, what).await
    }

    /// A new user of a cluster of the test's own.
    pub async fn on(cluster: impl Into<Arc<ControlPlane>>, what: &str) -> Result<Self> {
        let cluster = cluster.into();
        let namespace = cluster.namespace(what).await?;
        // An administrator of their own: requests are counted by user, while other tests run.
        let user = cluster.user(&namespace, &["system:masters"])?;
        let plugin = Plugin::new(&cluster, &user.kubeconfig)?.system_namespace(&namespace);
        let client = cluster.client().await?;
        Box::pin(bury(&cluster, &client)).await;
        Ok(Self {
            client,
            _end: End(Arc::downgrade(&cluster), namespace.clone()),
            cluster,
            plugin,
            namespace,
        })
    }

    /// A new user of a cluster with our definitions that no other test uses: its namespaces stand for the cluster, whoever reconciles it,
    /// and a loop works on all of its records.
    pub async fn alone(what: &str) -> Result<Self> {
        Self::on(definitions::on(ControlPlane::alone().await?).await?, what).await
    }

    /// A new user of a cluster with our definitions that only the tests of one module use.
    pub async fn of_module(cluster: &'static Own, what: &str) -> Result<Self> {
        let cluster = Box::pin(cluster.get()).await?;
        Self::on(definitions::on(cluster).await?, what).await
    }

    /// Waits until a condition of a record is true, and returns it.
    pub async fn condition(&self, record: &str, kind: &str) -> Result<Value> {
        until(&format!("condition {kind} of {record}"), async || {
            let record = self.record(record).await?;
            let conditions = record["status"]["conditions"].as_array();
            let mut all = conditions.into_iter().flatten();
            let found = all.find(|one| one["type"] == kind && one["status"] == "True");
            Ok(found.cloned().ok_or_else(|| record["status"].to_string()))
        })
        .await
    }

    /// Writes a file into the user's home and returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.plugin.home().join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text)?;
        Ok(path)
    }

    /// Writes a kops index with one entry for each `(name, version, manifest)`; hashes are those of the manifests.
    pub fn index(&self, file: &str, entries: &[(&str, &str, &str)]) -> Result<String> {
        let mut index = String::from("kind: Addons\nmetadata:\n  name: test\nspec:\n  addons:\n");
        for (i, (name, version, manifest)) in entries.iter().enumerate() {
            let relative = format!("{name}-{version}-{i}.yaml");
            let folder = PathBuf::from(file)
                .parent()
                .map(PathBuf::from)
                .unwrap_or_default();
            self.write(&folder.join(&relative).to_string_lossy(), manifest)?;
            let hash = sha256(manifest.trim());
            let namespace = &self.namespace;
            index.push_str(&format!(
                "  - name: {name}\n    version: {version}\n    namespace: {namespace}\n    manifest: {relative}\n    manifestHash: {hash}\n"
            ));
        }
        Ok(self.write(file, &index)?.to_string_lossy().into_owned())
    }

    /// Writes a catalogue file `NAME.json` with one add-on in one version, whose namespace is this one unless it says another.
    pub fn catalogue(&self, name: &str, version: &Value) -> Result<PathBuf> {
        let mut version = version.clone();
        if version["defaultNamespace"].is_null() {
            version["defaultNamespace"] = json!(self.namespace);
        }
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": name},
            "spec": {"addons": [{"name": name, "versions": [version]}]},
        });
        self.write(&format!("{name}.json"), &catalogue.to_string())
    }

    /// One object as JSON, `None` where there is none.
    pub async fn get(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        if let Some(path) = objects::path(kind, &self.namespace, name) {
            return objects::read(&self.client, &path).await;
        }
        let args = [
            "get",
            kind,
            name,
            "-n",
            &self.namespace,
            "-o",
            "json",
            "--ignore-not-found",
        ];
        let output = self.plugin.kubectl(&args).await?.done()?;
        if output.stdout.trim().is_empty() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&output.stdout)?))
    }

    /// The record of an installation.
    pub async fn record(&self, name: &str) -> Result<Value> {
        self.get("addoninstallation", name)
            .await?
            .with_context(|| format!("no installation {name}"))
    }

    /// The user's requests since a mark. Further pages of the list of all records do not count: how many there are depends on the tests
    /// that run at the same time.
    pub fn requests(&self, since: Mark) -> Result<Requests> {
        let mut requests = self.cluster.audit().since(since)?.by(&self.namespace);
        requests.0.retain(|request| {
            let is_of_records = request.object.resource == "addoninstallations";
            !(is_of_records && request.uri.contains("continue="))
        });
        Ok(requests)
    }

    /// Runs the plugin with the arguments separated by blanks.
    pub async fn run(&self, line: &str) -> Result<Output> {
        self.plugin
            .run(&line.split_whitespace().collect::<Vec<_>>())
            .await
    }

    /// Runs `kubectl ARGS -n NAMESPACE`.
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output> {
        let args = [args, &["-n", &self.namespace]].concat();
        self.plugin.kubectl(&args).await?.done()
    }

    /// Applies a manifest as another manager.
    pub async fn apply(&self, manifest: &str) -> Result<()> {
        if Box::pin(objects::create(&self.client, &self.namespace, manifest)).await? {
            return Ok(());
        }
        let args = ["apply", "-n", &self.namespace, "-f", "-"];
        let applied = self.plugin.kubectl_with_input(&args, manifest).await?;
        applied.done().map(drop)
    }

    /// Patches an object as another manager.
    pub async fn patch(&self, kind: &str, name: &str, patch: &Value) -> Result<()> {
        if let Some(path) = objects::path(kind, &self.namespace, name) {
            return objects::patch(&self.client, &path, patch).await;
        }
        let patch = patch.to_string();
        let args = ["patch", kind, name, "--type=merge", "-p", &patch];
        self.kubectl(&args).await.map(drop)
    }

    /// Patches the status of an object as another manager.
    pub async fn patch_status(&self, kind: &str, name: &str, status: &Value) -> Result<()> {
        let patch = json!({"status": status});
        if let Some(path) = objects::path(kind, &self.namespace, name) {
            return objects::patch(&self.client, &format!("{path}/status"), &patch).await;
        }
        let patch = patch.to_string();
        let args = ["patch", kind, name, "--subresource=status"];
        let args = [&args[..], &["--type=merge", "-p", &patch]].concat();
        self.kubectl(&args).await.map(drop)
    }

    /// Deletes an object, and waits until it is gone.
    pub async fn delete(&self, kind: &str, name: &str) -> Result<()> {
        if let Some(path) = objects::path(kind, &self.namespace, name) {
            return Box::pin(objects::delete(&self.client, &path)).await;
        }
        self.kubectl(&["delete", kind, name]).await.map(drop)
    }

    /// Writes an upgrade of another client into the record, renewed so many seconds ago.
    pub async fn lock(&self, name: &str, holder: &str, silent_for: i64) -> Result<()> {
        self.begin("upgrade", name, holder, silent_for).await
    }

    /// Writes an operation of another client into the record, renewed so many seconds ago.
    pub async fn begin(&self, verb: &str, name: &str, holder: &str, silent_for: i64) -> Result<()> {
        let renewed = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(silent_for);
        let renewed = renewed.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let status = json!({"operation": {
            "id": "0123456789abcdef", "verb": verb, "holder": holder, "startedAt": renewed,
            "renewedAt": renewed, "leaseSeconds": 15,
        }});
        self.patch_status("addoninstallation", name, &status).await
    }

    /// Whether there is such an object.
    pub async fn has(&self, kind: &str, name: &str) -> Result<bool> {
        Ok(self.get(kind, name).await?.is_some())
    }

    /// An object that has to be there.
    pub async fn must(&self, kind: &str, name: &str) -> Result<Value> {
        let object = self.get(kind, name).await?;
        object.with_context(|| format!("{kind} {name} is not there"))
    }
}

/// Stages that have ended: their clusters and namespaces.
static ENDED: Mutex<Vec<(Weak<ControlPlane>, String)>> = Mutex::new(Vec::new());

/// The end of a stage, for the next one on the same cluster.
struct End(Weak<ControlPlane>, String);

impl Drop for End {
    fn drop(&mut self) {
        let end = (Weak::clone(&self.0), std::mem::take(&mut self.1));
        ENDED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(end);
    }
}

/// Deletes the records of stages that have ended. Most commands list all records of the cluster: with those of all tests before, that
/// would take most of the time of the API server. What stays is only slower.
async fn bury(cluster: &Arc<ControlPlane>, client: &Client) {
    let ended: Vec<String> = {
        let mut ended = ENDED.lock().unwrap_or_else(PoisonError::into_inner);
        let is_here = |end: &mut (Weak<ControlPlane>, String)| {
            std::ptr::eq(end.0.as_ptr(), Arc::as_ptr(cluster))
        };
        ended
            .extract_if(.., is_here)
            .map(|(_, namespace)| namespace)
            .collect()
    };
    for namespace in ended {
        let _ = objects::delete_records(client, &namespace).await;
    }
}

/// Fields of metadata that only the API server writes.
pub const OF_SERVER: [&str; 5] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
];

/// Every object that a record holds, as its inventory has it.
pub fn recorded(record: &Value) -> impl Iterator<Item = &Value> {
    let groups = record["status"]["inventory"].as_array();
    let groups = groups.into_iter().flatten();
    groups.flat_map(|group| group["objects"].as_array().into_iter().flatten())
}

/// The namespace of a tenant that stands for this cluster, whose ServiceAccount `deployer` may do everything in it.
#[must_use]
pub fn tenant(team: &str) -> [Value; 3] {
    [
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": team, "labels": {"kubectl-addons.dev/cluster": "local"}}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer", "namespace": team}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "deployer", "namespace": team},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": team}]}),
    ]
}

/// Lower-case hex sha256.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A ConfigMap.
pub fn config_map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{key: {value:?}}}\n---\n"
    )
}

/// A Deployment that becomes ready, unless the node selector asks for what no node has.
pub fn deployment(name: &str, replicas: u32, node: Option<&str>) -> String {
    let selector = node
        .map(|node| format!("nodeSelector: {{zone: {node}}}, "))
        .unwrap_or_default();
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    \
         spec: {{{selector}containers: [{{name: main, image: 'example.test/{name}:1'}}]}}\n---\n"
    )
}
