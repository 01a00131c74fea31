//! Resolves the add-on that an installation refers to: whether it exists and fits (semantics 4, 18.1).

use std::collections::HashSet;

use crate::catalogue_facts::CatalogueFacts;
use crate::mutate::default_namespace;
use crate::verdict::AdmissionProblem;
use crate::{AdmissionFacts, AdmissionSettings};
use addons_versions::tolerant;
use common::api::catalogue::{AddonVersion, CatalogueClass};
use common::api::installation::{AddonInstallation, AddonRef, Installed};
use common::catalogue::precedence::{self, SourceCatalogue, compare_precedence};
use common::catalogue::select::{
    BorrowedSelection, ClusterVersions, EntryRequest, RejectionReason, SelectionRules, choose,
};
use common::catalogue::{CatalogueEntry, describe_lost_entry, is_copy, offers_entries};
use common::nearest::{did_you_mean, nearest};
use common::text::list_first;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The most versions that a denial lists.
const MAX_LISTED: usize = 5;
/// The most names that a misspelt one is compared with, so that a denial stays cheap.
const MAX_COMPARED: usize = 2_000;

/// A dependency of a verdict that may have been created just now, so that the facts may not contain it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnseenDependency {
    /// The add-on that an installation refers to.
    Reference {
        /// The reference.
        addon: AddonRef,
        /// The namespace of the installation.
        namespace: String,
    },
    /// Installations that refer to a removed entry.
    Users,
}

impl UnseenDependency {
    /// Returns the reference if the facts have no such namespace, catalogue, add-on or version. `problem` is the error of [`resolve`].
    #[must_use]
    pub fn from_reference(
        reference: &AddonRef,
        namespace: &str,
        facts: &AdmissionFacts,
        problem: Option<&AdmissionProblem>,
    ) -> Option<Self> {
        let is_unknown = problem.is_some_and(|problem| problem.rule.starts_with("unknown-"));
        (is_unknown || !facts.stands_for_cluster(namespace)).then(|| Self::Reference {
            addon: reference.clone(),
            namespace: namespace.to_owned(),
        })
    }
}

/// Returns the entries that `reference` of an installation in `namespace` matches, and the chosen one among them.
///
/// Returns `None` for an index, a directory or a catalogue by reference, because the webhook never fetches a source. Whether an entry
/// fits is checked for this cluster only: the version of another cluster is unknown here, so several entries also give `None`, see
/// [`possible_entries`].
///
/// # Errors
/// The [`AdmissionProblem`] of a catalogue, add-on or version that does not exist, that another catalogue holds, or that does not fit this cluster.
pub fn resolve<'a>(
    reference: &AddonRef,
    namespace: &str,
    facts: &'a AdmissionFacts,
) -> Result<Option<BorrowedSelection<'a>>, AdmissionProblem> {
    let Some(MatchingEntries { entries, lost }) = find_matching(reference, facts)? else {
        return Ok(None);
    };
    let request = EntryRequest {
        addon: &reference.name,
        ..EntryRequest::default()
    };
    let is_local = facts.is_local(namespace);
    if !is_local && entries.len() > 1 {
        // The plugin and the loop know which one fits there (semantics 18.1).
        return Ok(None);
    }
    let unknown = ClusterVersions::default();
    let cluster = match is_local {
        true => &facts.cluster,
        false => &unknown,
    };
    let choice = choose(entries, &request, cluster, SelectionRules::Auto);
    let Some(chosen) = choice.chosen else {
        return Err(does_not_fit(reference, &choice));
    };
    match lost.iter().find(|(entry, _)| std::ptr::eq(*entry, chosen)) {
        None => Ok(Some(choice)),
        Some((_, holder)) => Err(held_by_other(holder, reference, chosen)),
    }
}

