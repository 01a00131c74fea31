//! Waves and hooks of an add-on, in stages: each begins when the one before is ready. CRDs from `crds/` come first.

use std::collections::BTreeMap;

use super::annotations::{ApplyStage, HookPhase, OrderAnnotations, StageTool};
use super::cycle::topological_order;
use super::draft::GraphDraft;
use super::{EdgeReason, NodeId, Until};

/// Position of a stage within its add-on.
type StagePosition = (HookPhase, i64);

/// Position of objects without an annotation, in an add-on with annotations (Argo CD: wave 0 of phase Sync).
const DEFAULT: StagePosition = (HookPhase::With, 0);
/// Position of the CRDs from `crds/`.
const DEFINITIONS: StagePosition = (HookPhase::Definitions, 0);

/// Adds edges from each stage over a gate to the next one, add-on by add-on. An add-on without annotations has no stages.
pub(super) fn add_stage_edges(
    draft: &mut GraphDraft<'_>,
    wishes: &BTreeMap<NodeId, OrderAnnotations>,
) {
    let mut tools: BTreeMap<usize, StageTool> = BTreeMap::new();
    let said: BTreeMap<NodeId, ApplyStage> = wishes
        .iter()
        .filter_map(|(id, wishes)| Some((*id, wishes.stage?)))
        .collect();
    for (id, stage) in &said {
        if let Some(item) = draft.items.get(*id) {
            let tool = tools.entry(item.part).or_insert(stage.tool);
            if stage.tool == StageTool::Argo {
                *tool = StageTool::Argo;
            }
        }
    }
    if tools.is_empty() {
        return;
    }
    let places = stage_positions(draft, &said);
    for part in draft.parts_by_name() {
        let (Some(tool), Some(name)) = (tools.get(&part), draft.parts.get(part)) else {
            continue;
        };
        let name = name.name;
        let mut stages: BTreeMap<StagePosition, Vec<NodeId>> = BTreeMap::new();
        for (id, item) in draft.objects() {
            if let Some(place) = places
                .get(id)
                .copied()
                .flatten()
                .filter(|_| item.part == part)
            {
                stages.entry(place).or_default().push(id);
            }
        }
        let reason = match tool {
            StageTool::Argo => EdgeReason::SyncWave,
            StageTool::Helm => EdgeReason::HookWeight,
        };
        for ((place, from), (_, to)) in stages.iter().zip(stages.iter().skip(1)) {
            let (until, reason) = match *place {
                // A hook may need the CRDs even if the command does not wait for readiness.
                DEFINITIONS => (Until::Served, EdgeReason::Definition),
                _ => (Until::Ready, reason),
            };
            draft.connect(from, to, until, reason, || gate_title(*place, *tool, name));
        }
    }
}

/// Returns the position of every object. An object without an annotation comes with the first object that needs it: Argo CD does the same
/// with namespaces and CRDs, and an object that a hook names would otherwise wait for the hook.
fn stage_positions(
    draft: &mut GraphDraft<'_>,
    said: &BTreeMap<NodeId, ApplyStage>,
) -> Vec<Option<StagePosition>> {
    draft.sort_edges();
    let count = draft.count();
    let mut places: Vec<Option<StagePosition>> = (0..count)
        .map(|id| match said.get(&id) {
            Some(stage) => Some((stage.phase, stage.wave)),
            None => draft.items.get(id).map(|item| match item.is_of_crds {
                true => DEFINITIONS,
                false => DEFAULT,
            }),
        })
        .collect();
    let edges = draft.edges();
    let part = |id: NodeId| draft.items.get(id).map(|item| item.part);
    for node in topological_order(count, edges).into_iter().rev() {
        if said.contains_key(&node) {
            continue;
        }
        let start = edges.partition_point(|edge| edge.from < node);
        let after = edges
            .iter()
            .skip(start)
            .take_while(|edge| edge.from == node);
        // A gate belongs to no add-on: positions pass through it.
        let first = after
            .filter(|edge| match (part(node), part(edge.to)) {
                (Some(one), Some(other)) => one == other,
                _ => true,
            })
            .filter_map(|edge| places.get(edge.to).copied().flatten())
            .min();
        if let (Some(first), Some(place)) = (first, places.get_mut(node)) {
            *place = Some(place.map_or(first, |place| place.min(first)));
        }
    }
    places
}

fn gate_title((phase, wave): StagePosition, tool: StageTool, part: &str) -> String {
    match (tool, phase) {
        (_, HookPhase::Definitions) => format!("definitions of {part} are served"),
        (StageTool::Argo, HookPhase::Before) => format!("PreSync wave {wave} of {part} is ready"),
        (StageTool::Argo, HookPhase::With) => format!("wave {wave} of {part} is ready"),
        (StageTool::Argo, HookPhase::After) => format!("PostSync wave {wave} of {part} is ready"),
        (StageTool::Helm, HookPhase::Before) => {
            format!("hooks of weight {wave} before {part} are ready")
        }
        (StageTool::Helm, HookPhase::With) => format!("all but the hooks of {part} is ready"),
        (StageTool::Helm, HookPhase::After) => {
            format!("hooks of weight {wave} after {part} are ready")
        }
    }
}
