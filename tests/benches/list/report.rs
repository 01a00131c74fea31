//! The tables: a row a tool, below the goal.

use super::RUNS;
use super::world::{ADDONS, Content, NAMESPACES, Row};

/// Wall seconds.
const GOAL: f64 = 0.3;

/// A command and its runs.
pub(crate) struct Tool {
    name: &'static str,
    pub(crate) rows: Vec<Row>,
}

impl Tool {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            rows: Vec::new(),
        }
    }
}

/// What was measured and how.
pub(crate) fn head() -> String {
    format!(
        "\n{} installations: {ADDONS} add-ons, each in {NAMESPACES} namespaces, on one kube-apiserver on this machine ({} cores); {RUNS} runs of\n\
         each command in turn, printed are the medians. Wall, CPU (user and system) and memory are those of the process by\n\
         wait4, requests those of its user in the audit log.\n",
        ADDONS * NAMESPACES,
        std::thread::available_parallelism().map_or(1, usize::from),
    )
}

/// The figures of one content.
pub(crate) fn table(content: Content, ours: &Tool, peer: &Tool) -> String {
    let (title, goal) = match content {
        Content::Settings => ("two ConfigMaps each", true),
        Content::Workload => ("a Deployment and two ConfigMaps each", false),
    };
    let mut text = format!(
        "\n{title:<38} {:>7} {:>7} {:>7}   requests\n",
        "wall s", "CPU s", "MiB"
    );
    if goal {
        text += &format!("  {:<36} {GOAL:>7.3}\n", "goal");
    }
    for tool in [ours, peer] {
        let of = |figure: fn(&Row) -> f64| {
            let mut figures: Vec<f64> = tool.rows.iter().map(figure).collect();
            figures.sort_unstable_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied().unwrap_or_default()
        };
        let requests = tool.rows.last().map(|row| {
            let verbs = row.requests.iter();
            let verbs: Vec<_> = verbs
                .map(|(verb, count)| format!("{verb} {count}"))
                .collect();
            verbs.join(", ")
        });
        text += &format!(
            "  {:<36} {:>7.3} {:>7.3} {:>7.1}   {}\n",
            tool.name,
            of(|row| row.output.elapsed.as_secs_f64()),
            of(|row| row.output.cpu.as_secs_f64()),
            of(|row| row.output.max_rss as f64 / f64::from(1 << 20)),
            requests.unwrap_or_default(),
        );
    }
    text
}
