//! The inventory: all objects of an installation, each with its state, uid and digests (semantics 13.4).
//!
//! Invariants: the union of the old and the new inventory is recorded before the first write, the exact inventory after the last. In
//! between, the recorded inventory is the union, updated with each answer of the server ([`Inventory::record_applied`], [`Inventory::remove`]).
//! [`Inventory::close`] reduces it to the exact inventory.

use std::collections::{BTreeMap, BTreeSet};

use common::api::installation::{
    AddonInstallationStatus, InventoryGroup, InventoryObject, LiveState, ObjectState,
};
use common::manifest::key::ObjectKey;

/// The maximum size of an inventory in the record, in bytes of JSON: enough for 5,000 typical objects (semantics 13.4).
pub const BUDGET: usize = 800_000;

/// The inventory of one installation, by key. [`common::api::installation::InventoryGroup`] is its stored form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// Objects by key.
    pub objects: BTreeMap<ObjectKey, InventoryItem>,
}

/// One object of an inventory, and the API version in which it was applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InventoryItem {
    /// API version.
    pub version: String,
    /// Its recorded state.
    pub object: InventoryObject,
}

/// The part of the API server's answer to an apply that the inventory records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplyAnswer {
    /// Whether the answer was 201: the object did not exist before this operation.
    pub created: bool,
    /// metadata.uid.
    pub uid: String,
    /// metadata.generation; `None` if the kind has none.
    pub generation: Option<i64>,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// Digest of the fields that the installation's field manager owns.
    pub fields: String,
    /// Whether nothing was applied, because another client created an object that is then only recorded.
    pub only_recorded: bool,
}

/// The inventory does not fit into the record (semantics 13.4).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{objects} objects need {bytes} bytes of record, {limit} are allowed: split the add-on into smaller ones"
)]
pub struct InventoryTooLarge {
    /// The number of objects.
    pub objects: usize,
    /// The bytes that they need.
    pub bytes: usize,
    /// The maximum number of bytes.
    pub limit: usize,
}

impl Inventory {
    /// Reads the inventory of a status; empty if there is none.
    #[must_use]
    pub fn from_status(status: Option<&AddonInstallationStatus>) -> Self {
        status.map_or_else(Self::default, |status| Self::from_groups(&status.inventory))
    }

    /// Reads the stored form. A key that occurs twice, because the status was edited by hand, counts once.
    #[must_use]
    pub fn from_groups(groups: &[InventoryGroup]) -> Self {
        let objects = groups.iter().flat_map(|group| {
            group.objects.iter().map(|object| {
                let key = ObjectKey {
                    group: group.group.clone(),
                    kind: group.kind.clone(),
                    namespace: group.namespace.clone(),
                    name: object.name.clone(),
                };
                let item = InventoryItem {
                    version: group.version.clone(),
                    object: object.clone(),
                };
                (key, item)
            })
        });
        Self {
            objects: objects.collect(),
        }
    }

    /// Returns the stored form: groups sorted by group, kind, namespace and version, objects by name.
    #[must_use]
    pub fn to_groups(&self) -> Vec<InventoryGroup> {
        let mut groups: BTreeMap<_, Vec<InventoryObject>> = BTreeMap::new();
        for (key, item) in &self.objects {
            groups
                .entry((&key.group, &key.kind, &key.namespace, &item.version))
                .or_default()
                .push(InventoryObject {
                    name: key.name.clone(),
                    ..item.object.clone()
                });
        }
        groups
            .into_iter()
            .map(
                |((group, kind, namespace, version), objects)| InventoryGroup {
                    group: group.clone(),
                    version: version.clone(),
                    kind: kind.clone(),
                    namespace: namespace.clone(),
                    objects,
                },
            )
            .collect()
    }

    /// Returns everything of `old` unchanged, plus the objects that are only in `new`. It is recorded before the first write: until then,
    /// the old facts are true.
    #[must_use]
    pub fn union(old: &Self, new: &Self) -> Self {
        let mut union = old.clone();
        for (key, item) in &new.objects {
            union
                .objects
                .entry(key.clone())
                .or_insert_with(|| item.clone());
        }
        union
    }