/// Returns the entries that `reference` may mean if [`resolve`] chooses none of them, best first. Empty if they are not known here.
#[must_use]
pub fn possible_entries<'a>(
    reference: &AddonRef,
    facts: &'a AdmissionFacts,
) -> Vec<&'a CatalogueEntry> {
    let Ok(Some(MatchingEntries { entries, lost })) = find_matching(reference, facts) else {
        return Vec::new();
    };
    let request = EntryRequest {
        addon: &reference.name,
        ..EntryRequest::default()
    };
    let choice = choose(
        entries,
        &request,
        &ClusterVersions::default(),
        SelectionRules::Auto,
    );
    let rejected = choice.rejections.into_iter();
    let others = rejected
        .filter(|(_, reason)| !matches!(reason, RejectionReason::UnreadableRange { .. }))
        .map(|(entry, _)| entry);
    let is_lost = |entry: &CatalogueEntry| lost.iter().any(|(one, _)| std::ptr::eq(*one, entry));
    let all = choice.chosen.into_iter().chain(others);
    all.filter(|entry| !is_lost(entry)).collect()
}

/// Returns the target namespace for an installation that names none, if all entries that its reference may mean agree on it. It is filled
/// in before one of them is chosen, so that a later version with another default does not move the installation (semantics 18.1).
pub fn target_namespace<'a>(reference: &AddonRef, facts: &'a AdmissionFacts) -> Option<&'a str> {
    let MatchingEntries { entries, lost } = find_matching(reference, facts).ok().flatten()?;
    let mut targets = entries.into_iter().map(default_namespace);
    let target = targets.next()??;
    (lost.is_empty() && targets.all(|other| other == Some(target))).then_some(target)
}

/// The entries that a reference may mean.
struct MatchingEntries<'a> {
    /// The entries with the requested version and id.
    entries: Vec<&'a CatalogueEntry>,
    /// The entries that the named catalogue lost, each with the name of the catalogue that holds it.
    lost: Vec<(&'a CatalogueEntry, &'a str)>,
}

/// Finds the entries that a reference may mean; `None` if they are not known here.
fn find_matching<'a>(
    reference: &AddonRef,
    facts: &'a AdmissionFacts,
) -> Result<Option<MatchingEntries<'a>>, AdmissionProblem> {
    if !reference.is_of_catalogue() {
        return Ok(None);
    }
    let all: Vec<&CatalogueFacts> = facts
        .named_catalogues()
        .filter(|catalogue| offers_entries(&catalogue.metadata))
        .collect();
    let named = find_catalogue(reference, &all)?;
    let addon = reference.name.as_str();
    // A catalogue by reference may hold what others list, but its versions are not known here.
    let may_hold = |other: &&CatalogueFacts| {
        let is_earlier = |it: &CatalogueFacts| {
            compare_precedence(precedence_key(other), precedence_key(it)).is_lt()
        };
        let takes = !is_copy(&other.metadata)
            && named.is_some_and(|it| !is_copy(&it.metadata) && is_earlier(it));
        let is_meant = named.is_none_or(|it| it.name() == other.name());
        other.refers_to(addon) && (is_meant || takes)
    };
    if all.iter().any(may_hold) {
        return Ok(None);
    }
    let mut listed = collect_entries(named, &all, addon);
    if listed.entries.is_empty() {
        let among = named.map_or(all, |named| vec![named]);
        return Err(unknown_addon(reference, &among, facts));
    }
    let is_asked_for = |entry: &CatalogueEntry| matches_version(reference, &entry.version);
    if !listed.entries.iter().any(|entry| is_asked_for(entry)) {
        return Err(unknown_version(reference, &listed.entries));
    }
    listed.entries.retain(|entry| is_asked_for(entry));
    listed.lost.retain(|(entry, _)| is_asked_for(entry));
    Ok(Some(listed))
}

fn precedence_key(catalogue: &CatalogueFacts) -> (&ObjectMeta, CatalogueClass) {
    (&catalogue.metadata, catalogue.class)
}

