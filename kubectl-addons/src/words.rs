//! Turns values into sentences: everything that the plugin says about operations.

pub mod adoption;
pub mod airgap;
mod conflict;
pub mod core;
pub mod delegated;
pub mod doctor;
pub mod dry_run;
pub mod ending;
pub mod finding;
pub mod fleet;
pub mod form;
pub mod hint;
pub mod plan;
pub mod preflight;
pub mod publishing;
pub mod reconcile;
pub mod review;
pub mod typed;

use addons_distribution::push::PushedCopy;
use addons_engine::catalogues::CatalogueWrite;
use addons_engine::crds::CrdResult;
use addons_operation::Activity;
use addons_operation::text::join_types;
use addons_plan::history::StoredRevision;
use common::api::installation::{AddonFrom, AddonInstallation};
use common::api::names::InstallationName;
use common::catalogue::Origin;
use common::manifest::key::ObjectKey;
use common::text::list_first;

use self::plan::version_label;

/// How many misplaced installations are named.
const MOST_MISPLACED: usize = 5;

/// The mark of a deprecated version, in a column.
pub const DEPRECATED: &str = "deprecated";

/// Returns a cell with its marks: `1.0.0 (pinned, deprecated)`.
pub fn marked(cell: &str, marks: impl IntoIterator<Item = &'static str>) -> String {
    let marks: Vec<&str> = marks.into_iter().collect();
    match marks.as_slice() {
        [] => cell.to_owned(),
        marks => format!("{cell} ({})", marks.join(", "))
            .trim_start()
            .to_owned(),
    }
}

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
        _ => reference
            .from
            .as_deref()
            .map_or_else(String::new, AddonFrom::location),
    }
}

/// Shortens an origin for a column: the name of a catalogue, or the last two segments of an index's location.
pub fn short_origin(origin: &Origin) -> String {
    match origin {
        Origin::Catalogue { name, .. } => name.clone(),
        Origin::Index { location } | Origin::Installation { location } => {
            let mut segments: Vec<&str> = location.rsplit('/').take(2).collect();
            segments.reverse();
            segments.join("/")
        }
        Origin::Directory { path } => path.clone(),
    }
}

/// Lists what changed between two revisions: `1.0.0 → 1.1.0`, `values.replicas`.
pub fn list_changes(before: &StoredRevision, now: &StoredRevision) -> Vec<String> {
    let changes = now.changes_since(before);
    let (old, new) = (&before.operation.installed, &now.operation.installed);
    let mut words = Vec::new();
    if changes.version {
        words.push(format!("{} → {}", version_label(old), version_label(new)));
    }
    if changes.manifest {
        words.push("manifest".to_owned());
    }
    words.extend(changes.fields);
    words
}

/// Returns the user as the API server sees it: `alice` of `alice, al@laptop (kubectl-addons, pid 4711)`. Where the server did not say who it
/// was, the user and host of the process: `al@laptop` of `al@laptop (kubectl-addons, pid 4711)`.
pub fn holder_name(holder: &str) -> &str {
    let person = holder.split_once(" (").map_or(holder, |(person, _)| person);
    let user = person.rsplit_once(", ").map(|(user, _)| user);
    user.unwrap_or(person)
}

/// Says that `install` upgrades an installation, because it exists.
pub fn describe_existing(name: &str) -> String {
    format!(
        "{name} is already installed, and is upgraded; to install it once more, add --name NAME"
    )
}

/// Says which installations nothing will install, because of their namespace, and where they belong.
pub fn describe_misplaced(names: &[InstallationName], system: &str) -> String {
    let look = hint::indent_lines(&hint::look_line("kubectl addons doctor"));
    format!(
        "{}: nothing installs what is in a namespace that does not stand for a cluster; installations of this cluster belong in {system}{look}",
        list_first(names, MOST_MISPLACED)
    )
}

/// `shop  catalogue merged-custom created`
pub fn describe_pushed(target: &str, one: &PushedCopy) -> String {
    let word = match one.written {
        CatalogueWrite::Created => "created",
        CatalogueWrite::Replaced => "replaced",
        CatalogueWrite::Unchanged => "unchanged",
    };
    format!("{target}  catalogue {} {word}", one.name)
}

/// Says that a cluster without a ready node has to get its set alone. `again` is the command for it.
pub fn describe_new_cluster(again: &str) -> String {
    let why = "no node is ready: core add-ons and network plugins come first, and the rest after a look at the nodes";
    format!("{why}\ncontinue: {again}")
}

/// Says that no node of a cluster became ready in time, and how many add-ons of the set wait for one.
pub fn describe_no_node(waiting: usize, again: &str) -> String {
    format!("no node is ready: {waiting} add-ons wait for one\ncontinue: {again}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_short() {
        assert_eq!(holder_name("a@b (kubectl-addons, pid 1)"), "a@b");
        assert_eq!(holder_name("a@b"), "a@b");
        assert_eq!(holder_name("u, a@b (kubectl-addons, pid 1)"), "u");
        assert_eq!(
            holder_name("CN=u, O=x, a@b (kubectl-addons, pid 1)"),
            "CN=u, O=x"
        );
    }
}
