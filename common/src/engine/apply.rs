//! Server-side apply of one object: one PATCH, answered with metadata only.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::api::names;
use crate::plan::inventory::Answer;
use crate::plan::{Action, Step};

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::Partial;
use super::request::{self, APPLY_PATCH, Call, METADATA};
use super::snapshot::read_one;

/// How often a creation is tried whose fate is not known.
const TRIES: usize = 5;
/// How long an admission webhook that does not answer (yet) is waited for: it was just installed, perhaps by us.
const PATIENCE_WITH_WEBHOOKS: Duration = Duration::from_secs(20);
const WEBHOOK_PAUSE: Duration = Duration::from_millis(500);

/// A shorter value would blot out harmless words.
const SHORTEST_SECRET: usize = 4;

type Applied = request::Answer<Partial>;

/// Who applies, and until when.
#[derive(Clone, Debug)]
pub(super) struct Applier {
    /// Field manager.
    pub(super) manager: String,
    /// Value of our owner label.
    pub(super) owner: String,
    /// End of the operation.
    pub(super) deadline: Instant,
}

/// What became of one step.
pub(super) struct Outcome<'a> {
    pub(super) step: &'a Step,
    pub(super) result: Result<Answer, EngineError>,
    pub(super) terminating: bool,
    pub(super) warnings: Vec<String>,
}

impl Applier {
    /// Applies one object.
    pub(super) async fn step<'a>(&self, cluster: &Cluster, step: &'a Step) -> Outcome<'a> {
        let patience = (Instant::now() + PATIENCE_WITH_WEBHOOKS).min(self.deadline);
        let applied = loop {
            match self.apply(cluster, step).await {
                Ok(applied) => break applied,
                Err(error) if is_silent_webhook(&error) && Instant::now() < patience => {
                    sleep(WEBHOOK_PAUSE).await;
                }
                Err(error) => {
                    return Outcome {
                        step,
                        result: Err(explain(error, step)),
                        terminating: false,
                        warnings: Vec::new(),
                    };
                }
            }
        };
        let metadata = applied.object.metadata;
        Outcome {
            step,
            terminating: metadata.deletion_timestamp.is_some(),
            result: Ok(Answer {
                created: applied.created,
                uid: metadata.uid,
                generation: metadata.generation,
                resource_version: metadata.resource_version,
            }),
            warnings: applied.warnings,
        }
    }

    /// One apply. For a planned creation it matters whether the object is ours: 201 says so, 200 that somebody was
    /// faster. Where the answer got lost, the label of the live object decides before the next try.
    async fn apply(&self, cluster: &Cluster, step: &Step) -> Result<Applied, EngineError> {
        if step.action != Action::Create {
            return cluster.send(self.call(step)?).await;
        }
        let mut tries = 1;
        loop {
            let lost = match cluster.send::<Partial>(self.call(step)?.once()).await {
                Err(lost) if lost.is_uncertain() && !is_silent_webhook(&lost) => lost,
                answer => return answer,
            };
            let collection = Collection::of(&step.target);
            if let Some(live) = read_one(cluster, &collection, &step.target.key.name).await? {
                let ours = live.labels.get(names::LABEL_OWNER) == Some(&self.owner);
                let mut answer = cluster.send::<Partial>(self.call(step)?).await?;
                answer.created = ours;
                return Ok(answer);
            }
            if tries == TRIES {
                return Err(lost);
            }
            tries += 1;
        }
    }

    fn call(&self, step: &Step) -> Result<Call, EngineError> {
        let call = apply_call(step, &self.manager, METADATA)?;
        Ok(if step.force {
            call.query("force", "true")
        } else {
            call
        })
    }
}

/// The PATCH of a step. The object is serialised here, once, right before it is sent.
pub(super) fn apply_call(
    step: &Step,
    manager: &str,
    accept: &'static str,
) -> Result<Call, EngineError> {
    let object: &Arc<Value> = &step.object;
    let body = serde_json::to_vec(object).map_err(|error| EngineError::Api {
        what: step.target.key.to_string(),
        message: error.to_string(),
        code: 0,
    })?;
    let collection = Collection::of(&step.target);
    Ok(
        Call::patch(&collection, &step.target.key.name, APPLY_PATCH, accept)
            .query("fieldManager", manager)
            .query("fieldValidation", "Warn")
            .body(body),
    )
}

/// The error of a step as the user reads it: a conflict says whose the field is, a Secret's values are left out.
pub(super) fn explain(error: EngineError, step: &Step) -> EngineError {
    let key = &step.target.key;
    let is_secret = key.group.is_empty() && key.kind == "Secret";
    match error {
        EngineError::Api {
            code: 409, message, ..
        } => EngineError::Conflict {
            key: key.clone(),
            message: if message.contains("conflict with \"") {
                format!("{message}; use conflicts: Take to take the fields, or Yield to leave them")
            } else {
                message
            },
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

/// A webhook whose backend is not there: the API server answers 500.
fn is_silent_webhook(error: &EngineError) -> bool {
    matches!(error, EngineError::Api { code: 500, message, .. } if message.contains("failed calling webhook"))
}

#[cfg(test)]
#[path = "apply/tests.rs"]
mod tests;
