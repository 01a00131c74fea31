//! Finds the Argo CD and Flux objects that apply an object again and again: while they exist, they would revert its adoption.

use std::collections::BTreeMap;

use addons_plan::gitops::{GitOpsKind, GitOpsReconciler, LiveReconciler};
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;

use super::super::address::Collection;
use super::super::addressed;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::read_one;

/// Whether a reconciler exists.
#[derive(Clone)]
enum ReconcilerExistence {
    /// It exists, in this namespace.
    Live(Option<String>),
    Gone,
    /// It cannot be read. It then counts as existing.
    Unknown,
}

/// Returns whether a reconciler exists. If its kind is not served, it does not exist, unless its group does not answer.
async fn check_existence(
    by: &GitOpsReconciler,
    cluster: &Cluster,
    kinds: &KindTable,
) -> Result<ReconcilerExistence, EngineError> {
    let GitOpsKind { group, kind, .. } = by.kind;
    let Some((gvk, info)) = kinds.preferred(group, kind) else {
        return Ok(match kinds.is_silent(group) {
            true => ReconcilerExistence::Unknown,
            false => ReconcilerExistence::Gone,
        });
    };
    let collection = Collection::new(gvk, info, by.namespace.as_deref());
    let found = match &by.namespace {
        Some(_) => {
            let read = read_one(cluster, &collection, &by.name).await;
            read.map(|found| found.map(|_| by.namespace.clone()))
        }
        None => {
            let selector = format!("metadata.name={}", by.name);
            let selectors = [("fieldSelector", selector.as_str())];
            let listed = addressed::list_metadata(cluster, &collection, &selectors).await;
            listed.map(|listed| Some(listed.first()?.namespace.clone()))
        }
    };
    match found {
        Err(EngineError::Forbidden { .. } | EngineError::Unserved { .. }) => {
            Ok(ReconcilerExistence::Unknown)
        }
        Ok(Some(namespace)) => Ok(ReconcilerExistence::Live(namespace)),
        Ok(None) => Ok(ReconcilerExistence::Gone),
        Err(error) => Err(error),
    }
}

/// Maps each object to the Argo CD or Flux object that applies it, if that object is live. Sends one request for each reconciler that is
/// named. A reconciler that may not be read counts as live.
pub(super) async fn find_live_reconcilers(
    cluster: &Cluster,
    kinds: &KindTable,
    named: Vec<(ObjectKey, GitOpsReconciler)>,
) -> Result<BTreeMap<ObjectKey, LiveReconciler>, EngineError> {
    let is_served = |by: &GitOpsReconciler| kinds.preferred(by.kind.group, by.kind.kind).is_some();
    // The tool may have been installed after the kinds were read.
    let now = match named.iter().all(|(_, by)| is_served(by)) {
        true => None,
        false => Some(cluster.kinds_now().await?),
    };
    let kinds = now.as_deref().unwrap_or(kinds);
    let mut known: BTreeMap<GitOpsReconciler, ReconcilerExistence> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for (key, by) in named {
        let existence = match known.get(&by) {
            Some(existence) => existence.clone(),
            None => {
                let existence = check_existence(&by, cluster, kinds).await?;
                known.insert(by.clone(), existence.clone());
                existence
            }
        };
        let (namespace, is_seen) = match existence {
            ReconcilerExistence::Gone => continue,
            ReconcilerExistence::Live(namespace) => (namespace, true),
            ReconcilerExistence::Unknown => (by.namespace.clone(), false),
        };
        found.entry(key).or_insert(LiveReconciler {
            reconciler: by,
            namespace,
            is_seen,
        });
    }
    Ok(found)
}
