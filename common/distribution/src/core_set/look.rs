//! Reads the clusters that have a core set: this one, and those that labelled namespaces stand for.

use std::collections::{BTreeMap, BTreeSet};

use addons_clusters::core_set::UnknownCoreSet;
use addons_clusters::core_set::change::{CoreChange, list_changes};
use addons_clusters::core_set::rollout::identity;
use addons_engine::core_set::{self, HomeNamespace};
use addons_engine::remote::RemoteError;
use addons_engine::{EngineError, record};
use addons_operation::context::{Context, Offer};
use addons_operation::error::OperationError;
use common::api::installation::AddonInstallation;
use common::api::installation::core_guard::{is_guarded, is_released};
use common::catalogue::CatalogueEntry;
use common::pin;
use common::target::{DeletedCluster, NamespaceCluster, cluster_from_labels};

use super::{ClusterCore, CoreSetTexts};

/// What was read of a cluster.
#[derive(Debug)]
pub struct ClusterLook {
    /// The records in the namespace of the cluster.
    pub records: Vec<AddonInstallation>,
    /// The core set of the cluster.
    pub state: CoreSetState,
}

/// The state of the core set of a cluster.
#[derive(Debug)]
pub enum CoreSetState {
    /// There is no core set: neither rules nor a list exist, and no core installation comes from one; or the namespace has none: of the
    /// namespaces of this cluster, only the system namespace has one.
    Unused,
    /// The cluster is another one that is being deleted, or a person marked it as being deleted. Its records are no longer held.
    Deleting {
        /// Whether its namespace already carries the mark, or is being deleted itself.
        is_marked: bool,
    },
    /// The core set was read.
    Found(ClusterCore),
}

impl ClusterLook {
    /// Returns the changes of the records; none if the core set is unknown.
    #[must_use]
    pub fn changes(&self) -> Vec<CoreChange<'_>> {
        match &self.state {
            CoreSetState::Found(ClusterCore { set: Ok(set), .. }) => {
                list_changes(set, &self.records.iter().collect::<Vec<_>>())
            }
            _ => Vec::new(),
        }
    }

    /// Whether a record has to be released that no person has released.
    #[must_use]
    pub fn releases(&self) -> bool {
        let is_new = |change: &CoreChange<'_>| match change {
            CoreChange::Release { record, .. } => !is_released(record),
            _ => false,
        };
        self.changes().iter().any(is_new)
    }

    /// Whether there is a core set, and it is unknown.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(
            &self.state,
            CoreSetState::Found(ClusterCore { set: Err(_), .. })
        )
    }
}

/// What is read once for all clusters.
#[derive(Debug)]
pub struct CoreSetInputs {
    /// The rules and the list.
    pub texts: CoreSetTexts,
    /// The namespaces of the clusters: that of the command, else the system namespace and the labelled ones.
    homes: BTreeMap<String, HomeNamespace>,
    /// The clusters that are being deleted.
    deleted: Vec<DeletedCluster>,
    /// The records by namespace; `None` if the caller may list them only in single namespaces.
    records: Option<BTreeMap<String, Vec<AddonInstallation>>>,
}

impl CoreSetInputs {
    /// Reads everything, with one request for each part, however many clusters there are.
    ///
    /// # Errors
    /// The namespaces or the records cannot be read.
    pub async fn read(ctx: &Context, texts: CoreSetTexts) -> Result<Self, OperationError> {
        let home = ctx.home().await?;
        let (own, only) = (
            ctx.settings().records_namespace(),
            ctx.settings().namespace.as_deref(),
        );
        let others = async {
            match only {
                Some(_) => Ok(BTreeMap::new()),
                None => core_set::list_homes(home).await,
            }
        };
        let records = async {
            match record::list(home, only).await {
                Err(EngineError::Forbidden { .. }) => Ok(None),
                records => records.map(Some),
            }
        };
        let (mine, mut homes, deleted, records) = futures::try_join!(
            core_set::read_home(home, own),
            others,
            core_set::deleted_clusters(home),
            records,
        )?;
        homes.insert(own.to_owned(), mine.unwrap_or_default());
        Ok(Self {
            texts,
            homes,
            deleted,
            records: records.map(group_by_namespace),
        })
    }

    /// Returns a context for each cluster, that of the command first. Connections to clusters whose namespaces were deleted are forgotten.
    #[must_use]
    pub fn contexts(&self, ctx: &Context) -> Vec<Context> {
        let own = ctx.settings().records_namespace();
        if let (None, Some(records)) = (&ctx.settings().namespace, &self.records) {
            let homes = &self.homes;
            ctx.retain_clusters(|one| homes.contains_key(one) || records.contains_key(one));
        }
        let others = self.homes.iter().filter(|(namespace, _)| *namespace != own);
        let others =
            others.map(|(namespace, home)| ctx.for_labelled_namespace(namespace, &home.labels));
        std::iter::once(ctx.fresh()).chain(others).collect()
    }

