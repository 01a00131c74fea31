//! Decides which recorded objects that are no longer desired are deleted (semantics 7.3 and 13.7).
//!
//! An object is deleted only if it is in the inventory, carries our label, has the recorded uid, no other installation contains
//! it, and neither a mark on the live object ([`keep`]) nor a foreign controller keeps it: operators copy labels to
//! the objects that they create (kustomize-controller#192, #315).

pub mod keep;
pub mod limit;

use std::collections::{BTreeMap, BTreeSet};

use super::inventory::{Inventory, InventoryItem};
use super::planner::PlanInput;
use super::snapshot::{LiveObject, Snapshot, UnservedKind};
use super::{Deletion, Target};
use common::api::installation::ObjectState;
use common::api::names::LABEL_OWNER;
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::KindTable;
pub use common::manifest::kinds::traits::KeptKind;

/// What happens to the recorded objects that are no longer desired.
#[derive(Debug, Default)]
pub(super) struct Pruning {
    /// Objects to delete.
    pub(super) deletions: Vec<Deletion>,
    /// Objects to release because they existed before the installation.
    pub(super) release: Vec<Target>,
    /// Objects that stay in the cluster and in the inventory.
    pub(super) retained: BTreeMap<ObjectKey, InventoryItem>,
    /// Objects that cannot be read and may exist. They stay in the inventory.
    pub(super) unreachable: BTreeMap<ObjectKey, InventoryItem>,
    /// Objects that stay unchanged and recorded: hooks that have run.
    pub(super) resting: BTreeMap<ObjectKey, InventoryItem>,
    /// Why objects stay that the user would expect to be deleted.
    pub(super) warnings: Vec<String>,
    /// The number of recorded objects that exist, without those that existed before the installation.
    pub(super) there: usize,
}

/// Decides about every recorded object. `wanted` are the keys of the desired objects, `occupied` the namespaces that must stay.
pub(super) fn prune(
    input: &PlanInput<'_>,
    owner: &str,
    wanted: &BTreeSet<&ObjectKey>,
    occupied: &BTreeSet<&str>,
) -> Pruning {
    let mut pruning = Pruning::default();
    // An object can be served in two groups (as Ingress once was): a recorded key may be another key of a desired object.
    let wanted_uids: BTreeSet<&str> = wanted
        .iter()
        .filter_map(|key| input.snapshot.live.get(*key))
        .map(|live| live.uid.as_str())
        .collect();
    for (key, item) in &input.inventory.objects {
        let live = input.snapshot.live.get(key);
        let ours = item.object.state != ObjectState::Preexisting;
        pruning.there += usize::from(ours && live.is_some());
        if wanted.contains(key) {
            continue;
        }
        let Some(target) = target(input.snapshot, input.kinds, key, item) else {
            pruning.unserved(input, key, item);
            continue;
        };
        if let Some(why) = input.snapshot.unreadable.get(key) {
            pruning.unread(key, item, why);
        }
        let Some(live) = live else { continue };
        let moves = input.claims.taken.contains_key(key);
        if moves || wanted_uids.contains(live.uid.as_str()) {
            continue;
        }
        if input.resting.contains(key) {
            pruning.resting.insert(key.clone(), item.clone());
            continue;
        }
        if let Some(why) = input.held.get(key) {
            pruning.warnings.push(format!("{key} stays: {why}"));
            pruning.retained.insert(key.clone(), item.clone());
            continue;
        }
        match item.object.state {
            ObjectState::Preexisting if live.uid == item.object.uid && item.was_applied() => {
                pruning.release.push(target);
            }
            ObjectState::Preexisting => {}
            state => match obstacle(input, key, item, live, owner) {
                // A planned creation that never happened: the live object is not ours.
                Some(PruneObstacle::Foreign(_)) if state == ObjectState::Planned => {}
                Some(obstacle) => {
                    pruning.warnings.push(format!("{key} {obstacle}"));
                    if let PruneObstacle::Kept(_) = obstacle {
                        // It stays recorded, so that it is deleted once nothing keeps it.
                        let mut item = item.clone();
                        item.object.uid.clone_from(&live.uid);
                        pruning.retained.insert(key.clone(), item);
                    }
                }
                None => pruning.delete_or_retain(input, target, item, live, occupied),
            },
        }
    }
    pruning.keep_inhabited(input);
    pruning
}

