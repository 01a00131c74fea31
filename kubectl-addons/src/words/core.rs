//! Sentences about core add-ons.

use addons_loops::core_set::Step;
use common::api::names::InstallationName;
use serde::Serialize;

use super::hint;

/// The decision about a core add-on of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Decided {
    /// It belongs to the core set.
    Listed,
    /// It belongs to the core set, and changes in its cluster wait for other clusters.
    Waits,
    /// It belongs to the core set, and another installation has its name.
    Taken,
    /// It no longer belongs to the core set.
    Dropped,
    /// It was released.
    Released,
    /// A person installed it with `install --core`.
    ByHand,
    /// The cluster is being deleted.
    ClusterDeleting,
    /// The core set is not known.
    Unknown,
}

/// Describes a decision, for a column.
pub fn decided(decided: Decided) -> &'static str {
    match decided {
        Decided::Listed => "listed",
        Decided::Waits => "listed; changes wait",
        Decided::Taken => "listed; its name is taken",
        Decided::Dropped => "no longer listed",
        Decided::Released => "released",
        Decided::ByHand => "installed with --core",
        Decided::ClusterDeleting => "its cluster is being deleted",
        Decided::Unknown => "unknown",
    }
}

/// Describes whether a condition holds, for a column.
pub fn answer(holds: Option<bool>, problem: &str) -> String {
    match holds {
        Some(holds) => holds.to_string(),
        None => format!("unknown: {problem}"),
    }
}

/// Describes what a pass did with a core installation. `None` if the step failed, which is an error.
pub fn step(name: &InstallationName, step: &Step) -> Option<String> {
    let did = match step {
        Step::Created => "is listed as a core add-on of this cluster: record created".to_owned(),
        Step::Restored => "record restored as listed".to_owned(),
        Step::Released => "is no longer a core add-on: released and uninstalled".to_owned(),
        Step::Freed => {
            "its cluster is being deleted: finalizers removed from its record".to_owned()
        }
        Step::Taken => {
            "is listed as a core add-on, but the installation with this name is not one".to_owned()
        }
        Step::Waits => format!("needs confirmation: {}", release_waits(name)),
        Step::Later => "waits: the change reaches other clusters first".to_owned(),
        Step::Failed(_) => return None,
    };
    Some(format!("{name}  {did}"))
}

/// Says why the loop does not release a core installation, and names the command that does.
pub fn release_waits(name: &InstallationName) -> String {
    format!(
        "it is no longer listed as a core add-on here: a fact of the cluster changed, or other clusters drop it as well or \
         cannot be judged; accept: {}",
        hint::command("core release", name)
    )
}

/// Describes the result of `core release NAME`.
pub fn released(name: &InstallationName, is_new: bool, is_guarded: bool) -> String {
    let next = if is_guarded {
        "a reconciler uninstalls it, or removes the mark if it is still listed".to_owned()
    } else {
        format!("uninstall it with: {}", hint::command("uninstall", name))
    };
    let did = if is_new {
        "released"
    } else {
        "was already released"
    };
    format!("{name}  {did}; {next}")
}

/// Describes the result of `core release --cluster-deleting`.
pub fn cluster_released(namespace: &str, freed: &[InstallationName]) -> String {
    let records = match freed.len() {
        0 => "no record had a finalizer".to_owned(),
        1 => "finalizers removed from 1 record".to_owned(),
        count => format!("finalizers removed from {count} records"),
    };
    format!(
        "namespace {namespace} is marked: its cluster is being deleted; {records}; nothing was uninstalled"
    )
}
