//! The order of several add-ons in one command: who defines a kind goes before those that have objects of it.
//!
//! In kops' many-addons the load balancer's Certificates need the definitions of cert-manager, and nothing in the index says
//! so: the manifests do.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::desired::needed_kinds;
use super::order::defined_kind;
use crate::manifest::Manifest;

/// Add-ons that need each other's definitions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} need definitions of each other; install the definitions first, as an add-on of their own", names.join(", "))]
pub struct Cycle {
    /// The add-ons of the cycle, and those that wait for them, in the order given.
    pub names: Vec<String>,
}

/// One add-on of a command.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// How people know it.
    pub name: &'a str,
    /// Its objects.
    pub manifests: &'a [Manifest],
}

/// The order in which add-ons are planned and executed, as indexes into `parts`: those that nothing is said about keep their
/// places, as far as that is possible.
///
/// # Errors
/// [`Cycle`].
pub fn order(parts: &[Part<'_>]) -> Result<Vec<usize>, Cycle> {
    let needs = needs(parts);
    let mut ordered = Vec::with_capacity(parts.len());
    let mut rest: Vec<usize> = (0..parts.len()).collect();
    while !rest.is_empty() {
        let is_free = |part: &usize| {
            needs
                .get(part)
                .is_none_or(|of| !rest.iter().any(|other| of.contains(other)))
        };
        let Some(next) = rest.iter().position(is_free) else {
            let names = rest
                .iter()
                .filter_map(|index| parts.get(*index))
                .map(|part| part.name.to_owned());
            return Err(Cycle {
                names: names.collect(),
            });
        };
        ordered.push(rest.remove(next));
    }
    Ok(ordered)
}

/// Which parts define kinds that other parts have objects of: their definitions have to be served before the next part.
#[must_use]
pub fn providers(parts: &[Part<'_>]) -> BTreeSet<usize> {
    needs(parts).into_values().flatten().collect()
}

/// The CustomResourceDefinition objects among manifests.
pub fn definitions(manifests: &[Manifest]) -> impl Iterator<Item = &Value> {
    manifests
        .iter()
        .map(|manifest| &manifest.object)
        .filter(|object| defined_kind(object).is_some())
}

/// Part → parts that define kinds it has objects of and does not define itself.
fn needs(parts: &[Part<'_>]) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut definers: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (index, part) in parts.iter().enumerate() {
        for kind in definitions(part.manifests).filter_map(defined_kind) {
            definers.entry(kind).or_insert(index);
        }
    }
    let of = |(index, part): (usize, &Part<'_>)| {
        let needed = needed_kinds(part.manifests);
        let from = needed
            .iter()
            .filter_map(|kind| definers.get(kind).copied())
            .filter(|definer| *definer != index);
        (index, from.collect())
    };
    parts.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::Place;

    fn manifests(objects: &[Value]) -> Vec<Manifest> {
        objects
            .iter()
            .map(|object| Manifest {
                object: object.clone(),
                place: Place::default(),
            })
            .collect()
    }

    fn definition(kind: &str) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": kind},
            "spec": {"group": "example.test", "names": {"kind": kind}}})
    }

    fn resource(kind: &str) -> Value {
        json!({"apiVersion": "example.test/v1", "kind": kind, "metadata": {"name": "a"}})
    }

    #[test]
    fn who_defines_a_kind_goes_first() {
        let sets = [
            ("user", manifests(&[resource("One"), resource("Two")])),
            (
                "alone",
                manifests(&[resource("Three"), definition("Three")]),
            ),
            ("two", manifests(&[definition("Two"), resource("One")])),
            ("one", manifests(&[definition("One")])),
        ];
        let parts: Vec<Part<'_>> = sets
            .iter()
            .map(|(name, manifests)| Part { name, manifests })
            .collect();
        assert_eq!(order(&parts), Ok(vec![1, 3, 2, 0]));
        assert_eq!(providers(&parts), BTreeSet::from([2, 3]));
    }

    #[test]
    fn a_cycle_is_named() {
        let sets = [
            ("a", manifests(&[definition("One"), resource("Two")])),
            ("b", manifests(&[definition("Two"), resource("One")])),
            ("c", manifests(&[])),
        ];
        let parts: Vec<Part<'_>> = sets
            .iter()
            .map(|(name, manifests)| Part { name, manifests })
            .collect();
        let names = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(order(&parts), Err(Cycle { names }));
    }
}
