//! Sentences about commands that work on several clusters.

use std::time::Duration;

use common::text::list_first;

use crate::exit::Exit;
use crate::fleet::state::ClusterState;
use crate::output::table::Table;
use crate::words::hint;

/// Error: a command for a single cluster got several.
pub const ONE_CLUSTER: &str = "this command works on a single cluster; install, upgrade, uninstall, list, status, diff, plan and apply -f work on several";
/// Error: waves were asked for on a single cluster.
pub const NO_WAVES: &str = "--canary and --max-unavailable require several clusters: add --clusters SELECTOR or --context NAME,NAME";
/// Error: waves were asked for without waiting.
pub const NO_WAIT: &str = "--canary and --max-unavailable wait until clusters are ready, and cannot be combined with --wait=false";
/// Error: a plan file was combined with a selection of clusters.
pub const CLUSTERS_OF_PLAN: &str = "a plan file names its clusters: --clusters and several contexts can only be used with a set, apply -f SET";
/// Error: a plan of several contexts was combined with `--context`.
pub const CONTEXTS_OF_PLAN: &str =
    "the plan names the contexts of its clusters, and cannot be combined with --context";
/// How many names a note lists.
const MAX_LISTED_NAMES: usize = 5;

/// Names the selected namespaces that do not stand for a cluster. `None` if there are none.
pub fn describe_left_out(others: &[String]) -> Option<String> {
    let stand = if others.len() == 1 { "does" } else { "do" };
    (!others.is_empty()).then(|| {
        let names = list_first(others, MAX_LISTED_NAMES);
        format!("{names}: left out, {stand} not stand for a cluster")
    })
}

/// Error: no namespace that matches a selector stands for a cluster.
pub fn describe_nothing_selected(selector: &str) -> String {
    format!("--clusters {selector}: no namespace with such labels stands for a cluster")
}

/// Announces the rollout: `2 of 3 clusters change, in waves of 1, 1`.
pub fn announce_rollout(due: usize, of: usize, waves: &[usize]) -> String {
    let change = if due == 1 { "changes" } else { "change" };
    let sizes: Vec<String> = waves.iter().map(usize::to_string).collect();
    let waves = match sizes.len() {
        0 | 1 => String::new(),
        _ => format!(", in waves of {}", sizes.join(", ")),
    };
    format!("{due} of {} {change}{waves}", count_clusters(of))
}

/// Asks for confirmation of the rollout.
pub fn confirm_rollout_question(due: usize) -> String {
    format!("Continue on {}? [y/N] ", count_clusters(due))
}

/// Announces a wave.
pub fn announce_wave(number: usize, of: usize, names: &[&str]) -> String {
    format!("wave {number} of {of}: {}", names.join(", "))
}

/// Announces how long clusters must stay ready before the next wave.
pub fn announce_soak(soak: Duration) -> String {
    let seconds = soak.as_secs();
    let soak = match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, 0) => format!("{minutes}m"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    };
    format!("the next wave begins if these clusters stay ready for {soak}")
}

/// Names a cluster that stopped the rollout.
pub fn describe_not_ready(cluster: &str, why: &str) -> String {
    format!("[{cluster}] not ready: {why}")
}

/// Renders the result of each cluster, sorted by name.
pub fn render_results(mut clusters: Vec<(&str, &ClusterState)>) -> String {
    clusters.sort_by_key(|(name, _)| *name);
    let mut table = Table::new(&["CLUSTER", "RESULT"]);
    for (name, state) in clusters {
        table.add_row(vec![name.to_owned(), result_word(state).to_owned()]);
    }
    table.render()
}

fn result_word(state: &ClusterState) -> &'static str {
    match state {
        ClusterState::Planned(_) | ClusterState::Planning => "not begun",
        ClusterState::Shown => "shown",
        ClusterState::NotReady => "not ready",
        ClusterState::Begun(_) => "interrupted",
        ClusterState::Ended { exit, was_due } => match exit {
            Exit::Done if *was_due => "done",
            Exit::Done => "unchanged",
            Exit::Failed | Exit::Usage => "failed",
            Exit::TimedOut => "timed out",
            Exit::Conflict => "conflict",
            Exit::DoesNotFit => "does not fit",
            Exit::Denied => "denied",
            Exit::Interrupted => "interrupted",
        },
    }
}

/// Names the clusters that were not begun, and the command that continues with them.
pub fn describe_remaining(not_begun: &[&str], again: &str) -> String {
    let lines = [format!("continue: {again}")];
    let what = if not_begun.is_empty() {
        "not all clusters are done".to_owned()
    } else {
        format!("stopped; not begun: {}", not_begun.join(", "))
    };
    format!("{what}{}", hint::indent_lines(&lines))
}

fn count_clusters(number: usize) -> String {
    match number {
        1 => "1 cluster".to_owned(),
        number => format!("{number} clusters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_will_happen_in_one_line() {
        assert_eq!(announce_rollout(1, 1, &[1]), "1 of 1 cluster changes");
        assert_eq!(
            announce_rollout(2, 3, &[1, 2]),
            "2 of 3 clusters change, in waves of 1, 2"
        );
        assert_eq!(
            confirm_rollout_question(2),
            "Continue on 2 clusters? [y/N] "
        );
        assert_eq!(
            announce_soak(Duration::from_secs(90)),
            "the next wave begins if these clusters stay ready for 1m30s"
        );
    }

    #[test]
    fn what_is_left_out_is_named() {
        let names = |all: &[&str]| -> Vec<String> { all.iter().map(|&it| it.into()).collect() };
        assert_eq!(describe_left_out(&[]), None);
        assert_eq!(
            describe_left_out(&names(&["a"])).unwrap(),
            "a: left out, does not stand for a cluster"
        );
        assert_eq!(
            describe_left_out(&names(&["a", "b", "c", "d", "e", "f"])).unwrap(),
            "a, b, c, d, e and 1 more: left out, do not stand for a cluster"
        );
    }
}
