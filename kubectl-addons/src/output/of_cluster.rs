//! Notes of a command that works on several clusters at once: every line begins with the name of its cluster.

use std::future::Future;
use std::sync::Arc;

use addons_plan::file::FleetClusterSource;

tokio::task_local! {
    /// The cluster that the running task works on.
    static CLUSTER: Arc<FleetClusterSource>;
}

/// Runs work on one of several clusters, and labels its notes.
pub async fn run_labelled<T>(cluster: &FleetClusterSource, work: impl Future<Output = T>) -> T {
    CLUSTER.scope(Arc::new(cluster.clone()), work).await
}

/// Spawns work as a task that keeps the label of the current cluster.
pub fn spawn_labelled(
    work: impl Future<Output = ()> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    match CLUSTER.try_with(Arc::clone) {
        Ok(cluster) => tokio::spawn(CLUSTER.scope(cluster, work)),
        Err(_) => tokio::spawn(work),
    }
}

/// Whether the running task works on one of several clusters.
pub(super) fn is_one_of_several() -> bool {
    CLUSTER.try_with(|_| ()).is_ok()
}

/// Returns the cluster that the running task works on, if there are several.
pub fn current_place() -> Option<Arc<FleetClusterSource>> {
    CLUSTER.try_with(Arc::clone).ok()
}

/// Adds the name of the cluster to each line, if there are several.
pub(super) fn label_lines(text: &str) -> String {
    let label = |cluster: &Arc<FleetClusterSource>| {
        let name = cluster.name();
        let lines: Vec<String> = text.lines().map(|it| format!("[{name}] {it}")).collect();
        lines.join("\n")
    };
    CLUSTER.try_with(label).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_line_names_its_cluster() {
        assert_eq!(label_lines("a\nb"), "a\nb");
        let work = async || label_lines("a\n  b");
        let place = |name: &str| FleetClusterSource::Context(name.to_owned());
        let (shop, lab) = (place("shop"), place("lab"));
        let (shop, lab) = tokio::join!(run_labelled(&shop, work()), run_labelled(&lab, work()));
        assert_eq!(
            (shop, lab),
            ("[shop] a\n[shop]   b".into(), "[lab] a\n[lab]   b".into())
        );
    }
}
