//! Health checks of an entry: expressions in CEL that say when the objects of a kind are ready, with the meaning that they have in Flux
//! (semantics 17.11).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::fields::{field, find_conditions};
use super::{Readiness, generic};
use common::api::catalogue::{HealthCheckExpr, HealthField};
use common::expression::{Expression, ExpressionError};
use common::manifest::key::ObjectKey;
use common::text::shorten;

/// The longest expression that a message shows in full, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// The health checks of an installation.
#[derive(Clone, Debug, Default)]
pub struct HealthChecks(BTreeMap<(String, Option<String>), Arc<HealthCheck>>);

/// The health check of a kind.
#[derive(Debug)]
pub struct HealthCheck(Vec<CheckExpression>);

#[derive(Debug)]
struct CheckExpression {
    field: HealthField,
    text: String,
    compiled: Result<Expression, ExpressionError>,
}

impl HealthChecks {
    /// Compiles the expressions of an entry or record.
    #[must_use]
    pub fn compile(written: &[HealthCheckExpr]) -> Self {
        let checks = written.iter().map(|check| {
            let kind = (check.group().to_owned(), check.kind().map(str::to_owned));
            let expressions = check.expressions().map(|(field, text)| CheckExpression {
                field,
                text: text.to_owned(),
                compiled: Expression::compile(text),
            });
            (kind, Arc::new(HealthCheck(expressions.collect())))
        });
        Self(checks.collect())
    }

    /// Returns the check for an object: that of its kind, or else that of its group.
    #[must_use]
    pub fn find(&self, key: &ObjectKey) -> Option<&Arc<HealthCheck>> {
        let of_kind = self.0.get(&(key.group.clone(), Some(key.kind.clone())));
        of_kind.or_else(|| self.0.get(&(key.group.clone(), None)))
    }
}

impl HealthCheck {
    /// Assesses an object that is not being deleted. An expression that cannot be evaluated, usually because a field does not exist yet,
    /// means that the object is not ready yet: Flux waits then, too.
    pub(super) fn assess(&self, object: &Value) -> Readiness {
        let whole = |path: &[&str]| field(object, path).and_then(Value::as_i64);
        let observed = whole(&["status", "observedGeneration"]);
        if let Some((observed, generation)) = observed.zip(whole(&["metadata", "generation"]))
            && observed != generation
        {
            return Readiness::in_progress(generic::UNSEEN);
        }
        let nothing = Map::new();
        let fields = object.as_object().unwrap_or(&nothing);
        for expression in &self.0 {
            let CheckExpression {
                field,
                text,
                compiled,
            } = expression;
            let holds = match compiled {
                Ok(compiled) => compiled.evaluate(fields),
                Err(error) => Err(error.clone()),
            };
            let condition = describe(object, text, *field);
            let why = |what| condition.unwrap_or_else(|| expression.shown(what));
            match (holds, field) {
                (Err(error), _) => {
                    return Readiness::in_progress(format!("waiting: {field}: {error}"));
                }
                (Ok(true), HealthField::Current) => return Readiness::current("ready"),
                (Ok(true), HealthField::InProgress) => {
                    return Readiness::in_progress(format!("waiting: {}", why("holds")));
                }
                (Ok(true), HealthField::Failed) => {
                    return Readiness::failed(format!("failed: {}", why("holds")));
                }
                (Ok(false), HealthField::Current) => {
                    return Readiness::in_progress(format!("waiting: {}", why("does not hold")));
                }
                (Ok(false), _) => {}
            }
        }
        Readiness::in_progress("waiting: no expression says that it is ready")
    }
}

impl CheckExpression {
    /// Formats `current does not hold: status.phase == 'Ready'`.
    fn shown(&self, what: &str) -> String {
        let text = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{} {what}: {}", self.field, shorten(text, MAX_SHOWN_CHARS))
    }
}

/// Returns what the object says itself: the reason of the first condition that the expression names. Of one that says when the object is
/// ready, a condition that is true is no reason to wait.
fn describe(object: &Value, expression: &str, of: HealthField) -> Option<String> {
    let mut conditions = find_conditions(object);
    let told = conditions.find(|condition| {
        let kind = condition.kind();
        let is_named = ['\'', '"'].map(|quote| format!("{quote}{kind}{quote}"));
        (of == HealthField::Failed || !condition.is_true())
            && is_named.iter().any(|named| expression.contains(named))
    });
    Some(told?.why())
}

#[cfg(test)]
mod tests;
