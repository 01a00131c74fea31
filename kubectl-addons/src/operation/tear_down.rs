//! The order in which several installations go.

use addons_engine::{Cluster, EngineError, ExecuteOptions, Report, Task, execute};
use common::plan::graph::Graph;

use crate::progress::Progress;

use super::prepare::Prepared;

/// Uninstalls one after another, in the order given: what requires others goes before them, and what it did not leave behind
/// stays for it.
pub async fn tear_down(
    cluster: &Cluster,
    prepared: &[Prepared],
    tasks: &[Task<'_>],
    options: &ExecuteOptions,
    progress: &Progress<'_>,
) -> Vec<Result<Report, EngineError>> {
    let mut reports: Vec<Result<Report, EngineError>> = Vec::new();
    for (index, (item, task)) in prepared.iter().zip(tasks).enumerate() {
        let name = &item.plan.installation;
        let stays = prepared.iter().zip(&reports).find(|(other, report)| {
            let is_gone = report.as_ref().is_ok_and(Report::is_done);
            other.requires.contains(name) && !is_gone
        });
        if let Some((other, _)) = stays {
            let why = format!("{} requires it and is not gone", other.plan.installation);
            let deletions = item.plan.prune.iter().flatten();
            reports.push(Ok(Report {
                skipped: deletions
                    .map(|deletion| (deletion.target.key.clone(), why.clone()))
                    .collect(),
                ..Report::default()
            }));
            continue;
        }
        let events = |_, event| progress.show(index, &event);
        reports.extend(execute(cluster, &[*task], &Graph::default(), options, &events).await);
    }
    reports
}
