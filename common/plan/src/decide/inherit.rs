//! Objects that move to this installation from another one (semantics 7.4 and 13.9).

use super::DecisionContext;
use crate::desired::DesiredObject;
use crate::inventory::InventoryItem;
use crate::snapshot::LiveObject;
use common::api::installation::ObjectState;
use common::api::names::owner_hash;
use common::manifest::key::ObjectKey;

impl DecisionContext<'_> {
    /// Describes how an object of another installation moves to this one. Returns `None` if it does not.
    pub(super) fn describe_inheritance(
        &self,
        wanted: &DesiredObject,
        recorded: Option<&InventoryItem>,
        live: &LiveObject,
    ) -> Option<String> {
        let key = &wanted.target.key;
        let owner = live.owner.as_ref()?;
        if self.claims.objects.contains_key(key) {
            return None;
        }
        if let Some(leaving) = self.claims.leaving.get(key)
            && owner_hash(&leaving.from.namespace, &leaving.from.name) == *owner
        {
            let from = &leaving.from;
            return Some(format!(
                "moves from the installation {from}, which no longer wants it"
            ));
        }
        // An interrupted move: only this inventory records the object, and its label is still that of the former owner. An object that was
        // only recorded looks the same except for its state.
        let is_ours = recorded.is_some_and(|item| {
            let is_only_recorded =
                wanted.is_left_to_owner() && item.object.state == ObjectState::Preexisting;
            item.object.uid == live.uid && !item.was_applied() && !is_only_recorded
        });
        if is_ours && !self.claims.is_partial && !self.claims.retained.contains_key(key) {
            return Some("moves from an installation that no longer records it".to_owned());
        }
        if let Some(other) = self.claims.retained.get(key)
            && owner_hash(&other.namespace, &other.name) == *owner
        {
            // Create-only objects are recorded as retained although the installation contains them.
            return (!live.create_only)
                .then(|| format!("moves from the installation {other}, which only retains it"));
        }
        let is_gone = !self.claims.owners.contains(owner) && !self.claims.unknown.contains(owner);
        is_gone.then(|| {
            let former = live.other_owner.as_deref();
            let former = former.unwrap_or("an installation");
            format!("is taken over from {former}, which is gone")
        })
    }

    /// Returns the state of an object that moves here. An object that existed before its former owner stays preexisting.
    pub(super) fn inherited_state(&self, key: &ObjectKey) -> ObjectState {
        let leaving = self.claims.leaving.get(key);
        match leaving.map(|leaving| leaving.state) {
            Some(ObjectState::Preexisting) => ObjectState::Preexisting,
            _ => ObjectState::Owned,
        }
    }
}
