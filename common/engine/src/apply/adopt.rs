//! An object that no installation owns becomes ours: its marks first, so that whoever is cut off leaves an object that shows whose it
//! is, then the fields of the tool that made it. Both may be repeated, and neither changes anything else of it.
//!
//! The marks are written by a patch: a server-side apply would remove every field that our manager has already.

use serde_json::Value;

use addons_plan::Step;
use addons_plan::adoption::Adoption;
use common::api::names;

use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::managed::{self, Rewritten};
use super::{Applied, Applier, Written, WrittenMetadata, replaced};

/// Adopts the object of a step.
pub(super) async fn adopt(
    applier: &Applier<'_>,
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
        weight: 0,
    })
}

/// Writes label and annotation, where they are not there, into the object that was found and no other.
async fn mark(
    applier: &Applier<'_>,
    cluster: &Cluster,
    step: &Step,
    adoption: &Adoption,
) -> Result<WrittenMetadata, EngineError> {
    let annotation = managed::annotation(names::ANNOTATION_INSTALLATION);
    let installation = step.object.pointer(&annotation).and_then(Value::as_str);
    let installation = installation.unwrap_or_default();
    let label = managed::label(names::LABEL_OWNER);
    let marked = managed::rewrite_with(cluster, &step.target, &applier.manager, |live| {
        let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str);
        let is_marked =
            text(&label) == Some(applier.owner.as_str()) && text(&annotation) == Some(installation);
        let is_it = text("/metadata/uid") == Some(adoption.uid.as_str());
        (is_it && !is_marked).then(|| {
            let labels = [(names::LABEL_OWNER, applier.owner.as_str())];
            let annotations = [(names::ANNOTATION_INSTALLATION, installation)];
            let mut patch = managed::put(live, "labels", &labels);
            patch.extend(managed::put(live, "annotations", &annotations));
            patch
        })
    });
    match marked.await {
        Ok(Rewritten::Written(seen) | Rewritten::AsItWas(seen)) if seen.uid == adoption.uid => {
            Ok(seen)
        }
        Ok(_) => Err(replaced(step)),
        Err(error) if error.is_not_found() => Err(replaced(step)),
        Err(error) => Err(error),
    }
}
