//! The catalogues of this cluster, merged, are brought to the clusters of selected namespaces (semantics 1).

use std::collections::BTreeMap;
use std::sync::Arc;

use addons_engine::catalogues::Written;
use addons_operation::distribution::push::{self, Outcome, Pushed};
use addons_operation::distribution::targets;
use addons_operation::{Context, OperationError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

/// Something that is to be said of a cluster: what was written there, or why nothing could be.
pub(crate) type News = Result<(String, Vec<Pushed>), OperationError>;

/// Brings them whenever the catalogues may have changed, and at the interval, as the contexts are sent. The namespaces are listed each
/// time, so what comes to be selected is a target from then on. A failure is told once, and tried again the next time.
pub(crate) async fn keep(
    mut contexts: watch::Receiver<Arc<Context>>,
    selector: String,
    outbox: UnboundedSender<News>,
) {
    let mut failures = BTreeMap::new();
    while contexts.changed().await.is_ok() {
        let ctx = contexts.borrow_and_update().clone();
        let outcomes = match bring(&ctx, &selector).await {
            Ok(outcomes) => outcomes,
            Err(error) => vec![(String::new(), Err(error))],
        };
        for news in news(outcomes, &mut failures) {
            // Whoever reads them may have ended.
            let _ = outbox.send(news);
        }
    }
}

async fn bring(ctx: &Context, selector: &str) -> Result<Vec<Outcome>, OperationError> {
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
        let pushed = |written| {
            let name = "merged-custom".to_owned();
            Ok(vec![Pushed { name, written }])
        };
        let lost = || Err(OperationError::NoCluster);
        let mut failures = BTreeMap::new();
        for (outcomes, told) in [
            (vec![("a", pushed(Written::Created)), ("b", lost())], 2),
            (vec![("a", pushed(Written::Unchanged)), ("b", lost())], 0),
            (vec![("a", lost()), ("b", pushed(Written::Created))], 2),
            (vec![("a", lost()), ("b", lost())], 1),
        ] {
            let outcomes = outcomes.into_iter();
            let outcomes = outcomes.map(|(target, outcome)| (target.to_owned(), outcome));
            assert_eq!(news(outcomes.collect(), &mut failures).len(), told);
        }
        assert_eq!(failures.len(), 2);
    }
}
