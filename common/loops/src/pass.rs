//! Makes one pass: reconciles each installation of the cluster once, several at the same time. A failure does not stop the others, and an
//! installation that only waits does not keep others out.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use addons_operation::{Context, Interruption, OperationError, Records, Resolver, name_of};
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;
use futures::{StreamExt as _, stream};

use crate::core_set::{self, CoreSetReport};
use crate::installation::{
    ReconcileOptions, ReconcileOutcome, ReconcileReport, ReconciledInstallation, reconcile,
};
use crate::remote::GroupedInstallation;
use crate::slots::{Lane, Slots};
use crate::{duplicates, remote};

/// The most installations that are worked on or waited for at the same time.
const UNDER_WAY: usize = 256;
/// The most other clusters that are worked on at the same time.
pub const CLUSTERS: usize = 32;

/// Reconciles the named installations, or all of this cluster and of the other clusters that namespaces stand for, and passes the outcome
/// of each to `see`. Without names, it first makes the core records match the core sets, and passes the result to `see_core`. An
/// installation that lacks another add-on is tried again after others of the pass were installed.
///
/// # Errors
/// The records cannot be read, or a name does not belong to any installation.
pub async fn pass(
    ctx: &Context,
    names: &[String],
    how: &ReconcileOptions,
    interruption: &Interruption,
    see_core: &mut (dyn FnMut(CoreSetReport) + Send),
    see: &mut (dyn FnMut(&InstallationName, ReconcileOutcome) + Send),
) -> Result<(), OperationError> {
    if names.is_empty() {
        duplicates::update_conditions(ctx).await?;
        match core_set::follow(ctx, how).await {
            Ok(followed) => see_core(followed),
            // A caller that may not read them has no core sets to follow.
            Err(error) if error.is_forbidden() => {}
            Err(error) => return Err(error),
        }
        if ctx.settings().namespace.is_none() {
            reconcile_other_clusters(ctx, how, interruption, see).await?;
        }
    }
    let mut again: Vec<InstallationName> = Vec::new();
    loop {
        let resolver = Resolver::for_records(ctx).await?;
        let namespace = ctx.settings().namespace.as_deref();
        let mut records: Vec<&AddonInstallation> = if !again.is_empty() {
            let again = again.iter();
            again
                .filter_map(|name| resolver.records.get(name))
                .collect()
        } else if names.is_empty() {
            resolver.records.in_namespace(namespace).collect()
        } else {
            resolver.records.find_all(names, namespace)?
        };
        // Others may not get ready without these.
        records.sort_by_key(|record| !record.spec.is_guard());
        let slots = Slots::default();
        let reconciling = records.iter().map(async |record| {
            let (lane, part) = (record_lane(record), interruption.part());
            let work = reconcile(ctx, &resolver, record, how, &part);
            let done = slots.work(lane, &part, || {}, work).await;
            (name_of(record), done.outcome)
        });
        let mut reconciling = stream::iter(reconciling).buffer_unordered(UNDER_WAY);
        let mut lacking = Vec::new();
        let mut is_progress = false;
        while let Some((name, outcome)) = reconciling.next().await {
            match outcome {
                ReconcileOutcome::Failed(error) if lacks_addon(&error) => {
                    lacking.push((name, error))
                }
                outcome => {
                    is_progress |= outcome.is_progress();
                    see(&name, outcome);
                }
            }
        }
        if lacking.is_empty() {
            return Ok(());
        }
        if !is_progress || interruption.is_interrupted() {
            for (name, error) in lacking {
                see(&name, ReconcileOutcome::Failed(error));
            }
            return Ok(());
        }
        again = lacking.into_iter().map(|(name, _)| name).collect();
    }
}

/// Reconciles the installations of other clusters once. A cluster that cannot be worked on does not delay the others.
async fn reconcile_other_clusters(
    ctx: &Context,
    how: &ReconcileOptions,
    interruption: &Interruption,
    see: &mut (dyn FnMut(&InstallationName, ReconcileOutcome) + Send),
) -> Result<(), OperationError> {
    let records = Records::read(ctx).await?;
    let mut clusters: BTreeMap<String, Vec<GroupedInstallation>> = BTreeMap::new();
    for record in &records.all {
        let name = name_of(record);
        if !records.local.contains(&name.namespace) {
            let of_cluster = clusters.entry(name.namespace.clone()).or_default();
            of_cluster.push(GroupedInstallation {
                name,
                cause: how.cause.clone(),
                lane: record_lane(record),
                part: interruption.part(),
            });
        }
    }
    let looking = clusters.into_iter().map(async |(namespace, all)| {
        let (slots, found) = (Slots::default(), Mutex::new(Vec::new()));
        let note = |heard| {
            if let ReconcileReport::Done(done) = heard {
                found
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(*done);
            }
        };
        let ctx = ctx.for_namespace(&namespace);
        remote::reconcile_together(&ctx, &all, how, interruption, &slots, &note).await;
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    });
    let mut looking = stream::iter(looking).buffer_unordered(CLUSTERS);
    while let Some(found) = looking.next().await {
        for ReconciledInstallation {
            name,
            outcome,
            is_elsewhere,
            ..
        } in found
        {
            match outcome {
                Ok(_) if is_elsewhere => {}
                Ok(outcome) => see(&name, outcome),
                Err(error) => see(&name, ReconcileOutcome::Failed(error)),
            }
        }
    }
    Ok(())
}

fn record_lane(record: &AddonInstallation) -> Lane {
    Lane::new(record.spec.is_guard(), true)
}

/// Returns whether another add-on is missing, which this pass may be about to install.
fn lacks_addon(error: &OperationError) -> bool {
    matches!(
        error.root(),
        OperationError::Requires(_) | OperationError::NotServed(_) | OperationError::Dependents(_)
    )
}