/// Returns the entries of an add-on, in the order in which the last of equal ones is chosen: entries that the named catalogue lost come
/// first. If no catalogue is named, only entries that their catalogue holds count, and from copies only those that no source has
/// (semantics 1.2, 2.4).
fn collect_entries<'a>(
    named: Option<&CatalogueFacts>,
    all: &[&'a CatalogueFacts],
    addon: &str,
) -> MatchingEntries<'a> {
    let listing = all.iter().copied().filter(|it| it.lists(addon));
    let (copies, sources): (Vec<_>, Vec<_>) = listing
        .map(|it| (it, it.entries(addon)))
        .partition(|(it, _)| is_copy(&it.metadata));
    let compared = sources.iter().map(|(source, entries)| SourceCatalogue {
        metadata: &source.metadata,
        class: source.class,
        addons: vec![addon],
        entries,
    });
    let holders = precedence::find_lost_entries(&compared.collect::<Vec<_>>());
    let is_meant = |it: &CatalogueFacts| named.is_none_or(|named| named.name() == it.name());
    let (mut lost, mut kept) = (Vec::new(), Vec::new());
    for (position, (source, entries)) in sources.iter().enumerate() {
        for (at, entry) in entries.iter().enumerate().filter(|_| is_meant(source)) {
            let holder = holders.get(&(position, at));
            match holder.and_then(|holder| sources.get(*holder)) {
                None => kept.push(entry),
                Some((holder, _)) => lost.push((entry, holder.name())),
            }
        }
    }
    if named.is_none() {
        lost.clear();
    }
    let known: HashSet<_> = kept.iter().map(|entry| entry.key()).collect();
    let copied = copies.into_iter().filter(|(it, _)| is_meant(it));
    let copied = copied.flat_map(|(_, entries)| entries);
    let copied = copied.filter(|entry| !known.contains(&entry.key()));
    let first = lost.iter().map(|(entry, _)| *entry).chain(copied);
    MatchingEntries {
        entries: first.chain(kept.iter().copied()).collect(),
        lost,
    }
}

/// Returns a warning to use instead of `problem` if a catalogue, add-on or version is missing, but this installation had that version
/// before: a rollback restores it without the catalogue (semantics 12.3).
#[must_use]
pub fn warn_rolled_back(
    reference: &AddonRef,
    old: Option<&AddonInstallation>,
    problem: &AdmissionProblem,
) -> Option<String> {
    let status = old?.status.as_ref()?;
    let is_gone = problem.rule.starts_with("unknown-");
    let is_named = reference.version.is_some() || reference.id.is_some();
    let had = |installed: &Installed| {
        let (version, id) = (&reference.version, &reference.id);
        version.as_ref().is_none_or(|it| *it == installed.version)
            && id.as_ref().is_none_or(|it| *it == installed.id)
    };
    let ended = status.history.iter().filter(|one| one.is_done());
    let mut all = ended.map(|one| &one.installed).chain(&status.installed);
    (is_gone && is_named && all.any(had)).then(|| {
        let (field, message) = (&problem.field, &problem.message);
        format!("{field}: {message}; allowed, because this installation had that version before")
    })
}

/// Returns whether `reference` can refer to `catalogue`, which has to be in the system namespace (semantics 1.1).
#[must_use]
pub fn may_refer_to(
    reference: &AddonRef,
    catalogue: &ObjectMeta,
    settings: &AdmissionSettings,
) -> bool {
    let is_of_system = catalogue.namespace.as_ref() == Some(&settings.system_namespace);
    let named = match &reference.catalogue {
        Some(name) => catalogue.name.as_ref() == Some(name),
        None => true,
    };
    is_of_system && named && reference.is_of_catalogue()
}

/// Returns whether `version` has the version and the id that `reference` asks for.
#[must_use]
pub fn matches_version(reference: &AddonRef, version: &AddonVersion) -> bool {
    let same_version = match reference.version.as_deref() {
        None | Some("") => true,
        Some(wanted) => tolerant::is_same(wanted, &version.version),
    };
    let same_id = match reference.id.as_deref() {
        None | Some("") => true,
        Some(wanted) => wanted == version.id,
    };
    same_version && same_id
}

/// Returns the catalogue that a reference names. `all` does not contain catalogues that are being deleted.
fn find_catalogue<'a>(
    reference: &AddonRef,
    all: &[&'a CatalogueFacts],
) -> Result<Option<&'a CatalogueFacts>, AdmissionProblem> {
    let Some(name) = reference.catalogue.as_deref() else {
        return Ok(None);
    };
    let named = all.iter().find(|catalogue| catalogue.name() == name);
    if let Some(&named) = named {
        return Ok(Some(named));
    }
    let names = all.iter().map(|catalogue| catalogue.name());
    let hint = did_you_mean(nearest(name, names));
    Err(AdmissionProblem::invalid(
        "unknown-catalogue",
        "spec.addonRef.catalogue",
        format!("no catalogue named {name}{hint}"),
    ))
}

