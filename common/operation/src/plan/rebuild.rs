//! Plans to record an installation again from its live objects, if its record is older than the cluster (semantics 13.10, 13.11).

use addons_engine::{EngineError, marks};
use addons_plan::choices::Choices;
use addons_plan::desired::Desired;
use addons_plan::facts::{RecordFacts, WantedRecord};
use addons_plan::inventory::Inventory;
use addons_plan::planner::PlanError;
use addons_plan::restored::rebuild::{RebuildInput, rebuild};
use addons_plan::restored::{RecordCoverage, find_outdated};
use addons_plan::snapshot::SnapshotRequest;
use common::api::installation::{AddonInstallation, format};
use common::api::names::owner_hash;
use common::pin;

use super::installation::{check_namespace_pin, read_recorded};
use super::planned::{OnFailure, Plan, PlannedInstallation};
use crate::error::{AdoptError, OperationError};
use crate::records::name_of;
use crate::resolve::Resolver;

impl Resolver<'_> {
    /// Plans to record again the named installations whose records are older than the cluster. Names that no installation has are skipped.
    /// Only the records will be written. With `new_cluster`, records of another cluster are included, and become records of this one
    /// (semantics 6.5).
    ///
    /// # Errors
    /// A record belongs to another cluster or, with `new_cluster`, to this one; several installations have a name; one is suspended; those
    /// of the requests.
    pub async fn rebuild(
        &self,
        names: &[String],
        new_cluster: bool,
    ) -> Result<Plan, OperationError> {
        let namespace = self.ctx.settings().namespace.as_deref();
        let mut installations = Vec::new();
        for name in names {
            let mut known = self.records.in_namespace(namespace);
            if new_cluster || known.any(|record| name_of(record).name == *name) {
                let record = self.records.find(name, namespace)?;
                installations.extend(plan_rebuild(self, record, new_cluster).await?);
            }
        }
        Plan::without_rendering(Choices::default(), installations)
    }
}

/// Plans one record, which may still have to be created, or returns `None` if it is as new as the cluster.
///
/// # Errors
/// As [`Resolver::rebuild`].
pub async fn plan_rebuild(
    resolver: &Resolver<'_>,
    record: &AddonInstallation,
    new_cluster: bool,
) -> Result<Option<PlannedInstallation>, OperationError> {
    let cluster = resolver.ctx.cluster().await?;
    let name = name_of(record);
    format::check(record).map_err(EngineError::from)?;
    let status = record.status.as_ref();
    let found = resolver.ctx.cluster_identity().await?;
    let checked = pin::check(&name, status, found.as_ref());
    if new_cluster && checked.is_ok() && status.is_some_and(|status| status.cluster.is_some()) {
        return Err(AdoptError::SameCluster(name).into());
    }
    if !new_cluster {
        checked.clone()?;
    }
    resolver.ctx.check_not_same_cluster().await?;
    if !new_cluster {
        check_namespace_pin(resolver, &name, status, found.as_ref())?;
    }
    let memory = RecordCoverage::from_record(Some(record));
    if memory == RecordCoverage::Open && !new_cluster {
        return Ok(None);
    }
    let inventory = Inventory::from_status(status);
    let (kinds, mut snapshot) =
        read_recorded(cluster, &inventory, SnapshotRequest::default()).await?;
    let owned = marks::read_owned(cluster, &owner_hash(&name.namespace, &name.name)).await?;
    let unasked = owned.objects.into_iter();
    snapshot.unrequested = unasked
        .filter(|(key, _)| !snapshot.live.contains_key(key))
        .collect();
    let claims = resolver.records.claims(&name, &[], &snapshot);
    if !new_cluster && find_outdated(&name, memory, &snapshot, &claims).is_none() {
        return Ok(None);
    }
    if record.spec.suspend {
        return Err(OperationError::Suspended(name));
    }
    let mut plan = rebuild(&RebuildInput {
        installation: &name,
        addon: &record.spec.addon_ref.name,
        from: record.installed(),
        inventory: &inventory,
        snapshot: &snapshot,
        kinds: &kinds,
        claims: &claims,
        target_namespace: record.spec.target_namespace.as_deref(),
        is_other_cluster: new_cluster,
    })
    .map_err(PlanError::from)?;
    let unread = owned.unreadable.into_iter();
    let unread = unread.map(|(collection, why)| format!("{collection} cannot be listed: {why}"));
    plan.warnings.extend(unread);
    plan.warnings
        .extend(checked.err().map(|other| other.to_string()));
    plan.cluster = found;
    plan.wanted = WantedRecord::from_record(record);
    let is_stored = record.metadata.resource_version.is_some();
    plan.record = is_stored.then(|| RecordFacts::from_record(record));
    Ok(Some(PlannedInstallation {
        plan,
        record: record.clone(),
        fallback: None,
        on_failure: OnFailure::Stays,
        entry: None,
        desired: Desired::default(),
        release: None,
    }))
}
