//! Decides which rules apply to which request (semantics 4, 18, 19).

mod namespace;
mod read;

pub(super) use self::namespace::enrolment;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::marks::Marks;
use super::policy::{self, Candidate};
use super::review::{Operation, Request};
use super::rules::catalogue::{in_use, source, template};
use super::rules::installation::guards;
use super::rules::reference::Unseen;
use super::rules::{self, duplicates, reference};
use super::verdict::{Problem, Verdict};
use super::{Facts, Requester, writer};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::{AddonInstallation, AddonInstallationSpec};
use common::api::names::GROUP;
use common::catalogue::{Entry, derived_from, is_copy};

/// The most entries of one reference that are validated if only its cluster decides which one is chosen (semantics 18.1).
const MAX_ENTRIES: usize = 16;

/// Validates a request. Kinds and subresources that have no rules are allowed: a configuration that sends too much must not block a
/// cluster.
#[must_use]
pub fn validate(request: &Request<'_>, facts: &Facts) -> Verdict {
    let is_whole = !request.is_of_subresource();
    match (request.kind.group.as_ref(), request.kind.kind.as_ref()) {
        (GROUP, "AddonCatalogue") if is_whole => catalogue_request(request, facts),
        (GROUP, "AddonInstallation") if is_whole => installation_request(request, facts),
        ("", "Namespace") if namespace::is_written(request) => namespace::judge(request, facts),
        _ => Verdict::default(),
    }
}

/// Validates a catalogue that is created (`old` = `None`) or changed.
#[must_use]
pub fn catalogue(
    new: &AddonCatalogue,
    old: Option<&AddonCatalogue>,
    requester: &Requester,
    facts: &Facts,
) -> Verdict {
    // Also while it is being deleted: it exists for as long as a finalizer holds it.
    match old {
        Some(old) if old.spec == new.spec => marked_catalogue(new, old, requester, facts),
        _ => {
            let mut verdict = written_catalogue(new, old, requester, facts);
            let spec = serde_json::to_string(&new.spec).unwrap_or_default();
            verdict.problem(rules::nesting::text("spec", &spec));
            verdict
        }
    }
}

/// Validates a change of a catalogue's metadata alone.
fn marked_catalogue(
    new: &AddonCatalogue,
    old: &AddonCatalogue,
    requester: &Requester,
    facts: &Facts,
) -> Verdict {
    let mut verdict = Verdict::default();
    let mark = rules::catalogue::derived_mark(new, Some(old), requester, facts);
    verdict.problem(mark);
    // The mark says which catalogue a copy follows: for class Core, this is a change like any other.
    if derived_from(&new.metadata) != derived_from(&old.metadata) {
        let class = rules::catalogue::class_core(Some(new), Some(old), requester, facts);
        verdict.problem(class);
    }
    verdict.lift(requester);
    verdict
}

/// Validates a catalogue with a changed spec. `old` has only names, versions and ids.
fn written_catalogue(
    new: &AddonCatalogue,
    old: Option<&AddonCatalogue>,
    requester: &Requester,
    facts: &Facts,
) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.problem(rules::catalogue::derived_mark(new, old, requester, facts));
    verdict.problem(rules::catalogue::class_core(
        Some(new),
        old,
        requester,
        facts,
    ));
    verdict
        .problems
        .extend(rules::catalogue::unreadable_versions(new));
    verdict
        .problems
        .extend(rules::catalogue::unverifiable_hashes(new));
    verdict.problems.extend(rules::catalogue::one_source(new));
    verdict.problem(rules::catalogue::one_signer(new));
    verdict.problem(rules::registry::unreadable(new.spec.registry.as_deref()));
    verdict
        .problems
        .extend(rules::catalogue::unreadable_constraints(new));
    for rule in [
        source::unreadable_from,
        source::unreadable_sources,
        template::mismatched_method,
        template::manifest_without_values,
        template::unusable_forms,
    ] {
        verdict.problems.extend(rule(new));
    }
    verdict.problems.extend(rules::catalogue::support_core(new));
    // Copies are merged from validated sources (semantics 1.2).
    if !is_copy(&new.metadata) {
        verdict.problems.extend(duplicates::inside(new));
    }
    if rules::catalogue::is_source(&new.metadata, &facts.settings) {
        verdict.problems.extend(duplicates::across(new, old, facts));
    }
    let core_names = rules::catalogue::core_names(new, facts);
    verdict.problems.extend(core_names);
    if let Some(old) = old {
        in_use::judge(Some(new), old, facts, &mut verdict);
    }
    verdict
        .warnings
        .extend(rules::catalogue::taken_names(new, facts));
    verdict
        .warnings
        .extend(rules::catalogue::prune_without_selector(new));
    verdict.warnings.extend(source::risky_sources(new));
    verdict
        .warnings
        .extend(rules::catalogue::outside_system_namespace(
            new,
            &facts.settings,
        ));
    verdict.lift(requester);
    verdict
}

