//! The error of a step as the user reads it: who holds a field, what can be done, and no value of a Secret.

use serde_json::Value;

use common::manifest::kinds::traits::KeptKind;
use common::plan::changes::Remedy;
use common::plan::{Action, Step};
use common::values::mask::Mask;

use super::super::error::{EngineError, FieldCause};

/// The error of a step, with the name of its object and what the user can do.
pub(crate) fn explain(error: EngineError, step: &Step) -> EngineError {
    let key = &step.target.key;
    let is_secret = key.is_secret();
    match error {
        EngineError::FieldConflict { causes, .. } => EngineError::Conflict {
            key: Box::new(key.clone()),
            message: lines(&causes),
            recorded: None,
            remedy: Some(of_conflict(step)),
        },
        EngineError::Immutable { causes, .. } => unchangeable(step, &causes),
        EngineError::Api {
            code: 409, message, ..
        } => EngineError::Conflict {
            key: Box::new(key.clone()),
            message,
            recorded: None,
            remedy: None,
        },
        EngineError::Api { code, message, .. } if is_secret => EngineError::Api {
            what: key.to_string(),
            message: redact(message, &step.object, code),
            code,
        },
        EngineError::Api { code, message, .. } => EngineError::Api {
            what: key.to_string(),
            message,
            code,
        },
        EngineError::Denied { message, .. } => EngineError::Denied {
            object: key.to_string(),
            message: if is_secret {
                redact(message, &step.object, 403)
            } else {
                message
            },
        },
        other => other,
    }
}

/// What the user can do about fields that other managers hold. An object that was to be created is upgraded first.
pub(super) fn of_conflict(step: &Step) -> Remedy {
    match step.action {
        Action::Create => Remedy::Upgrade,
        _ => Remedy::TakeOrYield,
    }
}

fn unchangeable(step: &Step, causes: &[FieldCause]) -> EngineError {
    let key = &step.target.key;
    let mut message = format!("cannot be changed{}", lines(causes));
    let remedy = match KeptKind::of(key) {
        Some(kind) => {
            let never = format!("\n    a {} is never recreated: {}", key.kind, kind.loss());
            message.push_str(&never);
            Remedy::ByHand
        }
        None => Remedy::Recreate,
    };
    EngineError::Unchangeable {
        key: Box::new(key.clone()),
        message,
        remedy,
    }
}

fn lines(causes: &[FieldCause]) -> String {
    let lines = causes
        .iter()
        .map(|cause| format!("\n    {}: {}", cause.field, cause.message));
    lines.collect()
}

/// Takes a Secret's values out of the server's message. Where a schema refuses the object, its message may repeat them in any
/// form, so nothing of it is kept.
fn redact(message: String, object: &Value, code: u16) -> String {
    if code == 400 || code == 422 || code == 500 {
        return format!(
            "the server refuses it (HTTP {code}); its message is left out, because it may repeat the Secret"
        );
    }
    Mask::of_object(object).text(&message)
}
