//! Reads the live state of the wanted and recorded objects: metadata only, one LIST a kind and namespace (semantics 12).

use std::collections::BTreeSet;

use crate::manifest::key::ObjectKey;
use crate::manifest::kinds::KindTable;
use crate::plan::snapshot::Snapshot;

use super::cluster::Cluster;
use super::error::EngineError;

/// Reads what is there of `keys`, and whether `namespaces` exist. A GET where one object of a kind and namespace is asked
/// for, a metadata-only LIST where more are.
pub async fn read(
    cluster: &Cluster,
    kinds: &KindTable,
    keys: &BTreeSet<ObjectKey>,
    namespaces: &BTreeSet<String>,
) -> Result<Snapshot, EngineError> {
    let _ = (cluster, kinds, keys, namespaces);
    todo!()
}
