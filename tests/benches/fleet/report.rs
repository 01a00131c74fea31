//! The table: a row a figure.

use super::bench::Figures;
use super::world::{ADDONS, SERVERS};

/// What was measured and how, and then the figures.
pub(crate) fn table(figures: &Figures) -> String {
    let clusters = figures.clusters;
    let mut text = format!(
        "\n{clusters} clusters with {ADDONS} add-ons each, played by {SERVERS} kube-apiservers on this machine ({} cores), the last one\n\
         behind a proxy that delays each answer by 2 s. The first pass is from the creation of the first record; idle are {} s in\n\
         which nothing changes. Requests are those in the audit logs of the clusters, memory is VmRSS once a second.\n\n",
        std::thread::available_parallelism().map_or(1, usize::from),
        figures.window.as_secs(),
    );
    let mut figure = |name: &str, goal: &str, figure: String| {
        text += &format!("{name:<52} {goal:<6} {figure}\n");
    };
    let [empty, idle, peak] = figures
        .memory
        .map(|bytes| bytes as f64 / f64::from(1 << 20));
    let share = |count: usize, of: usize| format!("{:.2}", count as f64 / of.max(1) as f64);
    let (requests, writes) = figures.first;
    figure(
        "first pass s: all but the slow cluster",
        "",
        seconds(figures.others),
    );
    figure("first pass s: all", "", seconds(figures.all));
    figure(
        "first pass: requests a cluster",
        "",
        share(requests, clusters),
    );
    figure("first pass: writes a cluster", "", share(writes, clusters));
    let (requests, writes) = figures.idle;
    figure("idle: passes", "", share(figures.passes, clusters));
    figure(
        "idle: requests a cluster and pass",
        "<= 2",
        share(requests, figures.passes),
    );
    figure("idle: writes there", "0", writes.to_string());
    figure(
        "idle: writes here, without the Lease",
        "0",
        figures.writes.to_string(),
    );
    figure("idle: CPU, % of a core", "", {
        let share = figures.cpu.as_secs_f64() / figures.window.as_secs_f64();
        format!("{:.2}", share * 100.0)
    });
    figure("memory MiB: without records, idle, peak", "", {
        format!("{empty:.1}, {idle:.1}, {peak:.1}")
    });
    figure("memory MiB a cluster", "< 1", {
        format!("{:.3}", (idle - empty) / clusters as f64)
    });
    text
}

fn seconds(time: std::time::Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}