/// Returns why a recorded object that is no longer desired is not deleted.
fn obstacle(
    input: &PlanInput<'_>,
    key: &ObjectKey,
    item: &InventoryItem,
    live: &LiveObject,
    owner: &str,
) -> Option<PruneObstacle> {
    let is_unmarked = live.owner.is_none() && input.unmarked.contains(key);
    if live.owner.as_deref() != Some(owner) && !is_unmarked {
        Some(PruneObstacle::UNMARKED)
    } else if item.object.state != ObjectState::Planned && live.uid != item.object.uid {
        Some(PruneObstacle::ANOTHER)
    } else {
        kept_by(input.inventory, live).map(PruneObstacle::Kept)
    }
}

/// Returns why an object of ours may not be deleted.
fn kept_by(inventory: &Inventory, live: &LiveObject) -> Option<String> {
    if let Some(mark) = &live.keep {
        return Some(format!("it carries {mark}"));
    }
    let controller = live.controlled_by.as_ref()?;
    let mut recorded = inventory.objects.values();
    let is_ours = recorded.any(|item| item.object.uid == controller.uid);
    (!is_ours).then(|| format!("its controller is {} {}", controller.kind, controller.name))
}

/// Why an object is not deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PruneObstacle {
    /// It is not ours, and is dropped from the inventory.
    Foreign(&'static str),
    /// It is ours, but a mark or a controller keeps it. It stays recorded.
    Kept(String),
}

impl PruneObstacle {
    /// It has no owner label, or that of another installation.
    pub const UNMARKED: Self = Self::Foreign("it no longer carries our label");
    /// Another object has the same name now.
    pub const ANOTHER: Self =
        Self::Foreign("it is another object with the same name, created later");

    /// Returns only the reason.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Foreign(why) => why,
            Self::Kept(why) => why,
        }
    }
}

impl std::fmt::Display for PruneObstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Foreign(why) => write!(f, "is left alone and forgotten: {why}"),
            Self::Kept(why) => write!(f, "is retained: {why}"),
        }
    }
}

impl Deletion {
    /// Returns why the object must not be deleted as planned: it has changed since the plan was made. `labels` are its current labels,
    /// `inventory` holds the recorded objects of the installation.
    #[must_use]
    pub fn obstacle(
        &self,
        labels: &BTreeMap<String, String>,
        live: &LiveObject,
        inventory: &Inventory,
    ) -> Option<PruneObstacle> {
        let mut needed = self.labels.iter();
        let is_marked = needed.all(|(label, value)| labels.get(label) == Some(value));
        let is_taken = live.owner.is_some() && !self.labels.contains_key(LABEL_OWNER);
        if live.uid != self.uid {
            Some(PruneObstacle::ANOTHER)
        } else if !is_marked || is_taken {
            Some(PruneObstacle::UNMARKED)
        } else {
            kept_by(inventory, live).map(PruneObstacle::Kept)
        }
    }
}

/// Returns how requests address a recorded object now; `None` if its kind is not served.
pub(super) fn target(
    snapshot: &Snapshot,
    kinds: &KindTable,
    key: &ObjectKey,
    item: &InventoryItem,
) -> Option<Target> {
    let kind = (key.group.clone(), key.kind.clone());
    if snapshot.unserved.contains_key(&kind) {
        return None;
    }
    let recorded = Gvk {
        group: key.group.clone(),
        version: item.version.clone(),
        kind: key.kind.clone(),
    };
    let (version, info) = match kinds.get(&recorded) {
        Some(info) => (recorded.version, info),
        None => {
            let (gvk, info) = kinds.preferred(&key.group, &key.kind)?;
            (gvk.version, info)
        }
    };
    Some(Target {
        key: key.clone(),
        version,
        plural: info.plural.clone(),
    })
}

