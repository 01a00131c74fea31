//! Decides which rules apply to which request (semantics 4, 18, 19).

mod namespace;
mod read;

pub(super) use self::namespace::validate_enrolment;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::marks::GuardMarks;
use super::policy::{self, PolicyCandidate};
use super::review::{AdmissionOperation, ReviewRequest};
use super::rules::catalogue::{expressions, in_use, source, template};
use super::rules::installation::guards;
use super::rules::reference::UnseenDependency;
use super::rules::{self, duplicates, reference};
use super::verdict::{AdmissionProblem, Verdict};
use super::{AdmissionFacts, Requester, writer};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::{AddonInstallation, AddonInstallationSpec};
use common::api::names::GROUP;
use common::catalogue::{CatalogueEntry, derived_from, is_copy};

/// The most entries of one reference that are validated if only its cluster decides which one is chosen (semantics 18.1).
const MAX_ENTRIES: usize = 16;

/// Validates a request. Kinds and subresources that have no rules are allowed: a configuration that sends too much must not block a
/// cluster.
#[must_use]
pub fn validate(request: &ReviewRequest<'_>, facts: &AdmissionFacts) -> Verdict {
    let is_whole = !request.is_of_subresource();
    match (request.kind.group.as_ref(), request.kind.kind.as_ref()) {
        (GROUP, "AddonCatalogue") if is_whole => validate_catalogue_request(request, facts),
        (GROUP, "AddonInstallation") if is_whole => validate_installation_request(request, facts),
        ("", "Namespace") if namespace::concerns_namespace(request) => {
            namespace::validate_namespace(request, facts)
        }
        _ => Verdict::default(),
    }
}

