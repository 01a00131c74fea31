//! A former spec comes back into the record: after an operation of which nothing was applied, and on the way back of one that failed.

use common::api::installation::AddonInstallation;

use super::super::begin::{needs_write, with_spec};
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::lock::Lock;
use super::super::record;
use super::super::report::Report;
use super::super::task::Task;

/// Takes back the spec where the server refused every object of it, and notes that in the report. Where that is not possible (another
/// client wrote the record meanwhile, or admission denies the former spec), the wanted one stays, as after a partial failure. A spec
/// that another client changed while the lock was ours is that client's wish, and stays too.
pub(super) async fn spec(cluster: &Cluster, task: &Task<'_>, lock: &mut Lock, report: &mut Report) {
    let Some(fallback) = task.fallback.filter(|_| report.is_refused()) else {
        return;
    };
    let former = with_spec(fallback, &lock.record);
    if former.spec == lock.record.spec || lock.record.metadata.generation != lock.generation {
        return;
    }
    report.spec_restored = put(cluster, fallback, lock).await.is_ok();
}

/// Writes the spec of a record whose lock is held.
///
/// # Errors
/// Those of the requests: a conflict where another client wrote the record meanwhile; it is read again then.
pub(super) async fn put(
    cluster: &Cluster,
    wanted: &AddonInstallation,
    lock: &mut Lock,
) -> Result<(), EngineError> {
    match record::replace(cluster, &with_spec(wanted, &lock.record)).await {
        Ok(written) => lock.set_record(written),
        Err(error) if error.is_conflict() => {
            // Fails where the lock is lost.
            lock.write(cluster, |_| ()).await?;
            if needs_write(wanted, &lock.record) {
                return Err(error);
            }
            // Our own write succeeded, and only its answer was lost.
            lock.set_record(lock.record.clone());
        }
        Err(error) => return Err(error),
    }
    Ok(())
}
