//! Ended operations, as the record lists them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Installed, OperationRecord};
use crate::api::verb::RecordedVerb;

/// An ended operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// `install`, `upgrade`, `rollback`, `adopt`, `uninstall` or `release`.
    #[schemars(with = "String")]
    pub verb: RecordedVerb,
    /// What it installed.
    pub installed: Installed,
    /// `done`, or a sentence with the reason of the failure.
    #[schemars(with = "String")]
    pub outcome: RecordedOutcome,
}

impl HistoryEntry {
    /// Creates the revision of an interrupted operation. `installed` is what was installed before it.
    #[must_use]
    pub fn from_interrupted(operation: &OperationRecord, installed: Option<&Installed>) -> Self {
        let target = operation.target.as_ref().or(installed).cloned();
        Self {
            verb: operation.verb.clone(),
            installed: Installed {
                at: Some(operation.renewed_at.clone()),
                by: operation.holder.clone(),
                ..target.unwrap_or_default()
            },
            outcome: RecordedOutcome::Interrupted,
        }
    }

    /// Whether the operation ended as planned.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.outcome == RecordedOutcome::Done
    }
}

/// How an operation ended. Records spell it as one text: `done`, `interrupted`, or the reason of the failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum RecordedOutcome {
    /// It ended as planned.
    Done,
    /// Its client ended before it did.
    Interrupted,
    /// It failed, for this reason. What another release wrote counts as a reason, and is written back unchanged.
    Failed(String),
}

impl RecordedOutcome {
    fn as_str(&self) -> &str {
        match self {
            Self::Done => "done",
            Self::Interrupted => "interrupted",
            Self::Failed(reason) => reason,
        }
    }
}

impl Default for RecordedOutcome {
    fn default() -> Self {
        Self::Failed(String::new())
    }
}

impl From<String> for RecordedOutcome {
    fn from(text: String) -> Self {
        match text.as_str() {
            "done" => Self::Done,
            "interrupted" => Self::Interrupted,
            _ => Self::Failed(text),
        }
    }
}

impl From<&str> for RecordedOutcome {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<RecordedOutcome> for String {
    fn from(outcome: RecordedOutcome) -> Self {
        match outcome {
            RecordedOutcome::Failed(reason) => reason,
            known => known.as_str().to_owned(),
        }
    }
}

impl fmt::Display for RecordedOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_of_any_release_is_written_back_as_it_was_read() {
        for (verb, outcome, is_done) in [
            ("upgrade", "done", true),
            ("rollback", "interrupted", false),
            ("install", "timed out", false),
            ("rename", "Done", false),
            ("", "", false),
        ] {
            let stored = json!({"verb": verb, "installed": {}, "outcome": outcome});
            let read: HistoryEntry = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(read.is_done(), is_done, "{stored}");
            assert_eq!(read.outcome.to_string(), outcome);
            assert_eq!(json!(read), stored);
        }
    }
}
