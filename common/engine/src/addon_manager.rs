//! The addon-manager that kube-up and others run on control planes, and what that of 2015 left behind.

use std::collections::BTreeSet;

use common::api::names::LABEL_OWNER;
use common::directory::class::{CLUSTER_SERVICE, MODE};
use common::directory::legacy::VERSIONED;
use common::manifest::key::ObjectKey;
use common::plan::prune::keep;
use common::plan::{Deletion, Target};

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
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

/// Objects with the label of 2015 whose names carry a version and that neither an installation nor a controller owns, each as its
/// deletion. A mark that forbids the deletion counts here, too.
///
/// # Errors
/// They cannot be listed.
pub async fn versioned(cluster: &Cluster) -> Result<Vec<Deletion>, EngineError> {
    let needed = VERSIONED.map(|(group, kind)| (group.to_owned(), kind.to_owned()));
    let kinds = cluster.kinds(&BTreeSet::from(needed)).await?;
    let selector = format!("{CLUSTER_SERVICE}=true,{MODE}!=EnsureExists,!{LABEL_OWNER}");
    let mut found = Vec::new();
    for (group, kind) in VERSIONED {
        let Some((gvk, info)) = kinds.preferred(group, kind) else {
            continue;
        };
        let collection = Collection::new(gvk.clone(), info, None);
        let objects = listing::all::<Partial>(cluster, &collection, Some(&selector)).await?;
        let deletable = objects.into_iter().filter(|object| {
            let metadata = &object.metadata;
            let mut owners = metadata.owner_references.iter();
            keep::mark(&metadata.annotations).is_none() && !owners.any(|owner| owner.controller)
        });
        found.extend(deletable.map(|object| Deletion {
            target: Target {
                key: ObjectKey {
                    group: gvk.group.clone(),
                    kind: gvk.kind.clone(),
                    namespace: object.metadata.namespace,
                    name: object.metadata.name,
                },
                version: gvk.version.clone(),
                plural: info.plural.clone(),
            },
            uid: object.metadata.uid,
        }));
    }
    Ok(found)
}
