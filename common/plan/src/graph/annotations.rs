//! Annotations of four tools that existing manifests use for order.
//!
//! | annotation | tool | what the tool does with a malformed value, and we as well |
//! |---|---|---|
//! | `argocd.argoproj.io/sync-wave`, `argocd.argoproj.io/hook` | Argo CD | takes 0, or no hook: a warning |
//! | `helm.sh/hook`, `helm.sh/hook-weight` | Helm | takes 0: a warning |
//! | `config.kubernetes.io/depends-on` | cli-utils (kpt) | refuses the object: an error |
//! | `kapp.k14s.io/change-group`, `…/change-rule` | kapp | refuses the set: an error |

mod change_rule;
mod depends_on;
mod stage;

use serde_json::{Map, Value};

pub(super) use change_rule::ChangeRule;
pub(super) use stage::{Phase, Stage, Tool};

use common::manifest::key::ObjectKey;

/// An annotation that its own tool would refuse.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("annotation {annotation}: {value:?} {problem}")]
pub struct AnnotationError {
    /// Its name.
    pub annotation: String,
    /// Its value.
    pub value: String,
    /// What is wrong, and which values are valid.
    pub problem: String,
}

/// The problems of one object's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Errors.
    pub errors: Vec<AnnotationError>,
    /// Warnings: the value has another effect than its author may expect.
    pub warnings: Vec<String>,
}

/// What the annotations of one object ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    /// When in its add-on.
    pub stage: Option<Stage>,
    /// After these objects.
    pub after: Vec<ObjectKey>,
    /// Groups that it belongs to.
    pub groups: Vec<String>,
    /// After or before groups.
    pub rules: Vec<ChangeRule>,
}

impl Wishes {
    /// Of an object, without what is malformed.
    pub fn of(key: &ObjectKey, object: &Value) -> Option<Self> {
        let (wishes, _) = read(key, object)?;
        (wishes != Self::default()).then_some(wishes)
    }
}

/// The problems of an object's annotations.
#[must_use]
pub fn remarks(key: &ObjectKey, object: &Value) -> Remarks {
    read(key, object)
        .map(|(_, remarks)| remarks)
        .unwrap_or_default()
}

fn read(key: &ObjectKey, object: &Value) -> Option<(Wishes, Remarks)> {
    let annotations = object.pointer("/metadata/annotations")?.as_object()?;
    let mut remarks = Remarks::default();
    let mut wishes = Wishes {
        stage: stage::read(annotations, &mut remarks.warnings),
        ..Wishes::default()
    };
    for (annotation, value) in annotations {
        let Some(value) = value.as_str() else {
            continue;
        };
        let result = if annotation == depends_on::ANNOTATION {
            depends_on::read(value, key).map(|after| wishes.after = after)
        } else if is_family(annotation, change_rule::GROUP) {
            change_rule::group(value, key, object).map(|group| wishes.groups.push(group))
        } else if is_family(annotation, change_rule::RULE) {
            change_rule::rule(value, key, object).map(|rule| wishes.rules.extend(rule))
        } else {
            continue;
        };
        if let Err(problem) = result {
            remarks.errors.push(AnnotationError {
                annotation: annotation.clone(),
                value: value.to_owned(),
                problem,
            });
        }
    }
    Some((wishes, remarks))
}

/// `NAME` or `NAME.anything`: how kapp lets one object carry several.
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
