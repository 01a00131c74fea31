//! Edges for `requires` of a catalogue entry: all objects of one add-on come before all objects of another.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::GraphDraft;
use super::{EdgeReason, NodeId, Until};

/// Adds edges from the objects of a required add-on, over a gate, to the objects of the add-ons that require it.
pub(super) fn add_requires_gates(draft: &mut GraphDraft<'_>) {
    let mut objects: BTreeMap<usize, Vec<NodeId>> = BTreeMap::new();
    for (id, item) in draft.objects() {
        objects.entry(item.part).or_default().push(id);
    }
    let parts = draft.parts;
    let required: BTreeSet<usize> = parts
        .iter()
        .flat_map(|part| part.requires)
        .copied()
        .collect();
    let of = |part: usize| objects.get(&part).into_iter().flatten().copied();
    for needed in draft.parts_by_name() {
        let Some(part) = parts.get(needed).filter(|_| required.contains(&needed)) else {
            continue;
        };
        let gate = draft.add_gate(format!("{} is installed", part.name));
        for object in of(needed) {
            draft.add_edge(object, gate, Until::Ready, EdgeReason::Requires);
        }
        for (waiting, part) in parts.iter().enumerate() {
            if part.requires.contains(&needed) {
                for object in of(waiting) {
                    draft.add_edge(gate, object, Until::Ready, EdgeReason::Requires);
                }
            }
        }
    }
}
