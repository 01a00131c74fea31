//! Annotations about the order that existing manifests have for four tools.
//!
//! | annotation | tool | effect of a malformed value, there and here |
//! | `argocd.argoproj.io/sync-wave`, `argocd.argoproj.io/hook` | Argo CD | takes 0, or no hook: a warning |
//! | `helm.sh/hook`, `helm.sh/hook-weight` | Helm | takes 0: a warning |
//! | `config.kubernetes.io/depends-on` | cli-utils (kpt) | refuses the object: an error |
//! | `kapp.k14s.io/change-group`, `…/change-rule` | kapp | refuses the set: an error |

mod change_rule;
mod depends_on;
mod stage;

use serde_json::{Map, Value};

pub(super) use change_rule::ChangeRule;
pub(super) use stage::{ApplyStage, HookPhase, StageTool};

use common::manifest::key::ObjectKey;

/// A malformed annotation that its own tool would refuse.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("annotation {annotation}: {value:?} {problem}")]
pub struct OrderAnnotationError {
    /// Its name.
    pub annotation: String,
    /// Its value.
    pub value: String,
    /// The error, and which values are valid.
    pub problem: String,
}

/// The problems of one object's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnotationProblems {
    /// Annotations that their own tool would refuse.
    pub errors: Vec<OrderAnnotationError>,
    /// Warnings about values that have another effect than their author may expect.
    pub warnings: Vec<String>,
}

/// The order that the annotations of one object request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OrderAnnotations {
    /// Its stage within the add-on.
    pub stage: Option<ApplyStage>,
    /// Objects that come before it.
    pub after: Vec<ObjectKey>,
    /// Change groups that it belongs to.
    pub groups: Vec<String>,
    /// Change groups that it comes before or after.
    pub rules: Vec<ChangeRule>,
}

impl OrderAnnotations {
    /// Reads the annotations of an object, without malformed ones. Returns `None` if they request nothing.
    pub fn from_object(key: &ObjectKey, object: &Value) -> Option<Self> {
        let (wishes, _) = read(key, object)?;
        (wishes != Self::default()).then_some(wishes)
    }
}

/// Returns the problems of an object's annotations.
#[must_use]
pub fn check_annotations(key: &ObjectKey, object: &Value) -> AnnotationProblems {
    read(key, object)
        .map(|(_, remarks)| remarks)
        .unwrap_or_default()
}

fn read(key: &ObjectKey, object: &Value) -> Option<(OrderAnnotations, AnnotationProblems)> {
    let annotations = object.pointer("/metadata/annotations")?.as_object()?;
    let mut remarks = AnnotationProblems::default();
    let mut wishes = OrderAnnotations {
        stage: stage::read(annotations, &mut remarks.warnings),
        ..OrderAnnotations::default()
    };
    for (annotation, value) in annotations {
        let Some(value) = value.as_str() else {
            continue;
        };
        let result = if annotation == depends_on::ANNOTATION {
            depends_on::read(value, key).map(|after| wishes.after = after)
        } else if is_family(annotation, change_rule::GROUP) {
            change_rule::parse_group(value, key, object).map(|group| wishes.groups.push(group))
        } else if is_family(annotation, change_rule::RULE) {
            change_rule::parse_rule(value, key, object).map(|rule| wishes.rules.extend(rule))
        } else {
            continue;
        };
        if let Err(problem) = result {
            remarks.errors.push(OrderAnnotationError {
                annotation: annotation.clone(),
                value: value.to_owned(),
                problem,
            });
        }
    }
    Some((wishes, remarks))
}

/// Whether an annotation is `NAME` or `NAME.anything`. With suffixes, kapp allows several of them on one object.
fn is_family(annotation: &str, name: &str) -> bool {
    annotation
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn text<'a>(annotations: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    annotations.get(name)?.as_str()
}

#[cfg(test)]
mod tests;
