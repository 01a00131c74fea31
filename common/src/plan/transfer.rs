//! Records of indexes and directories that older versions kept in kube-system and in the namespaces of entries: which of them may
//! move to the system namespace, and which objects go with them (semantics 5).
//!
//! Whoever may write installations in a namespace can write such a record, with any index, inventory and status. A user therefore
//! agrees to every move by name, and nothing in the record is proof of anything: an object goes with it only if the live object has
//! the recorded uid and carries the owner label of the old record. That label was written by someone with the right to write the
//! object, so a move gives nobody an object that was not theirs before. What else the record claims is not taken along.

use std::collections::BTreeMap;
use std::fmt;

use super::Target;
use super::desired::{Desired, digest_of};
use super::gitops::Owner;
use super::inventory::{Inventory, Item};
use super::snapshot::{LiveObject, Snapshot};
use super::{prune, relocate};
use crate::api::installation::{
    AddonInstallation, AddonInstallationStatus, Installed, ObjectState, Phase,
};
use crate::api::names::{
    ANNOTATION_DEFAULTED, ANNOTATION_MOVED_FROM, InstallationName, installation_name, second_name,
};
use crate::manifest::key::ObjectKey;
use crate::manifest::kinds::KindTable;
use crate::manifest::ownership::Marks;
use crate::values::mask::Mask;

#[cfg(test)]
mod tests;

/// Whether a record is one that older versions did not keep in the system namespace: that of an index or of a directory.
#[must_use]
pub fn is_of_old_place(record: &AddonInstallation) -> bool {
    let reference = &record.spec.addon_ref;
    reference.index.is_some() || reference.directory.is_some()
}

/// Why a record stays where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Its deletion would be denied.
    #[error("it is a core add-on")]
    Core,
    /// Suspend stops every verb.
    #[error("it is suspended")]
    Suspended,
    /// Git would have it created again.
    #[error("{0} applies it from Git: change its namespace there")]
    InGit(String),
    /// The old record could not be deleted.
    #[error("finalizer {0} prevents its deletion")]
    Finalizer(String),
    /// Helm's own records name the installation.
    #[error(
        "it is the Helm release {namespace}/{name}, which keeps its owner in records of its own"
    )]
    Release {
        /// Namespace of the release.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Secrets are not copied.
    #[error("spec.valuesFrom reads Secrets of its namespace")]
    ValuesFrom,
    /// Templates would get other data.
    #[error("addon-template-data of its namespace is not that of {0}")]
    TemplateData(String),
    /// The new place has an installation of the same thing.
    #[error("{0} is of the same add-on and origin")]
    Same(InstallationName),
    /// Objects of a chart are named after the installation.
    #[error("{0} exists, and another name would rename what its templates render")]
    Rendered(InstallationName),
    /// Both names are in use.
    #[error("{0} and {1} exist")]
    Taken(InstallationName, InstallationName),
    /// It is not known whose an object is.
    #[error("{key} cannot be read: {why}")]
    Unreadable {
        /// The object.
        key: ObjectKey,
        /// The server's message.
        why: String,
    },
}

/// The place that a record was moved from, as the annotation of the moved one says. The annotation lies in the system namespace, so
/// only who may write there vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldPlace {
    /// Namespace and name there.
    pub installation: InstallationName,
    /// The uid there: a record that is created under that name later is another one.
    pub uid: String,
}

impl OldPlace {
    /// That of a record which is there now.
    #[must_use]
    pub fn of(record: &AddonInstallation) -> Self {
        let metadata = &record.metadata;
        Self {
            installation: InstallationName {
                namespace: metadata.namespace.clone().unwrap_or_default(),
                name: metadata.name.clone().unwrap_or_default(),
            },
            uid: metadata.uid.clone().unwrap_or_default(),
        }
    }

    /// That which a moved record names.
    #[must_use]
    pub fn named_by(record: &AddonInstallation) -> Option<Self> {
        let annotations = record.metadata.annotations.as_ref()?;
        let mut parts = annotations.get(ANNOTATION_MOVED_FROM)?.splitn(3, '/');
        let mut next = || parts.next().map(str::to_owned);
        Some(Self {
            installation: InstallationName {
                namespace: next()?,
                name: next()?,
            },
            uid: next()?,
        })
    }
}

impl fmt::Display for OldPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.installation, self.uid)
    }
}

