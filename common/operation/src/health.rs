//! The health of installations, judged from their live objects.

mod failed;
mod interrupted;
mod state;

use std::collections::{BTreeMap, BTreeSet};

use addons_engine::facts::Facts;
use addons_engine::live::{self, Selection};
use addons_engine::{Cluster, EngineError, blockers};
use common::api::installation::{AddonInstallation, ObjectState};
use common::api::names::{LABEL_OWNER, owner_hash};
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::{KeptKind, KindTraits};
use common::plan::found::{HELM_NAME, HELM_NAMESPACE};
use common::plan::inventory::Inventory;
use common::plan::restored::{self, Memory, RecordOlder, written};
use common::readiness::blocker::Blocker;
use common::readiness::{Readiness, Status};
use futures::future::join_all;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::records::name_of;

use failed::Failed;
pub use state::{Offered, State, Word, state};

/// One object of an installation, and its readiness.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectHealth {
    /// The object.
    #[serde(flatten)]
    pub key: ObjectKey,
    /// Its readiness; `None` where it does not exist.
    pub readiness: Option<Readiness>,
    /// Whether it was planned and, as far as is known, never created.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub planned: bool,
    /// What keeps it from getting ready, where something was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocker: Option<Blocker>,
    /// Whether it was edited since our last apply.
    pub edited: bool,
    /// The release of Helm whose marks it has, `shop/web`: helm can change and delete it, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Fields that were left to other managers: the object is not as the add-on wants it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub yielded: Vec<String>,
}

/// How the objects of an installation are.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The objects.
    pub objects: Vec<ObjectHealth>,
    /// How many objects were judged; not all of them are in [`Health::objects`] where only those that are not ready were asked for.
    pub judged: usize,
    /// Whether they show that the record is older than the cluster: then it says nothing of them (semantics 13).
    pub older: Option<RecordOlder>,
}

/// Objects of one installation whose blockers are searched; three requests each.
const SEARCHED: usize = 10;

/// The objects of each installation that are not ready, by owner hash: one LIST for each kind whose readiness counts and that any
/// of them has, or one for each of their namespaces where `by_namespace` says that the caller is bound to some; for the first such object
/// of each installation, also its blocker.
///
/// # Errors
/// The server cannot be reached. What cannot be read is part of the result.
pub async fn troubles(
    cluster: &Cluster,
    records: &[AddonInstallation],
    by_namespace: bool,
) -> Result<BTreeMap<String, Health>, EngineError> {
    let inventories = records
        .iter()
        .map(|record| (owner(record), inventory(record)));
    let wanted: BTreeMap<String, Inventory> = inventories.collect();
    let selections: BTreeSet<Selection> = wanted
        .values()
        .flat_map(|inventory| inventory.objects.keys())
        .filter(|key| KindTraits::of_key(key).tells_health)
        .map(|key| Selection {
            group: key.group.clone(),
            kind: key.kind.clone(),
            namespace: key.namespace.clone().filter(|_| by_namespace),
        })
        .collect();
    let (live, unreadable) = read(cluster, &selections, None).await?;
    let keys = wanted
        .values()
        .flat_map(|inventory| inventory.objects.keys());
    let seen = Seen {
        facts: Facts::of(cluster, keys.filter_map(|key| live.get(key))).await,
        now: cluster.now(),
        live,
        unreadable,
    };
    let ours = by_owner(&seen.live);
    let mut troubles: BTreeMap<String, Health> = BTreeMap::new();
    for record in records {
        let owner = &owner(record);
        let Some(inventory) = wanted.get(owner) else {
            continue;
        };
        let telling = inventory
            .objects
            .keys()
            .filter(|key| KindTraits::of_key(key).tells_health);
        let broken = telling
            .clone()
            .map(|key| health(key, inventory, &seen, owner))
            .filter(|health| !health.is_current());
        let health = Health {
            objects: broken.collect(),
            judged: telling.count(),
            older: older(record, ours.get(owner.as_str())),
        };
        troubles.insert(owner.clone(), health);
    }
    // Only the first one of each installation is shown.
    let first = troubles
        .values_mut()
        .filter_map(|health| health.objects.first_mut());
    join_all(first.map(|health| explain(cluster, health, &seen))).await;
    Ok(troubles)
}