/// Returns the problem of [`describe_lost_entry`], with the catalogue to refer to.
fn held_by_other(holder: &str, reference: &AddonRef, entry: &CatalogueEntry) -> AdmissionProblem {
    let catalogue = reference.catalogue.as_deref().unwrap_or_default();
    let version = describe_version(&entry.version);
    let held = describe_lost_entry(holder, &entry.addon, &version, catalogue);
    let message = format!("{held}: refer to catalogue {holder}");
    AdmissionProblem::invalid("unknown-version", "spec.addonRef.catalogue", message)
}

/// `no add-on named prometeus in catalogue custom; did you mean prometheus?`
fn unknown_addon(
    reference: &AddonRef,
    catalogues: &[&CatalogueFacts],
    facts: &AdmissionFacts,
) -> AdmissionProblem {
    let place = match &reference.catalogue {
        Some(name) => format!(" in catalogue {name}"),
        None => String::new(),
    };
    let names: Vec<(&str, &str)> = catalogues
        .iter()
        .copied()
        .chain(
            facts
                .sources()
                .filter(|source| offers_entries(&source.metadata)),
        )
        .flat_map(|catalogue| catalogue.names().map(|name| (name, catalogue.name())))
        .take(MAX_COMPARED)
        .collect();
    let near = nearest(&reference.name, names.iter().map(|(name, _)| *name));
    let hint = near
        .and_then(|near| names.iter().find(|(name, _)| *name == near))
        .map(|(name, at)| format!("{name} (catalogue {at})"));
    let hint = did_you_mean(hint.as_deref());
    AdmissionProblem::invalid(
        "unknown-addon",
        "spec.addonRef.name",
        format!("no add-on named {}{place}{hint}", reference.name),
    )
}

/// `prometheus has no version 1.9.0; it has 1.2.0, 1.1.0`
fn unknown_version(reference: &AddonRef, entries: &[&CatalogueEntry]) -> AdmissionProblem {
    let mut asked = String::new();
    if let Some(version) = &reference.version {
        asked.push_str(&format!(" version {version}"));
    }
    if let Some(id) = &reference.id {
        asked.push_str(&format!(" id {id}"));
    }
    let field = match reference.version {
        Some(_) => "spec.addonRef.version",
        None => "spec.addonRef.id",
    };
    let mut known: Vec<(Option<semver::Version>, String)> = entries
        .iter()
        .map(|entry| {
            let read = tolerant::parse(&entry.version.version).ok();
            (read, describe_version(&entry.version))
        })
        .collect();
    known.sort_by(|a, b| b.cmp(a));
    known.dedup();
    let names = known.into_iter().map(|(_, name)| name);
    AdmissionProblem::invalid(
        "unknown-version",
        field,
        format!(
            "{} has no{asked}; it has {}",
            reference.name,
            list_first(names, MAX_LISTED)
        ),
    )
}

/// Returns a version for messages: its version, its id, or both.
#[must_use]
pub fn describe_version(version: &AddonVersion) -> String {
    match (version.version.as_str(), version.id.as_str()) {
        ("", "") => "(no version)".to_owned(),
        ("", id) => format!("id {id}"),
        (version, "") => version.to_owned(),
        (version, id) => format!("{version} id {id}"),
    }
}

/// `prometheus 1.2.0 does not fit this cluster: k8sVersion <1.30 does not match 1.36.3`
fn does_not_fit(reference: &AddonRef, choice: &BorrowedSelection<'_>) -> AdmissionProblem {
    let mut reasons: Vec<String> = choice
        .rejections
        .iter()
        .map(|(entry, reason)| format!("{}: {reason}", describe_version(&entry.version)))
        .collect();
    let more = match reasons.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    reasons.truncate(MAX_LISTED);
    let what = match &reference.version {
        Some(version) => format!("{} {version}", reference.name),
        None => format!("no version of {}", reference.name),
    };
    let verb = match &reference.version {
        Some(_) => "does not fit this cluster",
        None => "fits this cluster",
    };
    AdmissionProblem::invalid(
        "does-not-fit",
        "spec.addonRef",
        format!("{what} {verb} ({}{more})", reasons.join(", ")),
    )
}

#[cfg(test)]
mod tests;
