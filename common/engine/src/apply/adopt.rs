//! An object that no installation owns becomes ours: its marks first, so that whoever is cut off leaves an object that shows whose it
//! is, then the fields of the tool that made it. Both may be repeated, and neither changes anything else of it.
//!
//! The marks are written by a merge patch: a server-side apply would remove every field that our manager has already.

use serde_json::{Value, json};

use common::api::names;
use common::plan::Step;
use common::plan::adoption::Adoption;

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::request::{Call, MERGE_PATCH, METADATA};
use super::super::snapshot::read_one;
use super::{Applied, Applier, Written, WrittenMetadata, body, managed};

/// Other clients may write the object meanwhile, and definitions may have dropped versions that managedFields still name.
const TRIES: usize = 8;

/// Adopts the object of a step.
pub(super) async fn adopt(
    applier: &Applier,
    cluster: &Cluster,
    step: &Step,
    adoption: &Adoption,
) -> Result<Applied, EngineError> {
    let mut tries = 1;
    loop {
        let error = match once(applier, cluster, step, adoption).await {
            Err(error) if tries < TRIES => error,
            adopted => return adopted,
        };
        tries += 1;
        match managed::gone_version(&error) {
            Some(version) => {
                managed::heal(cluster, &step.target, &applier.manager, version, error).await?;
            }
            None if matches!(error, EngineError::Api { code: 409, .. }) => {}
            None => return Err(error),
        }
    }
}

async fn once(
    applier: &Applier,
    cluster: &Cluster,
    step: &Step,
    adoption: &Adoption,
) -> Result<Applied, EngineError> {
    let (target, manager) = (&step.target, applier.manager.as_str());
    let mut seen = mark(applier, cluster, step, adoption).await?;
    let inherited = match &step.policy.inherited {
        Some(owner) => managed::inherit(cluster, target, owner, manager).await?,
        None => None,
    };
    let adopted = managed::adopt(cluster, target, manager).await?;
    if let Some(written) = adopted.or(inherited) {
        seen.take_version(written);
    }
    Ok(Applied {
        object: Written { metadata: seen },
        created: false,
        warnings: Vec::new(),
        bytes: 0,
    })
}

/// Writes label and annotation, where they are not there, into the object that was found and no other.
async fn mark(
    applier: &Applier,
    cluster: &Cluster,
    step: &Step,
    adoption: &Adoption,
) -> Result<WrittenMetadata, EngineError> {
    let collection = Collection::of(&step.target);
    let name = &step.target.key.name;
    let live = read_one(cluster, &collection, name).await?;
    let live = live.filter(|live| live.uid == adoption.uid);
    let live = live.ok_or_else(|| other(step))?;
    let installation = step.object.get("metadata").and_then(|metadata| {
        let annotations = metadata.get("annotations")?;
        annotations.get(names::ANNOTATION_INSTALLATION)
    });
    let installation = installation.and_then(Value::as_str).unwrap_or_default();
    let annotation = live.annotations.get(names::ANNOTATION_INSTALLATION);
    if live.labels.get(names::LABEL_OWNER) == Some(&applier.owner)
        && annotation.is_some_and(|there| there == installation)
    {
        return Ok(WrittenMetadata {
            uid: live.uid,
            generation: live.generation,
            resource_version: live.resource_version,
            ..WrittenMetadata::default()
        });
    }
    let marks = json!({"metadata": {
        "resourceVersion": live.resource_version,
        "labels": {names::LABEL_OWNER: applier.owner},
        "annotations": {names::ANNOTATION_INSTALLATION: installation},
    }});
    let call = Call::patch(&collection, name, MERGE_PATCH, METADATA)
        .query("fieldManager", &applier.manager)
        .body(body(&step.target, &marks)?);
    Ok(cluster.send::<Written>(call).await?.object.metadata)
}

/// The live object is not the one that was found, or there is none any more.
fn other(step: &Step) -> EngineError {
    EngineError::Conflict {
        key: Box::new(step.target.key.clone()),
        message: "it was deleted or created again since the plan was made, and is not adopted; run the command again".to_owned(),
        recorded: None,
        remedy: None,
    }
}