impl Pruning {
    /// Handles an object whose kind is not served. If the kind was deleted, and the object with it, the object is dropped. Otherwise it
    /// stays recorded, and is pruned when the kind is served again (semantics 13.6).
    fn unserved(&mut self, input: &PlanInput<'_>, key: &ObjectKey, item: &InventoryItem) {
        let kind = (key.group.clone(), key.kind.clone());
        let why = match input.snapshot.unserved.get(&kind) {
            Some(UnservedKind::Gone) => {
                self.warnings.push(format!(
                    "{key} is forgotten: the cluster no longer serves {}",
                    key.kind
                ));
                return;
            }
            Some(UnservedKind::Unknown(why)) => why,
            None => "the cluster does not serve its kind",
        };
        self.warnings.push(format!(
            "{key} cannot be reached: {why}; if it exists, it stays"
        ));
        self.unreachable.insert(key.clone(), item.clone());
    }

    /// Keeps an object recorded that cannot be read and may exist. It is pruned when it can be read again (semantics 13.6).
    fn unread(&mut self, key: &ObjectKey, item: &InventoryItem, why: &str) {
        self.warnings
            .push(format!("{key} cannot be read, and stays recorded: {why}"));
        self.unreachable.insert(key.clone(), item.clone());
    }

    /// Deletes an object that is certainly ours, or retains it if its kind is kept or it is still needed.
    fn delete_or_retain(
        &mut self,
        input: &PlanInput<'_>,
        target: Target,
        item: &InventoryItem,
        live: &LiveObject,
        occupied: &BTreeSet<&str>,
    ) {
        let key = &target.key;
        let kept = match KeptKind::from_key(key) {
            Some(kind) => !input.delete_kinds.contains(&kind),
            // Objects of other kinds are retained only if they are created once and never changed (semantics 12.9).
            None => item.object.state == ObjectState::Retained,
        };
        let inhabited = input.snapshot.inhabited.get(key);
        let needed_by = if kept {
            None
        } else if let Some(other) = input.claims.objects.get(key) {
            Some(format!("{other} wants it, too"))
        } else if input.claims.is_partial
            && KeptKind::from_key(key).is_some_and(KeptKind::is_shared)
        {
            Some(
                "you may not read all installations of the cluster, and others may need it"
                    .to_owned(),
            )
        } else if let Some(why) = input.claims.reason_to_keep(key, inhabited) {
            Some(why)
        } else if key.kind == "Namespace" && occupied.contains(key.name.as_str()) {
            Some("objects that stay are in it".to_owned())
        } else {
            None
        };
        if let Some(why) = &needed_by {
            self.warnings.push(format!("{key} is retained: {why}"));
        }
        if kept || needed_by.is_some() {
            let mut item = item.clone();
            item.object.state = ObjectState::Retained;
            item.object.uid.clone_from(&live.uid);
            self.retained.insert(target.key, item);
        } else {
            let owner = live.owner.iter();
            self.deletions.push(Deletion {
                target,
                uid: live.uid.clone(),
                resource_version: live.resource_version.clone(),
                labels: owner
                    .map(|owner| (LABEL_OWNER.to_owned(), owner.clone()))
                    .collect(),
            });
        }
    }

    /// Retains namespaces and CRDs whose deletion would also delete objects that stay.
    fn keep_inhabited(&mut self, input: &PlanInput<'_>) {
        let (retained, warnings) = (&mut self.retained, &mut self.warnings);
        let unreachable = &self.unreachable;
        self.deletions.retain(|deletion| {
            let key = &deletion.target.key;
            let mut kept = retained.iter().chain(unreachable).map(|(kept, _)| kept);
            let staying = match KeptKind::from_key(key) {
                Some(KeptKind::Namespace) => kept
                    .find(|kept| kept.namespace.as_ref() == Some(&key.name))
                    .map(|kept| format!("{kept} stays in it")),
                Some(KeptKind::CustomResourceDefinition) => {
                    let found = input.snapshot.inhabited.get(key);
                    kept.find(|kept| found.is_some_and(|found| found.has_kind_of(kept)))
                        .map(|kept| format!("{kept} stays, and is of its kind"))
                }
                _ => None,
            };
            let Some(staying) = staying else {
                return true;
            };
            warnings.push(format!("{key} is retained: {staying}"));
            let recorded = &input.inventory.objects;
            let mut item = recorded.get(key).cloned().unwrap_or_default();
            item.object.state = ObjectState::Retained;
            item.object.uid.clone_from(&deletion.uid);
            retained.insert(key.clone(), item);
            false
        });
    }

