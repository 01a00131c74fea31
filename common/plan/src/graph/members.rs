//! Edges from containers to their members: a CRD comes before the objects of its kind, a namespace before its objects.

use std::collections::BTreeMap;

use super::draft::GraphDraft;
use super::{EdgeReason, NodeId, Until};
use crate::order::ObjectRank;
use common::manifest::kinds::traits::defined_kind;

/// Adds edges from each CustomResourceDefinition to the objects of its kind, in every add-on.
pub(super) fn add_definition_edges(draft: &mut GraphDraft<'_>) {
    let mut edges = Vec::new();
    for (definition, item) in draft.objects() {
        // A CRD in the group of CRDs would wait for itself; the API server refuses it anyway.
        let Some((group, kind)) =
            defined_kind(item.object).filter(|_| item.rank == ObjectRank::Definitions)
        else {
            continue;
        };
        let of_kind = draft.objects_of_kind(&group, &kind);
        edges.extend(
            of_kind
                .filter(|(_, item)| item.rank > ObjectRank::Definitions)
                .map(|(object, _)| (definition, object)),
        );
    }
    for (from, to) in edges {
        draft.add_edge(from, to, Until::Served, EdgeReason::Definition);
    }
}

/// Adds edges from each Namespace to its members. Applied is enough, because the answer to its creation already reports Active.
///
/// If several add-ons contain a Namespace, a member waits for that of its own add-on, or else for all of them.
pub(super) fn add_namespace_edges(draft: &mut GraphDraft<'_>) {
    let mut namespaces: BTreeMap<&str, Vec<(usize, NodeId)>> = BTreeMap::new();
    for (id, item) in draft.objects_of_kind("", "Namespace") {
        let name = item.key.name.as_str();
        namespaces.entry(name).or_default().push((item.part, id));
    }
    let mut edges = Vec::new();
    for (member, item) in draft.objects() {
        let namespace = item.key.namespace.as_deref();
        let Some(owners) = namespace.and_then(|namespace| namespaces.get(namespace)) else {
            continue;
        };
        let own = owners.iter().find(|(part, _)| *part == item.part);
        if item.rank <= ObjectRank::Definitions {
            continue;
        }
        match own {
            Some((_, namespace)) => edges.push((*namespace, member)),
            None => edges.extend(owners.iter().map(|(_, namespace)| (*namespace, member))),
        }
    }
    for (from, to) in edges {
        draft.add_edge(from, to, Until::Applied, EdgeReason::Namespace);
    }
}
