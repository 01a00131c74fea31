//! A node whose Pods run nothing: they become ready as soon as they are scheduled to it, and are gone as soon as they are deleted.
//!
//! The node watches its own Pods, as a kubelet does, and writes one status for each: that its containers run, or, of a Job, that they
//! have ended well. A status says which version of the Pod it is about, so it never lands on a newer one.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, bail};
use futures::stream::{self, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, Preconditions, WatchEvent, WatchParams,
};
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};

use super::node::{self, Size};
use crate::background::Background;
use crate::control_plane::cluster;

/// How many Pods are written at the same time.
const WRITES: usize = 16;
/// Enough for every test.
const SIZE: Size = Size {
    cpu: 64,
    memory: 256,
    pods: 1000,
};
/// The address of the node, and of Pods in its network. A Service has no endpoints on loopback, so one of such Pods has none.
const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// The first address of Pods. The range is for benchmarks of networks (RFC 2544), so no Pod has the address of a real machine.
const PODS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// How many addresses there are.
const ADDRESSES: u32 = (1 << 17) - 2;

/// A pretended node; dropped, its Pods stay as they are.
pub(crate) struct Pretended {
    name: String,
    log: PathBuf,
    _thread: Background,
}

impl Pretended {
    /// Adds the node to the cluster of a kubeconfig whose user may do everything. The last error of the node is kept in `folder`.
    ///
    /// # Errors
    /// Of the API server.
    pub(crate) async fn start(kubeconfig: &Path, folder: &Path, name: &str) -> Result<Self> {
        // The next node writes the kubeconfig again.
        let config = cluster::config(kubeconfig).await?;
        let client = Client::try_from(config.clone())?;
        node::create(&client, name, &SIZE).await?;
        let log = folder.join(format!("{name}.log"));
        let playing = play(config, name.to_owned(), log.clone());
        Ok(Self {
            name: name.to_owned(),
            log,
            _thread: Background::start(name, playing)?,
        })
    }

    /// Its last error.
    pub(crate) fn tail(&self) -> String {
        let error = fs::read_to_string(&self.log).unwrap_or_default();
        format!("{} (its last error):\n  {error}", self.name)
    }
}

/// Keeps the node alive and moves its Pods, until it is dropped.
async fn play(config: Config, name: String, log: PathBuf) {
    let note = |error: anyhow::Error| {
        // Where the folder is gone, so is the cluster.
        let _ = fs::write(&log, format!("{error:#}\n"));
    };
    let client = match Client::try_from(config) {
        Ok(client) => client,
        Err(error) => return note(error.into()),
    };
    let living = super::persist(note, || node::live(&client, &name));
    let moving = super::persist(note, || move_pods(&client, &name));
    tokio::join!(living, moving);
}

/// Moves the Pods that are there, and then each that changes, until the watch ends: it does every few minutes, and where the API
/// server has forgotten the version that it began with.
async fn move_pods(client: &Client, node: &str) -> Result<()> {
    let all = Api::<Pod>::all(client.clone());
    let selector = format!("spec.nodeName={node}");
    let params = ListParams::default().fields(&selector).match_any();
    let list = all.list(&params).await?;
    let version = list.metadata.resource_version.unwrap_or_default();
    stream::iter(list.items.into_iter().map(Ok))
        .try_for_each_concurrent(WRITES, |pod| advance(client, pod))
        .await?;
    let params = WatchParams::default().fields(&selector);
    let events = all.watch(&params, &version).await?;
    events
        .map_err(anyhow::Error::from)
        .try_for_each_concurrent(WRITES, |event| async move {
            match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => advance(client, pod).await,
                WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => Ok(()),
                WatchEvent::Error(status) => bail!("the watch ended: {}", status.message),
            }
        })
        .await
}

