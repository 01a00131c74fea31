//! The kubelets of a cluster. A `pretended` node says of every Pod that it is ready; each cluster has one. A [`Kubelet`] adds two
//! nodes whose Pods are real: each Pod of the webhook's Deployment is a process of the webhook that was built here, with the
//! arguments, the ServiceAccount and the probes of the Pod. What is deployed is tested as it is, behind its Service.
//!
//! Pods have no network of their own here. The address of a Pod is one of loopback, with another first number for the API server,
//! which takes no endpoints on loopback; [`Network`] knows both. Of volumes, Secrets are mounted; the token comes by a kubeconfig.
//! Liveness is asked only before a Pod is first ready.

mod network;
mod node;
mod pod;
pub(crate) mod pretended;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use serde_json::json;
use tokio::task::JoinSet;

pub use self::network::Network;
use self::node::Size;
use self::pod::Running;
use crate::binaries;
use crate::control_plane::{ControlPlane, pki};

/// How often Pods are looked at, and probed.
const TICK: Duration = Duration::from_millis(100);
/// How long a node waits after an error of the API server.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a probe waits.
const PROBE: Duration = Duration::from_secs(1);
const NODES: [&str; 2] = ["real-0", "real-1"];
const SIZE: Size = Size {
    cpu: 8,
    memory: 16,
    pods: 100,
};
/// The node that every cluster has, whose Pods are not real.
pub(crate) const PRETENDED: &str = "node-0";

/// The Pods by their uid.
type Pods = Arc<Mutex<BTreeMap<String, Running>>>;

/// Runs the Pods of its nodes; dropped, they are gone.
pub struct Kubelet {
    pods: Pods,
    errors: Arc<Mutex<String>>,
    _tasks: JoinSet<()>,
}

impl Kubelet {
    /// On a cluster whose API server has the flag of this network. From now on Pods are scheduled to these nodes alone.
    ///
    /// # Errors
    /// Of the API server; where the webhook does not build.
    pub async fn start(cluster: &ControlPlane, network: Network) -> Result<Self> {
        let binary = binaries::webhook()?;
        let client = cluster.client().await?;
        let nodes = Api::<Node>::all(client.clone());
        let cordon = json!({"spec": {"unschedulable": true}});
        let params = PatchParams::default();
        nodes
            .patch(PRETENDED, &params, &Patch::Merge(cordon))
            .await?;
        let pods = Pods::default();
        let errors = Arc::<Mutex<String>>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(network.route());
        for name in NODES {
            node::create(&client, name, &SIZE).await?;
            let (client, said) = (client.clone(), Arc::clone(&errors));
            tasks.spawn(async move {
                let note = |error: anyhow::Error| note(&said, &error);
                persist(note, || node::live(&client, name)).await;
            });
        }
        // As a kubelet, which opens a connection for every probe.
        let probes = reqwest::Client::builder()
            .no_proxy()
            .timeout(PROBE)
            .pool_max_idle_per_host(0)
            .build()?;
        let api = pod::Server {
            client,
            probes,
            binary,
            url: cluster.server().to_owned(),
            authority: cluster.authority().certificate.clone(),
        };
        let (all, said) = (Arc::clone(&pods), Arc::clone(&errors));
        tasks.spawn(async move {
            let mut tick = tokio::time::interval(TICK);
            loop {
                tick.tick().await;
                if let Err(error) = pass(&api, &all).await {
                    note(&said, &error);
                }
            }
        });
        Ok(Self {
            pods,
            errors,
            _tasks: tasks,
        })
    }

    /// Where the running Pods answer reviews, by the name of the Pod.
    #[must_use]
    pub fn reviews(&self) -> BTreeMap<String, SocketAddr> {
        let pods = lock(&self.pods);
        let pods = pods.values().filter(|pod| pod.is_ready());
        pods.map(|pod| (pod.name.clone(), pod.address)).collect()
    }

    /// What the Pods have logged, those that are gone as well, and the last error of the kubelet.
    #[must_use]
    pub fn logs(&self) -> String {
        let pods = lock(&self.pods);
        let logs: Vec<_> = pods
            .values()
            .map(|pod| format!("{}:\n{}", pod.name, pod.log()))
            .collect();
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{}\nkubelet: {errors}", logs.join("\n"))
    }
}

fn note(errors: &Mutex<String>, error: &anyhow::Error) {
    let mut said = errors.lock().unwrap_or_else(PoisonError::into_inner);
    *said = format!("{error:#}");
}

/// Does something that ends only with an error or for a moment, again and again.
async fn persist<W: Future<Output = Result<()>>>(
    note: impl Fn(anyhow::Error),
    work: impl Fn() -> W,
) {
    loop {
        if let Err(error) = work().await {
            note(error);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn lock(pods: &Pods) -> MutexGuard<'_, BTreeMap<String, Running>> {
    pods.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One look at all Pods.
async fn pass(server: &pod::Server, pods: &Pods) -> Result<()> {
    let all = Api::<Pod>::all(server.client.clone());
    let list = all.list(&ListParams::default().match_any()).await?;
    let mut result = Ok(());
    for pod in list.items {
        let spec = pod.spec.clone().unwrap_or_default();
        let node = spec.node_name.unwrap_or_default();
        if NODES.contains(&node.as_str()) {
            let looked = look(server, pods, &pod).await;
            result = result.and(looked.with_context(|| pod.name_any()));
        }
    }
    result
}

/// Starts, probes or ends one Pod.
async fn look(server: &pod::Server, pods: &Pods, pod: &Pod) -> Result<()> {
    let uid = pod.uid().unwrap_or_default();
    let api = Api::<Pod>::namespaced(server.client.clone(), &pod.namespace().unwrap_or_default());
    let is_ending = pod.metadata.deletion_timestamp.is_some();
    if !lock(pods).contains_key(&uid) && !is_ending {
        let started = Running::start(server, pod).await?;
        lock(pods).insert(uid.clone(), started);
    }
    if is_ending {
        let has_ended = match lock(pods).get_mut(&uid) {
            Some(running) => running.end()?,
            None => true,
        };
        if has_ended {
            let params = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(Preconditions {
                    uid: Some(uid),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            api.delete(&pod.name_any(), &params).await?;
        }
        return Ok(());
    }
    let probes = match lock(pods).get_mut(&uid) {
        Some(running) => running.probes()?,
        None => return Ok(()),
    };
    let is_ready = probes.ask(&server.probes).await;
    let status = match lock(pods).get_mut(&uid) {
        Some(running) => running.status(is_ready, shown_ready(pod)),
        None => None,
    };
    if let Some(status) = status {
        let params = PatchParams::default();
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(&pod.name_any(), &params, &patch).await?;
    }
    Ok(())
}

/// What the API server says: the node controller changes it where a Lease was renewed too late, and a write may have failed.
fn shown_ready(pod: &Pod) -> Option<bool> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|one| one.type_ == "Ready")?;
    Some(ready.status == "True")
}

/// The time as statuses have it.
fn now() -> String {
    format!("{:.0}", Timestamp::now())
}

/// Writes the kubeconfig of a ServiceAccount.
fn kubeconfig(server: &pod::Server, path: &std::path::Path, token: &str) -> Result<()> {
    let credentials = pki::Credentials::Token(token);
    pki::write_kubeconfig(path, &server.url, &server.authority, &credentials)
}
