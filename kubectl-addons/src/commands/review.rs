//! Plans to hand on: a page for a browser, and text for a pull request.

pub(crate) mod markdown;
pub(crate) mod page;

use addons_operation::Plan;

/// The title of both.
const TITLE: &str = "Plan of add-ons";

/// The plan of a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownPlan<'a> {
    /// The name of the cluster, if there are several.
    pub(crate) cluster: Option<&'a str>,
    /// Its Kubernetes version.
    pub(crate) kubernetes: &'a str,
    pub(crate) plan: &'a Plan,
}

/// Returns the lines that fit into `room` bytes, each with its line break, and how many do not. Takes what they need from `room`.
fn take_fitting(lines: Vec<String>, room: &mut usize) -> (Vec<String>, usize) {
    let all = lines.len();
    let fits = |line: &String| match room.checked_sub(line.len() + 1) {
        Some(rest) => {
            *room = rest;
            true
        }
        None => false,
    };
    let shown: Vec<String> = lines.into_iter().take_while(fits).collect();
    let left_out = all - shown.len();
    (shown, left_out)
}

impl ShownPlan<'_> {
    /// `Cluster east, Kubernetes v1.34.1`.
    fn place(&self) -> String {
        let cluster = self.cluster.map(|name| format!("Cluster {name}, "));
        format!(
            "{}Kubernetes {}",
            cluster.unwrap_or_default(),
            self.kubernetes
        )
    }
}
