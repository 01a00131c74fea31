//! Deletions of a plan that the server would refuse: one dry run for each object, and one for the record.

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};

use common::api::installation::AddonInstallation;
use common::manifest::key::ObjectKey;
use common::plan::InstallationPlan;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::report::Failure;
use super::{delete, record};

/// What an uninstallation would not be allowed to delete; nothing is deleted.
///
/// # Errors
/// The server cannot be reached.
pub async fn deletions(
    cluster: &Cluster,
    plan: &InstallationPlan,
    record: &AddonInstallation,
) -> Result<Vec<Failure>, EngineError> {
    let deletions = plan.prune.iter().flatten();
    let mut refused: Vec<Failure> = stream::iter(deletions)
        .map(async |deletion| {
            let (target, uid) = (&deletion.target, &deletion.uid);
            let collection = Collection::of(target);
            let asked = delete::dry_run(cluster, &collection, &target.key.name, uid).await;
            refusal(target.key.clone(), asked)
        })
        .buffered(cluster.concurrency())
        .try_filter_map(async |refused| Ok(refused))
        .try_collect()
        .await?;
    let key = record::key(&plan.installation);
    refused.extend(refusal(key, record::delete(cluster, record, true).await)?);
    Ok(refused)
}

fn refusal(key: ObjectKey, asked: Result<(), EngineError>) -> Result<Option<Failure>, EngineError> {
    match asked {
        Ok(()) => Ok(None),
        Err(error @ (EngineError::Unreachable { .. } | EngineError::Unauthorized { .. })) => {
            Err(error)
        }
        Err(error) => Ok(Some(Failure::of(key, &error))),
    }
}
