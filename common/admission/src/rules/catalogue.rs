//! Rules for AddonCatalogues (semantics 1, 2, 3, 10, 14, 18).

pub mod expressions;
pub mod in_use;
pub mod requires;
pub mod source;
pub mod template;

use std::collections::HashSet;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::duplicates;
use crate::catalogue_facts::CatalogueFacts;
use crate::verdict::AdmissionProblem;
use crate::{AdmissionFacts, AdmissionSettings, Requester};
use addons_versions::{constraint, range, tolerant};
use common::api::catalogue::{
    AddonCatalogue, AddonVersion, CatalogueClass, Deprecation, Source, Support,
};
use common::api::names::{DISTRIBUTOR_GROUP, LABEL_DERIVED_FROM};
use common::catalogue::{check_hash, derived_from, is_copy};

/// Returns whether a catalogue is a source: it is in the system namespace and is not a copy (semantics 1.1).
#[must_use]
pub fn is_source(catalogue: &ObjectMeta, settings: &AdmissionSettings) -> bool {
    catalogue.namespace.as_deref() == Some(settings.system_namespace.as_str())
        && !is_copy(catalogue)
}

/// The position of a version in its catalogue. It is formatted only in a problem, because most versions have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VersionPlace {
    pub(super) addon: usize,
    pub(super) version: usize,
}

impl fmt::Display for VersionPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addon, version } = self;
        write!(f, "spec.addons[{addon}].versions[{version}]")
    }
}

/// Returns every version of a catalogue, with its position and the name of its add-on.
pub(super) fn versions(
    catalogue: &AddonCatalogue,
) -> impl Iterator<Item = (VersionPlace, &str, &AddonVersion)> {
    let addons = catalogue.spec.addons.iter().enumerate();
    addons.flat_map(|(addon, listed)| {
        let versions = listed.versions.iter().enumerate();
        versions.map(move |(version, entry)| {
            let place = VersionPlace { addon, version };
            (place, listed.name.as_str(), entry)
        })
    })
}

/// Only the core group and the loop may write catalogues of class Core, copies included, and change the class in either direction.
#[must_use]
pub fn class_core(
    new: Option<&AddonCatalogue>,
    old: Option<&AddonCatalogue>,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    let core = [new, old]
        .into_iter()
        .flatten()
        .any(|catalogue| catalogue.spec.class == CatalogueClass::Core);
    if !core || requester.is_core(&facts.settings) {
        return None;
    }
    let groups = facts.settings.core_groups.join(", ");
    Some(AdmissionProblem::forbidden(
        "class-core",
        "spec.class",
        format!("catalogues of class Core are changed only by group {groups}"),
    ))
}

/// Only the loop and the distributor group may mark copies, because the mark exempts a catalogue from the duplicate rule (semantics 1.2).
#[must_use]
pub fn derived_mark(
    new: &AddonCatalogue,
    old: Option<&AddonCatalogue>,
    requester: &Requester,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    let unchanged = derived_from(&new.metadata) == old.and_then(|old| derived_from(&old.metadata));
    if unchanged || requester.is_distributor(&facts.settings) {
        return None;
    }
    Some(AdmissionProblem::forbidden(
        "derived-mark",
        format!("metadata.labels[{LABEL_DERIVED_FROM}]"),
        format!(
            "only the reconciler and group {DISTRIBUTOR_GROUP} mark derived catalogues; leave the label as it is"
        ),
    ))
}

/// Every version must be readable. An entry without a version needs an id or a hash (semantics 2.2).
#[must_use]
pub fn unreadable_versions(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    versions(catalogue)
        .filter_map(|(place, _, version)| {
            if version.version.is_empty() {
                let known = !version.id.is_empty() || version.manifest_hash.is_some();
                return (!known).then(|| {
                    let message = "a version needs a version, an id or a manifestHash";
                    AdmissionProblem::invalid("version", place.to_string(), message)
                });
            }
            let error = tolerant::parse(&version.version).err()?;
            Some(AdmissionProblem::invalid(
                "version",
                format!("{place}.version"),
                error.to_string(),
            ))
        })
        .collect()
}

/// Every `manifestHash` must be verifiable (semantics 11.4).
#[must_use]
pub fn unverifiable_hashes(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    versions(catalogue)
        .filter_map(|(place, name, version)| {
            let error = check_hash(version).err()?;
            let message = error.to_string();
            let message = message.strip_prefix("manifestHash ").unwrap_or(&message);
            let field = format!("{place}.manifestHash");
            Some(AdmissionProblem::invalid(
                "manifest-hash",
                field,
                format!("{name}: {message}"),
            ))
        })
        .collect()
}

