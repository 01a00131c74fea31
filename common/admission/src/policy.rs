//! Evaluates AddonPolicies (semantics 19). The webhook, the plugin and the loop share these functions, each with the facts that it knows.

pub mod maintenance;
mod pattern;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use super::Requester;
use super::verdict::{AdmissionProblem, Verdict};
use common::api::installation::{AddonInstallation, AddonRef};
use common::api::names::ANNOTATION_WRITTEN_BY;
use common::api::policy::{AddonPolicy, AllowedContent, Installers, PolicyAction};
use common::catalogue::{CatalogueEntry, Origin};
use common::text::list_first;

/// The most allowed values that a message lists.
const MAX_LISTED: usize = 8;
/// The most images that are named per policy.
const MAX_IMAGES: usize = 5;
/// The name of the rule about source hosts.
pub const SOURCE: &str = "policy-source";

/// An installation to evaluate, with the facts that are known where this happens.
#[derive(Clone, Copy, Debug)]
pub struct PolicyCandidate<'a> {
    /// The installation as it will be.
    pub installation: &'a AddonInstallation,
    /// The labels of its namespace.
    pub labels: &'a BTreeMap<String, String>,
    /// The chosen entry. The webhook does not know the entries of an index.
    pub entry: Option<&'a CatalogueEntry>,
    /// The images of the rendered objects. They are known only after rendering.
    pub images: Option<&'a BTreeSet<String>>,
    /// Who installs: the requester or, when a record is executed, its writer. `None` skips this check; an empty user name means that the
    /// writer is unknown.
    pub requester: Option<&'a Requester>,
}

/// A violation of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The name of the policy.
    pub policy: String,
    /// The action that the policy asks for.
    pub action: PolicyAction,
    /// What is not allowed, and what is allowed instead.
    pub problem: AdmissionProblem,
}

impl Breach {
    /// Returns the line for the audit log, such as `platform-only policy-catalogue Enforce`.
    #[must_use]
    pub fn to_audit_line(&self) -> String {
        format!("{} {} {:?}", self.policy, self.problem.rule, self.action)
    }
}

/// Returns whether a policy applies to installations of a namespace with these labels.
#[must_use]
pub fn selects(policy: &AddonPolicy, labels: &BTreeMap<String, String>) -> bool {
    let selector = policy.spec.namespace_selector.as_ref();
    selector.is_none_or(|selector| selector.selects(labels))
}

/// Evaluates the policies and adds the result to a verdict. Every policy that selects the namespace has to allow the candidate: a
/// violation is a problem with `Enforce`, a warning with `Warn`. Core add-ons are exempt (semantics 19.5): only the core group writes
/// them, and the base of a cluster must not depend on what others may install.
pub fn evaluate<'a>(
    policies: impl IntoIterator<Item = &'a AddonPolicy>,
    candidate: &PolicyCandidate<'_>,
    verdict: &mut Verdict,
) {
    if candidate.installation.spec.core_addon {
        return;
    }
    for policy in policies {
        if !selects(policy, candidate.labels) {
            continue;
        }
        for problem in find_violations(policy, candidate) {
            match policy.spec.action {
                PolicyAction::Enforce => verdict.problems.push(problem.clone()),
                PolicyAction::Warn => verdict.warnings.push(problem.to_string()),
            }
            verdict.breaches.push(Breach {
                policy: policy_name(policy).to_owned(),
                action: policy.spec.action,
                problem,
            });
        }
    }
}

/// Returns the violations of one policy.
fn find_violations(policy: &AddonPolicy, candidate: &PolicyCandidate<'_>) -> Vec<AdmissionProblem> {
    let mut problems = Vec::new();
    if let Some(allowed) = &policy.spec.allowed {
        problems.extend(check_catalogue(policy, allowed, candidate));
        problems.extend(check_source_hosts(policy, allowed, candidate));
        problems.extend(check_support_class(policy, allowed, candidate));
        problems.extend(check_image_registries(policy, allowed, candidate));
    }
    if let Some(installers) = &policy.spec.installers {
        problems.extend(check_installer(policy, installers, candidate));
    }
    problems
}

