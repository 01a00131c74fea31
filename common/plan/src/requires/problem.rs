//! Unmet requirements that prevent an installation.

use std::fmt;

use super::{AddonCandidate, constraint_text};
use crate::found::ForeignInstall;
use crate::one_a_line;
use common::api::catalogue::Requirement;

/// All problems with the requirements of a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", one_a_line(problems))]
pub struct RequiresError {
    /// The problems, sorted; at least one.
    pub problems: Vec<RequirementProblem>,
}

/// A problem with one requirement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequirementProblem {
    /// The constraint of the catalogue cannot be read.
    Constraint {
        /// The add-on with the requirement.
        addon: String,
        /// What it requires.
        requires: String,
        /// What is wrong.
        problem: String,
    },
    /// Neither an installed add-on nor one of the command meets the requirement.
    Unmet {
        /// The add-on with the requirement, and its version.
        addon: String,
        /// The required add-on.
        requires: String,
        /// The required versions, as written.
        constraint: Option<String>,
        /// Versions that are installed or part of the command, and do not match; empty if the add-on is missing.
        there: Vec<String>,
        /// The newest matching version in the catalogues.
        fitting: Option<String>,
        /// The install of the missing add-on by another tool: a second one beside it would be wrong.
        elsewhere: Option<Box<ForeignInstall>>,
    },
    /// Add-ons that require each other.
    Cycle {
        /// Each requires the next, and the last one the first.
        names: Vec<String>,
    },
}

impl RequirementProblem {
    pub(super) fn constraint(
        candidate: &AddonCandidate<'_>,
        requirement: &Requirement,
        problem: String,
    ) -> Self {
        Self::Constraint {
            addon: name_with_version(candidate.addon, candidate.version),
            requires: requirement.name.clone(),
            problem,
        }
    }

    pub(super) fn unmet(
        candidate: &AddonCandidate<'_>,
        requirement: &Requirement,
        there: &[&str],
        fitting: Option<&str>,
    ) -> Self {
        Self::Unmet {
            addon: name_with_version(candidate.addon, candidate.version),
            requires: requirement.name.clone(),
            constraint: constraint_text(requirement).map(str::to_owned),
            there: there.iter().map(|version| (*version).to_owned()).collect(),
            fitting: fitting.map(str::to_owned),
            elsewhere: None,
        }
    }

    /// Returns the required add-on, if no version of it is installed or part of the command.
    #[must_use]
    pub fn missing_addon(&self) -> Option<&str> {
        match self {
            Self::Unmet {
                requires, there, ..
            } if there.is_empty() => Some(requires),
            _ => None,
        }
    }
}

fn name_with_version(addon: &str, version: &str) -> String {
    [addon, version].join(" ").trim_end().to_owned()
}

impl fmt::Display for RequirementProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constraint {
                addon,
                requires,
                problem,
            } => write!(
                f,
                "{addon} requires {requires} in versions that cannot be read: {problem}; correct the catalogue"
            ),
            Self::Unmet {
                addon,
                requires,
                constraint,
                there,
                elsewhere,
                ..
            } => {
                write!(f, "{addon} requires {requires}")?;
                if let Some(constraint) = constraint {
                    write!(f, " {constraint}")?;
                }
                if let Some(install) = elsewhere {
                    write!(f, ", which no installation has: {install} has it")?;
                } else if there.is_empty() {
                    f.write_str(", which is not installed")?;
                } else {
                    let there = there.iter().map(|version| match version.as_str() {
                        "" => "one without a version",
                        version => version,
                    });
                    let there: Vec<&str> = there.collect();
                    write!(f, ", found {}", there.join(", "))?;
                }
                Ok(())
            }
            Self::Cycle { names } => {
                f.write_str("these add-ons require each other: ")?;
                for name in names {
                    write!(f, "{name} → ")?;
                }
                let first = names.first().map_or("", String::as_str);
                write!(
                    f,
                    "{first}; remove one of these requirements from the catalogue"
                )
            }
        }
    }
}
