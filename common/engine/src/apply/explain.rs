//! The error of a step as the user reads it: whose a field is, the way out, and nothing of a Secret.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::Value;

use common::manifest::kinds::traits::KeptKind;
use common::manifest::ownership;
use common::plan::{Action, Step};

use super::super::error::{EngineError, FieldCause};

/// A shorter value would blot out harmless words.
const SHORTEST_SECRET: usize = 4;

/// The error of a step in its words.
pub(crate) fn explain(error: EngineError, step: &Step) -> EngineError {
    let key = &step.target.key;
    let is_secret = key.is_secret();
    match error {
        EngineError::FieldConflict { causes, .. } => EngineError::Conflict {
            key: key.clone(),
            message: format!("{}{}", lines(&causes), ways_out_of_conflict(step)),
        },
        EngineError::Immutable { causes, .. } => EngineError::Api {
            what: key.to_string(),
            message: format!("cannot be changed{}{}", lines(&causes), ways_out(step)),
            code: 422,
        },
        EngineError::Api {
            code: 409, message, ..
        } => EngineError::Conflict {
            key: key.clone(),
            message,
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

/// The last lines of a conflict: the command that looks, and those that accept.
pub(super) fn ways_out_of_conflict(step: &Step) -> String {
    let upgrade = command("upgrade", step);
    let look = command("diff", step);
    if step.action == Action::Create {
        return format!("\n    look:   {look}\n    accept: {upgrade}");
    }
    format!(
        "\n    look:   {look}\n    accept: {upgrade} --conflicts take    (or yield, which leaves them)"
    )
}

/// The last lines of a refusal to change what never changes.
fn ways_out(step: &Step) -> String {
    let key = &step.target.key;
    let look = command("diff", step);
    match KeptKind::of(key) {
        Some(kind) => format!(
            "\n    a {} is never recreated: {}\n    look:   {look}\n    accept: take the change out of the manifest, or delete and create the object by hand",
            key.kind,
            kind.loss()
        ),
        None => format!(
            "\n    look:   {look}\n    accept: {} --recreate {}/{}",
            command("upgrade", step),
            key.kind,
            key.name
        ),
    }
}

/// `kubectl addons VERB NAME -n NAMESPACE` of the installation whose object it is.
fn command(verb: &str, step: &Step) -> String {
    match ownership::owner(&step.object) {
        Some(owner) => format!(
            "kubectl addons {verb} {} -n {}",
            owner.name, owner.namespace
        ),
        None => format!("kubectl addons {verb}"),
    }
}

fn lines(causes: &[FieldCause]) -> String {
    let lines = causes
        .iter()
        .map(|cause| format!("\n    {}: {}", cause.field, cause.message));
    lines.collect()
}

/// Takes a Secret's values out of the server's words. What a refusal by the schema repeats cannot be told from its
/// words, so nothing of those is kept.
fn redact(message: String, object: &Value, code: u16) -> String {
    if code == 400 || code == 422 || code == 500 {
        return format!(
            "the server refuses it (HTTP {code}); its words are left out, they may repeat the Secret"
        );
    }
    let values = ["data", "stringData"]
        .into_iter()
        .filter_map(|field| object.get(field)?.as_object())
        .flat_map(|values| values.values())
        .filter_map(Value::as_str);
    let mut clean = message;
    for value in values {
        let plain = BASE64
            .decode(value)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        for secret in [Some(value), plain.as_deref()].into_iter().flatten() {
            if secret.len() >= SHORTEST_SECRET {
                clean = clean.replace(secret, "***");
            }
        }
    }
    clean
}