/// The record as it will be in the system namespace: its spec and labels. Of the annotations only that about defaulted values is
/// kept; what other tools wrote there is about the old object.
///
/// # Errors
/// [`Obstacle`].
pub fn moved(
    record: &AddonInstallation,
    system: &str,
    others: &[AddonInstallation],
) -> Result<AddonInstallation, Obstacle> {
    check(record)?;
    let name = new_name(record, system, others)?;
    let mut moved = AddonInstallation::new(&name, record.spec.clone());
    moved.metadata.namespace = Some(system.to_owned());
    moved.metadata.labels.clone_from(&record.metadata.labels);
    let kept = record.metadata.annotations.iter().flatten();
    let kept = kept.filter(|(name, _)| *name == ANNOTATION_DEFAULTED);
    let mut annotations: BTreeMap<String, String> = kept
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let from = OldPlace::of(record).to_string();
    annotations.insert(ANNOTATION_MOVED_FROM.to_owned(), from);
    moved.metadata.annotations = Some(annotations);
    Ok(moved)
}

/// What of a record forbids that it moves, whatever its new name is.
///
/// # Errors
/// [`Obstacle`].
pub fn check(record: &AddonInstallation) -> Result<(), Obstacle> {
    let spec = &record.spec;
    if spec.core_addon {
        return Err(Obstacle::Core);
    }
    if spec.suspend {
        return Err(Obstacle::Suspended);
    }
    if let Some(owner) = Owner::of(record) {
        return Err(Obstacle::InGit(owner.by));
    }
    if let Some(finalizer) = record.metadata.finalizers.iter().flatten().next() {
        return Err(Obstacle::Finalizer(finalizer.clone()));
    }
    if !spec.values_from.is_empty() {
        return Err(Obstacle::ValuesFrom);
    }
    // Also one that could not be installed, or was being installed when the client was killed.
    let releases = record.status.iter().flat_map(|status| {
        let target = status.operation.iter().filter_map(|it| it.target.as_ref());
        let tried = status.history.iter().map(|revision| &revision.installed);
        status.installed.iter().chain(target).chain(tried)
    });
    match releases.filter_map(|it| it.helm_release.as_ref()).next() {
        Some(release) => Err(Obstacle::Release {
            namespace: release.namespace.clone(),
            name: release.name.clone(),
        }),
        None => Ok(()),
    }
}

/// Whether the data of templates is part of what a record has installed.
#[must_use]
pub fn is_rendered(record: &AddonInstallation) -> bool {
    let installed = |status: &AddonInstallationStatus| status.installed.clone().unwrap_or_default();
    let Installed {
        template_data_hash, ..
    } = record.status.as_ref().map(installed).unwrap_or_default();
    !template_data_hash.is_empty() || record.spec.values.is_some()
}

/// Its own name, or, where a record of another origin has it, the one that `install` would choose for it (semantics 5).
fn new_name(
    record: &AddonInstallation,
    system: &str,
    others: &[AddonInstallation],
) -> Result<String, Obstacle> {
    let at = |name: &str| InstallationName {
        namespace: system.to_owned(),
        name: name.to_owned(),
    };
    let find = |name: &InstallationName| {
        let same = |other: &&AddonInstallation| OldPlace::of(other).installation == *name;
        others.iter().find(same)
    };
    let own = record.metadata.name.clone().unwrap_or_default();
    let first = at(&own);
    let Some(other) = find(&first) else {
        return Ok(own);
    };
    let (spec, taken) = (&record.spec, &other.spec);
    let origin = |of: &AddonInstallation| {
        let reference = of.spec.addon_ref.clone();
        (reference.name, reference.index, reference.directory)
    };
    if origin(record) == origin(other) && spec.target_namespace == taken.target_namespace {
        return Err(Obstacle::Same(first));
    }
    if is_rendered(record) {
        return Err(Obstacle::Rendered(first));
    }
    let OldPlace { installation, .. } = OldPlace::of(record);
    let target = spec.target_namespace.as_ref();
    let target = target.unwrap_or(&installation.namespace);
    // As `install` names it, where it was named by the add-on.
    let stem = match installation_name(&spec.addon_ref.name) {
        name if name == own => name,
        _ => own,
    };
    let second = second_name(&stem, target);
    match find(&at(&second)) {
        None => Ok(second),
        Some(_) => Err(Obstacle::Taken(first, at(&second))),
    }
}

/// Why a recorded object does not go with its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotIts {
    /// The label is missing, or names another installation.
    #[error("it does not carry the owner label of that installation")]
    Label,
    /// Another uid.
    #[error("it is another object with the same name, created later")]
    Uid,
}