/// Checks the catalogue that the installation names, or that its entry is from. An index and a directory are not in a catalogue.
fn check_catalogue(
    policy: &AddonPolicy,
    allowed: &AllowedContent,
    candidate: &PolicyCandidate<'_>,
) -> Option<AdmissionProblem> {
    if allowed.catalogues.is_empty() {
        return None;
    }
    let reference = &candidate.installation.spec.addon_ref;
    let origin = candidate.entry.map(|entry| &*entry.origin);
    let (field, found) = match (origin, reference) {
        (Some(Origin::Catalogue { name, .. }), _)
        | (
            None,
            AddonRef {
                catalogue: Some(name),
                index: None,
                directory: None,
                from: None,
                ..
            },
        ) => {
            if allowed.catalogues.contains(name) {
                return None;
            }
            let field = match reference.catalogue {
                Some(_) => "spec.addonRef.catalogue",
                None => "spec.addonRef",
            };
            (field, format!("catalogue {name}"))
        }
        (Some(Origin::Index { .. }) | None, AddonRef { index: Some(_), .. }) => {
            ("spec.addonRef.index", "an index".to_owned())
        }
        (Some(Origin::Installation { .. }), _) | (None, AddonRef { from: Some(_), .. }) => {
            ("spec.addonRef.from", "an add-on by reference".to_owned())
        }
        // The entry was stored with a revision (semantics 12.4).
        (Some(Origin::Index { .. }), _) => {
            let unlisted = "a version that no catalogue lists";
            ("spec.addonRef", unlisted.to_owned())
        }
        (Some(Origin::Directory { .. }), _)
        | (
            None,
            AddonRef {
                directory: Some(_), ..
            },
        ) => ("spec.addonRef.directory", "a directory".to_owned()),
        (None, _) => return None,
    };
    let place = not_allowed_by(policy, "spec.allowed.catalogues");
    Some(AdmissionProblem::forbidden(
        "policy-catalogue",
        field,
        format!(
            "{found} {place}; choose from {}",
            list_first(&allowed.catalogues, MAX_LISTED)
        ),
    ))
}

/// Checks the hosts that an index and the content of an entry are read from.
fn check_source_hosts(
    policy: &AddonPolicy,
    allowed: &AllowedContent,
    candidate: &PolicyCandidate<'_>,
) -> Vec<AdmissionProblem> {
    if allowed.source_hosts.is_empty() {
        return Vec::new();
    }
    let is_allowed = |host: &str| {
        let mut patterns = allowed.source_hosts.iter();
        patterns.any(|pattern| pattern::matches_host(pattern, host))
    };
    let place = not_allowed_by(policy, "spec.allowed.sourceHosts");
    let fix = format!(
        "choose a version from {}",
        list_first(&allowed.source_hosts, MAX_LISTED)
    );
    let problems = source::list_reads(candidate)
        .into_iter()
        .filter_map(|from| {
            let found = match &from.place {
                source::SourcePlace::Host(host) if is_allowed(host) => return None,
                source::SourcePlace::Host(host) => {
                    format!("{} is read from {host}, which", from.what)
                }
                source::SourcePlace::Machine => {
                    format!("{} is read from no host, which", from.what)
                }
                source::SourcePlace::Unreadable => {
                    format!(
                        "{} is read from a host that cannot be told, which",
                        from.what
                    )
                }
            };
            Some(AdmissionProblem::forbidden(
                SOURCE,
                from.field,
                format!("{found} {place}; {fix}"),
            ))
        });
    problems.collect()
}

/// Checks the support class of the add-on.
fn check_support_class(
    policy: &AddonPolicy,
    allowed: &AllowedContent,
    candidate: &PolicyCandidate<'_>,
) -> Option<AdmissionProblem> {
    let entry = candidate.entry?;
    let is_allowed = |class| allowed.support_classes.contains(class);
    if allowed.support_classes.is_empty() || entry.support.as_ref().is_some_and(is_allowed) {
        return None;
    }
    let found = match entry.support {
        Some(class) => format!("support class {class:?} of {}", entry.addon),
        None => format!("{} has no support class, which", entry.addon),
    };
    let place = not_allowed_by(policy, "spec.allowed.supportClasses");
    let classes = allowed.support_classes.iter();
    let classes: Vec<String> = classes.map(|class| format!("{class:?}")).collect();
    Some(AdmissionProblem::forbidden(
        "policy-support",
        "spec.addonRef.name",
        format!(
            "{found} {place}; choose an add-on of class {}",
            list_first(&classes, MAX_LISTED)
        ),
    ))
}

