//! Reads kops' records of installed add-ons, which kops' own tool keeps in annotations of namespaces (semantics 11.3).

use std::collections::BTreeSet;

use addons_plan::kops::NodeRole;
use common::catalogue::channel::annotation;

use super::address::Collection;
use super::annotation::node_collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::LiveMetadata;
use super::snapshot::{namespace_collection, read_all, read_one, read_selected};

/// An annotation in which kops records an add-on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Annotation {
    /// The namespace that carries it.
    pub namespace: String,
    /// The add-on.
    pub addon: String,
    /// The value of the annotation.
    pub text: String,
}

/// Returns the object that shows that kops manages the cluster. `None` also if it cannot be read, because it only causes a warning. The
/// service that applies kops' channels runs on control plane nodes, and no object shows it.
pub async fn controller(cluster: &Cluster) -> Option<String> {
    let (namespace, name) = ("kube-system", "kops-controller");
    let sets = Collection::from_names("apps/v1", "DaemonSet", "daemonsets", Some(namespace));
    let found = read_one(cluster, &sets, name).await.ok()?;
    found.map(|_| format!("DaemonSet {namespace}/{name}"))
}

/// Reads the annotations of all namespaces, sorted. One LIST.
///
/// # Errors
/// Those of the request.
pub async fn of_cluster(cluster: &Cluster) -> Result<Vec<Annotation>, EngineError> {
    let found = read_all(cluster, &namespace_collection()).await?;
    let mut all: Vec<Annotation> = found.iter().flatten().flat_map(annotations).collect();
    all.sort();
    Ok(all)
}

fn annotations(namespace: &LiveMetadata) -> impl Iterator<Item = Annotation> {
    namespace.annotations.iter().filter_map(|(key, text)| {
        Some(Annotation {
            namespace: namespace.name.clone(),
            addon: annotation::parse_annotation_key(key)?.to_owned(),
            text: text.clone(),
        })
    })
}

/// Lists the nodes of a role, sorted by name.
///
/// # Errors
/// Those of the requests.
pub async fn nodes(cluster: &Cluster, role: NodeRole) -> Result<BTreeSet<String>, EngineError> {
    let mut found = BTreeSet::new();
    for selector in role.selectors() {
        let nodes = read_selected(cluster, &node_collection(), selector).await?;
        found.extend(nodes.into_iter().flatten().map(|node| node.name));
    }
    Ok(found)
}
