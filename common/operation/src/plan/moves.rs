//! Objects that change their owner within one command: one installation has recorded the object and no longer contains it, and another one
//! does (semantics 13.9).

use std::collections::BTreeMap;

use addons_plan::claims::{Claims, LeavingObject};
use addons_plan::inventory::Inventory;
use common::api::installation::{AddonInstallation, ObjectState};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;

use crate::records::name_of;
use crate::render::Rendered;
use crate::resolve::resolved::Resolved;

/// An object and its two owners.
#[derive(Debug)]
struct Move {
    key: ObjectKey,
    from: InstallationName,
    state: ObjectState,
    to: InstallationName,
}

/// The moves of a command.
#[derive(Debug, Default)]
pub(super) struct Moves(Vec<Move>);

/// A desired object as its manifest names it, and the installation that contains it.
type DesiredBy<'a> = (ObjectKey, &'a Resolved);

impl Moves {
    /// Finds the moves by comparing recorded and desired objects. Installations that are `leaving` give up every object.
    pub(super) fn find(due: &[(Resolved, Rendered)], leaving: &[&AddonInstallation]) -> Self {
        let mut wanted: BTreeMap<(String, String, String), Vec<DesiredBy<'_>>> = BTreeMap::new();
        for (resolved, rendered) in due {
            let keys = rendered.manifests.iter();
            for key in keys.filter_map(|manifest| ObjectKey::from_object(&manifest.object)) {
                let name = (key.group.clone(), key.kind.clone(), key.name.clone());
                wanted.entry(name).or_default().push((key, resolved));
            }
        }
        let mut moves = Self::default();
        let givers = due
            .iter()
            .filter_map(|(resolved, _)| resolved.existing.as_ref());
        for giver in givers.chain(leaving.iter().copied()) {
            let from = name_of(giver);
            for (key, item) in Inventory::from_status(giver.status.as_ref()).objects {
                let name = (key.group.clone(), key.kind.clone(), key.name.clone());
                let mut takers = wanted
                    .get(&name)
                    .into_iter()
                    .flatten()
                    .filter(|(written, by)| key.is_described_by(written, by.target_namespace()));
                let takers: Vec<&InstallationName> =
                    takers.by_ref().map(|(_, by)| &by.name).collect();
                let Some(to) = takers.first().filter(|_| !takers.contains(&&from)) else {
                    continue;
                };
                moves.0.push(Move {
                    to: (*to).clone(),
                    from: from.clone(),
                    state: item.object.state,
                    key,
                });
            }
        }
        moves
    }

    /// Adds the objects that an installation gets or gives up to its claims.
    pub(super) fn add_to_claims(&self, name: &InstallationName, claims: &mut Claims) {
        for one in &self.0 {
            if one.to == *name {
                let leaving = LeavingObject {
                    from: one.from.clone(),
                    state: one.state,
                };
                claims.add_leaving(&one.key, &leaving);
            } else if one.from == *name {
                claims.taken.insert(one.key.clone(), one.to.clone());
            }
        }
    }
}
