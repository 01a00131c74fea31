//! One pass: each installation of the cluster once, several at the same time. What fails for one does not stop the others.

use addons_operation::{Context, Interruption, OperationError, Resolver, name_of};
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;
use futures::StreamExt as _;
use futures::stream;

use crate::duplicates;
use crate::installation::{How, Outcome, reconcile};

/// Installations that are reconciled at the same time.
pub const WORKERS: usize = 4;

/// Reconciles the named installations, or all of this cluster, and gives the outcome of each to `see`. What lacks another add-on is
/// tried again once others of the pass were installed.
///
/// # Errors
/// The records cannot be read; a name that no installation has.
pub async fn pass(
    ctx: &Context,
    names: &[String],
    how: &How,
    interruption: &Interruption,
    see: &mut (dyn FnMut(&InstallationName, Outcome) + Send),
) -> Result<(), OperationError> {
    if names.is_empty() {
        duplicates::mark(ctx).await?;
    }
    let mut again: Vec<InstallationName> = Vec::new();
    loop {
        let resolver = Resolver::of_records(ctx).await?;
        let namespace = ctx.settings().namespace.as_deref();
        let records: Vec<&AddonInstallation> = if !again.is_empty() {
            let again = again.iter();
            again
                .filter_map(|name| resolver.records.get(name))
                .collect()
        } else if names.is_empty() {
            resolver.records.within(namespace).collect()
        } else {
            resolver.records.named(names, namespace)?
        };
        let reconciling = records.iter().map(async |record| {
            let outcome = reconcile(ctx, &resolver, record, how, interruption).await;
            (name_of(record), outcome)
        });
        let mut reconciling = stream::iter(reconciling).buffer_unordered(WORKERS);
        let mut lacking = Vec::new();
        let mut is_progress = false;
        while let Some((name, outcome)) = reconciling.next().await {
            match outcome {
                Outcome::Failed(error) if lacks_another(&error) => lacking.push((name, error)),
                outcome => {
                    is_progress |= outcome.is_progress();
                    see(&name, outcome);
                }
            }
        }
        if lacking.is_empty() {
            return Ok(());
        }
        if !is_progress || interruption.is_asked() {
            for (name, error) in lacking {
                see(&name, Outcome::Failed(error));
            }
            return Ok(());
        }
        again = lacking.into_iter().map(|(name, _)| name).collect();
    }
}

/// Whether another add-on is missing, which this pass may be about to install.
fn lacks_another(error: &OperationError) -> bool {
    matches!(
        error.root(),
        OperationError::Requires(_) | OperationError::NotServed(_) | OperationError::Dependents(_)
    )
}
