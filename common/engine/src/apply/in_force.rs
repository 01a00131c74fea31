//! Custom resources whose definition was changed a moment ago: until an API server has seen the change, it judges by the former one.
//!
//! Discovery does not tell: it lists a kind that exists already, and each API server of a cluster follows definitions by itself. So a
//! refusal that the former definition may have caused is final only once the definition has not changed for a while.

use std::time::Duration;

use jiff::SignedDuration;

use addons_plan::Target;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::is_built_in;

use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::served;
use super::super::snapshot::read_one;

/// How long an API server may judge by a former definition. The API server itself counts on 5 s before it establishes a new one; one that
/// is short of processor time takes longer.
const UNSEEN: SignedDuration = SignedDuration::from_secs(10);
/// Pause before a refused object is sent again.
pub(super) const PAUSE: Duration = Duration::from_millis(300);
/// Why an object waits.
pub(super) const WAITS: &str = "the server does not serve the changed schema of its kind yet";

/// Whether a refusal can be that of a former definition: of its schema, its rules or its versions.
pub(super) fn is_of_definition(error: &EngineError, key: &ObjectKey) -> bool {
    let can = error.is_unserved() || error.is_of_schema() || error.code() == Some(422);
    can && !is_built_in(&key.group)
}

/// Whether the definition of a custom resource was changed so recently that the server may not have seen it.
pub(super) async fn is_unseen(cluster: &Cluster, target: &Target) -> bool {
    let name = format!("{}.{}", target.plural, target.key.group);
    // Who may not read definitions takes the answer as it is.
    let Ok(Some(definition)) = read_one(cluster, &served::collection(), &name).await else {
        return false;
    };
    let writers = definition.writers.iter();
    let of_spec = writers.filter(|writer| writer.subresource.is_empty());
    let changed = of_spec.filter_map(|writer| writer.time).max();
    changed.is_some_and(|changed| cluster.now().duration_since(changed) < UNSEEN)
}
