//! Rewrites the error of a step for the user: who owns a field, what can be done, and without values of Secrets.

use serde_json::Value;

use addons_plan::changes::RefusalRemedy;
use addons_plan::{Action, Step};
use common::manifest::kinds::traits::KeptKind;
use common::values::mask::SecretMask;

use super::super::error::{EngineError, FieldCause};

/// Beginning of the server's message if an object does not fit the schema: `(shop/web; apps/v1, Kind=Deployment): .spec.a: …` follows.
const TYPED: &str = "failed to create typed patch object (";

/// Returns the error of a step with the name of its object and a remedy.
pub(crate) fn explain(error: EngineError, step: &Step) -> EngineError {
    let key = &step.target.key;
    let is_secret = key.is_secret();
    match error {
        EngineError::FieldConflict { causes, .. } => EngineError::Conflict {
            key: Box::new(key.clone()),
            message: format_causes(&causes),
            recorded: None,
            remedy: Some(conflict_remedy(step)),
        },
        EngineError::Immutable { causes, .. } => unchangeable_error(step, &causes),
        EngineError::Api {
            code: 409, message, ..
        } => EngineError::conflict(key.clone(), message),
        EngineError::Api { code, message, .. } if is_secret => EngineError::Api {
            what: key.to_string(),
            message: redact(message, &step.object, code),
            code,
        },
        EngineError::Api { code, message, .. } => EngineError::Api {
            what: key.to_string(),
            message: strip_object(&message),
            code,
        },
        EngineError::Invalid { .. } if is_secret => EngineError::Api {
            what: key.to_string(),
            message: redact(String::new(), &step.object, 422),
            code: 422,
        },
        EngineError::Invalid { causes, .. } => EngineError::Invalid {
            object: key.to_string(),
            causes,
        },
        EngineError::Denied { message, .. } => EngineError::Denied {
            object: key.to_string(),
            message: if is_secret {
                redact(strip_object(&message), &step.object, 403)
            } else {
                strip_object(&message)
            },
        },
        other => other,
    }
}

/// Returns the server's message without the object at its beginning, because the error already names it.
pub(crate) fn strip_object(message: &str) -> String {
    let typed = message.strip_prefix(TYPED);
    let typed = typed.and_then(|rest| rest.split_once("): "));
    if let Some((_, rest)) = typed {
        // The rest is Go's representation of the value.
        let rest = rest
            .split_once(", got &value.")
            .map_or(rest, |(rest, _)| rest);
        return rest.trim_start_matches('.').to_owned();
    }
    // `configmaps "a" is forbidden: …`
    for verdict in ["\" is forbidden: ", "\" is invalid: "] {
        if let Some((object, rest)) = message.split_once(verdict)
            && is_object(object)
        {
            return rest.to_owned();
        }
    }
    message.to_owned()
}

/// Returns whether a text is the beginning of an object's name as the API server writes it: `deployments.apps "web`.
fn is_object(text: &str) -> bool {
    let Some((resource, name)) = text.split_once(" \"") else {
        return false;
    };
    !resource.contains(' ') && !name.contains([' ', '"'])
}

/// Returns what the user can do about fields of other managers. An object that was to be created has to be upgraded first.
pub(super) fn conflict_remedy(step: &Step) -> RefusalRemedy {
    match step.action {
        Action::Create => RefusalRemedy::Upgrade,
        _ => RefusalRemedy::TakeOrYield,
    }
}

fn unchangeable_error(step: &Step, causes: &[FieldCause]) -> EngineError {
    let key = &step.target.key;
    let mut message = format!("cannot be changed{}", format_causes(causes));
    let remedy = match KeptKind::from_key(key) {
        Some(kind) => {
            let never = format!("\n    a {} is never recreated: {}", key.kind, kind.loss());
            message.push_str(&never);
            RefusalRemedy::ByHand
        }
        None => RefusalRemedy::Recreate,
    };
    EngineError::Unchangeable {
        key: Box::new(key.clone()),
        message,
        remedy,
    }
}

fn format_causes(causes: &[FieldCause]) -> String {
    let lines = causes
        .iter()
        .map(|cause| format!("\n    {}: {}", cause.field, cause.message));
    lines.collect()
}

/// Masks the values of a Secret in the server's message. If a schema refuses the object, the message may repeat values in any form, so none
/// of it is kept.
fn redact(message: String, object: &Value, code: u16) -> String {
    if code == 400 || code == 422 || code == 500 {
        return format!(
            "the server refuses it (HTTP {code}); its message is left out, because it may repeat the Secret"
        );
    }
    SecretMask::from_secret(object).mask_text(&message)
}

#[cfg(test)]
mod tests {
    use super::strip_object;

    #[test]
    fn the_object_is_named_once() {
        for (message, expected) in [
            (
                r#"configmaps "zone-a" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no"#,
                "ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no",
            ),
            (
                r#"failed to create typed patch object (h11/duty; apps/v1, Kind=Deployment): .spec.a: duplicate entries"#,
                "spec.a: duplicate entries",
            ),
            (
                "failed to create typed patch object (/wrong; /v1, Kind=ConfigMap): .data.key: expected string, got \
                 &value.valueUnstructured{Value:map[string]interface {}{}}",
                "data.key: expected string",
            ),
            (
                r#"admission webhook "a.example" denied the request: pods "x" is forbidden: no"#,
                r#"admission webhook "a.example" denied the request: pods "x" is forbidden: no"#,
            ),
            ("no", "no"),
        ] {
            assert_eq!(strip_object(message), expected);
        }
    }
}
