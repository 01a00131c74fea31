//! Entries of catalogues that installations refer to (semantics 18).

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::admission::Facts;
use crate::admission::marks::Marks;
use crate::admission::rules::installation::guards;
use crate::admission::rules::{duplicates, reference};
use crate::admission::verdict::{Problem, Verdict};
use crate::api::catalogue::{AddonCatalogue, AddonVersion};
use crate::api::installation::{AddonInstallation, AddonRef};
use crate::catalogue::offers;

/// Installations that a sentence names; the rest is counted.
const MAX_NAMED: usize = 3;

/// The installations that refer to one entry.
#[derive(Default)]
struct Users {
    core: Vec<String>,
    others: Vec<String>,
    /// Those that name no version, and have this one installed.
    following: Vec<String>,
}

/// An entry that a core installation refers to cannot be removed; for other installations there is a warning.
///
/// `new` is the rest of `old`, `None` where the catalogue is deleted. A reference that another catalogue still meets is not affected,
/// and neither is a core installation that may itself be deleted (semantics 14).
pub fn judge(
    new: Option<&AddonCatalogue>,
    old: &AddonCatalogue,
    facts: &Facts,
    verdict: &mut Verdict,
) {
    let namespace = old.metadata.namespace.as_deref();
    if namespace.is_some_and(|namespace| facts.is_unguarded(namespace)) {
        return;
    }
    let (before, after) = (Listed::of(old), new.map(Listed::of));
    let mut lost: BTreeMap<String, Users> = BTreeMap::new();
    for installation in &facts.installations {
        let marks = Marks::of(installation);
        let name = format!("{}/{}", marks.namespace(), marks.name());
        let is_kept = marks.core && !guards::is_released(&marks, facts);
        let lose =
            |reference: &AddonRef| lost_entry(reference, is_kept, after.as_ref(), &before, facts);
        if let Some(entry) = lose(&installation.spec.addon_ref) {
            if is_kept {
                lost.entry(entry).or_default().core.push(name);
            } else if !marks.is_going() {
                lost.entry(entry).or_default().others.push(name);
            }
        } else if !marks.is_going()
            && let Some(entry) = installed(installation).and_then(|reference| lose(&reference))
        {
            lost.entry(entry).or_default().following.push(name);
        }
    }
    for (entry, users) in lost {
        verdict.warnings.extend(left(&entry, users.following));
        verdict.problem(in_use_by_core(&entry, users.core));
        verdict.warnings.extend(unlisted(&entry, users.others));
    }
}

fn in_use_by_core(entry: &str, users: Vec<String>) -> Option<Problem> {
    let (installations, them) = match users.len() {
        0 => return None,
        1 => ("installation", "that"),
        _ => ("installations", "them"),
    };
    let users = named(users);
    let message = format!(
        "{entry} is in use by the core {installations} {users}; release or upgrade {them} first"
    );
    Some(Problem::forbidden("entry-in-use", "", message))
}

fn unlisted(entry: &str, users: Vec<String>) -> Option<String> {
    let (are, they_stay) = match users.len() {
        0 => return None,
        1 => ("is", "that stays"),
        _ => ("are", "they stay"),
    };
    let users = named(users);
    Some(format!(
        "{entry} is removed while {users} {are} installed from it: {they_stay}, but can no longer be upgraded"
    ))
}

fn left(entry: &str, users: Vec<String>) -> Option<String> {
    let (have, they_stay) = match users.len() {
        0 => return None,
        1 => ("has", "that stays"),
        _ => ("have", "they stay"),
    };
    let users = named(users);
    Some(format!(
        "{entry} is removed while {users} {have} it installed: {they_stay}, but it can no longer be rendered or repaired"
    ))
}

/// What an installation that names no version has installed, where its status is known: the webhook reads none (semantics 18).
fn installed(installation: &AddonInstallation) -> Option<AddonRef> {
    let reference = &installation.spec.addon_ref;
    let installed = installation.installed()?;
    let is_pinned = reference.version.is_some() || reference.id.is_some();
    (!is_pinned && !installed.version.is_empty()).then(|| AddonRef {
        version: Some(installed.version.clone()),
        ..reference.clone()
    })
}

/// `a/b, c/d, e/f and 4 more`
fn named(mut names: Vec<String>) -> String {
    names.sort_unstable();
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(MAX_NAMED);
    format!("{}{more}", names.join(", "))
}

/// The versions of a catalogue, by the names of its add-ons.
struct Listed<'a> {
    metadata: &'a ObjectMeta,
    /// Whether it has names alone: each stands for any version.
    is_reference: bool,
    addons: HashMap<&'a str, Vec<&'a AddonVersion>>,
}

impl<'a> Listed<'a> {
    fn of(catalogue: &'a AddonCatalogue) -> Self {
        let mut addons: HashMap<&str, Vec<&AddonVersion>> = HashMap::new();
        for addon in &catalogue.spec.addons {
            addons
                .entry(&addon.name)
                .or_default()
                .extend(&addon.versions);
        }
        Self {
            metadata: &catalogue.metadata,
            is_reference: catalogue.spec.reference().is_some(),
            addons,
        }
    }

    fn refers_to(&self, addon: &str) -> bool {
        self.is_reference && self.addons.contains_key(addon)
    }

    fn versions(&self, addon: &str) -> impl Iterator<Item = &'a AddonVersion> {
        self.addons.get(addon).into_iter().flatten().copied()
    }
}

/// A reference, if `old` met it and nothing does any more. `is_core`: of a core installation.
fn lost_entry(
    reference: &AddonRef,
    is_core: bool,
    new: Option<&Listed<'_>>,
    old: &Listed<'_>,
    facts: &Facts,
) -> Option<String> {
    let can_mean =
        |catalogue: &ObjectMeta| reference::can_mean(reference, catalogue, &facts.settings);
    let is_met_by = |version: &AddonVersion| reference::is_asked_for(reference, version);
    let means = |listed: &Listed<'_>| {
        can_mean(listed.metadata)
            && (listed.refers_to(&reference.name)
                || listed.versions(&reference.name).any(is_met_by))
    };
    // A catalogue that becomes one by reference has names alone: that it still has the version is not known.
    let still_means = |new: &Listed<'_>| {
        let is_known = !is_core || old.is_reference;
        means(new) && (is_known || new.versions(&reference.name).any(is_met_by))
    };
    let lost = means(old)
        && !new.is_some_and(still_means)
        && !facts.catalogues.iter().any(|other| {
            // One that is being deleted meets nothing for long.
            offers(&other.metadata)
                && !duplicates::is_same(&other.metadata, old.metadata)
                && can_mean(&other.metadata)
                && (other.refers_to(&reference.name)
                    || other
                        .entries(&reference.name)
                        .iter()
                        .any(|entry| is_met_by(&entry.version)))
        });
    lost.then(|| match reference.version.as_deref() {
        Some(version) => format!("{} {version}", reference.name),
        None => reference.name.clone(),
    })
}

#[cfg(test)]
mod tests;
