//! The addon-manager that kube-up and others run on control planes, and objects that versions of 2015 left behind.

use std::collections::{BTreeMap, BTreeSet};

use addons_plan::Deletion;
use common::api::names::{LABEL_MODE, LABEL_OWNER};
use common::directory::class::CLUSTER_SERVICE;
use common::directory::legacy::VERSIONED;

use super::address::Collection;
use super::addressed;
use super::cluster::Cluster;
use super::error::EngineError;
use super::snapshot::{read_selected, to_live_object};

/// The label in the addon-manager's own manifest.
const LABEL: &str = "component=kube-addon-manager";
const NAMESPACE: &str = "kube-system";

/// Returns a running pod of the addon-manager, as `NAMESPACE/NAME`. Also `None` if pods cannot be read, because the result only causes a
/// warning.
pub async fn find_pod(cluster: &Cluster) -> Option<String> {
    let kind = ("".to_owned(), "Pod".to_owned());
    let kinds = cluster.kinds(&BTreeSet::from([kind])).await.ok()?;
    let (gvk, info) = kinds.preferred("", "Pod")?;
    let collection = Collection::new(gvk, info, Some(NAMESPACE));
    let pods = read_selected(cluster, &collection, &[("labelSelector", LABEL)]).await;
    let pod = pods.ok()??.into_iter().next()?;
    Some(format!("pod {NAMESPACE}/{}", pod.name))
}

/// Returns deletions for the objects with the label of 2015 whose names carry a version, and that neither an installation nor a controller
/// owns. Objects with a mark that forbids the deletion are left out.
///
/// # Errors
/// The objects cannot be listed.
pub async fn list_versioned(cluster: &Cluster) -> Result<Vec<Deletion>, EngineError> {
    let needed = VERSIONED.map(|(group, kind)| (group.to_owned(), kind.to_owned()));
    let kinds = cluster.kinds(&BTreeSet::from(needed)).await?;
    let selector = format!("{CLUSTER_SERVICE}=true,{LABEL_MODE}!=EnsureExists,!{LABEL_OWNER}");
    let mut found = Vec::new();
    for (group, kind) in VERSIONED {
        let Some((gvk, info)) = kinds.preferred(group, kind) else {
            continue;
        };
        let collection = Collection::new(gvk, info, None);
        let selectors = [("labelSelector", selector.as_str())];
        for metadata in addressed::list_metadata(cluster, &collection, &selectors).await? {
            let target = collection.target(&metadata);
            let live = to_live_object(metadata);
            if live.keep.is_none() && live.controlled_by.is_none() {
                let service = (CLUSTER_SERVICE.to_owned(), "true".to_owned());
                found.push(Deletion {
                    target,
                    uid: live.uid,
                    resource_version: live.resource_version,
                    labels: BTreeMap::from([service]),
                });
            }
        }
    }
    Ok(found)
}