/// Writes what is next in the life of a Pod. Where another client was faster, the next event says so.
async fn advance(client: &Client, pod: Pod) -> Result<()> {
    let namespace = pod.namespace().unwrap_or_default();
    let (api, name) = (
        Api::<Pod>::namespaced(client.clone(), &namespace),
        pod.name_any(),
    );
    let written = match next(&pod, address, &super::now()) {
        Next::Nothing => return Ok(()),
        Next::Delete => {
            let params = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(Preconditions {
                    uid: pod.uid(),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            api.delete(&name, &params).await.map(drop)
        }
        Next::Status(status) => {
            let version = json!({"resourceVersion": pod.resource_version()});
            let patch = Patch::Strategic(json!({"metadata": version, "status": status}));
            let params = PatchParams::default();
            api.patch_status(&name, &params, &patch).await.map(drop)
        }
    };
    match written {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        written => Ok(written?),
    }
}

/// What a node does with a Pod.
#[derive(Debug, PartialEq)]
enum Next {
    Nothing,
    Delete,
    Status(Value),
}

/// Only a Pod that is pending gets a status: what a test writes into one that runs stays.
fn next(pod: &Pod, address: impl FnOnce() -> Ipv4Addr, now: &str) -> Next {
    if pod.metadata.deletion_timestamp.is_some() {
        return Next::Delete;
    }
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let (Some(spec), None | Some("Pending")) = (&pod.spec, phase) else {
        return Next::Nothing;
    };
    let is_host = spec.host_network.unwrap_or_default();
    let ip = if is_host { HOST } else { address() };
    let owners = pod.metadata.owner_references.iter().flatten();
    let has_ended = owners.into_iter().any(|owner| owner.kind == "Job");
    Next::Status(status(spec, ip, has_ended, now))
}

/// The status of a Pod whose containers run, or have ended well.
fn status(spec: &PodSpec, ip: Ipv4Addr, has_ended: bool, now: &str) -> Value {
    let condition = |name: &str, is_true: bool| match (is_true, has_ended) {
        (true, _) => json!({"type": name, "status": "True", "lastTransitionTime": now}),
        (false, _) => {
            json!({"type": name, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now})
        }
    };
    let mut conditions = vec![
        condition("Initialized", true),
        condition("ContainersReady", !has_ended),
        condition("Ready", !has_ended),
    ];
    // A controller of its own sets these in a real cluster, and no test has one.
    let gates = spec.readiness_gates.iter().flatten();
    conditions.extend(gates.map(|gate| condition(&gate.condition_type, true)));
    let inits = spec.init_containers.iter().flatten().map(|container| {
        let is_sidecar = container.restart_policy.as_deref() == Some("Always");
        container_status(container, !is_sidecar || has_ended, true, now)
    });
    let containers = spec.containers.iter();
    let containers = containers.map(|one| container_status(one, has_ended, !has_ended, now));
    json!({
        "phase": if has_ended { "Succeeded" } else { "Running" },
        "conditions": conditions,
        "initContainerStatuses": inits.collect::<Vec<_>>(),
        "containerStatuses": containers.collect::<Vec<_>>(),
        "hostIP": HOST,
        "hostIPs": [{"ip": HOST}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": now,
    })
}

fn container_status(container: &Container, has_ended: bool, is_ready: bool, now: &str) -> Value {
    let state = match has_ended {
        true => json!({"terminated": {
            "exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now,
        }}),
        false => json!({"running": {"startedAt": now}}),
    };
    json!({
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "restartCount": 0,
        "ready": is_ready,
        "started": !has_ended,
        "state": state,
    })
}

/// The next address, which no other Pod of this process has had for a long time.
fn address() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed) % ADDRESSES;
    Ipv4Addr::from_bits(PODS.to_bits() + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-02T03:04:05Z";

    fn pod(more: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "main", "image": "example.test/main:1"}]},
            "status": {"phase": "Pending"},
        });
        for (field, value) in more.as_object().unwrap() {
            for (key, value) in value.as_object().unwrap() {
                pod[field][key] = value.clone();
            }
        }
        serde_json::from_value(pod).unwrap()
    }

    fn status_of(more: &Value) -> Value {
        match next(&pod(more), || PODS, NOW) {
            Next::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pod_becomes_ready() {
        let expected = json!({
            "phase": "Running",
            "conditions": [
                {"type": "Initialized", "status": "True", "lastTransitionTime": NOW},
                {"type": "ContainersReady", "status": "True", "lastTransitionTime": NOW},
                {"type": "Ready", "status": "True", "lastTransitionTime": NOW},
            ],
            "initContainerStatuses": [],
            "containerStatuses": [{
                "name": "main", "image": "example.test/main:1", "imageID": "", "restartCount": 0,
                "ready": true, "started": true, "state": {"running": {"startedAt": NOW}},
            }],
            "hostIP": "127.0.0.1",
            "hostIPs": [{"ip": "127.0.0.1"}],
            "podIP": "198.18.0.1",
            "podIPs": [{"ip": "198.18.0.1"}],
            "startTime": NOW,
        });
        assert_eq!(status_of(&json!({})), expected);
    }

    #[test]
    fn a_pod_of_a_job_has_ended_well() {
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"});
        let status = status_of(&json!({"metadata": {"ownerReferences": [owner]}}));
        assert_eq!(status["phase"], "Succeeded");
        assert_eq!(status["conditions"][2]["type"], "Ready");
        assert_eq!(status["conditions"][2]["status"], "False");
        let container = &status["containerStatuses"][0];
        assert_eq!(container["ready"], false);
        assert_eq!(container["state"]["terminated"]["exitCode"], 0);
    }

    #[test]
    fn init_containers_have_ended_but_for_sidecars() {
        let inits = json!([
            {"name": "once", "image": "a"},
            {"name": "beside", "image": "b", "restartPolicy": "Always"},
        ]);
        let status = status_of(&json!({"spec": {"initContainers": inits}}));
        let state = |at: usize| &status["initContainerStatuses"][at]["state"];
        assert_eq!(state(0)["terminated"]["reason"], "Completed");
        assert_eq!(state(1)["running"]["startedAt"], NOW);
        assert_eq!(status["initContainerStatuses"][1]["started"], true);
    }

    #[test]
    fn readiness_gates_are_open_and_the_network_may_be_the_nodes() {
        let gates = json!([{"conditionType": "example.test/gate"}]);
        let status = status_of(&json!({"spec": {"readinessGates": gates, "hostNetwork": true}}));
        assert_eq!(status["conditions"][3]["type"], "example.test/gate");
        assert_eq!(status["conditions"][3]["status"], "True");
        assert_eq!(status["podIP"], "127.0.0.1");
    }

    #[test]
    fn what_runs_is_left_alone_and_what_is_deleted_goes() {
        let next = |more: Value| next(&pod(&more), || PODS, NOW);
        for phase in ["Running", "Succeeded", "Failed"] {
            assert_eq!(next(json!({"status": {"phase": phase}})), Next::Nothing);
            let deleted =
                json!({"metadata": {"deletionTimestamp": NOW}, "status": {"phase": phase}});
            assert_eq!(next(deleted), Next::Delete);
        }
    }

    #[test]
    fn addresses_differ_and_stay_in_their_range() {
        assert_ne!(address(), address());
        let last = Ipv4Addr::from_bits(PODS.to_bits() + ADDRESSES - 1);
        assert_eq!(last, Ipv4Addr::new(198, 19, 255, 254));
    }
}
