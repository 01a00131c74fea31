//! Adopts an object that no installation owns. First it gets our marks, so that its owner is visible after an interruption, then the fields
//! of the tool that created it are transferred. Both steps can be repeated, and neither changes anything else.
//!
//! The marks are written by a patch: a server-side apply would remove every field that our manager already owns.

use serde_json::Value;

use addons_plan::Step;
use addons_plan::adoption::Adoption;
use common::api::names;

use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::managed::{self, RewriteResult};
use super::{Applier, ApplyResponse, WrittenMetadata, WrittenObject, replaced_error};

/// Adopts the object of a step.
pub(super) async fn adopt(
    applier: &Applier<'_>,
    cluster: &Cluster,
    step: &Step,
    adoption: &Adoption,
) -> Result<ApplyResponse, EngineError> {
    let (target, manager) = (&step.target, applier.manager.as_str());
    let mut seen = add_marks(applier, cluster, step, adoption).await?;
    let inherited = match &step.policy.inherited {
        Some(owner) => managed::inherit(cluster, target, owner, manager).await?,
        None => None,
    };
    let adopted = managed::adopt(cluster, target, manager).await?;
    if let Some(written) = adopted.or(inherited) {
        seen.take_version(written);
    }
    Ok(ApplyResponse {
        object: WrittenObject { metadata: seen },
        created: false,
        warnings: Vec::new(),
        weight: 0,
    })
}

/// Adds missing label and annotation to the object that the plan found, and to no other one.
async fn add_marks(
    applier: &Applier<'_>,
    cluster: &Cluster,
    step: &Step,
    adoption: &Adoption,
) -> Result<WrittenMetadata, EngineError> {
    let annotation = managed::annotation_pointer(names::ANNOTATION_INSTALLATION);
    let installation = step.object.pointer(&annotation).and_then(Value::as_str);
    let installation = installation.unwrap_or_default();
    let label = managed::label_pointer(names::LABEL_OWNER);
    let marked = managed::rewrite_with(cluster, &step.target, &applier.manager, |live| {
        let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str);
        let is_marked =
            text(&label) == Some(applier.owner.as_str()) && text(&annotation) == Some(installation);
        let is_it = text("/metadata/uid") == Some(adoption.uid.as_str());
        (is_it && !is_marked).then(|| {
            let labels = [(names::LABEL_OWNER, applier.owner.as_str())];
            let annotations = [(names::ANNOTATION_INSTALLATION, installation)];
            let mut patch = managed::put_entries(live, "labels", &labels);
            patch.extend(managed::put_entries(live, "annotations", &annotations));
            patch
        })
    });
    match marked.await {
        Ok(RewriteResult::Written(seen) | RewriteResult::AsItWas(seen))
            if seen.uid == adoption.uid =>
        {
            Ok(seen)
        }
        Ok(_) => Err(replaced_error(step)),
        Err(error) if error.is_not_found() => Err(replaced_error(step)),
        Err(error) => Err(error),
    }
}
