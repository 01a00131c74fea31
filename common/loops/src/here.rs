//! Reconciles an installation of this cluster.

use std::sync::Arc;
use std::time::Instant;

use addons_operation::{Context, Interruption, Resolver};
use common::api::names::InstallationName;

use crate::done::ReconciledInstallation;
use crate::installation::{ReconcileOptions, ReconcileOutcome, reconcile};

/// Reconciles one installation, from records that are read now.
pub(crate) async fn reconcile_named(
    ctx: Arc<Context>,
    name: InstallationName,
    how: ReconcileOptions,
    interruption: Interruption,
) -> ReconciledInstallation {
    let begun = Instant::now();
    let mut is_elsewhere = false;
    let resolving = Resolver::for_records(&ctx);
    let (record, outcome) = match interruption.unless_interrupted(resolving).await {
        Err(error) => (None, Err(error)),
        Ok(resolver) => {
            let found = resolver.records.get(&name);
            is_elsewhere = found.is_some() && !resolver.records.local.contains(&name.namespace);
            match found.filter(|_| !is_elsewhere) {
                None => (None, Ok(ReconcileOutcome::UpToDate)),
                Some(record) => {
                    let outcome = reconcile(&ctx, &resolver, record, &how, &interruption).await;
                    let last = match &outcome {
                        ReconcileOutcome::Executed(_, report) => report.record.clone(),
                        _ => Some(record.clone()),
                    };
                    (last, Ok(outcome))
                }
            }
        }
    };
    ReconciledInstallation {
        name,
        record,
        is_elsewhere,
        outcome,
        took: begun.elapsed(),
    }
}
