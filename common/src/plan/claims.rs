//! What the other installations of the cluster use: an object has one owner (semantics 5), and what others live in is not deleted.

use std::collections::BTreeMap;

use super::inventory::Inventory;
use crate::api::installation::AddonInstallation;
use crate::api::names::InstallationName;
use crate::manifest::key::ObjectKey;
use crate::manifest::kinds::KindTable;
use crate::manifest::kinds::traits::KeptKind;

/// What other installations use, and which of them.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Objects that they have recorded.
    pub objects: BTreeMap<ObjectKey, InstallationName>,
    /// Namespaces that hold their records, or that they are installed into.
    pub namespaces: BTreeMap<String, InstallationName>,
    /// Whether there may be installations that the caller may not read: then it is not known what lives in a namespace, or is of a kind.
    pub is_partial: bool,
}

impl Claims {
    /// Adds what a record says.
    pub fn add(&mut self, name: &InstallationName, record: &AddonInstallation) {
        let namespaces = record.spec.target_namespace.iter();
        for namespace in namespaces.chain([&name.namespace]) {
            self.namespaces.insert(namespace.clone(), name.clone());
        }
        if let Some(status) = &record.status {
            let inventory = Inventory::from_groups(&status.inventory);
            self.add_objects(name, inventory.objects.into_keys());
        }
    }

    /// Adds objects of an installation.
    pub fn add_objects(
        &mut self,
        name: &InstallationName,
        keys: impl IntoIterator<Item = ObjectKey>,
    ) {
        self.objects
            .extend(keys.into_iter().map(|key| (key, name.clone())));
    }

    /// The installation that would lose something with an object that it has not recorded: it lives in that namespace, or has
    /// objects of the kind that is defined there.
    pub(super) fn needs(&self, key: &ObjectKey, kinds: &KindTable) -> Option<&InstallationName> {
        match KeptKind::of(key)? {
            KeptKind::Namespace => self.namespaces.get(&key.name).or_else(|| {
                let mut objects = self.objects.iter();
                let inside = objects.find(|(other, _)| other.namespace.as_ref() == Some(&key.name));
                inside.map(|(_, name)| name)
            }),
            KeptKind::CustomResourceDefinition => {
                let mut objects = self.objects.iter();
                let found = objects.find(|(other, _)| {
                    let info = kinds.preferred(&other.group, &other.kind);
                    info.is_some_and(|(_, info)| {
                        key.name == format!("{}.{}", info.plural, other.group)
                    })
                });
                found.map(|(_, name)| name)
            }
            _ => None,
        }
    }
}
