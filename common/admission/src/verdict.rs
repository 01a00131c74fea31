//! Problems, warnings, and the denial that combines them.

use std::fmt;

use super::Requester;
use super::policy::Breach;
use super::rules::reference::UnseenDependency;

/// Maximum number of problems that one denial names; it only counts the others.
const MAX_NAMED: usize = 20;

/// Why a request is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialCause {
    /// The object is not valid: 422.
    Invalid,
    /// The request is not allowed, to this requester or now: 403. Break-glass lifts it (semantics 14.11).
    Forbidden,
}

/// A single problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionProblem {
    /// The name of the rule, for metrics and logs.
    pub rule: &'static str,
    /// The kind of denial.
    pub cause: DenialCause,
    /// The path of the field, such as `spec.addons[3].versions[1]`; empty for the whole object.
    pub field: String,
    /// What is wrong and what to do. It never contains a value, because values may be secret.
    pub message: String,
}

impl AdmissionProblem {
    /// Returns the problem of an object that is not valid.
    #[must_use]
    pub fn invalid(
        rule: &'static str,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            cause: DenialCause::Invalid,
            field: field.into(),
            message: message.into(),
        }
    }

    /// Returns the problem of a request that is not allowed.
    #[must_use]
    pub fn forbidden(
        rule: &'static str,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            cause: DenialCause::Forbidden,
            ..Self::invalid(rule, field, message)
        }
    }
}

impl fmt::Display for AdmissionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

/// The result of a validation. A request without problems is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// All problems, in the order of the object.
    pub problems: Vec<AdmissionProblem>,
    /// Warnings for the user, also if the request is allowed.
    pub warnings: Vec<String>,
    /// Problems that break-glass lifted, for the audit log.
    pub lifted: Vec<AdmissionProblem>,
    /// The installation whose objects stay although its record is deleted. A warning says so.
    pub orphaning: Option<String>,
    /// A dependency of the verdict that the facts may not contain yet.
    pub unseen: Option<UnseenDependency>,
    /// Violations of AddonPolicies. Each is also a problem or a warning.
    pub breaches: Vec<Breach>,
}

/// The denial, which combines all problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// 403 or 422.
    pub code: u16,
    /// `Forbidden` or `Invalid`.
    pub reason: &'static str,
    /// The message: `a`, or `2 problems: a; b`.
    pub message: String,
}

impl Verdict {
    /// Adds a problem, if there is one.
    pub fn add_problem(&mut self, problem: Option<AdmissionProblem>) {
        self.problems.extend(problem);
    }

    /// Adds the findings of another verdict on the same request.
    pub fn append(&mut self, other: Self) {
        self.problems.extend(other.problems);
        self.warnings.extend(other.warnings);
        self.breaches.extend(other.breaches);
    }

    /// Lifts problems for members of the break-glass group: everything that is forbidden, nothing that is invalid (semantics 14.11).
    pub fn apply_break_glass(&mut self, requester: &Requester) {
        if !requester.may_break_glass() {
            return;
        }
        let (forbidden, invalid) = std::mem::take(&mut self.problems)
            .into_iter()
            .partition(|problem| problem.cause == DenialCause::Forbidden);
        self.problems = invalid;
        self.lifted = forbidden;
        let warnings = self
            .lifted
            .iter()
            .map(|problem| format!("allowed by break-glass: {problem}"));
        self.warnings.extend(warnings);
    }

    /// Returns the denial, if there is a problem. Forbidden outweighs invalid.
    #[must_use]
    pub fn denial(&self) -> Option<Denial> {
        let message = match self.problems.as_slice() {
            [] => return None,
            [only] => only.to_string(),
            many => {
                let named: Vec<String> = many
                    .iter()
                    .take(MAX_NAMED)
                    .map(AdmissionProblem::to_string)
                    .collect();
                let rest = many.len().saturating_sub(MAX_NAMED);
                let rest = match rest {
                    0 => String::new(),
                    rest => format!("; and {rest} more"),
                };
                format!("{} problems: {}{rest}", many.len(), named.join("; "))
            }
        };
        let forbidden = self
            .problems
            .iter()
            .any(|problem| problem.cause == DenialCause::Forbidden);
        let (code, reason) = if forbidden {
            (403, "Forbidden")
        } else {
            (422, "Invalid")
        };
        Some(Denial {
            code,
            reason,
            message,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::api::names::BREAK_GLASS_GROUP;

    fn verdict(problems: Vec<AdmissionProblem>) -> Verdict {
        Verdict {
            problems,
            ..Verdict::default()
        }
    }

    #[test]
    fn all_problems_stand_in_one_denial() {
        let a = AdmissionProblem::invalid("a", "spec.a", "is wrong");
        let b = AdmissionProblem::forbidden("b", "", "not you");
        for (problems, code, message) in [
            (vec![a.clone()], 422, "spec.a: is wrong".to_owned()),
            (vec![b.clone()], 403, "not you".to_owned()),
            (
                vec![a.clone(), b],
                403,
                "2 problems: spec.a: is wrong; not you".to_owned(),
            ),
            (
                vec![a; 22],
                422,
                format!(
                    "22 problems: {}; and 2 more",
                    ["spec.a: is wrong"; 20].join("; ")
                ),
            ),
        ] {
            let denial = verdict(problems).denial().unwrap();
            assert_eq!((denial.code, denial.message), (code, message));
        }
        assert_eq!(Verdict::default().denial(), None);
    }

    #[test]
    fn break_glass_lifts_what_is_forbidden_and_says_so() {
        let both = vec![
            AdmissionProblem::invalid("a", "", "is wrong"),
            AdmissionProblem::forbidden("b", "", "not you"),
        ];
        let mut plain = verdict(both.clone());
        plain.apply_break_glass(&Requester {
            groups: vec!["system:masters".into()],
            ..Requester::default()
        });
        assert_eq!(plain, verdict(both.clone()));
        let mut lifted = verdict(both);
        lifted.apply_break_glass(&Requester {
            groups: vec![BREAK_GLASS_GROUP.into()],
            ..Requester::default()
        });
        assert_eq!(lifted.problems.len(), 1);
        assert_eq!(lifted.warnings, ["allowed by break-glass: not you"]);
    }
}
