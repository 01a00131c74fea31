//! Objects that hold what another one needs, and that only one can have: they are pruned anyway, and here they go first.
//!
//! The inventory holds them until the end of the operation. Interrupted after the deletion, the next run finds none of them, and creates
//! the other one.

use addons_plan::Step;
use addons_plan::holder::Holder;
use addons_plan::prune::Obstacle;

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::delete::{Deleted, until_gone};
use super::super::error::{EngineError, FieldCause};
use super::super::prune::delete_one;
use super::Applier;
use super::recreate::{bound, still_there};

/// Deletes the holders that the plan prunes, and waits until they are gone. Another object that has the name of one by now is left: the
/// server says whether it is in the way.
pub(super) async fn delete_holders(
    applier: &Applier<'_>,
    cluster: &Cluster,
    step: &Step,
) -> Result<(), EngineError> {
    for holder in &step.policy.holders {
        let Holder::Pruned(deletion) = holder else {
            continue;
        };
        let (key, uid) = (&deletion.target.key, &deletion.uid);
        let collection = Collection::of(&deletion.target);
        let failed = |why: String| {
            EngineError::conflict(
                step.target.key.clone(),
                format!("{key} has to go first, and {why}; run the command again"),
            )
        };
        match delete_one(cluster, deletion, applier.recorded).await? {
            Deleted::Gone | Deleted::Held(_) => {}
            Deleted::Left(obstacle) if obstacle == Obstacle::ANOTHER => continue,
            Deleted::Left(obstacle) => return Err(failed(format!("is left: {}", obstacle.why()))),
        }
        let left = until_gone(cluster, &collection, &key.name, uid, bound(applier)).await?;
        if let Some(finalizers) = left {
            return Err(failed(still_there(&finalizers)));
        }
    }
    Ok(())
}

/// Whether the server may accept soon what it refuses, because what was needed is free.
pub(super) fn may_pass(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Denied { .. } | EngineError::Invalid { .. }
    )
}

/// The holders are deleted, and the object was not applied.
pub(super) fn lost(step: &Step, error: EngineError) -> EngineError {
    let holders = step.policy.holders.iter();
    let deleted = holders.filter_map(|holder| match holder {
        Holder::Pruned(deletion) => Some(deletion.target.key.to_string()),
        Holder::Applied(_) => None,
    });
    let deleted: Vec<String> = deleted.collect();
    if deleted.is_empty() {
        return error;
    }
    let note = format!("{} was deleted before it", deleted.join(", "));
    match error {
        EngineError::Denied { object, message } => EngineError::Denied {
            object,
            message: format!("{note}, and then: {message}"),
        },
        EngineError::Api {
            what,
            message,
            code,
        } => EngineError::Api {
            what,
            message: format!("{note}, and then: {message}"),
            code,
        },
        EngineError::Invalid { object, mut causes } => {
            let field = String::new();
            causes.push(FieldCause {
                field,
                message: note,
            });
            EngineError::Invalid { object, causes }
        }
        other => other,
    }
}
