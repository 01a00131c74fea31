//! Notes of a command that works on several clusters at once: every line begins with the name of its cluster.

use std::future::Future;
use std::sync::Arc;

use addons_plan::file::Place;

tokio::task_local! {
    /// The cluster that the running work is about.
    static CLUSTER: Arc<Place>;
}

/// Runs work whose notes are those of one cluster of several.
pub async fn run<T>(cluster: &Place, work: impl Future<Output = T>) -> T {
    CLUSTER.scope(Arc::new(cluster.clone()), work).await
}

/// The same work as a task of its own, with notes of the same cluster.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
    match CLUSTER.try_with(Arc::clone) {
        Ok(cluster) => tokio::spawn(CLUSTER.scope(cluster, work)),
        Err(_) => tokio::spawn(work),
    }
}

/// Whether the running work is about one cluster of several.
pub(super) fn is_one_of_several() -> bool {
    CLUSTER.try_with(|_| ()).is_ok()
}

/// The cluster that the running work is about, where there are several.
pub fn place() -> Option<Arc<Place>> {
    CLUSTER.try_with(Arc::clone).ok()
}

/// Lines with the name of their cluster, where there are several.
pub(super) fn labelled(text: &str) -> String {
    let label = |cluster: &Arc<Place>| {
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
        assert_eq!(labelled("a\nb"), "a\nb");
        let work = async || labelled("a\n  b");
        let place = |name: &str| Place::Context(name.to_owned());
        let (shop, lab) = (place("shop"), place("lab"));
        let (shop, lab) = tokio::join!(run(&shop, work()), run(&lab, work()));
        assert_eq!(
            (shop, lab),
            ("[shop] a\n[shop]   b".into(), "[lab] a\n[lab]   b".into())
        );
    }
}
