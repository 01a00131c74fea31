//! The table: a row a figure, a column a loop.

use std::time::Duration;

use super::addons::{ADDONS, OBJECTS};
use super::bench::Row;

/// What was measured and how, and then the figures.
pub(crate) fn table(window: Duration, rows: &[Row; 2]) -> String {
    let mut text = format!(
        "\n{ADDONS} add-ons with {OBJECTS} objects of 9 kinds, a kube-apiserver with etcd and controllers for each loop on this machine\n\
         ({} cores). Idle: {} s in which nothing changes; memory is VmRSS once a second, the peak VmHWM since the start of the\n\
         process with its first pass, CPU its user and system time of the window, requests those in the audit log of the API\n\
         server. Deployments are deleted one after the other, and are away from the answer to the deletion until a watch sees the\n\
         new one. A leader is killed by SIGKILL while another process waits, and is replaced when that says that it leads.\n\n",
        std::thread::available_parallelism().map_or(1, usize::from),
        window.as_secs(),
    );
    let [reconcile, sync] = rows;
    text += &line("", "goal", [reconcile.command, sync.command]);
    let mut figure = |name: &str, goal: &str, figure: &dyn Fn(&Row) -> String| {
        text += &line(name, goal, [&figure(reconcile), &figure(sync)]);
    };
    figure("idle: memory MiB, median (peak)", "< 40", &|row| {
        let memory = median(&row.memory).copied().unwrap_or_default();
        format!("{:.1} ({:.1})", mebibytes(memory), mebibytes(row.peak))
    });
    figure("idle: CPU, % of a core", "< 0.5", &|row| {
        format!(
            "{:.2}",
            row.cpu.as_secs_f64() / window.as_secs_f64() * 100.0
        )
    });
    figure("idle: writes, without the Lease", "0", &|row| {
        row.writes.to_string()
    });
    figure("idle: requests", "", &|row| {
        let verbs = row.requests.iter();
        let verbs: Vec<_> = verbs
            .map(|(verb, count)| format!("{verb} {count}"))
            .collect();
        verbs.join(", ")
    });
    figure("deleted Deployment back s, median (max)", "< 1", &|row| {
        seconds(&row.away)
    });
    figure("killed leader replaced s, median (max)", "< 15", &|row| {
        seconds(&row.replaced)
    });
    text
}

fn line(name: &str, goal: &str, figures: [&str; 2]) -> String {
    let [reconcile, sync] = figures;
    let line = format!("{name:<41} {goal:<6} {reconcile:<29} {sync}");
    line.trim_end().to_owned() + "\n"
}

fn seconds(times: &[Duration]) -> String {
    match (median(times), times.iter().max()) {
        (Some(median), Some(max)) => {
            format!("{:.2} ({:.2})", median.as_secs_f64(), max.as_secs_f64())
        }
        _ => "–".to_owned(),
    }
}

fn median<T: Clone + Ord>(all: &[T]) -> Option<&T> {
    let mut sorted: Vec<&T> = all.iter().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
