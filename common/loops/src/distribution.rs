//! Distributes the merged catalogues of this cluster to the clusters of selected namespaces, and stores in each namespace that stands for
//! a cluster the versions that fit it (semantics 1.6, 1.7).

use std::collections::BTreeMap;
use std::sync::Arc;

use addons_distribution::DistributionError;
use addons_distribution::push::{self, CataloguePushOutcome, PushedCopy};
use addons_distribution::targets;
use addons_engine::catalogues::CatalogueWrite;
use addons_operation::Context;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

/// What is distributed; by default nothing.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// The label selector of the namespaces to whose clusters the merged catalogues are pushed.
    pub push_to: Option<String>,
    /// Whether the versions that fit a cluster are stored in its namespace.
    pub store_compatible: bool,
}

/// What was written for a cluster, or why nothing could be.
pub(crate) type DistributionResult = Result<(String, Vec<PushedCopy>), DistributionError>;

/// Distributes whenever the catalogues may have changed, and at the interval, as the contexts arrive. The namespaces are listed each
/// time, so newly selected ones are included. A failure is reported once and tried again the next time.
pub(crate) async fn run(
    mut contexts: watch::Receiver<Arc<Context>>,
    outbox: UnboundedSender<DistributionResult>,
    distribute: impl AsyncFn(&Context) -> Result<Vec<CataloguePushOutcome>, DistributionError>,
) {
    let mut failures = BTreeMap::new();
    while contexts.changed().await.is_ok() {
        let ctx = contexts.borrow_and_update().clone();
        let outcomes = match distribute(&ctx).await {
            Ok(outcomes) => outcomes,
            Err(error) => vec![(String::new(), Err(error))],
        };
        for news in new_results(outcomes, &mut failures) {
            // The receiver may have ended.
            let _ = outbox.send(news);
        }
    }
}

/// Pushes the merged catalogues to the clusters of the namespaces with these labels.
pub(crate) async fn push(
    ctx: &Context,
    selector: &str,
) -> Result<Vec<CataloguePushOutcome>, DistributionError> {
    let copies = push::merge(ctx).await?;
    let targets = targets::select_targets(ctx, selector).await?;
    Ok(push::push_all(targets, &copies).await)
}

/// Returns the outcomes that were not reported before. `failures`: the reported failures by cluster; the empty name stands for all
/// clusters.
fn new_results(
    outcomes: Vec<CataloguePushOutcome>,
    failures: &mut BTreeMap<String, String>,
) -> Vec<DistributionResult> {
    let before = std::mem::take(failures);
    let mut news = Vec::new();
    for (target, outcome) in outcomes {
        match outcome {
            Ok(mut pushed) => {
                pushed.retain(|one| one.written != CatalogueWrite::Unchanged);
                if !pushed.is_empty() {
                    news.push(Ok((target, pushed)));
                }
            }
            Err(error) => {
                let words = error.chain();
                let is_known = before.get(&target) == Some(&words);
                failures.insert(target.clone(), words);
                if !is_known {
                    news.push(Err(match target.as_str() {
                        "" => error,
                        _ => error.in_cluster(target),
                    }));
                }
            }
        }
    }
    news
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_once_and_what_is_unchanged_is_not() {
        let mut failures = BTreeMap::new();
        let (created, unchanged) = (
            Some(CatalogueWrite::Created),
            Some(CatalogueWrite::Unchanged),
        );
        for (a, b, told) in [
            (created, None, 2),
            (unchanged, None, 0),
            (None, created, 2),
            (None, None, 1),
        ] {
            let outcomes = [("a", a), ("b", b)].map(|(target, written)| {
                let name = "merged-custom".to_owned();
                let pushed = written.map(|written| vec![PushedCopy { name, written }]);
                (
                    target.to_owned(),
                    pushed.ok_or(DistributionError::NoCluster),
                )
            });
            assert_eq!(new_results(outcomes.into(), &mut failures).len(), told);
        }
        assert_eq!(failures.len(), 2);
    }
}
