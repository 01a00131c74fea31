//! Whether a live object works, in kstatus' words, with the gaps of kstatus closed (research/peers.md 4).

use serde::Serialize;

/// The verdict on one live object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// The word.
    pub status: Status,
    /// Why, for people: `1/2 ready`, `available`, `waiting: …`.
    pub message: String,
}

/// kstatus' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Status {
    /// It works.
    Current,
    /// It is on its way.
    InProgress,
    /// It will not get there by itself.
    Failed,
    /// It is being deleted.
    Terminating,
}

// STAND-IN: the merge replaces it by the rules of readiness/*.
/// Judges a live object.
#[must_use]
pub fn assess(object: &serde_json::Value) -> Readiness {
    let number = |path: &str| object.pointer(path).and_then(serde_json::Value::as_i64);
    let kind = object.get("kind").and_then(serde_json::Value::as_str);
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return Readiness {
            status: Status::Terminating,
            message: "being deleted".into(),
        };
    }
    if kind == Some("Deployment") {
        let wanted = number("/spec/replicas").unwrap_or(1);
        let ready = number("/status/readyReplicas").unwrap_or(0);
        let updated = number("/status/updatedReplicas").unwrap_or(0);
        let seen = number("/status/observedGeneration") == number("/metadata/generation");
        if ready < wanted || updated < wanted || !seen {
            return Readiness {
                status: Status::InProgress,
                message: format!("{ready}/{wanted} ready"),
            };
        }
    }
    Readiness {
        status: Status::Current,
        message: "ready".into(),
    }
}
