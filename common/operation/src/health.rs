//! Reads the live objects of installations, and judges how the installations stand (semantics 17.6).

use std::collections::{BTreeMap, BTreeSet};

use addons_engine::facts::ReadinessFacts as Readable;
use addons_engine::live::{self, LiveSelection};
use addons_engine::{Cluster, EngineError, blockers};
use addons_plan::inventory::{Inventory, InventoryItem};
use addons_plan::readiness::health_check::HealthChecks;
use addons_plan::readiness::{Readiness, ReadinessStatus, assess_existing};
use addons_plan::restored::{self, OutdatedRecord, RecordCoverage, last_written};
use addons_plan::standing::object::{ObjectHealth, ObservedObject, affects_standing};
use addons_plan::standing::{
    self, Health, OfferedCatalogues, Standing, StandingFacts, StandingState, UnseenCluster,
};
use common::api::installation::AddonInstallation;
use common::api::names::{LABEL_OWNER, owner_hash};
use common::manifest::key::ObjectKey;
use futures::future::join_all;
use jiff::Timestamp;
use serde_json::Value;

use crate::context::{Context, Offer};
use crate::error::OperationError;
use crate::execute::continued;
use crate::records::name_of;

/// How an installation stands, and the command that continues it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallationState {
    /// How it stands.
    pub standing: Standing,
    /// The command that continues an operation that failed, was interrupted or has not begun, if that is recorded.
    pub continue_command: Option<String>,
}

impl InstallationState {
    fn new(standing: Standing, record: &AddonInstallation) -> Self {
        let next = standing.continuation.as_ref();
        Self {
            continue_command: next.map(|next| continued::command(next, &name_of(record))),
            standing,
        }
    }
}

impl std::fmt::Display for InstallationState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.standing)?;
        match &self.continue_command {
            Some(way_on) if self.standing.state == StandingState::Interrupted => {
                write!(f, "; to continue: {way_on}")
            }
            _ => Ok(()),
        }
    }
}

/// Returns the offer of the catalogues of the cluster, or `None` if the caller may not read them.
///
/// # Errors
/// The server cannot be reached, or refuses for another reason.
pub async fn read_offered(ctx: &Context) -> Result<Option<OfferedCatalogues<'_>>, OperationError> {
    let Some(catalogues) = ctx.readable_catalogues().await? else {
        return Ok(None);
    };
    // They do not have what does not fit any more, and no core add-ons.
    if ctx.reads_compatible_only() {
        return Ok(None);
    }
    let entries = ctx.catalogue(&Offer::Catalogues).await?;
    Ok(Some(OfferedCatalogues {
        catalogues,
        entries,
    }))
}

/// Judges an installation by its record, its objects and the offer of the catalogues: [`standing::assess_standing`].
///
/// # Errors
/// The server cannot be reached.
pub async fn installation_state(
    ctx: &Context,
    record: &AddonInstallation,
    health: &Health,
    offered: Option<&OfferedCatalogues<'_>>,
) -> Result<InstallationState, OperationError> {
    let other = match &health.unseen {
        Some(_) => None,
        None => ctx.other_cluster(record).await?,
    };
    let facts = StandingFacts {
        health,
        offered,
        other: other.as_ref(),
        now: ctx.home().await?.now(),
    };
    Ok(InstallationState::new(
        standing::assess_standing(record, &facts),
        record,
    ))
}

/// The troubles of installations of one cluster, and why they are not known if its cluster was not read.
#[derive(Debug, Default)]
pub struct ClusterTroubles {
    /// Those of each installation, by owner hash.
    pub troubles: BTreeMap<String, Health>,
    /// Why the cluster was not read.
    pub unseen: Option<UnseenCluster>,
}

/// As [`find_troubles`], in the cluster of the objects. If that is another cluster that cannot be read, this is part of the result.
///
/// # Errors
/// The server of the records cannot be reached.
pub async fn read_troubles(
    ctx: &Context,
    records: &[&AddonInstallation],
    by_namespace: bool,
) -> Result<ClusterTroubles, OperationError> {
    let read = async {
        let cluster = ctx.cluster().await?;
        Ok::<_, OperationError>(find_troubles(cluster, records, by_namespace).await?)
    };
    match read.await {
        Ok(troubles) => Ok(ClusterTroubles {
            troubles,
            unseen: None,
        }),
        Err(error) => {
            let unseen = why_unseen(ctx, error).await?;
            let of_record = |record: &&AddonInstallation| {
                let health = Health {
                    unseen: Some(unseen.clone()),
                    ..Health::default()
                };
                (owner_of(record), health)
            };
            Ok(ClusterTroubles {
                troubles: records.iter().map(of_record).collect(),
                unseen: Some(unseen),
            })
        }
    }
}

