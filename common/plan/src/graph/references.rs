//! Edges from named objects to the objects that name them. Otherwise pods wait for a mount, and objects of an unknown class are ignored.

use serde_json::Value;

use super::draft::{DraftObject, GraphDraft};
use super::template::{WorkloadTemplate, read_text};
use super::{EdgeReason, NodeId, Until};
use crate::references::{collect_references, collect_template_references};
use common::manifest::key::Gvk;

/// Adds edges from each named object to the one that names it. Applied is enough.
pub(super) fn add_reference_edges(draft: &mut GraphDraft<'_>) {
    let mut edges: Vec<(NodeId, NodeId)> = Vec::new();
    let mut named = Vec::new();
    for (id, item) in draft.objects() {
        collect_references(item.key, item.object, &mut named);
        for named in named.drain(..) {
            if let Some(from) =
                draft.find_named(named.group, named.kind, named.namespace, named.name)
            {
                edges.push((from, id));
            }
        }
        edges.extend(find_scale_target(draft, &item).map(|from| (from, id)));
    }
    for (from, to) in edges {
        draft.add_edge(from, to, Until::Applied, EdgeReason::Reference);
    }
}

/// Returns the names of the Secrets that pods read.
pub(super) fn secret_names<'a>(template: &WorkloadTemplate<'a>) -> impl Iterator<Item = &'a str> {
    let mut named = Vec::new();
    collect_template_references(template, &mut named);
    let secrets = named.into_iter().filter(|named| named.kind == "Secret");
    secrets.map(|named| named.name)
}

/// Finds the scale target of a HorizontalPodAutoscaler. Another autoscaler does not count, because two of them could scale each other.
fn find_scale_target(draft: &GraphDraft<'_>, item: &DraftObject<'_>) -> Option<NodeId> {
    let autoscaler = ("autoscaling", "HorizontalPodAutoscaler");
    if (item.key.group.as_str(), item.key.kind.as_str()) != autoscaler {
        return None;
    }
    let target = item.object.pointer("/spec/scaleTargetRef")?;
    let version = target.get("apiVersion").and_then(Value::as_str);
    let gvk = Gvk::new(version.unwrap_or_default(), read_text(target, "/kind")?);
    if gvk.group == item.key.group {
        return None;
    }
    let namespace = item.key.namespace.as_deref();
    draft.find_named(
        &gvk.group,
        &gvk.kind,
        namespace,
        read_text(target, "/name")?,
    )
}
