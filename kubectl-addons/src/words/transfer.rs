//! What `init` says about installations of older versions (semantics 5).

use std::fmt::Write as _;

use addons_engine::transfer::Transferred;
use addons_operation::name_of;
use addons_operation::transfer::Candidate;
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::plan::transfer::NotIts;

use super::hint;
use super::plan::LISTED;

/// What the user agrees to.
pub const QUESTION: &str =
    "Move it? Commands will then install the content of its origin with your rights. [y/N] ";

/// Installations that other commands refuse; `None` where there are none.
pub fn found(records: &[&AddonInstallation]) -> Option<String> {
    if records.is_empty() {
        return None;
    }
    let named = records.iter().take(LISTED);
    let mut names: Vec<String> = named.map(|record| name_of(record).to_string()).collect();
    if records.len() > LISTED {
        names.push(format!("{} more", records.len() - LISTED));
    }
    let fix = hint::below(&hint::fix("kubectl addons init"));
    let names = names.join(", ");
    Some(format!(
        "warning: installations in namespaces that do not stand for a cluster cannot be changed: {names}{fix}"
    ))
}

/// A record in an old place, and everything that it says about where it comes from.
pub fn record(record: &AddonInstallation) -> String {
    let status = record.status.as_ref();
    let version = record
        .installed()
        .map_or("", |installed| installed.version.as_str());
    let groups = status.iter().flat_map(|status| &status.inventory);
    let recorded: usize = groups.map(|group| group.objects.len()).sum();
    let mut text = format!(
        "{}: an installation in a namespace that does not stand for a cluster, where older versions kept installations from an index",
        name_of(record)
    );
    let addon = format!("{} {version}", record.spec.addon_ref.name);
    line(&mut text, "add-on", addon.trim_end());
    line(&mut text, "origin", &super::origin(record));
    line(&mut text, "recorded", &objects(recorded));
    line(
        &mut text,
        "written",
        &format!("by {}", writers(record).join(", ")),
    );
    text
}

/// What its move would do, by the live objects.
pub fn candidate(candidate: &Candidate) -> String {
    let to = name_of(&candidate.to);
    let count = objects(candidate.objects.follow.len());
    let mut text = match candidate.is_begun {
        true => format!("  continuing the move to {to} that was interrupted"),
        false => format!("  moves to  {to}, with {count}; nothing is applied again"),
    };
    for left in lefts(&candidate.objects.left) {
        line(&mut text, "left", &left);
    }
    text
}

/// How to agree without a terminal.
pub fn how(InstallationName { namespace, name }: &InstallationName) -> String {
    let command = format!("kubectl addons init --move {namespace}/{name}");
    let fix = hint::below(&hint::fix(&command));
    format!(
        "warning: {namespace}/{name} was not moved: anyone who may write installations in namespace {namespace} may have written it, \
         and after the move, commands install the content of its origin with your rights{fix}"
    )
}

/// The user did not agree.
pub fn declined(candidate: &Candidate) -> String {
    format!("{} stays", candidate.from())
}

/// What became of it.
pub fn done(candidate: &Candidate, done: &Transferred) -> String {
    let (from, to) = (candidate.from(), name_of(&candidate.to));
    let mut text = if done.failed.is_empty() {
        format!("{from} moved to {to}, with {}", objects(done.followed))
    } else {
        format!("{from} is not moved completely; run the command again to continue")
    };
    for failure in &done.failed {
        let failed = format!("{}: {}", failure.key, failure.message);
        line(&mut text, "failed", &failed);
    }
    for left in lefts(&done.left) {
        line(&mut text, "left", &left);
    }
    text
}

fn line(text: &mut String, name: &str, value: &str) {
    // Writing to a String cannot fail.
    let _ = write!(text, "\n  {name:<9} {value}");
}

fn objects(count: usize) -> String {
    match count {
        1 => "1 object".to_owned(),
        count => format!("{count} objects"),
    }
}

/// Objects that are not the installation's own, the first of them by name.
fn lefts(left: &[(ObjectKey, NotIts)]) -> Vec<String> {
    let named = left.iter().take(LISTED);
    let mut lines: Vec<String> = named.map(|(key, why)| format!("{key}: {why}")).collect();
    if left.len() > LISTED {
        lines.push(format!("{} more", left.len() - LISTED));
    }
    lines
}

/// The field managers of the spec; a record of a list has no others, and their fields no more. Any client can give itself any name;
/// who wrote with kubectl usually did not.
fn writers(record: &AddonInstallation) -> Vec<String> {
    let entries = record.metadata.managed_fields.iter().flatten();
    let of_spec = entries.filter(|entry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_none_or(|fields| fields.0.get("f:spec").is_some())
    });
    let mut writers: Vec<String> = of_spec.filter_map(|entry| entry.manager.clone()).collect();
    writers.sort();
    writers.dedup();
    if writers.is_empty() {
        writers.push("an unknown client".to_owned());
    }
    writers
}
