//! Writes a former spec back into the record: after an operation that applied nothing, and in the rollback of a failed one.

use common::api::installation::AddonInstallation;

use super::super::begin::{needs_write, with_spec};
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::lock::Lock;
use super::super::record;
use super::super::report::Report;
use super::super::task::Task;

/// Restores the former spec if the server refused every object of the operation, and notes it in the report. If that is impossible (another
/// client wrote the record meanwhile, or admission denies the former spec), the wanted spec stays, as after a partial failure. A spec that
/// another client changed while the lock was held stays, too.
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

/// Writes the spec of `wanted` into a record whose lock is held.
///
/// # Errors
/// Those of the requests. On a conflict, another client wrote the record meanwhile, and `lock` holds the new one.
pub(super) async fn put(
    cluster: &Cluster,
    wanted: &AddonInstallation,
    lock: &mut Lock,
) -> Result<(), EngineError> {
    match record::replace(cluster, &with_spec(wanted, &lock.record)).await {
        Ok(written) => lock.set_record(written),
        Err(error) if error.is_conflict() => {
            // Reads the record again; fails if the lock is lost.
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
