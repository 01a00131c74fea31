//! An object that no installation owns becomes ours: its marks first, so that whoever is cut off leaves an object that shows whose it
//! is, then the fields of the tool that made it. Both may be repeated, and neither changes anything else of it.

use serde_json::Value;

use common::api::names;
use common::plan::Step;
use common::plan::adoption::Adoption;

use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::handover::Marks;
use super::{Applier, managed};

/// Definitions may have dropped several versions that managedFields still name.
const TRIES: usize = 4;

/// Adopts the object of a step; generation and resourceVersion after it.
pub(super) async fn adopt(
    applier: &Applier,
    cluster: &Cluster,
    step: &Step,
    adoption: &Adoption,
) -> Result<(Option<i64>, String), EngineError> {
    let installation = step.object.get("metadata").and_then(|metadata| {
        let annotations = metadata.get("annotations")?;
        annotations.get(names::ANNOTATION_INSTALLATION)
    });
    let marks = Marks {
        owner: &applier.owner,
        installation: installation.and_then(Value::as_str).unwrap_or_default(),
        uid: &adoption.uid,
        resource_version: None,
    };
    let mut tries = 1;
    loop {
        let error = match once(applier, cluster, step, &marks).await {
            Err(error) if tries < TRIES => error,
            Err(error) if error.is_conflict() => return Err(other(step)),
            seen => return seen,
        };
        tries += 1;
        match managed::gone_version(&error) {
            Some(version) => {
                managed::heal(cluster, &step.target, &applier.manager, version, error).await?;
            }
            None if error.is_conflict() => {}
            None => return Err(error),
        }
    }
}

async fn once(
    applier: &Applier,
    cluster: &Cluster,
    step: &Step,
    marks: &Marks<'_>,
) -> Result<(Option<i64>, String), EngineError> {
    let (generation, version) = marks.apply(cluster, &step.target, &applier.manager).await?;
    let adopted = managed::adopt(cluster, &step.target, &applier.manager).await?;
    Ok((generation, adopted.unwrap_or(version)))
}

/// The uid of the live object is not the one that was found, or there is none any more.
fn other(step: &Step) -> EngineError {
    EngineError::Conflict {
        key: Box::new(step.target.key.clone()),
        message: "it was deleted or created again since the plan was made, and is not adopted; run the command again".to_owned(),
        recorded: None,
        remedy: None,
    }
}
