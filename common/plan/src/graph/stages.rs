//! Waves and hooks of an add-on: stage after stage, each begun when the one before is ready. The definitions of `crds/` come first.

use std::collections::BTreeMap;

use super::annotations::{Phase, Stage, Tool, Wishes};
use super::cycle::topological;
use super::draft::Draft;
use super::{NodeId, Reason, Until};

/// Place of a stage among those of its add-on.
type Place = (Phase, i64);

/// Without an annotation, in an add-on where others have one (Argo CD: wave 0 of phase Sync).
const DEFAULT: Place = (Phase::With, 0);
/// The definitions of `crds/`.
const DEFINITIONS: Place = (Phase::Definitions, 0);

/// Stage → gate → next stage, add-on by add-on; an add-on without any annotation has no stages.
pub(super) fn stages(draft: &mut Draft<'_>, wishes: &BTreeMap<NodeId, Wishes>) {
    let mut tools: BTreeMap<usize, Tool> = BTreeMap::new();
    let said: BTreeMap<NodeId, Stage> = wishes
        .iter()
        .filter_map(|(id, wishes)| Some((*id, wishes.stage?)))
        .collect();
    for (id, stage) in &said {
        if let Some(item) = draft.items.get(*id) {
            let tool = tools.entry(item.part).or_insert(stage.tool);
            if stage.tool == Tool::Argo {
                *tool = Tool::Argo;
            }
        }
    }
    if tools.is_empty() {
        return;
    }
    let places = places(draft, &said);
    for part in draft.parts_by_name() {
        let (Some(tool), Some(name)) = (tools.get(&part), draft.parts.get(part)) else {
            continue;
        };
        let name = name.name;
        let mut stages: BTreeMap<Place, Vec<NodeId>> = BTreeMap::new();
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
            Tool::Argo => Reason::SyncWave,
            Tool::Helm => Reason::HookWeight,
        };
        for ((place, from), (_, to)) in stages.iter().zip(stages.iter().skip(1)) {
            let (until, reason) = match *place {
                // A hook may need them also where readiness is not waited for.
                DEFINITIONS => (Until::Served, Reason::Definition),
                _ => (Until::Ready, reason),
            };
            draft.connect(from, to, until, reason, || title(*place, *tool, name));
        }
    }
}

/// The place of every object. One without a place comes with the first object that needs it: Argo CD does so with namespaces
/// and definitions, and what a hook names would else wait for the hook.
fn places(draft: &mut Draft<'_>, said: &BTreeMap<NodeId, Stage>) -> Vec<Option<Place>> {
    draft.sort_edges();
    let count = draft.count();
    let mut places: Vec<Option<Place>> = (0..count)
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
    for node in topological(count, edges).into_iter().rev() {
        if said.contains_key(&node) {
            continue;
        }
        let start = edges.partition_point(|edge| edge.from < node);
        let after = edges
            .iter()
            .skip(start)
            .take_while(|edge| edge.from == node);
        // Between an object and a gate, which belongs to no add-on, places pass.
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

fn title((phase, wave): Place, tool: Tool, part: &str) -> String {
    match (tool, phase) {
        (_, Phase::Definitions) => format!("definitions of {part} are served"),
        (Tool::Argo, Phase::Before) => format!("PreSync wave {wave} of {part} is ready"),
        (Tool::Argo, Phase::With) => format!("wave {wave} of {part} is ready"),
        (Tool::Argo, Phase::After) => format!("PostSync wave {wave} of {part} is ready"),
        (Tool::Helm, Phase::Before) => format!("hooks of weight {wave} before {part} are ready"),
        (Tool::Helm, Phase::With) => format!("all but the hooks of {part} is ready"),
        (Tool::Helm, Phase::After) => format!("hooks of weight {wave} after {part} are ready"),
    }
}
