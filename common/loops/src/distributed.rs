//! What the loop distributes: the catalogues of this cluster, merged, to the clusters of selected namespaces, and to each namespace
//! that stands for a cluster what fits it (semantics 1).

use std::collections::BTreeMap;
use std::sync::Arc;

use addons_engine::catalogues::Written;
use addons_operation::distribution::push::{self, Outcome, Pushed};
use addons_operation::distribution::targets;
use addons_operation::{Context, OperationError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

/// What is distributed. Nothing is where it was not asked for.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// The labels of the namespaces to whose clusters the merged catalogues are brought.
    pub push_to: Option<String>,
    /// Whether what fits a cluster is stored in its namespace.
    pub store_compatible: bool,
}

/// Something that is to be said of a cluster: what was written for it, or why nothing could be.
pub(crate) type News = Result<(String, Vec<Pushed>), OperationError>;

/// Distributes whenever the catalogues may have changed, and at the interval, as the contexts are sent. The namespaces are listed each
/// time, so what comes to be selected is a target from then on. A failure is told once, and tried again the next time.
pub(crate) async fn keep(
    mut contexts: watch::Receiver<Arc<Context>>,
    outbox: UnboundedSender<News>,
    distribute: impl AsyncFn(&Context) -> Result<Vec<Outcome>, OperationError>,
) {
    let mut failures = BTreeMap::new();
    while contexts.changed().await.is_ok() {
        let ctx = contexts.borrow_and_update().clone();
        let outcomes = match distribute(&ctx).await {
            Ok(outcomes) => outcomes,
            Err(error) => vec![(String::new(), Err(error))],
        };
        for news in news(outcomes, &mut failures) {
            // Whoever reads them may have ended.
            let _ = outbox.send(news);
        }
    }
}

/// Brings the merged catalogues to the clusters of the namespaces with these labels.
pub(crate) async fn push(ctx: &Context, selector: &str) -> Result<Vec<Outcome>, OperationError> {
    let copies = push::merge(ctx).await?;
    let targets = targets::selected(ctx, selector).await?;
    Ok(push::push_all(targets, &copies).await)
}

/// What is new of the outcomes. `failures`: what was told of each cluster before; of all of them, where the name is empty.
fn news(outcomes: Vec<Outcome>, failures: &mut BTreeMap<String, String>) -> Vec<News> {
    let before = std::mem::take(failures);
    let mut news = Vec::new();
    for (target, outcome) in outcomes {
        match outcome {
            Ok(mut pushed) => {
                pushed.retain(|one| one.written != Written::Unchanged);
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
                        _ => error.at(target),
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
        let (created, unchanged) = (Some(Written::Created), Some(Written::Unchanged));
        for (a, b, told) in [
            (created, None, 2),
            (unchanged, None, 0),
            (None, created, 2),
            (None, None, 1),
        ] {
            let outcomes = [("a", a), ("b", b)].map(|(target, written)| {
                let name = "merged-custom".to_owned();
                let pushed = written.map(|written| vec![Pushed { name, written }]);
                (target.to_owned(), pushed.ok_or(OperationError::NoCluster))
            });
            assert_eq!(news(outcomes.into(), &mut failures).len(), told);
        }
        assert_eq!(failures.len(), 2);
    }
}
