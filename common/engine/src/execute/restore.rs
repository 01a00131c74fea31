//! What the record keeps of an operation of which nothing was applied.

use super::super::begin::with_spec;
use super::super::cluster::Cluster;
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
    if let Ok(stored) = record::replace(cluster, &former).await {
        lock.replaced(stored);
        report.spec_restored = true;
    }
}
