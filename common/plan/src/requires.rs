//! Checks `requires` between add-ons and determines their order. It never solves: nothing is installed that was not requested.

mod problem;

use std::collections::BTreeMap;

use addons_versions::constraint::Constraint;
use addons_versions::tolerant;
use common::api::catalogue::Requirement;
pub use problem::{RequirementProblem, RequiresError};

/// An add-on that a command installs or upgrades.
#[derive(Clone, Copy, Debug)]
pub struct AddonCandidate<'a> {
    /// `NAMESPACE/NAME` of its installation.
    pub installation: &'a str,
    /// The add-on.
    pub addon: &'a str,
    /// Its version after the command; empty if the entry has none.
    pub version: &'a str,
    /// What it requires.
    pub requires: &'a [Requirement],
}

/// An existing installation.
#[derive(Clone, Copy, Debug)]
pub struct PresentInstallation<'a> {
    /// `NAMESPACE/NAME`.
    pub installation: &'a str,
    /// The add-on.
    pub addon: &'a str,
    /// Its installed version; empty if the entry had none.
    pub version: &'a str,
    /// Its requirements, as recorded when it was installed.
    pub requires: &'a [Requirement],
    /// Whether its record says that it is ready.
    pub ready: bool,
    /// Whether installations of every namespace believe the record, and not only those of its own ([`super::claims::is_believed`]).
    pub is_believed: bool,
}

impl PresentInstallation<'_> {
    /// Whether an installation believes the record.
    fn counts_for(&self, installation: &str) -> bool {
        self.is_believed || namespace(self.installation) == namespace(installation)
    }
}

/// Returns the namespace of `NAMESPACE/NAME`.
fn namespace(installation: &str) -> Option<&str> {
    let (namespace, _) = installation.split_once('/')?;
    Some(namespace)
}

/// The order of the candidates, and warnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallOrder {
    /// Per candidate, the indexes of the candidates that have to be installed before it, sorted.
    pub first: Vec<Vec<usize>>,
    /// Required installations that are not ready.
    pub unready: Vec<UnreadyRequirement>,
}

/// A requirement that is met by an installation that is not ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{addon} requires {requires}: {installation} is installed, but not ready")]
pub struct UnreadyRequirement {
    /// The add-on with the requirement.
    pub addon: String,
    /// The required add-on.
    pub requires: String,
    /// `NAMESPACE/NAME` of the installation that is not ready.
    pub installation: String,
}

impl UnreadyRequirement {
    fn new(candidate: &AddonCandidate<'_>, present: &PresentInstallation<'_>) -> Self {
        Self {
            addon: candidate.addon.to_owned(),
            requires: present.addon.to_owned(),
            installation: present.installation.to_owned(),
        }
    }
}

/// An installation that requires an add-on that would be removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependent {
    /// `NAMESPACE/NAME` of the installation that stays.
    pub installation: String,
    /// The add-on that it requires.
    pub requires: String,
    /// The required versions, as written; `None` means any.
    pub constraint: Option<String>,
}