/// An object that goes with its record.
#[derive(Clone, Debug, PartialEq)]
pub struct Follower {
    /// How it is addressed.
    pub target: Target,
    /// The live object as it was judged.
    pub live: LiveObject,
    /// As it is recorded.
    pub item: Item,
}

/// What becomes of the objects of a record that moves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects {
    /// What is recorded in the new place.
    pub inventory: Inventory,
    /// Live objects that go with the record.
    pub follow: Vec<Follower>,
    /// Live objects that the record names and that are not its own: they stay as they are, and are not recorded any more.
    pub left: Vec<(ObjectKey, NotIts)>,
}

/// Judges the objects of an inventory by the live ones. `owners`: the values of the owner label that are accepted; the first is that of
/// the old record.
///
/// # Errors
/// [`Obstacle::Unreadable`].
pub fn judge(
    inventory: &Inventory,
    snapshot: &Snapshot,
    kinds: &KindTable,
    owners: &[String],
) -> Result<Objects, Obstacle> {
    let relocated = relocate::relocated(inventory, snapshot, kinds);
    let mut objects = Objects::default();
    for (key, item) in &relocated.as_ref().unwrap_or(inventory).objects {
        if let Some(why) = snapshot.unreadable.get(key) {
            return Err(Obstacle::Unreadable {
                key: key.clone(),
                why: why.clone(),
            });
        }
        let target = prune::target(snapshot, kinds, key, item);
        let live = target.as_ref().and(snapshot.live.get(key));
        let item = match (target, live) {
            (Some(target), Some(live)) => match standing(item, live, owners) {
                Ok(false) => item.clone(),
                Ok(true) => {
                    objects.follow.push(Follower {
                        target,
                        live: live.clone(),
                        item: item.clone(),
                    });
                    item.clone()
                }
                Err(why) => {
                    objects.left.push((key.clone(), why));
                    continue;
                }
            },
            (Some(_), None) => missing(item, key),
            // Objects of a kind that is not served now are found by their uid once it is.
            (None, _) => item.clone(),
        };
        objects.inventory.objects.insert(key.clone(), item);
    }
    Ok(objects)
}

/// Whether a live object goes with the record that names it; some are recorded and never were its own.
///
/// # Errors
/// The record claims it, and it is not its own.
pub fn standing(item: &Item, live: &LiveObject, owners: &[String]) -> Result<bool, NotIts> {
    let carries = live.owner.as_ref();
    let is_labelled = carries.is_some_and(|owner| owners.contains(owner));
    match item.object.state {
        // A creation that never happened; the other client's object is not claimed.
        ObjectState::Planned => Ok(is_labelled),
        // A Namespace that was there before.
        ObjectState::Preexisting if !item.was_applied() => Ok(false),
        _ if live.uid != item.object.uid => Err(NotIts::Uid),
        _ if !is_labelled => Err(NotIts::Label),
        _ => Ok(true),
    }
}

/// An object that does not exist is one that may be created: otherwise a record could claim the next object of that name. Of a Job it has
/// to be known that it has run.
fn missing(item: &Item, key: &ObjectKey) -> Item {
    if (key.group.as_str(), key.kind.as_str()) == ("batch", "Job") {
        return item.clone();
    }
    Item::planned(&key.name, &item.version)
}

/// The status in the new place: that of the old one, with other objects, and without the lock.
#[must_use]
pub fn status(record: &AddonInstallation, inventory: &Inventory) -> AddonInstallationStatus {
    let mut status = record.status.clone().unwrap_or_default();
    status.inventory = inventory.to_groups();
    status.operation = None;
    // Generations begin again.
    status.observed_generation = None;
    // The next upgrade continues what was interrupted.
    if matches!(status.phase, Some(Phase::Progressing | Phase::Uninstalling)) {
        status.phase = Some(Phase::Failed);
    }
    status
}

/// The inventory of a moved record, with the digests that its objects have under the new marks: a digest covers the marks, and nothing
/// was applied again because of them.
pub fn remark(inventory: &mut Inventory, desired: &Desired, from: &InstallationName, mask: &Mask) {
    let marks = Marks::of(from);
    for (key, wanted) in &desired.objects {
        let Some(item) = inventory.objects.get_mut(key) else {
            continue;
        };
        let recorded = &mut item.object.digest;
        if recorded.is_empty() || *recorded == wanted.digest {
            continue;
        }
        let mut former = wanted.object.as_ref().clone();
        marks.put_on(&mut former);
        if digest_of(key, &former, mask) == *recorded {
            recorded.clone_from(&wanted.digest);
        }
    }
}
