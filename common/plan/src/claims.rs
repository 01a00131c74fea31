//! What the other installations of the cluster use: an object has one owner (semantics 5), and what others live in is not deleted.
//!
//! Whoever may write a record may write any name into it. A record counts at its word in its own namespace and, from the system
//! namespace, everywhere ([`is_believed`]); any other one counts for what live objects confirm.

use std::collections::{BTreeMap, BTreeSet};

use super::inventory::Inventory;
use super::snapshot::{Inhabited, LiveObject, Snapshot};
use common::api::installation::{AddonInstallation, ObjectState};
use common::api::names::{InstallationName, owner_hash};
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::KeptKind;

/// What other installations use, and which of them.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Objects that they have recorded and want.
    pub objects: BTreeMap<ObjectKey, InstallationName>,
    /// Objects that they want no more, and keep because they hold data: who wants one may have it.
    pub retained: BTreeMap<ObjectKey, InstallationName>,
    /// Objects that another installation of the same command has recorded and wants no more: who wants one gets it.
    pub leaving: BTreeMap<ObjectKey, Leaving>,
    /// Recorded objects of this installation that another one of the same command wants: they are not deleted, but change their
    /// owner (semantics 13).
    pub taken: BTreeMap<ObjectKey, InstallationName>,
    /// Values of the owner label of all installations of the cluster.
    pub owners: BTreeSet<String>,
    /// Values of the owner label of which it is not known whether an installation has them: they count as if one had.
    pub unknown: BTreeSet<String>,
    /// Namespaces that hold their records, or that they are installed into.
    pub namespaces: BTreeMap<String, InstallationName>,
    /// Whether there may be installations that the caller may not read: then it is not known what lives in a namespace, or is of a kind.
    pub is_partial: bool,
}

/// An object that its owner gives up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Its owner.
    pub from: InstallationName,
    /// How that has it recorded.
    pub state: ObjectState,
}

/// Whether an installation in `own` takes the record of another one at its word, whose namespace is `other`.
#[must_use]
pub fn is_believed(other: &str, own: &str, system: &str) -> bool {
    other == own || other == system
}

impl Claims {
    /// An object moves to this installation: its owner, of the same command, does not want it any more.
    pub fn leave(&mut self, key: &ObjectKey, leaving: &Leaving) {
        if self.objects.get(key) == Some(&leaving.from) {
            self.objects.remove(key);
        }
        self.leaving.insert(key.clone(), leaving.clone());
    }

    /// Adds what a record says.
    pub fn add(&mut self, name: &InstallationName, record: &AddonInstallation) {
        let namespaces = record.spec.target_namespace.iter();
        for namespace in namespaces.chain([&name.namespace]) {
            self.namespaces.insert(namespace.clone(), name.clone());
        }
        if let Some(status) = &record.status {
            self.add_objects(name, &Inventory::from_groups(&status.inventory));
        }
    }

    /// Adds what live objects confirm of a record, by its label and their uid. That the record is in its namespace needs no proof.
    pub fn add_proven(
        &mut self,
        name: &InstallationName,
        record: &AddonInstallation,
        snapshot: &Snapshot,
    ) {
        self.namespaces.insert(name.namespace.clone(), name.clone());
        let owner = owner_hash(&name.namespace, &name.name);
        let is_proven = |live: &LiveObject, uid: &str| {
            live.owner.as_ref() == Some(&owner) && live.uid == uid && !uid.is_empty()
        };
        let mut inventory = Inventory::of(record.status.as_ref());
        inventory.objects.retain(|key, item| {
            let live = snapshot.live.get(key).or_else(|| snapshot.unasked.get(key));
            live.is_some_and(|live| is_proven(live, &item.object.uid))
        });
        self.add_objects(name, &inventory);
    }

    /// Adds that an installation exists.
    pub fn add_owner(&mut self, name: &InstallationName) {
        self.owners.insert(owner_hash(&name.namespace, &name.name));
    }

    /// Adds the objects of an installation; what it retains by them is no longer wanted by it.
    pub fn add_objects(&mut self, name: &InstallationName, inventory: &Inventory) {
        for (key, item) in &inventory.objects {
            let is_retained =
                item.object.state == ObjectState::Retained && KeptKind::of(key).is_some();
            if is_retained {
                self.retained.insert(key.clone(), name.clone());
                if self.objects.get(key) == Some(name) {
                    self.objects.remove(key);
                }
            } else {
                self.objects.insert(key.clone(), name.clone());
            }
        }
    }

    /// Everything that others have recorded.
    fn recorded(&self) -> impl Iterator<Item = (&ObjectKey, &InstallationName)> {
        self.objects.iter().chain(&self.retained)
    }

    /// Why a definition or namespace stays that this installation gives up: another one would lose something with it. `inhabited`:
    /// what lives in it. What is not known counts as in use.
    pub(super) fn needs(&self, key: &ObjectKey, inhabited: Option<&Inhabited>) -> Option<String> {
        let kind = KeptKind::of(key)?;
        if !kind.is_shared() {
            return None;
        }
        let Some(found) = inhabited else {
            return Some("it is not known what would be deleted with it".to_owned());
        };
        let (recorded, place) = if kind == KeptKind::Namespace {
            (self.user_of(&key.name), "in it")
        } else {
            (self.user_of_kind(found), "of its kind")
        };
        let owned = found.owned.as_ref().map(|(object, of)| {
            let of = of.as_deref().unwrap_or("another installation");
            format!("{object} is {place} and belongs to {of}")
        });
        let unseen = found.unseen.as_ref();
        let unseen = unseen.map(|why| format!("objects of others may be {place}: {why}"));
        recorded.or(owned).or(unseen)
    }

    /// The installation that has objects of the kind of a definition. The definition itself says which kind that is: what this
    /// client knows of the kinds of the cluster may be older.
    fn user_of_kind(&self, definition: &Inhabited) -> Option<String> {
        let mut objects = self.recorded().chain(&self.taken);
        let of_kind = objects.find(|(key, _)| definition.has_kind_of(key));
        of_kind.map(|(_, user)| format!("{user} has objects of its kind"))
    }

    /// The installation that is installed into a namespace, or has an object in it.
    fn user_of(&self, namespace: &String) -> Option<String> {
        let user = self.namespaces.get(namespace).or_else(|| {
            let mut objects = self.recorded().chain(&self.taken);
            let inside = objects.find(|(other, _)| other.namespace.as_ref() == Some(namespace));
            inside.map(|(_, user)| user)
        });
        user.map(|user| format!("{user} is installed into it"))
    }
}
