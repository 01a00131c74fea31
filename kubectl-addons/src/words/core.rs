//! Sentences about core add-ons.

use addons_loops::core_set::CoreStep;
use common::api::names::InstallationName;
use serde::Serialize;

use super::hint;

/// What causes changes of core records.
pub const CORE_SET_CAUSE: &str =
    "the core set, in ConfigMaps core-addon-rules and custom-core-addons";

/// The decision about a core add-on of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum CoreDecision {
    /// It belongs to the core set.
    Listed,
    /// It belongs to the core set, and changes in its cluster wait for other clusters.
    Waits,
    /// It belongs to the core set, and another installation has its name.
    Taken,
    /// It belongs to the core set, is not installed, and no catalogue has it.
    NotOffered,
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
pub fn describe_decision(decided: CoreDecision) -> &'static str {
    match decided {
        CoreDecision::Listed => "listed",
        CoreDecision::Waits => "listed; changes wait",
        CoreDecision::Taken => "listed; its name is taken",
        CoreDecision::NotOffered => "listed; no catalogue has it",
        CoreDecision::Dropped => "no longer listed",
        CoreDecision::Released => "released",
        CoreDecision::ByHand => "installed with --core",
        CoreDecision::ClusterDeleting => "its cluster is being deleted",
        CoreDecision::Unknown => "unknown",
    }
}

/// Describes whether a condition holds, for a column.
pub fn describe_condition(holds: Option<bool>, problem: &str) -> String {
    match holds {
        Some(holds) => holds.to_string(),
        None => format!("unknown: {problem}"),
    }
}

/// Describes what a pass did with a core installation. `None` if the step failed, which is an error.
pub fn describe_step(name: &InstallationName, step: &CoreStep) -> Option<String> {
    let did = match step {
        CoreStep::Created => {
            "is listed as a core add-on of this cluster: record created".to_owned()
        }
        CoreStep::Restored => "record restored as listed".to_owned(),
        CoreStep::Released => "is no longer a core add-on: released and uninstalled".to_owned(),
        CoreStep::Freed => {
            "its cluster is being deleted: finalizers removed from its record".to_owned()
        }
        CoreStep::Taken => {
            "is listed as a core add-on, but the installation with this name is not one".to_owned()
        }
        CoreStep::Waits => format!("needs confirmation: {}", describe_waiting_release(name)),
        CoreStep::Later => "waits: the change reaches other clusters first".to_owned(),
        CoreStep::Failed(_) => return None,
    };
    Some(format!("{name}  {did}"))
}

/// Says why the loop does not release a core installation, and names the command that does.
pub fn describe_waiting_release(name: &InstallationName) -> String {
    format!(
        "it is no longer listed as a core add-on here: a fact of the cluster changed, or other clusters drop it as well or \
         cannot be judged; accept: {}",
        hint::command("core release", name)
    )
}

/// Describes the result of `core release NAME`.
pub fn describe_release(name: &InstallationName, is_new: bool, is_guarded: bool) -> String {
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
pub fn describe_cluster_release(namespace: &str, freed: &[InstallationName]) -> String {
    let records = match freed.len() {
        0 => "no record had a finalizer".to_owned(),
        1 => "finalizers removed from 1 record".to_owned(),
        count => format!("finalizers removed from {count} records"),
    };
    format!(
        "namespace {namespace} is marked: its cluster is being deleted; {records}; nothing was uninstalled"
    )
}
