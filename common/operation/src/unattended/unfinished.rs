//! Operations that a person began and only a person may end: an uninstallation, a release, an adoption (semantics 20.2).

use addons_engine::EngineError;
use addons_plan::Verb;
use addons_plan::continuation::Continuation;
use common::api::conditions::READY;
use common::api::installation::{AddonInstallation, InstallationPhase, Installed};
use common::api::verb::RecordedVerb;
use jiff::Timestamp;

use crate::error::{OperationError, UnfinishedOperation};
use crate::records::name_of;

/// Refuses to install an installation whose uninstallation, release or adoption was interrupted or failed. A change of the spec after a
/// failure means that the installation is wanted.
///
/// # Errors
/// [`UnfinishedOperation`]; [`EngineError::Locked`] while the client that does it is at work.
pub fn check(record: &AddonInstallation, now: Timestamp) -> Result<(), OperationError> {
    let Some((operation, target)) = unended_operation(record) else {
        return Ok(());
    };
    let Some(verb) = personal_verb(operation) else {
        return Ok(());
    };
    let installation = name_of(record);
    let status = record.status.as_ref();
    let under_way = status.and_then(|status| status.operation.as_ref());
    if let Some(living) = under_way.filter(|operation| operation.is_alive_at(now)) {
        return Err(EngineError::Locked {
            installation,
            holder: living.holder.clone(),
            since: living.started_at.0.to_string(),
        }
        .into());
    }
    Err(UnfinishedOperation {
        installation,
        verb,
        next: Box::new(Continuation::from_record(record, operation, target)),
    }
    .into())
}

/// Returns the verb and the target of an operation that has not ended, or that failed with the current spec.
pub(crate) fn unended_operation(
    record: &AddonInstallation,
) -> Option<(&RecordedVerb, Option<&Installed>)> {
    let status = record.status.as_ref()?;
    if let Some(operation) = &status.operation {
        return Some((&operation.verb, operation.target.as_ref()));
    }
    let last = status.history.first()?;
    // Each operation ends by setting this condition with the generation that it saw.
    let is_same_spec = status.conditions.iter().any(|condition| {
        condition.r#type == READY && condition.observed_generation == record.metadata.generation
    });
    let is_failed = status.phase == Some(InstallationPhase::Failed);
    (is_failed && is_same_spec).then_some((&last.verb, Some(&last.installed)))
}

fn personal_verb(verb: &RecordedVerb) -> Option<Verb> {
    verb.known()
        .filter(|verb| verb.ends_installation() || *verb == Verb::Adopt)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check_at(status: Value, seconds: i64) -> Result<(), String> {
        let record = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": "shop", "generation": 2},
            "spec": {"addonRef": {"name": "web"}},
            "status": status,
        });
        let record = serde_json::from_value(record).unwrap();
        let now = Timestamp::from_second(seconds).unwrap();
        check(&record, now).map_err(|error| error.to_string())
    }

    fn begun(verb: &str) -> Value {
        json!({"operation": {
            "id": "1", "verb": verb, "holder": "ann@desk", "startedAt": "1970-01-01T00:00:00Z",
            "renewedAt": "1970-01-01T00:00:10Z", "leaseSeconds": 15,
        }})
    }

    fn ended(verb: &str, phase: &str, generation: i64) -> Value {
        let installed = json!({"version": "1.0.0", "manifestHash": "", "valuesHash": ""});
        json!({"phase": phase, "history": [
            {"verb": verb, "installed": installed, "outcome": "an object stays"},
        ], "conditions": [{
            "type": "Ready", "status": "False", "reason": "Failed", "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z", "observedGeneration": generation,
        }]})
    }

    #[test]
    fn what_a_person_began_is_not_undone() {
        let not_ended =
            |what: &str| Err(format!("shop/web: its {what} was begun, and has not ended"));
        for (status, expected) in [
            (json!({}), Ok(())),
            (begun("upgrade"), Ok(())),
            (begun("rollback"), Ok(())),
            (begun("unheard-of"), Ok(())),
            (begun("uninstall"), not_ended("uninstallation")),
            (begun("release"), not_ended("release")),
            (begun("adopt"), not_ended("adoption")),
            (ended("uninstall", "Failed", 2), not_ended("uninstallation")),
            (ended("release", "Failed", 2), not_ended("release")),
            (ended("adopt", "Failed", 2), not_ended("adoption")),
            (ended("adopt", "Installed", 2), Ok(())),
            (ended("upgrade", "Failed", 2), Ok(())),
            // The spec was changed since.
            (ended("uninstall", "Failed", 1), Ok(())),
        ] {
            assert_eq!(check_at(status.clone(), 60), expected, "{status}");
        }
    }

    #[test]
    fn a_client_that_lives_is_left_to_its_work() {
        let locked = check_at(begun("uninstall"), 20).unwrap_err();
        assert!(locked.contains("ann@desk"), "{locked}");
        assert_eq!(check_at(begun("upgrade"), 20), Ok(()));
    }
}