/// Every constraint must be valid in its own syntax (semantics 3).
#[must_use]
pub fn unreadable_constraints(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    let mut problems = Vec::new();
    // Most versions of a catalogue have the same constraints.
    let mut readable = HashSet::new();
    for (place, _, version) in versions(catalogue) {
        let constraints = &version.constraints;
        let mut masterminds = |field: fmt::Arguments<'_>, text| {
            if readable.contains(text) {
                return;
            }
            if let Err(error) = constraint::Constraint::parse(text) {
                let field = format!("{place}.{field}");
                problems.push(AdmissionProblem::invalid(
                    "constraint",
                    field,
                    error.to_string(),
                ));
            } else {
                readable.insert(text);
            }
        };
        let fields = [
            ("k8sVersion", &constraints.k8s_version),
            ("kkpVersion", &constraints.kkp_version),
        ];
        for (name, text) in fields {
            if let Some(text) = text.as_deref().filter(|text| !text.trim().is_empty()) {
                masterminds(format_args!("constraints.{name}"), text);
            }
        }
        for (i, requirement) in version.requires.iter().enumerate() {
            let text = requirement.version.as_deref();
            if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
                masterminds(format_args!("requires[{i}].version"), text);
            }
        }
        let blang = constraints.kubernetes_version.as_deref();
        if let Some(text) = blang.filter(|text| !text.trim().is_empty())
            && let Err(error) = range::Range::parse(text)
        {
            let field = format!("{place}.constraints.kubernetesVersion");
            problems.push(AdmissionProblem::invalid(
                "constraint",
                field,
                error.to_string(),
            ));
        }
    }
    problems
}

/// The successor of a deprecated add-on is another add-on (semantics 1.9).
#[must_use]
pub fn own_successors(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    let is_own = |addon: &str, deprecated: &Option<Deprecation>| {
        let successor = deprecated.as_ref().and_then(|it| it.successor.as_deref());
        successor == Some(addon)
    };
    let addons = catalogue.spec.addons.iter().enumerate();
    let of_addons = addons
        .filter(|(_, addon)| is_own(&addon.name, &addon.deprecated))
        .map(|(i, _)| format!("spec.addons[{i}]"));
    let of_versions = versions(catalogue)
        .filter(|(_, name, version)| is_own(name, &version.deprecated))
        .map(|(place, ..)| place.to_string());
    let why = "an add-on is not its own successor: name another one, or leave it out";
    of_addons
        .chain(of_versions)
        .map(|place| {
            AdmissionProblem::invalid("successor", format!("{place}.deprecated.successor"), why)
        })
        .collect()
}

/// `support: Core` is allowed only in catalogues of class Core (semantics 2.3).
#[must_use]
pub fn support_core(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    if catalogue.spec.class == CatalogueClass::Core {
        return Vec::new();
    }
    let addons = catalogue.spec.addons.iter().enumerate();
    addons
        .filter(|(_, addon)| addon.support == Some(Support::Core))
        .map(|(i, addon)| {
            AdmissionProblem::invalid(
                "support-core",
                format!("spec.addons[{i}].support"),
                format!(
                    "{} is Core in a catalogue of class Custom; use Optional or Customer",
                    addon.name
                ),
            )
        })
        .collect()
}

/// Returns the names that source catalogues of the other class list as well, each with its index and that catalogue.
fn shared_names<'a>(
    catalogue: &'a AddonCatalogue,
    facts: &'a AdmissionFacts,
) -> impl Iterator<Item = (usize, &'a str, &'a str)> {
    let class = catalogue.spec.class;
    let others = facts.sources().filter(move |other| other.class != class);
    let others = others.filter(|other| !duplicates::is_same(&other.metadata, &catalogue.metadata));
    let others: Vec<&CatalogueFacts> = others.collect();
    let addons = catalogue.spec.addons.iter().enumerate();
    addons.filter_map(move |(i, addon)| {
        let other = others.iter().find(|other| other.lists(&addon.name))?;
        Some((i, addon.name.as_str(), other.name()))
    })
}

/// A catalogue of class Custom must not use a name of a catalogue of class Core, in any version, whichever of them listed it first
/// (semantics 2.3).
#[must_use]
pub fn core_names(catalogue: &AddonCatalogue, facts: &AdmissionFacts) -> Vec<AdmissionProblem> {
    if catalogue.spec.class == CatalogueClass::Core {
        return Vec::new();
    }
    let shared = shared_names(catalogue, facts).map(|(i, name, other)| {
        let message =
            format!("{name} is held by catalogue {other} of class Core; choose another name");
        AdmissionProblem::invalid("core-name", format!("spec.addons[{i}].name"), message)
    });
    shared.collect()
}

