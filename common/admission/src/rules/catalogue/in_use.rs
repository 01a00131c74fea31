//! Checks the removal of catalogue entries that installations refer to (semantics 18.1).

use std::collections::{BTreeMap, HashMap, HashSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::rules::reference::UnseenDependency;
use crate::rules::{duplicates, reference, size};
use crate::verdict::{AdmissionProblem, Verdict};
use crate::{AdmissionFacts, AdmissionSettings};
use common::api::catalogue::{AddonCatalogue, AddonVersion};
use common::api::installation::AddonRef;
use common::catalogue::offers_entries;
use common::text::list_first;

/// The most installations that a message names. The rest is counted.
const MAX_NAMED: usize = 3;

/// The installations that refer to one entry.
#[derive(Default)]
struct EntryUsers {
    core: Vec<String>,
    others: Vec<String>,
}

/// Denies removing an entry that a core installation refers to, and warns if other installations refer to it.
///
/// `new` is the changed catalogue, or `None` if it is deleted. A reference that another catalogue also satisfies is not affected, and
/// neither is a core installation that may itself be deleted (semantics 14.1). If nothing that is known forbids the removal, the verdict
/// depends on installations that the facts may not contain yet.
pub fn check_removal(
    new: Option<&AddonCatalogue>,
    old: &AddonCatalogue,
    facts: &AdmissionFacts,
    verdict: &mut Verdict,
) {
    let namespace = old.metadata.namespace.as_deref();
    if namespace.is_some_and(|namespace| facts.is_unguarded(namespace)) {
        return;
    }
    let (before, after) = (CatalogueVersions::new(old), new.map(CatalogueVersions::new));
    let mut lost: BTreeMap<String, EntryUsers> = BTreeMap::new();
    for one in &facts.installations {
        // An installation that may itself be deleted keeps nothing.
        let is_kept = one.is_core && !one.is_released && !facts.is_unguarded(&one.namespace);
        if one.is_being_deleted && !is_kept {
            continue;
        }
        let entry = lost_entry(&one.addon, is_kept, after.as_ref(), &before, facts);
        let Some(entry) = entry else {
            continue;
        };
        let users = lost.entry(entry).or_default();
        match is_kept {
            true => users.core.push(one.qualified_name()),
            false => users.others.push(one.qualified_name()),
        }
    }
    if facts.are_incomplete && before.has_more(after.as_ref()) {
        verdict.warnings.push(format!(
            "{} installations that are not core are known; what others use is not",
            size::RECORDS
        ));
    }
    let is_free = lost.values().all(|users| users.core.is_empty());
    let is_allowed = is_free && verdict.problems.is_empty();
    if is_allowed && before.loses_entries(after.as_ref(), &facts.settings) {
        verdict.unseen = Some(UnseenDependency::Users);
    }
    for (entry, users) in lost {
        verdict.add_problem(in_use_by_core(&entry, users.core));
        verdict.warnings.extend(warn_unlisted(&entry, users.others));
    }
}

fn in_use_by_core(entry: &str, users: Vec<String>) -> Option<AdmissionProblem> {
    let (installations, them) = match users.len() {
        0 => return None,
        1 => ("installation", "that"),
        _ => ("installations", "them"),
    };
    let users = join_names(users);
    let message = format!(
        "{entry} is in use by the core {installations} {users}; release or upgrade {them} first"
    );
    Some(AdmissionProblem::forbidden("entry-in-use", "", message))
}

fn warn_unlisted(entry: &str, users: Vec<String>) -> Option<String> {
    let (are, they_stay) = match users.len() {
        0 => return None,
        1 => ("is", "that stays"),
        _ => ("are", "they stay"),
    };
    let users = join_names(users);
    Some(format!(
        "{entry} is removed while {users} {are} installed from it: {they_stay}, but can no longer be upgraded"
    ))
}

/// Joins sorted names: `a/b, c/d, e/f and 4 more`.
fn join_names(mut names: Vec<String>) -> String {
    names.sort_unstable();
    list_first(names, MAX_NAMED)
}

/// The versions of a catalogue, by the names of its add-ons.
struct CatalogueVersions<'a> {
    metadata: &'a ObjectMeta,
    /// Whether the catalogue lists only names, each of which stands for any version.
    is_reference: bool,
    addons: HashMap<&'a str, Vec<&'a AddonVersion>>,
}

impl<'a> CatalogueVersions<'a> {
    fn new(catalogue: &'a AddonCatalogue) -> Self {
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

    /// Returns whether it lists an add-on or a version that `than` does not.
    fn has_more(&self, than: Option<&Self>) -> bool {
        let key = |version: &'a AddonVersion| (&version.version, &version.id);
        self.addons.iter().any(|(addon, versions)| {
            let Some(other) = than.and_then(|than| than.addons.get(addon)) else {
                return true;
            };
            let other: HashSet<_> = other.iter().copied().map(key).collect();
            versions
                .iter()
                .any(|&version| !other.contains(&key(version)))
        })
    }

    fn versions(&self, addon: &str) -> impl Iterator<Item = &'a AddonVersion> {
        self.addons.get(addon).into_iter().flatten().copied()
    }

    /// Returns whether `new` lacks an entry that an installation can refer to.
    fn loses_entries(&self, new: Option<&Self>, settings: &AdmissionSettings) -> bool {
        let is_of_system = self.metadata.namespace.as_ref() == Some(&settings.system_namespace);
        let is_other = new.is_some_and(|new| self.is_reference != new.is_reference);
        is_of_system && (is_other || self.has_more(new))
    }
}

/// Returns the text of a reference that `old` satisfied and nothing satisfies any more. `is_core`: whether it is of a core installation.
fn lost_entry(
    reference: &AddonRef,
    is_core: bool,
    new: Option<&CatalogueVersions<'_>>,
    old: &CatalogueVersions<'_>,
    facts: &AdmissionFacts,
) -> Option<String> {
    let can_mean =
        |catalogue: &ObjectMeta| reference::may_refer_to(reference, catalogue, &facts.settings);
    let is_met_by = |version: &AddonVersion| reference::matches_version(reference, version);
    let means = |listed: &CatalogueVersions<'_>| {
        can_mean(listed.metadata)
            && (listed.refers_to(&reference.name)
                || listed.versions(&reference.name).any(is_met_by))
    };
    // A catalogue that becomes one by reference lists only names: whether it still has the version is not known.
    let still_means = |new: &CatalogueVersions<'_>| {
        let is_known = !is_core || old.is_reference;
        means(new) && (is_known || new.versions(&reference.name).any(is_met_by))
    };
    let lost = means(old)
        && !new.is_some_and(still_means)
        && !facts.catalogues.iter().any(|other| {
            // A catalogue that is being deleted does not satisfy a reference for long.
            offers_entries(&other.metadata)
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
