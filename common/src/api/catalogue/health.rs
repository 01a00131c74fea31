//! When objects of a kind are ready.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Expressions in CEL that say when the objects of a kind are ready, as Flux reads them (semantics 17.11). They read the top-level fields of
/// the object: `status`, `metadata`, `spec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheckExpr {
    /// The API version of the objects. Only its group counts.
    #[schemars(length(min = 1, max = 317))]
    pub api_version: String,
    /// The kind of the objects; absent for every kind of the group that has no expressions of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub kind: Option<String>,
    /// The object is not ready yet. Evaluated first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub in_progress: Option<String>,
    /// The object will not become ready by itself. Evaluated if `inProgress` is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub failed: Option<String>,
    /// The object is ready. Evaluated last; while it is false, the object is not ready yet.
    #[schemars(length(min = 1, max = 1000))]
    pub current: String,
}

impl HealthCheckExpr {
    /// Returns the API group of the objects; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// Returns the kind; `None` for every kind of the group.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref().filter(|kind| !kind.is_empty())
    }

    /// Whether it is for objects of a kind. One with a kind takes precedence over one for every kind of the group.
    #[must_use]
    pub fn is_for(&self, group: &str, kind: &str) -> bool {
        self.group() == group && self.kind().is_none_or(|one| one == kind)
    }

    /// Returns the expressions that are set, in the order of their evaluation.
    pub fn expressions(&self) -> impl Iterator<Item = (HealthField, &str)> {
        let texts = [
            (HealthField::InProgress, self.in_progress.as_deref()),
            (HealthField::Failed, self.failed.as_deref()),
            (HealthField::Current, Some(self.current.as_str())),
        ];
        let texts = texts.into_iter();
        texts.filter_map(|(field, text)| Some((field, text.filter(|text| !text.is_empty())?)))
    }
}

/// A field with an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthField {
    /// `inProgress`
    InProgress,
    /// `failed`
    Failed,
    /// `current`
    Current,
}

impl fmt::Display for HealthField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InProgress => "inProgress",
            Self::Failed => "failed",
            Self::Current => "current",
        })
    }
}
