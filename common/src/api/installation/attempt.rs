//! Attempts of a reconciler to plan an installation (semantics 20.6).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AddonInstallation;
use crate::api::conditions::{self, MANAGED_ELSEWHERE, NEEDS_CONFIRMATION, STALLED, WAITING};

/// An attempt to plan an installation. It is removed when it ends, so one that remains was killed with its process (semantics 20.6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanningAttempt {
    /// Generation of the record that is planned.
    pub generation: i64,
    /// Number of attempts at this generation that have not ended, including this one.
    pub number: u32,
    /// Random id of the process.
    pub process: String,
    /// When the attempt began.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub started_at: Time,
}

impl PlanningAttempt {
    /// The number of attempts that may be killed with their process. After that, the installation is not planned again.
    pub const MOST: u32 = 2;
}

impl AddonInstallation {
    /// Returns how many attempts to plan the current generation were killed with their process. An attempt of `process` is still
    /// running.
    #[must_use]
    pub fn killed_attempts(&self, process: &str) -> u32 {
        let attempt = self.status.as_ref().and_then(|it| it.attempt.as_ref());
        let attempt = attempt.filter(|it| Some(it.generation) == self.metadata.generation);
        attempt.map_or(0, |it| match it.process == process {
            true => it.number.saturating_sub(1),
            false => it.number,
        })
    }

    /// Whether the record says how an attempt to plan the current generation ended.
    #[must_use]
    pub fn has_outcome(&self) -> bool {
        let all = self
            .status
            .as_ref()
            .map(|status| status.conditions.as_slice());
        let is_raised = |r#type: &str| {
            let raised = conditions::find_raised(all.unwrap_or_default(), r#type);
            raised.is_some_and(|it| it.observed_generation == self.metadata.generation)
        };
        self.is_observed() == Some(true)
            || [STALLED, NEEDS_CONFIRMATION, MANAGED_ELSEWHERE, WAITING]
                .into_iter()
                .any(is_raised)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::api::conditions::{Condition, READY};
    use crate::api::installation::{AddonInstallationSpec, AddonInstallationStatus};

    fn record(status: AddonInstallationStatus) -> AddonInstallation {
        let mut record = AddonInstallation::new("web", AddonInstallationSpec::default());
        record.metadata.generation = Some(3);
        record.status = Some(status);
        record
    }

    #[test]
    fn attempts_of_others_at_this_generation_count() {
        for (generation, number, process, killed) in [
            (3, 1, "dead", 1),
            (3, 2, "dead", 2),
            (2, 2, "dead", 0),
            (3, 2, "ours", 1),
            (3, 1, "ours", 0),
        ] {
            let attempt = PlanningAttempt {
                generation,
                number,
                process: process.to_owned(),
                started_at: Time(Timestamp::UNIX_EPOCH),
            };
            let record = record(AddonInstallationStatus {
                attempt: Some(attempt),
                ..AddonInstallationStatus::default()
            });
            let found = record.killed_attempts("ours");
            assert_eq!(found, killed, "{generation} {number} {process}");
        }
        assert_eq!(
            record(AddonInstallationStatus::default()).killed_attempts("ours"),
            0
        );
    }

    #[test]
    fn an_outcome_is_of_this_generation() {
        let condition = |r#type: &str, status: &str, generation| Condition {
            r#type: r#type.to_owned(),
            status: status.to_owned(),
            reason: "Any".to_owned(),
            message: String::new(),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            observed_generation: Some(generation),
        };
        for (observed, condition, has_outcome) in [
            (Some(3), None, true),
            (Some(2), None, false),
            (None, Some(condition(STALLED, "True", 3)), true),
            (None, Some(condition(STALLED, "True", 2)), false),
            (None, Some(condition(STALLED, "False", 3)), false),
            (None, Some(condition(WAITING, "True", 3)), true),
            (None, Some(condition(READY, "True", 3)), false),
        ] {
            let record = record(AddonInstallationStatus {
                observed_generation: observed,
                conditions: condition.into_iter().collect(),
                ..AddonInstallationStatus::default()
            });
            assert_eq!(record.has_outcome(), has_outcome, "{:?}", record.status);
        }
    }
}
