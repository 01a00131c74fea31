//! Edges that objects request by name: `depends-on` between objects, and change rules between an object and a group.

use std::collections::{BTreeMap, BTreeSet};

use super::annotations::OrderAnnotations;
use super::draft::GraphDraft;
use super::{EdgeReason, NodeId, Until};

/// Adds edges from the named object to the one that depends on it. An object that is not part of the command is not waited for: it exists
/// already, or this command does not create it.
pub(super) fn add_depends_on_edges(
    draft: &mut GraphDraft<'_>,
    wishes: &BTreeMap<NodeId, OrderAnnotations>,
) {
    for (id, wishes) in wishes {
        for key in &wishes.after {
            if let Some(named) = draft.find(key) {
                draft.add_edge(named, *id, Until::Ready, EdgeReason::DependsOn);
            }
        }
    }
}

/// Adds edges from the members of a group to the objects that come after it, and to the members from those that come before it. A group
/// belongs to one add-on, as in kapp it belongs to one app.
pub(super) fn add_change_rule_edges(
    draft: &mut GraphDraft<'_>,
    wishes: &BTreeMap<NodeId, OrderAnnotations>,
) {
    let mut members: BTreeMap<(&str, usize), BTreeSet<NodeId>> = BTreeMap::new();
    let mut holders: BTreeMap<(&str, usize, bool), BTreeSet<NodeId>> = BTreeMap::new();
    for (id, wishes) in wishes {
        let Some(part) = draft.items.get(*id).map(|item| item.part) else {
            continue;
        };
        for group in &wishes.groups {
            members.entry((group, part)).or_default().insert(*id);
        }
        for rule in &wishes.rules {
            let holders = holders.entry((&rule.group, part, rule.before)).or_default();
            holders.insert(*id);
        }
    }
    for ((group, part, before), holders) in holders {
        let Some(members) = members.get(&(group, part)) else {
            continue;
        };
        let name = draft.parts.get(part).map_or("", |part| part.name);
        let title = || match before {
            true => format!("what comes before change group {group} of {name} is ready"),
            false => format!("change group {group} of {name} is ready"),
        };
        // A member that waits for its own group bypasses the gate, because it would be on both sides of it.
        let (inside, outside): (Vec<NodeId>, Vec<NodeId>) =
            holders.iter().partition(|id| members.contains(id));
        let members: Vec<NodeId> = members.iter().copied().collect();
        let mut connect = |from: &[NodeId], to: &[NodeId]| {
            draft.connect(from, to, Until::Ready, EdgeReason::ChangeRule, title);
        };
        if before {
            connect(&outside, &members);
        } else {
            connect(&members, &outside);
        }
        for holder in inside {
            for member in &members {
                if before {
                    draft.add_edge(holder, *member, Until::Ready, EdgeReason::ChangeRule);
                } else {
                    draft.add_edge(*member, holder, Until::Ready, EdgeReason::ChangeRule);
                }
            }
        }
    }
}