/// As [`object_health`], in the cluster of the objects. If that is another cluster that cannot be read, every recorded object is unread.
///
/// # Errors
/// The server of the records cannot be reached.
pub async fn read_health(
    ctx: &Context,
    record: &AddonInstallation,
) -> Result<Health, OperationError> {
    let read = async {
        let cluster = ctx.cluster().await?;
        Ok::<_, OperationError>(object_health(cluster, record).await?)
    };
    let error = match read.await {
        Ok(health) => return Ok(health),
        Err(error) => error,
    };
    let unseen = why_unseen(ctx, error).await?;
    let recorded = RecordedObjects::from_record(record);
    let unread = recorded.inventory.objects.iter().map(|(key, item)| {
        let sight = ObservedObject::Unreadable("not read");
        ObjectHealth::assess(key, item, &recorded.owner, &recorded.checks, &sight)
    });
    Ok(Health {
        objects: unread.collect(),
        unseen: Some(unseen),
        ..Health::default()
    })
}

/// Returns why another cluster was not read.
///
/// # Errors
/// `error` itself, if the objects are in the cluster of the records.
async fn why_unseen(ctx: &Context, error: OperationError) -> Result<UnseenCluster, OperationError> {
    if !ctx.is_remote().await? {
        return Err(error);
    }
    Ok(match error.is_forbidden() {
        true => UnseenCluster::NotAllowed,
        false => UnseenCluster::Lost(error.chain()),
    })
}

/// For how many objects of an installation blockers are searched, with three requests each.
const MAX_SEARCHED: usize = 10;

/// Returns, by owner hash, the objects of each installation that are not as they should be or that others edited. It sends one LIST for
/// each kind of object, or one per namespace if `by_namespace` says that the caller has rights only in some namespaces. Kinds for which no
/// operation waits are read as metadata only. For the first object in trouble of each installation, it also finds the blocker.
///
/// # Errors
/// The server cannot be reached. What cannot be read is part of the result.
pub async fn find_troubles(
    cluster: &Cluster,
    records: &[&AddonInstallation],
    by_namespace: bool,
) -> Result<BTreeMap<String, Health>, EngineError> {
    let recorded: Vec<RecordedObjects> = records
        .iter()
        .map(|record| RecordedObjects::from_record(record))
        .collect();
    let keys = recorded.iter().flat_map(RecordedObjects::keys);
    let read = keys
        .clone()
        .filter(|(key, checks)| affects_standing(key, checks));
    let whole: BTreeSet<(&str, &str)> = read.map(|(key, _)| (&*key.group, &*key.kind)).collect();
    let selections = keys.clone().map(|(key, _)| LiveSelection {
        group: key.group.clone(),
        kind: key.kind.clone(),
        namespace: key.namespace.clone().filter(|_| by_namespace),
        whole: whole.contains(&(&*key.group, &*key.kind)),
    });
    let seen = LiveView::read(cluster, &selections.collect(), keys, None).await?;
    let ours = group_by_owner(&seen.live);
    let mut troubles: BTreeMap<String, Health> = BTreeMap::new();
    for (record, recorded) in records.iter().zip(&recorded) {
        let judged = seen.object_health(recorded);
        let is_told =
            |object: &ObjectHealth| object.is_trouble() || object.is_unread() || object.edited;
        let health = Health {
            objects: judged.filter(is_told).collect(),
            assessed: recorded.inventory.objects.len(),
            older: check_older(record, ours.get(recorded.owner.as_str())),
            unseen: None,
        };
        troubles.insert(recorded.owner.clone(), health);
    }
    // Only the first object of each installation is shown.
    let first = troubles.values_mut().filter_map(|health| {
        let mut objects = health.objects.iter_mut();
        objects.find(|object| object.is_trouble())
    });
    join_all(first.map(|health| find_blocker(cluster, health, &seen))).await;
    Ok(troubles)
}

/// Returns every recorded object of one installation and its readiness, with one LIST for each kind and namespace.
///
/// # Errors
/// The server cannot be reached. What cannot be read is part of the result.
pub async fn object_health(
    cluster: &Cluster,
    record: &AddonInstallation,
) -> Result<Health, EngineError> {
    let recorded = RecordedObjects::from_record(record);
    let seen = LiveView::read_owned(cluster, &recorded, true).await?;
    let owner = &recorded.owner;
    let mut objects: Vec<_> = seen.object_health(&recorded).collect();
    let broken = objects.iter_mut().filter(|health| !health.is_current());
    join_all(
        broken
            .take(MAX_SEARCHED)
            .map(|health| find_blocker(cluster, health, &seen)),
    )
    .await;
    let ours = group_by_owner(&seen.live);
    Ok(Health {
        older: check_older(record, ours.get(owner.as_str())),
        assessed: objects.len(),
        objects,
        unseen: None,
    })
}

