//! Argo CD and Flux objects that apply an object again and again: what they made is taken back from whoever takes it over, as long as
//! they exist.

use std::collections::BTreeMap;

use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;
use common::plan::gitops::{Kind, Reconciler};

use super::super::address::Collection;
use super::super::addressed;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::read_one;

/// Whether it exists. One of a kind that is served and cannot be read counts as live.
async fn is_live(
    by: &Reconciler,
    cluster: &Cluster,
    kinds: &KindTable,
) -> Result<bool, EngineError> {
    let Kind { group, kind, .. } = by.kind;
    let Some((gvk, info)) = kinds.preferred(group, kind) else {
        return Ok(kinds.is_silent(group));
    };
    let collection = Collection::new(gvk, info, by.namespace.as_deref());
    let found = match &by.namespace {
        Some(_) => {
            let read = read_one(cluster, &collection, &by.name).await;
            read.map(|found| found.is_some())
        }
        None => {
            let selector = format!("metadata.name={}", by.name);
            let selectors = [("fieldSelector", selector.as_str())];
            let listed = addressed::metadata(cluster, &collection, &selectors).await;
            listed.map(|listed| !listed.is_empty())
        }
    };
    match found {
        Err(EngineError::Forbidden { .. } | EngineError::Unserved { .. }) => Ok(true),
        found => found,
    }
}

/// The objects that a live one applies, and its name: one request for each that is named.
pub(super) async fn live(
    cluster: &Cluster,
    kinds: &KindTable,
    named: Vec<(ObjectKey, Reconciler)>,
) -> Result<BTreeMap<ObjectKey, String>, EngineError> {
    let is_served = |by: &Reconciler| kinds.preferred(by.kind.group, by.kind.kind).is_some();
    // A tool that was installed after the kinds were read is not missing.
    let now = match named.iter().all(|(_, by)| is_served(by)) {
        true => None,
        false => Some(cluster.kinds_now().await?),
    };
    let kinds = now.as_deref().unwrap_or(kinds);
    let mut known: BTreeMap<Reconciler, bool> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for (key, by) in named {
        let is_live = match known.get(&by) {
            Some(is_live) => *is_live,
            None => {
                let is_live = is_live(&by, cluster, kinds).await?;
                known.insert(by.clone(), is_live);
                is_live
            }
        };
        if is_live {
            found.entry(key).or_insert_with(|| by.to_string());
        }
    }
    Ok(found)
}
