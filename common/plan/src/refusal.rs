//! Writes of a plan that the API server refuses in a dry run. They are known before the first write, and then the command writes nothing
//! (semantics 12.14).

use serde::Serialize;

use super::changes::RefusalRemedy;
use super::immutable::UnjudgedWrite;
use super::{InstallationPlan, Verb};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::text::join_equal;

/// A write that the server refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedWrite {
    /// The object.
    pub key: ObjectKey,
    /// Field and reason, without values of Secrets.
    pub message: String,
    /// Its category.
    pub cause: FailureCause,
    /// How the user can resolve it.
    pub remedy: Option<RefusalRemedy>,
}

/// Categories of refusals and failures that have different exit codes (semantics 12.14 and 17.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureCause {
    /// The user lacks a right: exit 1.
    Forbidden,
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
    /// The plans with such writes; at least one.
    pub plans: Vec<RefusedPlan>,
}

/// The refused writes of the plan of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedPlan {
    /// The installation.
    pub installation: InstallationName,
    /// The operation that was planned.
    pub verb: Verb,
    /// The writes; at least one.
    pub writes: Vec<RefusedWrite>,
}

impl RefusalError {
    /// Returns all refused writes.
    pub fn writes(&self) -> impl Iterator<Item = &RefusedWrite> {
        self.plans.iter().flat_map(|plan| &plan.writes)
    }

    /// Returns the category that decides the exit code.
    #[must_use]
    pub fn cause(&self) -> FailureCause {
        let causes = self.writes().map(|refusal| refusal.cause);
        causes.max().unwrap_or(FailureCause::Other)
    }
}

/// Why the server did not check a write of a plan that its reader may not carry out.
pub const NOT_ALLOWED: &str = "which you may not change";

impl InstallationPlan {
    /// Returns the refused write of an object, if any.
    #[must_use]
    pub fn refusal(&self, key: &ObjectKey) -> Option<&RefusedWrite> {
        self.refused.iter().find(|refusal| refusal.key == *key)
    }

    /// Makes the writes for which the user lacks rights unchecked ones. For commands that only show a plan: whoever carries it out may have
    /// other rights. The changed fields are then those of the manifest, without the defaults of the server.
    pub fn leave_rights_unchecked(&mut self) {
        let is_forbidden = |refusal: &mut RefusedWrite| refusal.cause == FailureCause::Forbidden;
        let forbidden = self.refused.extract_if(.., is_forbidden);
        self.unjudged.extend(forbidden.map(|refusal| UnjudgedWrite {
            key: refusal.key,
            why: NOT_ALLOWED.to_owned(),
            is_created_by_command: false,
        }));
    }
}

/// Refuses the plans of a command if the server would refuse one of their writes.
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

/// Returns a line for each reason, with the objects that are refused for it.
pub fn describe_writes<'a>(writes: impl IntoIterator<Item = &'a RefusedWrite>) -> Vec<String> {
    let writes = writes.into_iter();
    join_equal(writes.map(|refusal| (&refusal.key, &refusal.message)))
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
    let lines = describe_writes(writes).into_iter();
    let lines: Vec<String> = lines.map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: &str, causes: &[FailureCause]) -> InstallationPlan {
        let installation = InstallationName {
            namespace: "kubectl-addons".to_owned(),
            name: name.to_owned(),
        };
        let refused = causes
            .iter()
            .zip(["a", "b"])
            .map(|(cause, object)| RefusedWrite {
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
            plan("till", &[FailureCause::Other, FailureCause::Denied]),
            plan("fine", &[]),
            plan("web", &[FailureCause::Conflict]),
        ];
        let error = check(&plans).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server refuses 3 objects of till, web; nothing was changed:\n\
             \u{20} shop/ConfigMap a, shop/ConfigMap b, shop/ConfigMap a: data: no"
        );
        assert_eq!(error.cause(), FailureCause::Denied);
        let error = check([&plans[2]]).unwrap_err();
        assert_eq!(error.cause(), FailureCause::Conflict);
        assert!(
            error
                .to_string()
                .starts_with("the server refuses 1 object of web;")
        );
        assert_eq!(check([&plans[1]]), Ok(()));
    }
}
