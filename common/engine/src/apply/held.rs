//! Deletes objects that hold something another object needs and only one can have. They are pruned anyway; here they are deleted first.
//!
//! The inventory keeps them until the end of the operation. If that is interrupted after the deletion, the next run does not find them, and
//! creates the other object.

use addons_plan::Step;
use addons_plan::holder::ResourceHolder;
use addons_plan::prune::PruneObstacle;

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::delete::{Deleted, wait_until_deleted};
use super::super::error::{EngineError, FieldCause};
use super::super::prune::delete_one;
use super::Applier;
use super::recreate::{deletion_deadline, describe_remaining};

/// Deletes the holders that the plan prunes, and waits until they no longer exist. If another object has the name of one by now, it is
/// left: the server decides whether it is in the way.
pub(super) async fn delete_holders(
    applier: &Applier<'_>,
    cluster: &Cluster,
    step: &Step,
) -> Result<(), EngineError> {
    for holder in &step.policy.holders {
        let ResourceHolder::Pruned(deletion) = holder else {
            continue;
        };
        let (key, uid) = (&deletion.target.key, &deletion.uid);
        let collection = Collection::from_target(&deletion.target);
        let failed = |why: String| {
            EngineError::conflict(
                step.target.key.clone(),
                format!("{key} has to go first, and {why}; run the command again"),
            )
        };
        match delete_one(cluster, deletion, applier.recorded).await? {
            Deleted::Gone | Deleted::Held(_) => {}
            Deleted::Left(obstacle) if obstacle == PruneObstacle::ANOTHER => continue,
            Deleted::Left(obstacle) => return Err(failed(format!("is left: {}", obstacle.why()))),
        }
        let left = wait_until_deleted(
            cluster,
            &collection,
            &key.name,
            uid,
            deletion_deadline(applier),
        )
        .await?;
        if let Some(finalizers) = left {
            return Err(failed(describe_remaining(&finalizers)));
        }
    }
    Ok(())
}

/// Returns whether the server may soon accept what it refuses now, because something was freed.
pub(super) fn may_be_freed(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Denied { .. } | EngineError::Invalid { .. }
    )
}

/// Adds to an error that the holders were deleted although the object was not applied.
pub(super) fn explain_lost(step: &Step, error: EngineError) -> EngineError {
    let holders = step.policy.holders.iter();
    let deleted = holders.filter_map(|holder| match holder {
        ResourceHolder::Pruned(deletion) => Some(deletion.target.key.to_string()),
        ResourceHolder::Applied(_) => None,
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