/// Validates a catalogue that is created (`old` = `None`) or changed.
#[must_use]
pub fn validate_catalogue(
    new: &AddonCatalogue,
    old: Option<&AddonCatalogue>,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Verdict {
    // Also while it is being deleted: it exists for as long as a finalizer holds it.
    match old {
        Some(old) if old.spec == new.spec => {
            validate_catalogue_metadata(new, old, requester, facts)
        }
        _ => {
            let mut verdict = validate_catalogue_spec(new, old, requester, facts);
            let spec = serde_json::to_string(&new.spec).unwrap_or_default();
            verdict.add_problem(rules::size::check_text("spec", &spec));
            verdict
        }
    }
}

/// Validates a change of a catalogue's metadata alone.
fn validate_catalogue_metadata(
    new: &AddonCatalogue,
    old: &AddonCatalogue,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Verdict {
    let mut verdict = Verdict::default();
    let mark = rules::catalogue::derived_mark(new, Some(old), requester, facts);
    verdict.add_problem(mark);
    // The mark says which catalogue a copy follows: for class Core, this is a change like any other.
    if derived_from(&new.metadata) != derived_from(&old.metadata) {
        let class = rules::catalogue::class_core(Some(new), Some(old), requester, facts);
        verdict.add_problem(class);
    }
    verdict.apply_break_glass(requester);
    verdict
}

/// Validates a catalogue with a changed spec. `old` has only names, versions and ids.
fn validate_catalogue_spec(
    new: &AddonCatalogue,
    old: Option<&AddonCatalogue>,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.add_problem(rules::catalogue::derived_mark(new, old, requester, facts));
    verdict.add_problem(rules::catalogue::class_core(
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
    verdict.add_problem(rules::catalogue::one_signer(new));
    verdict.add_problem(rules::location::check_registry(
        new.spec.registry.as_deref(),
    ));
    verdict
        .problems
        .extend(rules::catalogue::unreadable_constraints(new));
    for rule in [
        source::unreadable_from,
        source::unreadable_sources,
        template::mismatched_method,
        template::manifest_without_values,
        template::unusable_forms,
        expressions::wrong_expressions,
    ] {
        verdict.problems.extend(rule(new));
    }
    verdict.problems.extend(rules::catalogue::support_core(new));
    verdict
        .problems
        .extend(rules::catalogue::own_successors(new));
    // Copies are merged from validated sources (semantics 1.2).
    if !is_copy(&new.metadata) {
        verdict.problems.extend(duplicates::find_inside(new));
    }
    if rules::catalogue::is_source(&new.metadata, &facts.settings) {
        verdict
            .problems
            .extend(duplicates::find_across(new, old, facts));
    }
    let core_names = rules::catalogue::core_names(new, facts);
    verdict.problems.extend(core_names);
    if let Some(old) = old {
        in_use::check_removal(Some(new), old, facts, &mut verdict);
    }
    verdict
        .warnings
        .extend(rules::catalogue::warn_taken_names(new, facts));
    verdict
        .warnings
        .extend(rules::catalogue::prune_without_selector(new));
    verdict.warnings.extend(source::warn_unencrypted(new));
    verdict
        .warnings
        .extend(rules::catalogue::outside_system_namespace(
            new,
            &facts.settings,
        ));
    verdict.apply_break_glass(requester);
    verdict
}

/// Validates the deletion of a catalogue.
#[must_use]
pub fn validate_catalogue_deletion(
    old: &AddonCatalogue,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Verdict {
    let mut verdict = Verdict::default();
    let namespace = old.metadata.namespace.as_deref().unwrap_or_default();
    if !facts.is_unguarded(namespace) {
        verdict.add_problem(rules::catalogue::class_core(
            None,
            Some(old),
            requester,
            facts,
        ));
        in_use::check_removal(None, old, facts, &mut verdict);
    }
    verdict.apply_break_glass(requester);
    verdict
}

/// Validates an installation that is created (`old` = `None`) or changed, after defaults were filled in.
#[must_use]
pub fn validate_installation(
    new: &AddonInstallation,
    old: Option<&AddonInstallation>,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Verdict {
    let (marks, old_marks) = (
        GuardMarks::from_installation(new),
        old.map(GuardMarks::from_installation),
    );
    let is_judged = is_policy_relevant(&new.spec, old.map(|old| &old.spec));
    let mut verdict = check_guards(&marks, old_marks.as_ref(), is_judged, requester, facts);
    if let Some(old) = old {
        let immutable = rules::installation::immutable(new, old);
        verdict.problems.extend(immutable);
        verdict.add_problem(guards::core_spec(new, old, requester, facts));
    }
    if old.is_none() {
        verdict.add_problem(rules::cluster::check_not_being_deleted(
            marks.namespace(),
            facts,
        ));
    }
    if !marks.is_being_deleted() && is_judged {
        verdict.add_problem(rules::size::check_readable(new));
        check_content(new, old, requester, facts, &mut verdict);
    }
    // Separate from the rest: a registry that was admitted once may stay while something else changes.
    if !marks.is_being_deleted() && old.is_none_or(|old| old.spec.registry != new.spec.registry) {
        verdict.add_problem(rules::location::check_registry(
            new.spec.registry.as_deref(),
        ));
    }
    verdict.apply_break_glass(requester);
    verdict
}

/// Validates the deletion of an installation.
#[must_use]
pub fn validate_installation_deletion(
    old: &GuardMarks,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.add_problem(guards::deletion(old, facts));
    verdict.apply_break_glass(requester);
    if verdict.problems.is_empty() {
        let warning = rules::installation::warn_orphans(old);
        verdict.orphaning = warning.as_ref().map(|_| old.name().to_owned());
        let later = || rules::installation::warn_finished_later(old);
        verdict.warnings.extend(warning.or_else(later));
    }
    verdict
}

/// Returns whether policies evaluate a change of a spec: every change except suspending it and changing `deletionPolicy` (semantics
/// 19.2). A spec that cannot be read counts as changed.
#[must_use]
pub fn is_policy_relevant(
    new: &AddonInstallationSpec,
    old: Option<&AddonInstallationSpec>,
) -> bool {
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

/// Returns whether reference, values and patches are validated as well: when an installation is created, and when they change or may have changed
/// (semantics 4).
fn is_content_checked(new: &AddonInstallation, old: Option<&AddonInstallation>) -> bool {
    old.is_none_or(|old| {
        old.spec.unreadable.is_some()
            || new.spec.addon_ref != old.spec.addon_ref
            || new.spec.values != old.spec.values
            || new.spec.values_from != old.spec.values_from
            || new.spec.patches != old.spec.patches
    })
}

/// Applies the rules that hold for every change, also while an installation is being deleted.
fn check_guards(
    new: &GuardMarks,
    old: Option<&GuardMarks>,
    is_judged: bool,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Verdict {
    let mut verdict = Verdict::default();
    if old.is_none() {
        verdict.add_problem(rules::installation::generate_name(new));
        verdict.add_problem(guards::reserved_name(new, requester, facts));
    }
    verdict.add_problem(guards::core_flag(new, old, requester, facts));
    verdict.add_problem(guards::release_mark(new, old, requester, facts));
    verdict
        .problems
        .extend(guards::check_becoming_core(new, old));
    verdict.add_problem(guards::owner_references(new, old, requester, facts));
    verdict.add_problem(guards::guard_finalizer(new, old, requester, facts));
    let metadata = guards::core_metadata(new, old, requester, facts);
    verdict.problems.extend(metadata);
    verdict.add_problem(writer::check_writer(new, old, is_judged, requester));
    verdict
}

/// Validates the namespace, the content (reference, fit and values, if they change), and the policies.
fn check_content(
    new: &AddonInstallation,
    old: Option<&AddonInstallation>,
    requester: &Requester,
    facts: &AdmissionFacts,
    verdict: &mut Verdict,
) {
    let namespace = new.metadata.namespace.as_deref().unwrap_or_default();
    verdict.add_problem(rules::cluster::check_namespace(namespace, facts));
    let is_content_judged = is_content_checked(new, old);
    let reference = &new.spec.addon_ref;
    let mut content = Verdict::default();
    let mut resolved = reference::resolve(reference, namespace, facts);
    if let Err(problem) = &resolved
        && let Some(warning) = reference::warn_rolled_back(reference, old, problem)
    {
        content.warnings.push(warning);
        resolved = Ok(None);
    }
    let problem = resolved.as_ref().err().filter(|_| is_content_judged);
    verdict.unseen = UnseenDependency::from_reference(reference, namespace, facts, problem);
    let own = CatalogueEntry::from_installation(reference);
    let entries: Vec<&CatalogueEntry> = match resolved {
        _ if own.is_some() => own.iter().collect(),
        Ok(Some(choice)) => {
            content.warnings.extend(choice.warnings);
            choice.chosen.into_iter().collect()
        }
        Ok(None) => reference::possible_entries(reference, facts),
        Err(problem) => {
            content.problems.push(problem);
            Vec::new()
        }
    };
    content.add_problem(rules::installation::index(new));
    content
        .problems
        .extend(rules::installation::named_content(new, old, facts));
    content
        .warnings
        .extend(rules::installation::warn_unencrypted_index(new));
    if is_content_judged {
        verdict.append(content);
    }
    let judge = |entry| check_entry(new, entry, is_content_judged, requester, facts);
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
fn check_entry(
    new: &AddonInstallation,
    entry: Option<&CatalogueEntry>,
    is_content_judged: bool,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Verdict {
    let mut verdict = Verdict::default();
    if is_content_judged {
        verdict.add_problem(rules::installation::target_namespace(new, entry));
        let values = entry.map(|entry| rules::installation::values(new, entry));
        verdict.problems.extend(values.into_iter().flatten());
        verdict.add_problem(rules::installation::patches(new, entry));
    }
    check_policies(new, entry, requester, facts, &mut verdict);
    verdict
}

/// Evaluates the policies with the facts that are known before anything is fetched (semantics 19.2).
fn check_policies(
    new: &AddonInstallation,
    entry: Option<&CatalogueEntry>,
    requester: &Requester,
    facts: &AdmissionFacts,
    verdict: &mut Verdict,
) {
    let namespace = new.metadata.namespace.as_deref().unwrap_or_default();
    let none = BTreeMap::new();
    let labels = facts.namespaces.get(namespace).map(|ns| &ns.labels);
    let candidate = PolicyCandidate {
        installation: new,
        labels: labels.unwrap_or(&none),
        entry,
        images: None,
        requester: Some(requester),
    };
    policy::evaluate(facts.policies.iter().map(Arc::as_ref), &candidate, verdict);
}

fn validate_catalogue_request(request: &ReviewRequest<'_>, facts: &AdmissionFacts) -> Verdict {
    let requester = request.requester();
    match request.operation {
        AdmissionOperation::Connect => Verdict::default(),
        AdmissionOperation::Delete => match read::read_old_catalogue(request) {
            Ok(old) => validate_catalogue_deletion(&old, &requester, facts),
            Err(problem) => deny_unreadable(problem, &requester),
        },
        // The metadata can be changed, whatever the spec contains.
        AdmissionOperation::Update if read::keeps_spec(request) => {
            match (
                read::read_new_catalogue(request),
                read::read_old_catalogue(request),
            ) {
                (Ok(new), Ok(old)) => validate_catalogue_metadata(&new, &old, &requester, facts),
                (Err(problem), _) | (_, Err(problem)) => deny_unreadable(problem, &requester),
            }
        }
        AdmissionOperation::Create | AdmissionOperation::Update => {
            let new = read::read_catalogue(request);
            let old = (request.operation == AdmissionOperation::Update)
                .then(|| read::read_old_catalogue(request))
                .transpose();
            match (new, old) {
                (Ok(new), Ok(old)) => {
                    let mut verdict =
                        validate_catalogue_spec(&new, old.as_ref(), &requester, facts);
                    verdict.add_problem(rules::size::check_room(&new, facts));
                    verdict
                }
                (Err(problem), _) | (_, Err(problem)) => deny_unreadable(problem, &requester),
            }
        }
    }
}

fn validate_installation_request(request: &ReviewRequest<'_>, facts: &AdmissionFacts) -> Verdict {
    let requester = request.requester();
    match request.operation {
        AdmissionOperation::Connect => Verdict::default(),
        AdmissionOperation::Delete => match read::read_marks(request, request.old_object) {
            Ok(old) => validate_installation_deletion(&old, &requester, facts),
            Err(problem) => deny_unreadable(problem, &requester),
        },
        AdmissionOperation::Create | AdmissionOperation::Update => {
            let new = read::read_installation(request, request.object);
            let old = (request.operation == AdmissionOperation::Update)
                .then(|| read::read_installation(request, request.old_object))
                .transpose();
            match (new, old) {
                (Ok(new), Ok(mut old)) => match rules::size::check_readable(&new) {
                    Some(problem) if new.spec.unreadable.is_some() => {
                        validate_unreadable(request, problem, &requester, facts)
                    }
                    _ => {
                        read::read_installed_versions(request, &new, old.as_mut());
                        validate_installation(&new, old.as_ref(), &requester, facts)
                    }
                },
                (Err(problem), _) | (_, Err(problem)) => deny_unreadable(problem, &requester),
            }
        }
    }
}

/// Validates an installation that cannot be read, for example one of an older schema. Its guards still apply, and it may lose finalizers
/// and labels while its spec stays unchanged; otherwise it could never be deleted.
fn validate_unreadable(
    request: &ReviewRequest<'_>,
    problem: AdmissionProblem,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Verdict {
    let new = read::read_marks(request, request.object);
    let old = match request.operation {
        AdmissionOperation::Create => Ok(None),
        _ => read::read_marks(request, request.old_object).map(Some),
    };
    let is_changed = !read::keeps_spec(request);
    let mut verdict = match (new, old) {
        (Ok(new), Ok(old)) => check_guards(&new, old.as_ref(), is_changed, requester, facts),
        (Err(problem), _) | (_, Err(problem)) => return deny_unreadable(problem, requester),
    };
    if is_changed {
        verdict.problems.push(problem);
    }
    verdict.apply_break_glass(requester);
    verdict
}

/// Denies an object that cannot be read. Break-glass lifts the denial; otherwise the object could never be deleted.
fn deny_unreadable(problem: AdmissionProblem, requester: &Requester) -> Verdict {
    let mut verdict = Verdict {
        problems: vec![AdmissionProblem::forbidden(
            problem.rule,
            problem.field,
            problem.message,
        )],
        ..Verdict::default()
    };
    verdict.apply_break_glass(requester);
    verdict
}

#[cfg(test)]
mod tests;
