//! A node as the API server sees it: its object, and the Lease and the condition by which it is known to live.

use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// How often a node says that it lives, whatever its Pods take: as often as a kubelet renews its Lease.
const BEAT: Duration = Duration::from_secs(10);

/// What a node offers.
pub(super) struct Size {
    pub(super) cpu: u32,
    /// In GiB.
    pub(super) memory: u32,
    pub(super) pods: u32,
}

/// Creates a node that is ready from the beginning.
pub(super) async fn create(client: &Client, name: &str, size: &Size) -> Result<()> {
    let resources = json!({
        "cpu": size.cpu.to_string(),
        "memory": format!("{}Gi", size.memory),
        "pods": size.pods.to_string(),
    });
    let node: Node = serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        },
        "status": {
            "addresses": [{"type": "Hostname", "address": name}],
            "allocatable": resources,
            "capacity": resources,
            "conditions": [ready()],
        },
    }))?;
    let nodes = Api::<Node>::all(client.clone());
    nodes.create(&PostParams::default(), &node).await?;
    Ok(())
}

/// Says again and again that the node lives.
///
/// # Errors
/// Of the API server, with the first beat that fails.
pub(super) async fn live(client: &Client, name: &str) -> Result<()> {
    let mut tick = tokio::time::interval(BEAT);
    loop {
        tick.tick().await;
        beat(client, name).await?;
    }
}

/// Renews the Lease. A node that was silent too long is ready only when it says so itself: until then the node controller lets no
/// Pod be scheduled to it.
async fn beat(client: &Client, name: &str) -> Result<()> {
    let leases = Api::<Lease>::namespaced(client.clone(), "kube-node-lease");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format!("{:.6}", Timestamp::now())},
    });
    let params = PatchParams::apply("addons-tests").force();
    leases.patch(name, &params, &Patch::Apply(lease)).await?;
    let nodes = Api::<Node>::all(client.clone());
    if !is_ready(&nodes.get(name).await?) {
        let patch = Patch::Strategic(json!({"status": {"conditions": [ready()]}}));
        let params = PatchParams::default();
        nodes.patch_status(name, &params, &patch).await?;
    }
    Ok(())
}

fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let mut conditions = status.iter().flat_map(|it| it.conditions.iter().flatten());
    conditions.any(|one| one.type_ == "Ready" && one.status == "True")
}

fn ready() -> Value {
    json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "a test",
        "lastHeartbeatTime": super::now(), "lastTransitionTime": super::now()})
}