/// Every recorded object of one installation, and its readiness: one LIST for each kind and namespace.
///
/// # Errors
/// The server cannot be reached. What cannot be read is part of the result.
pub async fn objects(cluster: &Cluster, record: &AddonInstallation) -> Result<Health, EngineError> {
    let (owner, inventory) = (owner(record), inventory(record));
    let selections = inventory.objects.keys().map(|key| Selection {
        group: key.group.clone(),
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
    });
    let (live, unreadable) = read(cluster, &selections.collect(), Some(&owner)).await?;
    let seen = Seen {
        facts: Facts::of(cluster, live.values()).await,
        now: cluster.now(),
        live,
        unreadable,
    };
    let keys = inventory.objects.keys();
    let mut objects: Vec<_> = keys
        .map(|key| health(key, &inventory, &seen, &owner))
        .collect();
    let broken = objects.iter_mut().filter(|health| !health.is_current());
    join_all(
        broken
            .take(SEARCHED)
            .map(|health| explain(cluster, health, &seen)),
    )
    .await;
    let ours = by_owner(&seen.live);
    Ok(Health {
        older: older(record, ours.get(owner.as_str())),
        judged: objects.len(),
        objects,
    })
}

/// The objects of an installation.
type Ours<'a> = Vec<(&'a ObjectKey, &'a Value)>;

/// The objects by the owner in their label, without those that a controller made from others.
fn by_owner(live: &BTreeMap<ObjectKey, Value>) -> BTreeMap<&str, Ours<'_>> {
    let mut found: BTreeMap<&str, Ours<'_>> = BTreeMap::new();
    for (key, object) in live {
        let owners = object["metadata"]["ownerReferences"].as_array();
        let is_controlled =
            owners.is_some_and(|all| all.iter().any(|one| one["controller"] == true));
        if let Some(owner) = object["metadata"]["labels"][LABEL_OWNER].as_str()
            && !is_controlled
        {
            found.entry(owner).or_default().push((key, object));
        }
    }
    found
}

/// Whether a record is older than the live objects of its installation.
fn older(record: &AddonInstallation, ours: Option<&Ours<'_>>) -> Option<RecordOlder> {
    let name = name_of(record);
    let ours = ours.into_iter().flatten();
    let written = ours.filter_map(|(key, object)| Some((*key, written(object, &name)?)));
    restored::judge(&name, Memory::of(Some(record)), written)
}

impl ObjectHealth {
    /// Of an object that was kept because it holds data: no version wants it, so nothing waits for it.
    fn retained(key: &ObjectKey, is_there: bool) -> Self {
        let message = if is_there {
            "retained"
        } else {
            "was retained, and is gone"
        };
        Self {
            key: key.clone(),
            readiness: Some(Readiness {
                status: Status::Current,
                message: message.to_owned(),
            }),
            planned: false,
            blocker: None,
            edited: false,
            release: None,
            yielded: Vec::new(),
        }
    }

    /// Whether it exists and is ready.
    pub fn is_current(&self) -> bool {
        self.readiness
            .as_ref()
            .is_some_and(|readiness| readiness.status == Status::Current)
    }

    /// Whether it cannot be read: then it is not known whether it exists and is ready.
    pub fn is_unread(&self) -> bool {
        let readiness = self.readiness.as_ref();
        readiness.is_some_and(|readiness| readiness.status == Status::Unknown)
    }

    /// Its readiness, for people.
    pub fn message(&self) -> &str {
        match &self.readiness {
            Some(readiness) => &readiness.message,
            None if self.planned => "does not exist yet",
            None => "is gone",
        }
    }
}

