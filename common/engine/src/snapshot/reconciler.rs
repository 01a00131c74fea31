//! Argo CD and Flux objects that apply an object again and again: what they made is taken back from whoever takes it over, as long as
//! they exist.

use std::collections::BTreeMap;

use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;
use common::plan::gitops::{Kind, Reconciler};

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::{read_one, read_selected};

/// Whether it exists. One of a kind that is served and may not be read counts as live.
async fn is_live(
    by: &Reconciler,
    cluster: &Cluster,
    kinds: &KindTable,
) -> Result<bool, EngineError> {
    let Kind {
        group,
        version,
        kind,
        plural,
        ..
    } = by.kind;
    let served = kinds.preferred(group, kind);
    let version = served.as_ref().map_or(version, |(gvk, _)| &gvk.version);
    let api_version = format!("{group}/{version}");
    let collection = Collection::known(&api_version, kind, plural, by.namespace.as_deref());
    let found = match &by.namespace {
        Some(_) => {
            let read = read_one(cluster, &collection, &by.name).await;
            read.map(|found| found.is_some())
        }
        None => {
            let selector = format!("metadata.name={}", by.name);
            let selectors = [("fieldSelector", selector.as_str())];
            let listed = read_selected(cluster, &collection, &selectors).await;
            listed.map(|listed| listed.is_some_and(|listed| !listed.is_empty()))
        }
    };
    match found {
        Err(error) if error.is_not_found() => Ok(false),
        Err(EngineError::Forbidden { .. }) => Ok(served.is_some()),
        found => found,
    }
}

/// The objects that a live one applies, and its name: one request for each that is named.
pub(super) async fn live(
    cluster: &Cluster,
    kinds: &KindTable,
    named: Vec<(ObjectKey, Reconciler)>,
) -> Result<BTreeMap<ObjectKey, String>, EngineError> {
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
