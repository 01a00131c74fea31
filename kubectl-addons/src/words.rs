//! Turns values into sentences: everything that the plugin says about operations.

pub mod adoption;
pub mod airgap;
pub mod core;
pub mod distribution;
pub mod doctor;
pub mod dry_run;
pub mod ending;
pub mod finding;
pub mod fleet;
pub mod form;
pub mod hint;
pub mod history;
pub mod plan;
pub mod preflight;
pub mod reconcile;
pub mod set;
mod settled;
pub mod typed;

use addons_engine::crds::CrdResult;
use addons_operation::Activity;
use addons_operation::text::join_types;
use common::api::installation::AddonInstallation;
use common::catalogue::Origin;
use common::manifest::key::ObjectKey;

/// Describes a slow step while it runs.
pub fn describe_work(work: &Activity) -> String {
    match work {
        Activity::Fetch { addon, source } => format!("{addon}  fetching {source}"),
        Activity::Dependencies { addon } => format!("{addon}  fetching what the chart depends on"),
        Activity::Render { addon } => format!("{addon}  helm renders the chart"),
        Activity::Types { addon, missing } => {
            format!("{addon}  waiting for {}", join_types(missing))
        }
    }
}

/// Describes what happened to one of this plugin's CRDs.
pub fn describe_definition(key: &ObjectKey, done: &CrdResult) -> String {
    match done {
        CrdResult::Created => format!("{key} created"),
        CrdResult::Updated => format!("{key} updated"),
        CrdResult::Unchanged => format!("{key} unchanged"),
        CrdResult::Newer { version } => {
            format!("{key} is of the newer version {version} and stays")
        }
    }
}

/// Describes where an installation comes from. Empty if it may come from any catalogue.
pub fn describe_origin(record: &AddonInstallation) -> String {
    let reference = &record.spec.addon_ref;
    match (&reference.catalogue, &reference.index, &reference.directory) {
        (Some(name), _, _) => format!("catalogue {name}"),
        (_, Some(index), _) => format!("index {index}"),
        (_, _, Some(directory)) => format!("directory {directory}"),
        _ => String::new(),
    }
}

/// Shortens an origin for a column: the name of a catalogue, or the last two segments of an index's location.
pub fn short_origin(origin: &Origin) -> String {
    match origin {
        Origin::Catalogue { name, .. } => name.clone(),
        Origin::Index { location } => {
            let mut segments: Vec<&str> = location.rsplit('/').take(2).collect();
            segments.reverse();
            segments.join("/")
        }
        Origin::Directory { path } => path.clone(),
    }
}
