//! Real upgrade pairs of the corpus on a real API server. What is added, changed, pruned, retained and refused stands in
//! `tests/data/upgrades`, written by comparing the manifests of the projects, not by running the code under test.

mod chain;
mod corpus;
mod kyverno_like;
mod play;
mod review;
mod seen;

use std::sync::Arc;

use addons_tests::control_plane::{ControlPlane, Own};
use anyhow::Result;

/// A cluster for the chains of this module: their cluster-scoped objects bear the names of real projects, as those of other
/// tests do on the shared one.
async fn cluster() -> Result<Arc<ControlPlane>> {
    static CLUSTER: Own = Own::new();
    CLUSTER.get().await
}

/// Another one: the tree of the addon-manager holds calico and metrics-server, too.
async fn cluster_of_the_tree() -> Result<Arc<ControlPlane>> {
    static CLUSTER: Own = Own::new();
    CLUSTER.get().await
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real add-ons through many versions")]
async fn metrics_server() -> Result<()> {
    play::play("metrics-server", cluster).await
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real add-ons through many versions")]
async fn ingress_nginx() -> Result<()> {
    play::play("ingress-nginx", cluster).await
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real add-ons through many versions")]
async fn flannel() -> Result<()> {
    play::play("flannel", cluster).await
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real add-ons through many versions")]
async fn kube_state_metrics() -> Result<()> {
    play::play("kube-state-metrics", cluster).await
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real add-ons through many versions")]
async fn calico() -> Result<()> {
    play::play("calico", cluster).await
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real add-ons through many versions")]
async fn metallb() -> Result<()> {
    play::play("metallb", cluster).await
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real add-ons through many versions")]
async fn prometheus_operator() -> Result<()> {
    play::play("prometheus-operator", cluster).await
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real add-ons through many versions")]
async fn addon_manager() -> Result<()> {
    play::play("addon-manager", cluster_of_the_tree).await
}
