//! Claims of other installations: the objects that they own (semantics 5), and the namespaces and CRDs that must not be deleted because
//! they use them.
//!
//! Anyone who may write a record can claim any name in it. A record is believed in its own namespace and, if it is in the system namespace,
//! everywhere ([`is_believed`]). Any other record counts only for what live objects confirm (semantics 13.5).

use std::collections::{BTreeMap, BTreeSet};

use super::inventory::Inventory;
use super::snapshot::{Inhabitants, LiveObject, Snapshot};
use common::api::installation::{AddonInstallation, ObjectState};
use common::api::names::{InstallationName, owner_hash};
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::KeptKind;

/// The objects and namespaces that other installations use, each with an installation that uses it.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Recorded objects that are still part of their installation.
    pub objects: BTreeMap<ObjectKey, InstallationName>,
    /// Objects that their installation only retains because they hold data. Another installation may take them over.
    pub retained: BTreeMap<ObjectKey, InstallationName>,
    /// Objects that another installation of the same command has recorded and no longer contains. An installation that contains one takes
    /// it over.
    pub leaving: BTreeMap<ObjectKey, LeavingObject>,
    /// Recorded objects of this installation that another one of the same command takes over: they change their owner instead of being
    /// deleted (semantics 13.9).
    pub taken: BTreeMap<ObjectKey, InstallationName>,
    /// Owner labels of all installations of the cluster.
    pub owners: BTreeSet<String>,
    /// Owner labels that may belong to an installation that cannot be read. They count as if they did.
    pub unknown: BTreeSet<String>,
    /// Namespaces that hold records of other installations, or into which they are installed.
    pub namespaces: BTreeMap<String, InstallationName>,
    /// Whether the caller may be unable to read some installations. Then the users of a namespace or kind are not fully known.
    pub is_partial: bool,
}

/// An object that its owner no longer contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingObject {
    /// Its owner.
    pub from: InstallationName,
    /// Its state in the inventory of its owner.
    pub state: ObjectState,
}

/// Whether an installation in namespace `own` believes a record in namespace `other`.
#[must_use]
pub fn is_believed(other: &str, own: &str, system: &str) -> bool {
    other == own || other == system
}

impl Claims {
    /// Marks an object as leaving its owner, which belongs to the same command, so that this installation can take it over.
    pub fn add_leaving(&mut self, key: &ObjectKey, leaving: &LeavingObject) {
        if self.objects.get(key) == Some(&leaving.from) {
            self.objects.remove(key);
        }
        self.leaving.insert(key.clone(), leaving.clone());
    }

    /// Adds everything that a record claims.
    pub fn add(&mut self, name: &InstallationName, record: &AddonInstallation) {
        let namespaces = record.spec.target_namespace.iter();
        for namespace in namespaces.chain([&name.namespace]) {
            self.namespaces.insert(namespace.clone(), name.clone());
        }
        if let Some(status) = &record.status {
            self.add_objects(name, &Inventory::from_groups(&status.inventory));
        }
    }

    /// Adds the recorded objects that live objects confirm by owner label and uid. The namespace of the record needs no confirmation.
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
        let mut inventory = Inventory::from_status(record.status.as_ref());
        inventory.objects.retain(|key, item| {
            let live = snapshot
                .live
                .get(key)
                .or_else(|| snapshot.unrequested.get(key));
            live.is_some_and(|live| is_proven(live, &item.object.uid))
        });
        self.add_objects(name, &inventory);
    }

    /// Adds the owner label of an installation that exists.
    pub fn add_owner(&mut self, name: &InstallationName) {
        self.owners.insert(owner_hash(&name.namespace, &name.name));
    }

    /// Adds the recorded objects of an installation. Those that it only retains no longer count as wanted by it.
    pub fn add_objects(&mut self, name: &InstallationName, inventory: &Inventory) {
        for (key, item) in &inventory.objects {
            let is_retained =
                item.object.state == ObjectState::Retained && KeptKind::from_key(key).is_some();
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

    /// All objects that other installations have recorded.
    fn recorded_objects(&self) -> impl Iterator<Item = (&ObjectKey, &InstallationName)> {
        self.objects.iter().chain(&self.retained)
    }

    /// Returns why a CRD or namespace that this installation no longer contains has to stay: another installation uses it. `inhabited`
    /// lists its contents; unknown contents count as in use.
    pub(super) fn reason_to_keep(
        &self,
        key: &ObjectKey,
        inhabited: Option<&Inhabitants>,
    ) -> Option<String> {
        let kind = KeptKind::from_key(key)?;
        if !kind.is_shared() {
            return None;
        }
        let Some(found) = inhabited else {
            return Some("it is not known what would be deleted with it".to_owned());
        };
        let (recorded, place) = if kind == KeptKind::Namespace {
            (self.find_user_of_namespace(&key.name), "in it")
        } else {
            (self.find_user_of_kind(found), "of its kind")
        };
        let owned = found.owned.as_ref().map(|(object, of)| {
            let of = of.as_deref().unwrap_or("another installation");
            format!("{object} is {place} and belongs to {of}")
        });
        let unseen = found.unreadable_reason.as_ref();
        let unseen = unseen.map(|why| format!("objects of others may be {place}: {why}"));
        recorded.or(owned).or(unseen)
    }

    /// Finds an installation that has objects of the kind of a CRD. The kind comes from the live CRD, because the kinds that this client
    /// knows may be outdated.
    fn find_user_of_kind(&self, definition: &Inhabitants) -> Option<String> {
        let mut objects = self.recorded_objects().chain(&self.taken);
        let of_kind = objects.find(|(key, _)| definition.has_kind_of(key));
        of_kind.map(|(_, user)| format!("{user} has objects of its kind"))
    }

    /// Finds an installation that is installed into a namespace, or has an object in it.
    fn find_user_of_namespace(&self, namespace: &String) -> Option<String> {
        let user = self.namespaces.get(namespace).or_else(|| {
            let mut objects = self.recorded_objects().chain(&self.taken);
            let inside = objects.find(|(other, _)| other.namespace.as_ref() == Some(namespace));
            inside.map(|(_, user)| user)
        });
        user.map(|user| format!("{user} is installed into it"))
    }
}
