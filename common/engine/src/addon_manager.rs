//! The addon-manager that kube-up and others run on control planes.

use std::collections::BTreeSet;

use super::address::Collection;
use super::cluster::Cluster;
use super::listing;
use super::meta::Partial;

/// Its label, as its own manifest has it.
const LABEL: &str = "component=kube-addon-manager";
const NAMESPACE: &str = "kube-system";

/// A pod of it that runs, as `NAMESPACE/NAME`; `None` also where that cannot be read: it is a warning only.
pub async fn pod(cluster: &Cluster) -> Option<String> {
    let kind = ("".to_owned(), "Pod".to_owned());
    let kinds = cluster.kinds(&BTreeSet::from([kind])).await.ok()?;
    let (gvk, info) = kinds.preferred("", "Pod")?;
    let collection = Collection::new(gvk, info, Some(NAMESPACE));
    let pods = listing::all::<Partial>(cluster, &collection, Some(LABEL)).await;
    let pod = pods.ok()?.into_iter().next()?;
    Some(format!("pod {NAMESPACE}/{}", pod.metadata.name))
}
