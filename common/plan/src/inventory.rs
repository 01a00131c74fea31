//! The inventory: every object of an installation with what is known of it (semantics 13).
//!
//! Laws: the union of old and new is recorded before the first write, the exact set after the last. In between the
//! recorded inventory is the union with every answer written into it ([`Inventory::applied`], [`Inventory::remove`]);
//! [`Inventory::close`] makes the exact one of it.

use std::collections::{BTreeMap, BTreeSet};

use common::api::installation::{
    AddonInstallationStatus, InventoryGroup, InventoryObject, LiveState, ObjectState,
};
use common::manifest::key::ObjectKey;

/// Bytes that an inventory may take in the record, as JSON: 5,000 usual objects fit (semantics 13).
pub const BUDGET: usize = 800_000;

/// The inventory of one installation, by key. [`common::api::installation::InventoryGroup`] is its stored shape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// Objects by key.
    pub objects: BTreeMap<ObjectKey, Item>,
}

/// One object and the API version that it was applied in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// API version.
    pub version: String,
    /// What is known.
    pub object: InventoryObject,
}

/// The API server's answer to an apply, as far as the inventory keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// 201: the object did not exist before this operation.
    pub created: bool,
    /// metadata.uid.
    pub uid: String,
    /// metadata.generation; `None` where the kind has none.
    pub generation: Option<i64>,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// Digest of the fields that our field manager owns.
    pub fields: String,
    /// Whether nothing of ours was applied: another client was faster to create what is only recorded then.
    pub only_recorded: bool,
}

/// The inventory does not fit into the record (semantics 13).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{objects} objects need {bytes} bytes of record, {limit} are allowed: split the add-on into smaller ones"
)]
pub struct TooLarge {
    /// How many objects.
    pub objects: usize,
    /// Bytes that they need.
    pub bytes: usize,
    /// Bytes that are allowed.
    pub limit: usize,
}

impl Inventory {
    /// What a status records; nothing where there is none.
    #[must_use]
    pub fn of(status: Option<&AddonInstallationStatus>) -> Self {
        status.map_or_else(Self::default, |status| Self::from_groups(&status.inventory))
    }

    /// From the stored shape. A key that is in it twice (the status was edited by hand) is taken once.
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
                let item = Item {
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

    /// The stored shape: groups sorted by group, kind, namespace and version, objects by name.
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

    /// Everything of `old` unchanged, and everything of `new` that is not in it: what is recorded before the first
    /// write, because until then the old facts are true.
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

    /// The union in two steps: whole where it fits, else without what only an upgrade needs of objects that are deleted by this
    /// one. Uid and label are enough to delete them; an object that is wanted again is applied again.
    ///
    /// # Errors
    /// [`TooLarge`], where that is not enough either.
    pub fn fitting(mut self, exact: &Self) -> Result<Self, TooLarge> {
        if self.check_budget().is_ok() {
            return Ok(self);
        }
        for (key, item) in &mut self.objects {
            // Whether a Job has run is known by its digest.
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

    /// Refuses an inventory that does not fit, counted as it will be when every planned object exists.
    ///
    /// # Errors
    /// [`TooLarge`], with the counts.
    pub fn check_budget(&self) -> Result<(), TooLarge> {
        // The bytes that a planned object will grow by: uid, digest and fields or resourceVersion with their JSON names, less its state.
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
        Err(TooLarge {
            objects: self.objects.len(),
            bytes,
            limit: BUDGET,
        })
    }

    /// Writes the answer to an apply into the recorded inventory. `exact` is the object's item in the plan's exact
    /// inventory: it holds version and digest, and the state that a success leads to. 200 to a planned create, or with another
    /// uid than the plan saw, means that another client was faster: the object is preexisting and will never be deleted
    /// (semantics 13).
    /// `yielded`: fields that were left to other managers.
    pub fn applied(
        &mut self,
        key: &ObjectKey,
        exact: &Item,
        answer: &Answer,
        yielded: Vec<String>,
    ) {
        if answer.only_recorded {
            let mut item = Item::planned(&key.name, &exact.version);
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
        object.see(&LiveState {
            uid: &answer.uid,
            generation: answer.generation,
            resource_version: &answer.resource_version,
            fields: &answer.fields,
        });
        let item = Item {
            version: exact.version.clone(),
            object,
        };
        self.objects.insert(key.clone(), item);
    }

    /// Removes an object that was deleted or released.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.objects.remove(key);
    }

    /// After the last write: keeps what the exact inventory of the plan holds, with the answers written here, and what was kept although
    /// the plan deletes it.
    pub fn close(&mut self, exact: &Self, kept: &BTreeSet<ObjectKey>) {
        self.objects
            .retain(|key, _| exact.objects.contains_key(key) || kept.contains(key));
    }
}

impl Item {
    /// An object that is about to be created.
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

    /// Whether we ever applied it. An object that was only recorded (a Namespace that was there before us) holds no
    /// field of ours.
    #[must_use]
    pub fn was_applied(&self) -> bool {
        let object = &self.object;
        !object.digest.is_empty() || object.fields.is_some() || object.is_versioned()
    }
}

#[cfg(test)]
mod tests;