/// Validates the deletion of a catalogue.
#[must_use]
pub fn catalogue_deletion(old: &AddonCatalogue, requester: &Requester, facts: &Facts) -> Verdict {
    let mut verdict = Verdict::default();
    let namespace = old.metadata.namespace.as_deref().unwrap_or_default();
    if !facts.is_unguarded(namespace) {
        verdict.problem(rules::catalogue::class_core(
            None,
            Some(old),
            requester,
            facts,
        ));
        in_use::judge(None, old, facts, &mut verdict);
    }
    verdict.lift(requester);
    verdict
}

/// Validates an installation that is created (`old` = `None`) or changed, after defaults were filled in.
#[must_use]
pub fn installation(
    new: &AddonInstallation,
    old: Option<&AddonInstallation>,
    requester: &Requester,
    facts: &Facts,
) -> Verdict {
    let (marks, old_marks) = (Marks::of(new), old.map(Marks::of));
    let is_judged = is_judged(&new.spec, old.map(|old| &old.spec));
    let mut verdict = guarded(&marks, old_marks.as_ref(), is_judged, requester, facts);
    if let Some(old) = old {
        let immutable = rules::installation::immutable(new, old);
        verdict.problems.extend(immutable);
        verdict.problem(guards::core_spec(new, old, requester, facts));
    }
    if old.is_none() {
        verdict.problem(rules::cluster::is_going(marks.namespace(), facts));
    }
    if !marks.is_going() && is_judged {
        verdict.problem(rules::nesting::installation(new));
        content(new, old, requester, facts, &mut verdict);
    }
    // Separate from the rest: a registry that was admitted once may stay while something else changes.
    if !marks.is_going() && old.is_none_or(|old| old.spec.registry != new.spec.registry) {
        verdict.problem(rules::registry::unreadable(new.spec.registry.as_deref()));
    }
    verdict.lift(requester);
    verdict
}

/// Validates the deletion of an installation.
#[must_use]
pub fn installation_deletion(old: &Marks, requester: &Requester, facts: &Facts) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.problem(guards::deletion(old, facts));
    verdict.lift(requester);
    if verdict.problems.is_empty() {
        let warning = rules::installation::orphans(old);
        verdict.orphaning = warning.as_ref().map(|_| old.name().to_owned());
        let later = || rules::installation::finished_later(old);
        verdict.warnings.extend(warning.or_else(later));
    }
    verdict
}

/// Returns whether policies evaluate a change of a spec: every change except suspending it and changing `deletionPolicy` (semantics
/// 19.2). A spec that cannot be read counts as changed.
#[must_use]
pub fn is_judged(new: &AddonInstallationSpec, old: Option<&AddonInstallationSpec>) -> bool {
    old.is_none_or(|old| {
        let with_free = AddonInstallationSpec {
            suspend: new.suspend,
            deletion_policy: new.deletion_policy,
            ..old.clone()
        };
        let is_read = new.unreadable.is_none() && old.unreadable.is_none();
        let is_resumed = old.suspend && !new.suspend;
        !is_read || is_resumed || with_free != *new
    })
}