pub(crate) async fn read(
    cluster: &Cluster,
    selections: &BTreeSet<Selection>,
    owner: Option<&str>,
) -> Result<(BTreeMap<ObjectKey, Value>, Unreadable), EngineError> {
    let needed = selections
        .iter()
        .map(|selection| (selection.group.clone(), selection.kind.clone()))
        .collect();
    let kinds = cluster.kinds(&needed).await?;
    let live = live::owned(cluster, &kinds, selections, owner).await?;
    let objects = live.objects.into_iter();
    let objects = objects.filter_map(|object| Some((ObjectKey::of(&object)?, object)));
    Ok((objects.collect(), live.unreadable))
}

/// Of what nothing could be read, and why.
type Unreadable = BTreeMap<Selection, String>;

/// The live objects, and what else their readiness depends on.
struct Seen {
    live: BTreeMap<ObjectKey, Value>,
    unreadable: Unreadable,
    facts: Facts,
    now: Timestamp,
}

impl Seen {
    /// Why it is not known whether an object exists.
    fn unread(&self, key: &ObjectKey) -> Option<&str> {
        let mut selections = self.unreadable.iter();
        let found = selections.find(|(selection, _)| {
            let in_namespace =
                selection.namespace.is_none() || selection.namespace == key.namespace;
            selection.group == key.group && selection.kind == key.kind && in_namespace
        });
        found.map(|(_, why)| why.as_str())
    }
}

/// Finds what keeps an existing object from getting ready. A pod's own status says it.
async fn explain(cluster: &Cluster, health: &mut ObjectHealth, seen: &Seen) {
    if let Some(live) = seen.live.get(&health.key)
        && health.readiness.is_some()
        && health.key.kind != "Pod"
    {
        health.blocker = blockers::find(cluster, &health.key, live).await;
    }
}

fn health(key: &ObjectKey, inventory: &Inventory, seen: &Seen, owner: &str) -> ObjectHealth {
    let label = |object: &&Value| object["metadata"]["labels"][LABEL_OWNER] == *owner;
    let item = inventory.objects.get(key).map(|item| &item.object);
    if item.is_some_and(|item| item.state == ObjectState::Retained) && KeptKind::of(key).is_some() {
        return ObjectHealth::retained(key, seen.live.get(key).filter(label).is_some());
    }
    let Some(live) = seen.live.get(key).filter(label) else {
        // A Job that deleted itself (ttlSecondsAfterFinished) cannot be distinguished from one that a user deleted. Neither is
        // missed: it did its work when it was installed.
        let gone = || Readiness {
            status: Status::Current,
            message: "gone, as a Job may be after its end".to_owned(),
        };
        let unread = seen.unread(key).map(|why| Readiness {
            status: Status::Unknown,
            message: format!("cannot be read: {why}"),
        });
        let is_job = (key.group.as_str(), key.kind.as_str()) == ("batch", "Job");
        let planned = item.is_some_and(|item| item.state == ObjectState::Planned);
        return ObjectHealth {
            key: key.clone(),
            readiness: unread.or_else(|| (is_job && !planned).then(gone)),
            planned,
            blocker: None,
            edited: false,
            release: None,
            yielded: Vec::new(),
        };
    };
    let fields = live::fields_of(live);
    let edited = item
        .is_some_and(|item| item.is_versioned() && item.was_edited(&live::state(live, &fields)));
    ObjectHealth {
        key: key.clone(),
        readiness: seen.facts.judge(live, seen.now),
        planned: false,
        blocker: None,
        edited,
        release: release_of(&live["metadata"]),
        yielded: item.map(|item| item.yielded.clone()).unwrap_or_default(),
    }
}

/// The release of Helm that the marks of an object name.
fn release_of(metadata: &Value) -> Option<String> {
    let mark = |name: &str| metadata["annotations"][name].as_str();
    Some(format!("{}/{}", mark(HELM_NAMESPACE)?, mark(HELM_NAME)?))
}

fn inventory(record: &AddonInstallation) -> Inventory {
    Inventory::of(record.status.as_ref())
}

/// The owner hash of a record, by which [`troubles`] are found.
pub fn owner(record: &AddonInstallation) -> String {
    let name = name_of(record);
    owner_hash(&name.namespace, &name.name)
}