/// How many objects of an installation differ from what was applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriftCounts {
    /// Edited objects, and those whose label another client removed.
    pub edited: usize,
    /// Objects that were deleted.
    pub missing: usize,
}

impl DriftCounts {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// Counts the recorded objects of an installation that were edited or deleted. It reads metadata only, with one LIST for each kind and
/// namespace. What cannot be read does not count.
///
/// # Errors
/// The server cannot be reached.
pub async fn count_drift(
    cluster: &Cluster,
    record: &AddonInstallation,
) -> Result<DriftCounts, EngineError> {
    let recorded = RecordedObjects::from_record(record);
    let seen = LiveView::read_owned(cluster, &recorded, false).await?;
    let mut counts = DriftCounts::default();
    for object in seen.object_health(&recorded) {
        if object.edited {
            counts.edited += 1;
        } else if object.is_restorable() {
            counts.missing += 1;
        }
    }
    Ok(counts)
}

/// The recorded objects of an installation, and how their readiness is judged.
struct RecordedObjects {
    /// The owner label of the installation.
    owner: String,
    inventory: Inventory,
    checks: HealthChecks,
}

impl RecordedObjects {
    fn from_record(record: &AddonInstallation) -> Self {
        Self {
            owner: owner_of(record),
            inventory: Inventory::from_status(record.status.as_ref()),
            checks: HealthChecks::compile(record.health_check_exprs()),
        }
    }

    /// Returns each object with the checks of its installation.
    fn keys(&self) -> impl Iterator<Item = (&ObjectKey, &HealthChecks)> + Clone {
        let keys = self.inventory.objects.keys();
        keys.map(|key| (key, &self.checks))
    }
}

/// The objects of an installation.
type OwnedObjects<'a> = Vec<(&'a ObjectKey, &'a Value)>;

/// Groups the objects by owner label, without those that a controller created.
fn group_by_owner(live: &BTreeMap<ObjectKey, Value>) -> BTreeMap<&str, OwnedObjects<'_>> {
    let mut found: BTreeMap<&str, OwnedObjects<'_>> = BTreeMap::new();
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

/// Checks whether a record is older than the live objects of its installation (semantics 13.10).
fn check_older(
    record: &AddonInstallation,
    ours: Option<&OwnedObjects<'_>>,
) -> Option<OutdatedRecord> {
    let name = name_of(record);
    let ours = ours.into_iter().flatten();
    let written = ours.filter_map(|(key, object)| Some((*key, last_written(object, &name)?)));
    restored::compare_writes(&name, RecordCoverage::from_record(Some(record)), written)
}

/// Reads the live objects of the selections, and returns the selections that could not be read. With `owner`, only objects with this owner
/// label are returned.
///
/// # Errors
/// Those of the requests.
pub async fn read_live(
    cluster: &Cluster,
    selections: &BTreeSet<LiveSelection>,
    owner: Option<&str>,
) -> Result<(BTreeMap<ObjectKey, Value>, UnreadableSelections), EngineError> {
    let kinds = cluster.kinds(&kinds_of(selections)).await?;
    let live = live::list_owned(cluster, &kinds, selections, owner).await?;
    let objects = live.objects.into_iter();
    let objects = objects.filter_map(|object| Some((ObjectKey::from_object(&object)?, object)));
    Ok((objects.collect(), live.unreadable))
}

fn kinds_of(selections: &BTreeSet<LiveSelection>) -> BTreeSet<(String, String)> {
    let kinds = selections.iter();
    kinds
        .map(|selection| (selection.group.clone(), selection.kind.clone()))
        .collect()
}

/// The selections that could not be read, and why.
type UnreadableSelections = BTreeMap<LiveSelection, String>;

/// The live objects, and what else their readiness depends on.
struct LiveView {
    live: BTreeMap<ObjectKey, Value>,
    /// The kinds that could not be read, and why.
    unreadable: UnreadableSelections,
    /// The objects that could not be read individually, and why.
    unread: BTreeMap<ObjectKey, String>,
    /// The kinds of which only metadata was read.
    partial: BTreeSet<(String, String)>,
    facts: Readable,
    now: Timestamp,
}

impl LiveView {
    /// Reads the recorded objects of one installation, with one LIST for each kind and namespace. `whole`: not only their metadata.
    async fn read_owned(
        cluster: &Cluster,
        recorded: &RecordedObjects,
        whole: bool,
    ) -> Result<Self, EngineError> {
        let selections = recorded.keys().map(|(key, _)| LiveSelection {
            group: key.group.clone(),
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            whole,
        });
        let owner = Some(recorded.owner.as_str());
        Self::read(cluster, &selections.collect(), recorded.keys(), owner).await
    }