/// Returns whether reference and values are validated as well: when an installation is created, and when they change or may have changed
/// (semantics 4).
fn is_content_judged(new: &AddonInstallation, old: Option<&AddonInstallation>) -> bool {
    old.is_none_or(|old| {
        old.spec.unreadable.is_some()
            || new.spec.addon_ref != old.spec.addon_ref
            || new.spec.values != old.spec.values
            || new.spec.values_from != old.spec.values_from
    })
}

/// Applies the rules that hold for every change, also while an installation is being deleted.
fn guarded(
    new: &Marks,
    old: Option<&Marks>,
    is_judged: bool,
    requester: &Requester,
    facts: &Facts,
) -> Verdict {
    let mut verdict = Verdict::default();
    if old.is_none() {
        verdict.problem(rules::installation::generate_name(new));
        verdict.problem(guards::reserved_name(new, requester, facts));
    }
    verdict.problem(guards::core_flag(new, old, requester, facts));
    verdict.problem(guards::release_mark(new, old, requester, facts));
    verdict.problems.extend(guards::planted_before(new, old));
    verdict.problem(guards::owner_references(new, old, requester, facts));
    verdict.problem(guards::guard_finalizer(new, old, requester, facts));
    let metadata = guards::core_metadata(new, old, requester, facts);
    verdict.problems.extend(metadata);
    verdict.problem(writer::forged(new, old, is_judged, requester));
    verdict
}

/// Validates the namespace, the content (reference, fit and values, if they change), and the policies.
fn content(
    new: &AddonInstallation,
    old: Option<&AddonInstallation>,
    requester: &Requester,
    facts: &Facts,
    verdict: &mut Verdict,
) {
    let namespace = new.metadata.namespace.as_deref().unwrap_or_default();
    verdict.problem(rules::cluster::stands_for_none(namespace, facts));
    let is_content_judged = is_content_judged(new, old);
    let reference = &new.spec.addon_ref;
    let mut content = Verdict::default();
    let mut resolved = reference::resolve(reference, namespace, facts);
    if let Err(problem) = &resolved
        && let Some(warning) = reference::rolled_back(reference, old, problem)
    {
        content.warnings.push(warning);
        resolved = Ok(None);
    }
    let problem = resolved.as_ref().err().filter(|_| is_content_judged);
    verdict.unseen = Unseen::of(reference, namespace, facts, problem);
    let entries: Vec<&Entry> = match resolved {
        Ok(Some(choice)) => {
            content.warnings.extend(choice.warnings);
            choice.chosen.into_iter().collect()
        }
        Ok(None) => reference::possible(reference, facts),
        Err(problem) => {
            content.problems.push(problem);
            Vec::new()
        }
    };
    content.problem(rules::installation::index(new));
    content
        .warnings
        .extend(rules::installation::plain_index(new));
    if is_content_judged {
        verdict.append(content);
    }
    let judge = |entry| of_entry(new, entry, is_content_judged, requester, facts);
    let mut entries = entries.into_iter().take(MAX_ENTRIES);
    let mut best = judge(entries.next());
    // One valid entry is enough: commands and the loop validate the entry that is chosen in the end.
    if !best.problems.is_empty() {
        let mut others = entries.map(|entry| judge(Some(entry)));
        best = others
            .find(|other| other.problems.is_empty())
            .unwrap_or(best);
    }
    verdict.append(best);
}

/// Validates the installation of an entry; `None` if the entry is not known here.
fn of_entry(
    new: &AddonInstallation,
    entry: Option<&Entry>,
    is_content_judged: bool,
    requester: &Requester,
    facts: &Facts,
) -> Verdict {
    let mut verdict = Verdict::default();
    if is_content_judged {
        verdict.problem(rules::installation::target_namespace(new, entry));
        let values = entry.map(|entry| rules::installation::values(new, entry));
        verdict.problems.extend(values.into_iter().flatten());
    }
    policies(new, entry, requester, facts, &mut verdict);
    verdict
}