    /// Returns the objects that stay in the inventory.
    pub(super) fn recorded(&self) -> Inventory {
        let stay = self.retained.iter().chain(&self.resting);
        let objects = stay.chain(&self.unreachable);
        Inventory {
            objects: objects
                .map(|(key, item)| (key.clone(), item.clone()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::Controller;
    use super::*;

    fn target(kind: &str, namespace: &str) -> Target {
        Target {
            key: ObjectKey {
                group: "shop.example".to_owned(),
                kind: kind.to_owned(),
                namespace: Some(namespace.to_owned()),
                name: "a".to_owned(),
            },
            version: "v1".to_owned(),
            plural: "tills".to_owned(),
        }
    }

    /// Labels and keep marks, as they are right before the deletion.
    #[test]
    fn what_an_object_says_of_itself_counts_until_it_is_deleted() {
        let ours = |labels: &[(&str, &str)]| Deletion {
            target: target("Till", "shop"),
            uid: "u".to_owned(),
            resource_version: "7".to_owned(),
            labels: map(labels),
        };
        let controlled = |uid: &str| LiveObject {
            controlled_by: Some(Controller {
                kind: "Till".to_owned(),
                name: "front".to_owned(),
                uid: uid.to_owned(),
            }),
            ..live("u", Some("o"))
        };
        let kept = LiveObject {
            keep: Some("helm.sh/resource-policy: keep".to_owned()),
            ..live("u", Some("o"))
        };
        let mark = &[(LABEL_OWNER, "o")][..];
        let mut recorded = InventoryItem::planned("front", "v1");
        recorded.object.uid = "recorded".to_owned();
        let mut inventory = Inventory::default();
        inventory
            .objects
            .insert(target("Till", "shop").key, recorded);
        let stays = |why: &str| Some(PruneObstacle::Kept(why.to_owned()));
        for (deletion, labels, found, expected) in [
            (ours(mark), mark, live("u", Some("o")), None),
            (
                ours(mark),
                &[(LABEL_OWNER, "other")],
                live("u", Some("other")),
                Some(PruneObstacle::UNMARKED),
            ),
            (
                ours(mark),
                &[],
                live("u", None),
                Some(PruneObstacle::UNMARKED),
            ),
            (
                ours(mark),
                mark,
                live("v", Some("o")),
                Some(PruneObstacle::ANOTHER),
            ),
            (
                ours(mark),
                mark,
                kept,
                stays("it carries helm.sh/resource-policy: keep"),
            ),
            (
                ours(mark),
                mark,
                controlled("other"),
                stays("its controller is Till front"),
            ),
            (ours(mark), mark, controlled("recorded"), None),
            // What kops or the addon-manager has made has no owner label.
            (ours(&[]), &[], live("u", None), None),
            (
                ours(&[]),
                mark,
                live("u", Some("o")),
                Some(PruneObstacle::UNMARKED),
            ),
        ] {
            let obstacle = deletion.obstacle(&map(labels), &found, &inventory);
            assert_eq!(obstacle, expected, "{labels:?} {found:?}");
        }
    }

    #[test]
    fn objects_go_with_their_namespace_and_their_definition() {
        let of = |group: &str, kind: &str, name: &str| ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        };
        let definition = |name| of("apiextensions.k8s.io", "CustomResourceDefinition", name);
        for (other, expected) in [
            (of("", "Namespace", "shop"), true),
            (of("", "Namespace", "other"), false),
            (definition("tills.shop.example"), true),
            (definition("carts.shop.example"), false),
            (of("", "ConfigMap", "shop"), false),
        ] {
            let goes = target("Till", "shop").goes_with(&other);
            assert_eq!(goes, expected, "{other}");
        }
    }

    fn map(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
        let labels = labels.iter();
        labels
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn live(uid: &str, owner: Option<&str>) -> LiveObject {
        LiveObject {
            uid: uid.to_owned(),
            owner: owner.map(str::to_owned),
            ..LiveObject::default()
        }
    }
}