    /// Reads the objects of installations by their label, and by name each of `recorded` that was not found: objects that were only
    /// recorded do not carry our label, and a label can be removed.
    async fn read<'a>(
        cluster: &Cluster,
        selections: &BTreeSet<LiveSelection>,
        recorded: impl Iterator<Item = (&'a ObjectKey, &'a HealthChecks)> + Clone,
        owner: Option<&str>,
    ) -> Result<Self, EngineError> {
        let (live, unreadable) = read_live(cluster, selections, owner).await?;
        let partial = selections.iter().filter(|selection| !selection.whole);
        let partial = partial.map(|selection| (selection.group.clone(), selection.kind.clone()));
        let mut seen = Self {
            live,
            unreadable,
            unread: BTreeMap::new(),
            partial: partial.collect(),
            facts: Readable::default(),
            now: cluster.now(),
        };
        let missing: BTreeSet<&ObjectKey> = recorded
            .clone()
            .map(|(key, _)| key)
            .filter(|key| !seen.live.contains_key(key) && seen.why_unread(key).is_none())
            .collect();
        if !missing.is_empty() {
            let kinds = cluster.kinds(&kinds_of(selections)).await?;
            let missing = missing.into_iter().cloned().collect();
            for (key, found) in live::read_named(cluster, &kinds, missing).await? {
                match found {
                    Ok(Some(object)) => drop(seen.live.insert(key, object)),
                    Ok(None) => {}
                    Err(why) => drop(seen.unread.insert(key, why)),
                }
            }
        }
        let whole =
            recorded.filter(|(key, checks)| !seen.is_partial(key) && checks.find(key).is_none());
        let whole = whole.filter_map(|(key, _)| seen.live.get(key));
        seen.facts = Readable::read(cluster, whole).await;
        Ok(seen)
    }

    fn is_partial(&self, key: &ObjectKey) -> bool {
        let kind = (key.group.clone(), key.kind.clone());
        self.partial.contains(&kind)
    }

    /// Returns why it is not known whether an object exists.
    fn why_unread(&self, key: &ObjectKey) -> Option<&str> {
        let mut selections = self.unreadable.iter();
        let found = selections.find(|(selection, _)| {
            let in_namespace =
                selection.namespace.is_none() || selection.namespace == key.namespace;
            selection.group == key.group && selection.kind == key.kind && in_namespace
        });
        let why = found.map(|(_, why)| why).or_else(|| self.unread.get(key));
        why.map(String::as_str)
    }

    /// Returns every object of an installation and its readiness.
    fn object_health(&self, recorded: &RecordedObjects) -> impl Iterator<Item = ObjectHealth> {
        let objects = recorded.inventory.objects.iter();
        objects.map(|(key, item)| self.assess(key, item, recorded))
    }

    fn assess(
        &self,
        key: &ObjectKey,
        item: &InventoryItem,
        recorded: &RecordedObjects,
    ) -> ObjectHealth {
        let RecordedObjects { owner, checks, .. } = recorded;
        let Some(live) = self.live.get(key) else {
            let sight = match self.why_unread(key) {
                Some(why) => ObservedObject::Unreadable(why),
                None => ObservedObject::Missing,
            };
            return ObjectHealth::assess(key, item, owner, checks, &sight);
        };
        let fields = live::fields_of(live);
        let readiness = if self.is_partial(key) {
            Some(assess_existing(live))
        } else {
            let check = checks.find(key);
            self.facts.assess(live, check.map(AsRef::as_ref), self.now)
        };
        let sight = ObservedObject::Exists {
            live,
            state: live::live_state(live, &fields),
            readiness: readiness.unwrap_or_else(|| Readiness {
                status: ReadinessStatus::Unknown,
                message: "what its readiness depends on is not known".to_owned(),
            }),
        };
        ObjectHealth::assess(key, item, owner, checks, &sight)
    }
}

/// Finds what keeps an existing object from becoming ready. The status of a pod says it by itself.
async fn find_blocker(cluster: &Cluster, health: &mut ObjectHealth, seen: &LiveView) {
    if let Some(live) = seen.live.get(&health.key)
        && !seen.is_partial(&health.key)
        && health.readiness.is_some()
        && health.key.kind != "Pod"
    {
        health.blocker = blockers::find_blocker(cluster, &health.key, live).await;
    }
}

/// Returns the owner hash of a record, the key of [`find_troubles`].
pub fn owner_of(record: &AddonInstallation) -> String {
    let name = name_of(record);
    owner_hash(&name.namespace, &name.name)
}
