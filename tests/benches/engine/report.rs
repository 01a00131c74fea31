//! The table: a row a step and tool, each figure of a peer with its ratio to ours.

use std::time::Duration;

use super::bench::{Row, Step, Tool};
use super::set::Set;

/// The other tool with the least memory takes more than so many times ours.
const LEANER: f64 = 3.0;

/// The goals: wall and CPU seconds, MiB, requests. `best`: the least memory that another tool took for the step in this run; without
/// one, there is no goal for memory.
fn goal(step: Step, best: Option<u64>) -> [f64; 4] {
    let (wall, cpu, requests) = match step {
        Step::Install => (0.9, 0.2, 195.0),
        Step::Nothing => (0.03, 0.02, 3.0),
        Step::One => (0.2, 0.1, 25.0),
        Step::Prune => (0.5, 0.15, 95.0),
    };
    let memory = best.map_or(f64::NAN, |best| mebibytes(best) / LEANER);
    [wall, cpu, memory, requests]
}

const fn title(step: Step) -> &'static str {
    match step {
        Step::Install => "install",
        Step::Nothing => "nothing changed",
        Step::One => "one object changed",
        Step::Prune => "65 objects pruned",
    }
}

/// What was measured and how, and then the figures. `baseline`: another build of ours.
pub(crate) fn table(
    set: &Set,
    runs: usize,
    ours: &Tool,
    baseline: Option<&Tool>,
    peers: &[Tool],
) -> String {
    let all = || baseline.into_iter().chain(peers);
    let (found, missing): (Vec<_>, Vec<_>) = all().partition(|peer| !peer.version.is_empty());
    let found: Vec<_> = found
        .iter()
        .map(|peer| format!("{} ({})", peer.name, peer.version))
        .collect();
    let mut text = format!(
        "\nOne add-on of {} objects, {:.1} MB, from the kops index many-addons without webhook configurations, APIService and\n\
         custom resources; no waiting for readiness. Each tool has a fresh kube-apiserver with etcd on this machine ({} cores),\n\
         {runs} runs; printed is the run with the median wall time, and the median of the peaks of memory. Wall, CPU (user and\n\
         system) and memory are those of the process by wait4; our programs and helm were evicted from the page cache and run\n\
         before. Requests are those of its user in the audit log; behind a peer's figure stands its ratio to ours. The plugin's\n\
         CRDs were installed before, and kubectl had asked for a server-side dry run of the set, so that no tool pays\n\
         for the start of the API server; each step begins when the controllers have ended what the one before left to them.\n\
         Peers: {}.\n",
        set.objects(),
        set.all().len() as f64 / 1e6,
        std::thread::available_parallelism().map_or(1, usize::from),
        found.join(", "),
    );
    for peer in &missing {
        text += &format!("Not found: {}.\n", peer.name);
    }
    text += &format!(
        "\n{:<19} {:<27} {:>14} {:>14} {:>14} {:>12}\n",
        "step", "tool", "wall s", "CPU s", "MiB", "requests"
    );
    for step in Step::ALL {
        let Some(row) = ours.median(step) else {
            continue;
        };
        let own = figures(row, ours.memory(step));
        let others = peers.iter().filter(|peer| peer.median(step).is_some());
        let best = others.map(|peer| peer.memory(step)).min();
        text += &line(title(step), "goal", goal(step, best), None, "");
        text += &line("", ours.name, own, None, &verbs(row));
        for peer in all().filter(|peer| !peer.version.is_empty()) {
            text += &match peer.median(step) {
                Some(row) => {
                    let figures = figures(row, peer.memory(step));
                    line("", peer.name, figures, Some(own), &verbs(row))
                }
                None => format!("{:<19} {:<27} (does not)\n", "", peer.name),
            };
        }
    }
    text
}

fn figures(row: &Row, memory: u64) -> [f64; 4] {
    let seconds = |time: Duration| time.as_secs_f64();
    [
        seconds(row.output.elapsed),
        seconds(row.output.cpu),
        mebibytes(memory),
        row.requests() as f64,
    ]
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn line(step: &str, tool: &str, figures: [f64; 4], ours: Option<[f64; 4]>, verbs: &str) -> String {
    let mut text = format!("{step:<19} {tool:<27}");
    for (index, (figure, (digits, width))) in figures
        .into_iter()
        .zip([(3, 14), (3, 14), (1, 14), (0, 12)])
        .enumerate()
    {
        let ratio = ours.and_then(|ours| ours.get(index).copied());
        let ratio = ratio.map_or(String::new(), |own| format!(" ({:.1}x)", figure / own));
        let figure = match figure.is_nan() {
            true => "–".to_owned(),
            false => format!("{figure:.digits$}{ratio}"),
        };
        text += &format!(" {figure:>width$}");
    }
    format!("{text}  {verbs}").trim_end().to_owned() + "\n"
}

fn verbs(row: &Row) -> String {
    let verbs = row.requests.iter();
    let verbs: Vec<_> = verbs
        .map(|(verb, count)| format!("{verb} {count}"))
        .collect();
    verbs.join(", ")
}