    /// Returns the identity of a change that reaches the clusters in waves: a digest of the rules, the list, and the catalogue entries of
    /// the listed add-ons (semantics 14.8). `looks` are those at the clusters.
    ///
    /// # Errors
    /// The catalogues cannot be read.
    pub async fn identity(
        &self,
        ctx: &Context,
        looks: &[&ClusterLook],
    ) -> Result<String, OperationError> {
        let decisions = looks.iter().flat_map(|look| match &look.state {
            CoreSetState::Found(found) => &found.decisions[..],
            CoreSetState::Unused | CoreSetState::Deleting { .. } => &[],
        });
        let listed: BTreeSet<&str> = decisions.map(|one| one.addon.name.as_str()).collect();
        let catalogue = ctx.catalogue(&Offer::Catalogues).await?;
        let entries = catalogue.entries.iter();
        let entries = entries.filter(|entry| listed.contains(entry.addon.as_str()));
        let content = entries.map(CatalogueEntry::digest).collect();
        let (rules, addons) = (self.texts.rules.as_deref(), self.texts.addons.as_deref());
        Ok(identity(rules, addons, &content))
    }

    /// Returns the records in the namespace of a context.
    ///
    /// # Errors
    /// The records cannot be read.
    pub async fn records(&self, ctx: &Context) -> Result<Vec<AddonInstallation>, OperationError> {
        let namespace = ctx.settings().records_namespace();
        Ok(match &self.records {
            Some(all) => all.get(namespace).cloned().unwrap_or_default(),
            None => record::list(ctx.home().await?, Some(namespace)).await?,
        })
    }

    /// Looks at the cluster of a context. `account` is the ServiceAccount of the system namespace that reads the facts of this cluster.
    ///
    /// # Errors
    /// The records or a fact cannot be read.
    pub async fn look_at(
        &self,
        ctx: &Context,
        account: Option<&str>,
    ) -> Result<ClusterLook, OperationError> {
        let namespace = ctx.settings().records_namespace();
        let is_system = *namespace == ctx.settings().system_namespace;
        let records = self.records(ctx).await?;
        let found = self.homes.get(namespace).cloned().unwrap_or_default();
        let mut deleted = self.deleted.iter();
        let is_going = found.is_being_deleted
            || deleted.any(|one| one.is_cluster_of(namespace, &found.labels, &records));
        let is_used = !self.texts.is_missing() || records.iter().any(is_guarded);
        // Read the labels only if something depends on them.
        let is_of_other = !is_system
            && !found.is_marked
            && (is_going || is_used)
            && stands_for_other(namespace, &found.labels)?;
        // The label or Secret that led to the other cluster may be deleted before its records.
        let was_of_other = !is_system && records.iter().any(pin::is_in_other_cluster);
        let state = if found.is_marked || is_going && (is_of_other || was_of_other) {
            CoreSetState::Deleting {
                is_marked: found.is_marked || found.is_being_deleted,
            }
        } else if !is_used || !is_system && !is_of_other {
            CoreSetState::Unused
        } else if let Some(other) = ctx.cluster_strayed_to(&records).await? {
            CoreSetState::Found(ClusterCore {
                decisions: Vec::new(),
                set: Err(UnknownCoreSet::OtherCluster(Box::new(other))),
            })
        } else {
            let (texts, labels) = (self.texts.clone(), found.labels);
            CoreSetState::Found(match account.filter(|_| is_system) {
                Some(account) => {
                    let acting = ctx.acting_as(namespace, account).await?;
                    ClusterCore::read(&acting, texts, labels).await?
                }
                None => ClusterCore::read(ctx, texts, labels).await?,
            })
        };
        Ok(ClusterLook { records, state })
    }
}

/// Whether a namespace with these labels stands for another cluster.
fn stands_for_other(
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> Result<bool, RemoteError> {
    let standing = cluster_from_labels(namespace, labels)?;
    Ok(matches!(standing, NamespaceCluster::OtherCluster(_)))
}

fn group_by_namespace(records: Vec<AddonInstallation>) -> BTreeMap<String, Vec<AddonInstallation>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for record in records {
        let namespace = record.metadata.namespace.clone().unwrap_or_default();
        all.entry(namespace).or_default().push(record);
    }
    all
}