/// Warns about names that a catalogue of class Core takes from those of class Custom.
#[must_use]
pub fn warn_taken_names(catalogue: &AddonCatalogue, facts: &AdmissionFacts) -> Vec<String> {
    if catalogue.spec.class != CatalogueClass::Core {
        return Vec::new();
    }
    let shared = shared_names(catalogue, facts).map(|(i, name, other)| {
        format!("spec.addons[{i}].name: {name} is in catalogue {other} of class Custom, which does not offer it any more")
    });
    shared.collect()
}

/// Returns the entries of a source catalogue that other catalogues hold. Two catalogues that are created at the same time are not checked
/// against each other, and one of them has to give way (semantics 2.4). While the webhook responds, nothing else leads to this.
#[must_use]
pub fn lost_to_others(catalogue: &AddonCatalogue, facts: &AdmissionFacts) -> Vec<AdmissionProblem> {
    if !is_source(&catalogue.metadata, &facts.settings) {
        return Vec::new();
    }
    let mut lost = duplicates::find_across(catalogue, Some(catalogue), facts);
    lost.extend(core_names(catalogue, facts));
    lost
}

/// A signature policy must name exactly one signer.
#[must_use]
pub fn one_signer(catalogue: &AddonCatalogue) -> Option<AdmissionProblem> {
    let policy = catalogue.spec.signature.as_ref()?;
    (policy.key.is_some() == policy.keyless.is_some()).then(|| {
        let message = "exactly one of key and keyless is needed";
        AdmissionProblem::invalid("source", "spec.signature", message)
    })
}

/// Every version must have exactly one source.
#[must_use]
pub fn one_source(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    versions(catalogue)
        .filter_map(|(place, _, version)| {
            let Source {
                git,
                docker,
                helm,
                url,
                inline,
                catalogue: other,
            } = &version.source;
            let given = [
                ("git", git.is_some()),
                ("docker", docker.is_some()),
                ("helm", helm.is_some()),
                ("url", url.is_some()),
                ("inline", inline.is_some()),
                ("catalogue", other.is_some()),
            ];
            let given = given.into_iter();
            let given = given.filter_map(|(name, given)| given.then_some(name));
            if other.is_some() && !is_copy(&catalogue.metadata) {
                let field = format!("{place}.source.catalogue");
                let why =
                    "only the copy for the namespace of a cluster refers to another catalogue";
                return Some(AdmissionProblem::invalid("one-source", field, why));
            }
            if given.clone().count() == 1 {
                return None;
            }
            let given: Vec<&str> = given.collect();
            let found = match given.as_slice() {
                [] => "none".to_owned(),
                many => many.join(" and "),
            };
            Some(AdmissionProblem::invalid(
                "one-source",
                format!("{place}.source"),
                format!(
                    "exactly one of git, docker, helm, url and inline is required, not {found}"
                ),
            ))
        })
        .collect()
}

/// Warns about kinds to prune without a label selector: kops, which reads these entries, would prune every object of the kind. Our own
/// pruning follows the inventory.
#[must_use]
pub fn prune_without_selector(catalogue: &AddonCatalogue) -> Vec<String> {
    let mut warnings = Vec::new();
    for (place, name, version) in versions(catalogue) {
        let kinds = version.prune.iter().flat_map(|prune| &prune.kinds);
        for (i, kind) in kinds.enumerate() {
            let narrow = kind.label_selector.as_deref().map(str::trim);
            if narrow.is_none_or(str::is_empty) {
                warnings.push(format!(
                    "{place}.prune.kinds[{i}]: kops would delete every {} that {name} does not contain; \
                     set labelSelector",
                    kind.kind
                ));
            }
        }
    }
    warnings
}

/// Warns about a catalogue that is neither a source nor a copy: no installation can refer to it (semantics 1.1).
#[must_use]
pub fn outside_system_namespace(
    catalogue: &AddonCatalogue,
    settings: &AdmissionSettings,
) -> Option<String> {
    let metadata = &catalogue.metadata;
    let elsewhere = !is_source(metadata, settings) && !is_copy(metadata);
    elsewhere.then(|| {
        format!(
            "catalogues outside namespace {} are not sources, and no installation can refer to this one: create it there",
            settings.system_namespace
        )
    })
}

#[cfg(test)]
mod tests;