/// Evaluates the policies with the facts that are known before anything is fetched (semantics 19.2).
fn policies(
    new: &AddonInstallation,
    entry: Option<&Entry>,
    requester: &Requester,
    facts: &Facts,
    verdict: &mut Verdict,
) {
    let namespace = new.metadata.namespace.as_deref().unwrap_or_default();
    let none = BTreeMap::new();
    let labels = facts.namespaces.get(namespace).map(|ns| &ns.labels);
    let candidate = Candidate {
        installation: new,
        labels: labels.unwrap_or(&none),
        entry,
        images: None,
        requester: Some(requester),
    };
    policy::judge(facts.policies.iter().map(Arc::as_ref), &candidate, verdict);
}

fn catalogue_request(request: &Request<'_>, facts: &Facts) -> Verdict {
    let requester = request.requester();
    match request.operation {
        Operation::Connect => Verdict::default(),
        Operation::Delete => match read::former(request) {
            Ok(old) => catalogue_deletion(&old, &requester, facts),
            Err(problem) => unreadable(problem, &requester),
        },
        // The metadata can be changed, whatever the spec contains.
        Operation::Update if read::keeps_spec(request) => {
            match (read::names(request), read::former(request)) {
                (Ok(new), Ok(old)) => marked_catalogue(&new, &old, &requester, facts),
                (Err(problem), _) | (_, Err(problem)) => unreadable(problem, &requester),
            }
        }
        Operation::Create | Operation::Update => {
            let new = read::catalogue(request);
            let old = (request.operation == Operation::Update)
                .then(|| read::former(request))
                .transpose();
            match (new, old) {
                (Ok(new), Ok(old)) => {
                    let mut verdict = written_catalogue(&new, old.as_ref(), &requester, facts);
                    verdict.problem(rules::size::no_room(&new, facts));
                    verdict
                }
                (Err(problem), _) | (_, Err(problem)) => unreadable(problem, &requester),
            }
        }
    }
}

fn installation_request(request: &Request<'_>, facts: &Facts) -> Verdict {
    let requester = request.requester();
    match request.operation {
        Operation::Connect => Verdict::default(),
        Operation::Delete => match read::marks(request, request.old_object) {
            Ok(old) => installation_deletion(&old, &requester, facts),
            Err(problem) => unreadable(problem, &requester),
        },
        Operation::Create | Operation::Update => {
            let new = read::installation(request, request.object);
            let old = (request.operation == Operation::Update)
                .then(|| read::installation(request, request.old_object))
                .transpose();
            match (new, old) {
                (Ok(new), Ok(mut old)) => match rules::nesting::installation(&new) {
                    Some(problem) if new.spec.unreadable.is_some() => {
                        unreadable_installation(request, problem, &requester, facts)
                    }
                    _ => {
                        read::ended(request, &new, old.as_mut());
                        installation(&new, old.as_ref(), &requester, facts)
                    }
                },
                (Err(problem), _) | (_, Err(problem)) => unreadable(problem, &requester),
            }
        }
    }
}

/// Validates an installation that cannot be read, for example one of an older schema. Its guards still apply, and it may lose finalizers
/// and labels while its spec stays unchanged; otherwise it could never be deleted.
fn unreadable_installation(
    request: &Request<'_>,
    problem: Problem,
    requester: &Requester,
    facts: &Facts,
) -> Verdict {
    let new = read::marks(request, request.object);
    let old = match request.operation {
        Operation::Create => Ok(None),
        _ => read::marks(request, request.old_object).map(Some),
    };
    let is_changed = !read::keeps_spec(request);
    let mut verdict = match (new, old) {
        (Ok(new), Ok(old)) => guarded(&new, old.as_ref(), is_changed, requester, facts),
        (Err(problem), _) | (_, Err(problem)) => return unreadable(problem, requester),
    };
    if is_changed {
        verdict.problems.push(problem);
    }
    verdict.lift(requester);
    verdict
}

/// Denies an object that cannot be read. Break-glass lifts the denial; otherwise the object could never be deleted.
fn unreadable(problem: Problem, requester: &Requester) -> Verdict {
    let mut verdict = Verdict {
        problems: vec![Problem::forbidden(
            problem.rule,
            problem.field,
            problem.message,
        )],
        ..Verdict::default()
    };
    verdict.lift(requester);
    verdict
}

#[cfg(test)]
mod tests;