/// Checks the requirements of the candidates of one command against each other and against the installations whose records they believe.
/// For an installation that the command changes, the new version counts. `available` has the versions of each add-on in the catalogues.
///
/// # Errors
/// [`RequiresError`] with every problem of every candidate.
pub fn resolve_order(
    candidates: &[AddonCandidate<'_>],
    present: &[PresentInstallation<'_>],
    available: &BTreeMap<String, Vec<String>>,
) -> Result<InstallOrder, RequiresError> {
    let mut order = InstallOrder::default();
    let mut problems = Vec::new();
    let stays = |present: &&PresentInstallation<'_>| {
        let mut candidates = candidates.iter();
        !candidates.any(|candidate| candidate.installation == present.installation)
    };
    let staying: Vec<&PresentInstallation<'_>> = present.iter().filter(stays).collect();
    for (index, candidate) in candidates.iter().enumerate() {
        let mut first = Vec::new();
        let believed = staying.iter();
        let believed = believed.filter(|present| present.counts_for(candidate.installation));
        for requirement in candidate.requires {
            let accepts = match AcceptedVersions::from_requirement(requirement) {
                Ok(accepts) => accepts,
                Err(error) => {
                    problems.push(RequirementProblem::constraint(
                        candidate,
                        requirement,
                        error.to_string(),
                    ));
                    continue;
                }
            };
            let name = requirement.name.as_str();
            let with: Vec<usize> = candidates
                .iter()
                .enumerate()
                .filter(|(other, of)| {
                    *other != index && of.addon == name && accepts.includes(of.version)
                })
                .map(|(other, _)| other)
                .collect();
            if !with.is_empty() {
                first.extend(with);
                continue;
            }
            let mut there = believed
                .clone()
                .filter(|present| present.addon == name && accepts.includes(present.version));
            match there
                .clone()
                .find(|present| present.ready)
                .or_else(|| there.next())
            {
                Some(present) if present.ready => {}
                Some(present) => order
                    .unready
                    .push(UnreadyRequirement::new(candidate, present)),
                None => {
                    let other = candidates
                        .iter()
                        .enumerate()
                        .filter(|(other, of)| *other != index && of.addon == name)
                        .map(|(_, of)| of.version);
                    let staying = believed.clone().filter(|present| present.addon == name);
                    let wrong: Vec<&str> = other
                        .chain(staying.map(|present| present.version))
                        .collect();
                    let versions = available.get(name).map_or(&[][..], Vec::as_slice);
                    let fitting = accepts.newest(versions);
                    problems.push(RequirementProblem::unmet(
                        candidate,
                        requirement,
                        &wrong,
                        fitting,
                    ));
                }
            }
        }
        first.sort_unstable();
        first.dedup();
        order.first.push(first);
    }
    problems.extend(find_cycle(candidates, &order.first));
    if problems.is_empty() {
        Ok(order)
    } else {
        problems.sort();
        problems.dedup();
        Err(RequiresError { problems })
    }
}

/// Returns the installations, sorted, that would break if the add-ons `gone` were uninstalled: nothing in `remaining` meets their
/// requirement.
#[must_use]
pub fn find_dependents(gone: &[&str], remaining: &[PresentInstallation<'_>]) -> Vec<Dependent> {
    let mut dependents = Vec::new();
    for present in remaining {
        for requirement in present.requires {
            if !gone.contains(&requirement.name.as_str()) {
                continue;
            }
            // An unreadable constraint counts as not met, so that the user sees it and decides.
            let met = AcceptedVersions::from_requirement(requirement).is_ok_and(|accepts| {
                remaining.iter().any(|other| {
                    other.installation != present.installation
                        && other.addon == requirement.name
                        && other.counts_for(present.installation)
                        && accepts.includes(other.version)
                })
            });
            if !met {
                dependents.push(Dependent {
                    installation: present.installation.to_owned(),
                    requires: requirement.name.clone(),
                    constraint: constraint_text(requirement).map(str::to_owned),
                });
            }
        }
    }
    dependents.sort();
    dependents
}

/// Returns the constraint as written. A missing, null or empty one means any version (semantics 3).
fn constraint_text(requirement: &Requirement) -> Option<&str> {
    let text = requirement.version.as_deref()?;
    Some(text).filter(|text| !text.trim().is_empty())
}

/// The versions that a requirement accepts; `None` accepts any, even an empty one.
struct AcceptedVersions(Option<Constraint>);

impl AcceptedVersions {
    fn from_requirement(requirement: &Requirement) -> Result<Self, addons_versions::RangeError> {
        Ok(Self(
            constraint_text(requirement)
                .map(Constraint::parse)
                .transpose()?,
        ))
    }

    fn includes(&self, version: &str) -> bool {
        self.0.as_ref().is_none_or(|constraint| {
            tolerant::parse(version).is_ok_and(|version| constraint.matches(&version))
        })
    }

    /// Returns the newest of `versions` that is accepted.
    fn newest<'v>(&self, versions: &'v [String]) -> Option<&'v str> {
        let fitting = versions.iter().filter(|version| self.includes(version));
        let newest = fitting.max_by(|a, b| match (tolerant::parse(a), tolerant::parse(b)) {
            (Ok(a), Ok(b)) => a.cmp_precedence(&b),
            (a, b) => a.is_ok().cmp(&b.is_ok()),
        });
        newest.map(String::as_str)
    }
}

/// Whether a constraint, as a catalogue writes it, accepts a version. One that cannot be read accepts none.
#[must_use]
pub fn accepts_version(constraint: &str, version: &str) -> bool {
    let requirement = Requirement {
        version: Some(constraint.to_owned()),
        ..Requirement::default()
    };
    AcceptedVersions::from_requirement(&requirement).is_ok_and(|accepts| accepts.includes(version))
}

/// Finds one cycle of candidates that wait for each other.
fn find_cycle(
    candidates: &[AddonCandidate<'_>],
    first: &[Vec<usize>],
) -> Option<RequirementProblem> {
    let mut open: Vec<usize> = (0..first.len()).collect();
    loop {
        let before = open.len();
        let waits = |index: &usize| {
            let first = first.get(*index).map_or(&[][..], Vec::as_slice);
            first.iter().any(|other| open.contains(other))
        };
        open = open.iter().copied().filter(waits).collect();
        if open.len() == before {
            break;
        }
    }
    // Every remaining add-on waits for another remaining one, so following them leads back to one of them.
    let mut path: Vec<usize> = vec![*open.first()?];
    loop {
        let next = first
            .get(*path.last()?)?
            .iter()
            .find(|other| open.contains(other))?;
        if let Some(start) = path.iter().position(|seen| seen == next) {
            let names = path
                .iter()
                .skip(start)
                .filter_map(|index| candidates.get(*index));
            let names = names.map(|candidate| candidate.addon.to_owned());
            return Some(RequirementProblem::Cycle {
                names: names.collect(),
            });
        }
        path.push(*next);
    }
}

#[cfg(test)]
mod tests;
