//! Custom resources whose CRD was changed a moment ago: until an API server has seen the change, it validates with the former CRD.
//!
//! Discovery does not show this: it lists a kind that already exists, and each API server of a cluster follows CRDs by itself. A refusal
//! that the former CRD may have caused is final only if the CRD has not changed for a while.

use std::time::Duration;

use jiff::SignedDuration;

use addons_plan::Target;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::is_built_in;

use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::served;
use super::super::snapshot::read_one;

/// How long an API server may use a former CRD. The API server itself waits 5 s before it establishes a new one; a server that is short of
/// CPU takes longer.
const UNSEEN: SignedDuration = SignedDuration::from_secs(10);
/// Pause before a refused object is sent again.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(300);
/// Why an object is waiting.
pub(super) const WAIT_REASON: &str = "the server does not serve the changed schema of its kind yet";

/// Returns whether a former CRD can be the cause of a refusal: its schema, its rules or its versions.
pub(super) fn may_be_of_definition(error: &EngineError, key: &ObjectKey) -> bool {
    let can = error.is_unserved() || error.is_schema_mismatch() || error.code() == Some(422);
    can && !is_built_in(&key.group)
}

/// Returns whether the CRD of a custom resource was changed so recently that the server may not have seen it.
pub(super) async fn is_recently_changed(cluster: &Cluster, target: &Target) -> bool {
    let name = format!("{}.{}", target.plural, target.key.group);
    // A client that may not read CRDs takes the answer as it is.
    let Ok(Some(definition)) = read_one(cluster, &served::collection(), &name).await else {
        return false;
    };
    let writers = definition.writers.iter();
    let of_spec = writers.filter(|writer| writer.subresource.is_empty());
    let changed = of_spec.filter_map(|writer| writer.time).max();
    changed.is_some_and(|changed| cluster.now().duration_since(changed) < UNSEEN)
}
