//! What the API server refuses of a plan in a dry run. It is known before the first write, and then nothing of the command is
//! written.

use std::fmt;

use serde::Serialize;

use super::changes::Remedy;
use super::{InstallationPlan, Verb};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;

/// A write that the server refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// The object.
    pub key: ObjectKey,
    /// Field and reason, without values of Secrets.
    pub message: String,
    /// The category.
    pub cause: Cause,
    /// What the user can do about it.
    pub remedy: Option<Remedy>,
}

/// Categories of refusals and of failures, as far as the exit code distinguishes them (semantics 17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// Anything else: exit 1.
    Other,
    /// A field or the object belongs to another owner: exit 4.
    Conflict,
    /// Denied at admission: exit 6.
    Denied,
}

/// The server refuses writes of a command. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}; nothing was changed:\n{}", headline(plans), lines(plans))]
pub struct RefusalError {
    /// The plans that have such writes; one at least.
    pub plans: Vec<RefusedPlan>,
}

/// What is refused of the plan of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedPlan {
    /// The installation.
    pub installation: InstallationName,
    /// What was to be done with it.
    pub verb: Verb,
    /// The writes; one at least.
    pub writes: Vec<Refusal>,
}

impl RefusalError {
    /// Every write.
    pub fn writes(&self) -> impl Iterator<Item = &Refusal> {
        self.plans.iter().flat_map(|plan| &plan.writes)
    }

    /// The category that decides the exit code.
    #[must_use]
    pub fn cause(&self) -> Cause {
        let causes = self.writes().map(|refusal| refusal.cause);
        causes.max().unwrap_or(Cause::Other)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl InstallationPlan {
    /// Why the server refuses what the plan does with an object.
    #[must_use]
    pub fn refusal(&self, key: &ObjectKey) -> Option<&Refusal> {
        self.refused.iter().find(|refusal| refusal.key == *key)
    }
}

/// Refuses the plans of a command of which the server would refuse a write.
///
/// # Errors
/// All of these writes.
pub fn check<'a>(
    plans: impl IntoIterator<Item = &'a InstallationPlan>,
) -> Result<(), RefusalError> {
    let plans = plans.into_iter().filter(|plan| !plan.refused.is_empty());
    let plans: Vec<RefusedPlan> = plans
        .map(|plan| RefusedPlan {
            installation: plan.installation.clone(),
            verb: plan.verb,
            writes: plan.refused.clone(),
        })
        .collect();
    if plans.is_empty() {
        Ok(())
    } else {
        Err(RefusalError { plans })
    }
}

fn headline(plans: &[RefusedPlan]) -> String {
    let count: usize = plans.iter().map(|plan| plan.writes.len()).sum();
    let names: Vec<&str> = plans
        .iter()
        .map(|plan| plan.installation.name.as_str())
        .collect();
    let objects = if count == 1 { "object" } else { "objects" };
    format!(
        "the server refuses {count} {objects} of {}",
        names.join(", ")
    )
}

fn lines(plans: &[RefusedPlan]) -> String {
    let writes = plans.iter().flat_map(|plan| &plan.writes);
    let lines: Vec<String> = writes.map(|refusal| format!("  {refusal}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: &str, causes: &[Cause]) -> InstallationPlan {
        let installation = InstallationName {
            namespace: "kubectl-addons".to_owned(),
            name: name.to_owned(),
        };
        let refused = causes
            .iter()
            .zip(["a", "b"])
            .map(|(cause, object)| Refusal {
                key: ObjectKey {
                    kind: "ConfigMap".to_owned(),
                    namespace: Some("shop".to_owned()),
                    name: object.to_owned(),
                    ..ObjectKey::default()
                },
                message: "data: no".to_owned(),
                cause: *cause,
                remedy: None,
            });
        InstallationPlan {
            refused: refused.collect(),
            ..InstallationPlan::nothing(installation, name)
        }
    }

    #[test]
    fn all_refusals_of_a_command_are_one_error() {
        let plans = [
            plan("till", &[Cause::Other, Cause::Denied]),
            plan("fine", &[]),
            plan("web", &[Cause::Conflict]),
        ];
        let error = check(&plans).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server refuses 3 objects of till, web; nothing was changed:\n\
             \u{20} shop/ConfigMap a: data: no\n\
             \u{20} shop/ConfigMap b: data: no\n\
             \u{20} shop/ConfigMap a: data: no"
        );
        assert_eq!(error.cause(), Cause::Denied);
        let error = check([&plans[2]]).unwrap_err();
        assert_eq!(error.cause(), Cause::Conflict);
        assert!(
            error
                .to_string()
                .starts_with("the server refuses 1 object of web;")
        );
        assert_eq!(check([&plans[1]]), Ok(()));
    }
}