/// Checks the registries of the images.
fn check_image_registries(
    policy: &AddonPolicy,
    allowed: &AllowedContent,
    candidate: &PolicyCandidate<'_>,
) -> Vec<AdmissionProblem> {
    let Some(images) = candidate
        .images
        .filter(|_| !allowed.image_registries.is_empty())
    else {
        return Vec::new();
    };
    let is_allowed = |image: &str| {
        let mut patterns = allowed.image_registries.iter();
        patterns.any(|pattern| pattern::matches_registry(pattern, image))
    };
    let foreign: Vec<&String> = images.iter().filter(|image| !is_allowed(image)).collect();
    let place = not_allowed_by(policy, "spec.allowed.imageRegistries");
    let fix = format!(
        "set spec.registry or values so that it comes from {}",
        list_first(&allowed.image_registries, MAX_LISTED)
    );
    let named = foreign
        .iter()
        .take(MAX_IMAGES)
        .map(|image| format!("image {image} {place}; {fix}"));
    let rest = foreign.len().saturating_sub(MAX_IMAGES);
    let rest = (rest > 0).then(|| format!("{rest} more images {}", place.replacen("is", "are", 1)));
    let messages = named.chain(rest);
    messages
        .map(|message| AdmissionProblem::forbidden("policy-image", "spec", message))
        .collect()
}

/// Checks who installs.
fn check_installer(
    policy: &AddonPolicy,
    installers: &Installers,
    candidate: &PolicyCandidate<'_>,
) -> Option<AdmissionProblem> {
    let requester = candidate.requester?;
    let mut accounts = installers.service_accounts.iter();
    let is_named = installers.users.contains(&requester.user)
        || accounts.any(|account| account.user() == requester.user)
        || requester
            .groups
            .iter()
            .any(|group| installers.groups.contains(group));
    if is_named {
        return None;
    }
    let namespace = candidate
        .installation
        .metadata
        .namespace
        .as_deref()
        .unwrap_or_default();
    let users = installers.users.iter().map(|user| format!("user {user}"));
    let groups = installers
        .groups
        .iter()
        .map(|group| format!("group {group}"));
    let accounts = installers.service_accounts.iter();
    let accounts = accounts.map(|one| format!("ServiceAccount {}/{}", one.namespace, one.name));
    let who: Vec<String> = users.chain(groups).chain(accounts).collect();
    let (place, who) = (
        not_allowed_by(policy, "spec.installers"),
        describe_installers(&who),
    );
    let (field, message) = match requester.user.as_str() {
        "" => (
            format!("metadata.annotations[{ANNOTATION_WRITTEN_BY}]"),
            format!("an unknown writer {place}; ask {who} to set the annotation"),
        ),
        user => (
            "metadata.namespace".to_owned(),
            format!("installing in {namespace} as {user} {place}; ask {who}"),
        ),
    };
    Some(AdmissionProblem::forbidden(
        "policy-installer",
        field,
        message,
    ))
}

/// Returns `is not allowed by AddonPolicy NAME (FIELD)`.
fn not_allowed_by(policy: &AddonPolicy, field: &str) -> String {
    format!(
        "is not allowed by AddonPolicy {} ({field})",
        policy_name(policy)
    )
}

fn policy_name(policy: &AddonPolicy) -> &str {
    policy.metadata.name.as_deref().unwrap_or_default()
}

/// Returns the words for who may install, in a denial. The webhook replaces a policy that it cannot read with one that names no one.
fn describe_installers(who: &[String]) -> String {
    if who.is_empty() {
        return "an administrator: the policy cannot be read".to_owned();
    }
    list_first(who, MAX_LISTED)
}

#[cfg(test)]
mod tests;