    /// Reduces the union if it does not fit: objects that this operation deletes are recorded with name and uid only. Uid and label are
    /// enough to delete them, and an object that is needed again is applied again.
    ///
    /// # Errors
    /// [`InventoryTooLarge`] if it still does not fit.
    pub fn fit_budget(mut self, exact: &Self) -> Result<Self, InventoryTooLarge> {
        if self.check_budget().is_ok() {
            return Ok(self);
        }
        for (key, item) in &mut self.objects {
            // The digest of a Job shows whether it has run.
            let is_job = (key.group.as_str(), key.kind.as_str()) == ("batch", "Job");
            let is_ours = item.object.state == ObjectState::Owned;
            if is_ours && !is_job && !exact.objects.contains_key(key) {
                item.object = InventoryObject {
                    name: std::mem::take(&mut item.object.name),
                    uid: std::mem::take(&mut item.object.uid),
                    ..InventoryObject::default()
                };
            }
        }
        self.check_budget()?;
        Ok(self)
    }

    /// Refuses an inventory that will not fit once every planned object exists.
    ///
    /// # Errors
    /// [`InventoryTooLarge`], with the counts.
    pub fn check_budget(&self) -> Result<(), InventoryTooLarge> {
        // The bytes that a planned object will grow by: uid, digest, and fields or resourceVersion with their JSON names, minus its state.
        const PLANNED_LACKS: usize = 88;
        let missing = self
            .objects
            .values()
            .filter(|item| item.object.state == ObjectState::Planned)
            .count()
            * PLANNED_LACKS;
        let bytes = serde_json::to_vec(&self.to_groups())
            .map_or(0, |json| json.len())
            .saturating_add(missing);
        if bytes <= BUDGET {
            return Ok(());
        }
        Err(InventoryTooLarge {
            objects: self.objects.len(),
            bytes,
            limit: BUDGET,
        })
    }

    /// Updates the recorded inventory with the answer to an apply. `exact` is the object's item in the plan's exact inventory: it has
    /// version and digest, and the state after a success. An answer of 200 to a planned creation, or with another uid than the plan
    /// expected, means that another client was faster: the object is preexisting and will never be deleted (semantics 13.4). `yielded` are
    /// fields that were left to other managers.
    pub fn record_applied(
        &mut self,
        key: &ObjectKey,
        exact: &InventoryItem,
        answer: &ApplyAnswer,
        yielded: Vec<String>,
    ) {
        if answer.only_recorded {
            let mut item = InventoryItem::planned(&key.name, &exact.version);
            item.object.state = ObjectState::Preexisting;
            item.object.uid.clone_from(&answer.uid);
            self.objects.insert(key.clone(), item);
            return;
        }
        let expected = self.objects.get(key).is_some_and(|item| {
            item.object.state != ObjectState::Planned && item.object.uid == answer.uid
        });
        let state = if !answer.created && !expected {
            ObjectState::Preexisting
        } else {
            exact.object.state
        };
        let mut object = InventoryObject {
            name: key.name.clone(),
            state,
            digest: exact.object.digest.clone(),
            yielded,
            ..InventoryObject::default()
        };
        object.record_live_state(&LiveState {
            uid: &answer.uid,
            generation: answer.generation,
            resource_version: &answer.resource_version,
            fields: &answer.fields,
        });
        let item = InventoryItem {
            version: exact.version.clone(),
            object,
        };
        self.objects.insert(key.clone(), item);
    }

    /// Removes an object that was deleted or released.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.objects.remove(key);
    }

    /// After the last write: reduces the inventory to the objects of the exact one, and those in `kept`, which were not deleted although
    /// the plan deletes them.
    pub fn close(&mut self, exact: &Self, kept: &BTreeSet<ObjectKey>) {
        self.objects
            .retain(|key, _| exact.objects.contains_key(key) || kept.contains(key));
    }
}

impl InventoryItem {
    /// Creates the item of an object that is about to be created.
    #[must_use]
    pub fn planned(name: &str, version: &str) -> Self {
        Self {
            version: version.to_owned(),
            object: InventoryObject {
                name: name.to_owned(),
                state: ObjectState::Planned,
                ..InventoryObject::default()
            },
        }
    }

    /// Whether the installation ever applied the object. An object that was only recorded (a Namespace that existed before) has no field of
    /// the installation.
    #[must_use]
    pub fn was_applied(&self) -> bool {
        let object = &self.object;
        !object.digest.is_empty() || object.fields.is_some() || object.is_versioned()
    }
}

#[cfg(test)]
mod tests;
