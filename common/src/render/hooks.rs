//! Helm's hooks, where helm renders and our engine applies: which of them belong to an installation or upgrade, and what their
//! policies mean for objects that are in an inventory. Their order (before or after everything else, by weight, each waited for)
//! is that of `helm.sh/hook` and `helm.sh/hook-weight` in [`crate::plan::graph`].
//!
//! | in the chart | with Helm | with us |
//! |---|---|---|
//! | `test` | run by `helm test` | left out |
//! | `pre-delete`, `post-delete`, `pre-rollback`, `post-rollback` | run then | left out with a warning: `template.helm.mode: release` runs them |
//! | an unknown hook | left out | left out with a warning |
//! | `pre-upgrade`, `post-upgrade` alone | not at an installation | left out of the first one |
//! | `pre-install`, `post-install` alone | not at an upgrade; what it created stays for ever | left out of upgrades: Jobs and Pods, which have run, are pruned; everything else is created once and stays |
//! | both | run each time | applied; runs again when it changed |
//! | `before-hook-creation` (the default) | recreated each time | a Job or Pod is recreated where it changed; others are applied in place, and recreated where a field cannot change |
//! | `hook-succeeded` | deleted at once | a Job is deleted ten minutes after its end, and created again only when it changed; other kinds stay until the add-on is uninstalled |
//! | `hook-failed` | deleted at once | stays, so that one can see why |
//! | `helm.sh/resource-policy: keep` | stays | stays ([`crate::plan::prune::keep`]) |
//! | `crd-install` (Helm 2) | not a hook | not a hook |

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::api::names::{
    ANNOTATION_APPLY, ANNOTATION_HOOK, ANNOTATION_RECREATE, APPLY_CREATE_ONLY,
};
use crate::manifest::Manifest;
use crate::manifest::digest::digest;
use crate::manifest::key::ObjectKey;

const HOOK: &str = "helm.sh/hook";
const DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
/// Seconds for which a Job stays that its chart deletes after success: long enough to read its logs.
const STAYS: u64 = 600;

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Nothing was installed before.
    Install,
    /// Another version was.
    Upgrade,
}

/// The objects that belong to an occasion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// In the order of the input.
    pub manifests: Vec<Manifest>,
    /// What was left out that users may miss.
    pub warnings: Vec<String>,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// `pre-` (true) or `post-`.
    Install {
        before: bool,
    },
    Upgrade {
        before: bool,
    },
    /// By its name.
    Leaving(&'static str),
    Test,
}

/// Leaves out the hooks of other occasions, and translates the policies of the others into our annotations.
#[must_use]
pub fn of_occasion(manifests: Vec<Manifest>, occasion: Occasion) -> Kept {
    let mut kept = Kept::default();
    for mut manifest in manifests {
        let Some(hooks) = hooks(&manifest.object) else {
            kept.manifests.push(manifest);
            continue;
        };
        match events(&hooks) {
            Err(unknown) => kept.warn(
                &manifest,
                &format!("{unknown:?} is not a hook of Helm, which ignores it, too"),
            ),
            Ok(events) if events.iter().any(|event| event.is_of(occasion)) => {
                adapt(Arc::make_mut(&mut manifest.object), &events, occasion);
                kept.manifests.push(manifest);
            }
            Ok(events) => {
                let leaving = events.iter().find_map(|event| match event {
                    Event::Leaving(name) => Some(*name),
                    _ => None,
                });
                if let Some(name) = leaving {
                    let why = format!(
                        "it is a hook of {name}, which only runs with template.helm.mode: release"
                    );
                    kept.warn(&manifest, &why);
                }
            }
        }
    }
    kept
}

impl Kept {
    fn warn(&mut self, manifest: &Manifest, why: &str) {
        let key = ObjectKey::of(&manifest.object);
        let key = key.map_or_else(String::new, |key| format!("{key} "));
        self.warnings
            .push(format!("{}: {key}is left out: {why}", manifest.place));
    }
}

impl Event {
    fn is_of(self, occasion: Occasion) -> bool {
        matches!(
            (self, occasion),
            (Self::Install { .. }, Occasion::Install) | (Self::Upgrade { .. }, Occasion::Upgrade)
        )
    }

    /// Whether it runs before everything that is not a hook; `None` for other occasions than installing and upgrading.
    fn is_before(self) -> Option<bool> {
        match self {
            Self::Install { before } | Self::Upgrade { before } => Some(before),
            Self::Leaving(_) | Self::Test => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Install { before: true } => "pre-install",
            Self::Install { before: false } => "post-install",
            Self::Upgrade { before: true } => "pre-upgrade",
            Self::Upgrade { before: false } => "post-upgrade",
            Self::Leaving(name) => name,
            Self::Test => "test",
        }
    }
}

/// The value of `helm.sh/hook`; `None` for an object that is not a hook.
fn hooks(object: &Value) -> Option<String> {
    let hooks = annotation(object, HOOK)?.trim().to_ascii_lowercase();
    (hooks != "crd-install").then_some(hooks)
}

/// The events, or the first word that is not an event.
fn events(hooks: &str) -> Result<Vec<Event>, String> {
    let event = |word: &str| {
        Ok(match word {
            "pre-install" => Event::Install { before: true },
            "post-install" => Event::Install { before: false },
            "pre-upgrade" => Event::Upgrade { before: true },
            "post-upgrade" => Event::Upgrade { before: false },
            "pre-delete" => Event::Leaving("pre-delete"),
            "post-delete" => Event::Leaving("post-delete"),
            "pre-rollback" => Event::Leaving("pre-rollback"),
            "post-rollback" => Event::Leaving("post-rollback"),
            "test" | "test-success" | "test-failure" => Event::Test,
            word => return Err(word.to_owned()),
        })
    };
    hooks.split(',').map(|word| event(word.trim())).collect()
}

/// Adds our annotations for what the hook asks for.
fn adapt(object: &mut Value, events: &[Event], occasion: Occasion) {
    let is_job = is(object, "batch", "Job");
    let runs = is_job || is(object, "", "Pod");
    let digest = digest(object);
    let removed = annotation(object, DELETE_POLICY).is_some_and(|policies| {
        policies
            .split(',')
            .any(|policy| policy.trim().eq_ignore_ascii_case("hook-succeeded"))
    });
    let upgrades = events.iter().any(|event| event.is_of(Occasion::Upgrade));
    let phase = |event: &&Event| event.is_of(occasion) && event.is_before() == Some(true);
    let before_now = events.iter().any(|event| phase(&event));
    let before_ever = events.iter().any(|event| event.is_before() == Some(true));
    let Some(annotations) = annotations(object) else {
        return;
    };
    // The order follows from the first phase that is named, which must not be that of another occasion.
    if before_now != before_ever {
        let now = events.iter().filter(|event| event.is_of(occasion));
        let names: Vec<&str> = now.map(|event| event.name()).collect();
        annotations.insert(HOOK.to_owned(), names.join(",").into());
    }
    if runs || upgrades {
        annotations
            .entry(ANNOTATION_RECREATE)
            .or_insert_with(|| "true".into());
    } else {
        annotations
            .entry(ANNOTATION_APPLY)
            .or_insert_with(|| APPLY_CREATE_ONLY.into());
    }
    if is_job {
        job(object, digest, removed);
    }
}

/// A changed Job has to be recreated, because it has run; one with `hook-succeeded` is deleted by its time to live.
fn job(object: &mut Value, digest: String, removed: bool) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if removed {
        spec.entry("ttlSecondsAfterFinished")
            .or_insert(STAYS.into());
    }
    if let Some(annotations) = spec.get_mut("template").and_then(annotations) {
        annotations.insert(ANNOTATION_HOOK.to_owned(), digest.into());
    }
}

fn is(object: &Value, group: &str, kind: &str) -> bool {
    ObjectKey::of(object).is_some_and(|key| key.group == group && key.kind == kind)
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(name)?
        .as_str()
}

/// The annotations, created where there are none; `None` where they are not a map.
fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let mut place = object;
    for field in ["metadata", "annotations"] {
        let map = place.as_object_mut()?;
        let inner = map.entry(field).or_insert(Value::Null);
        if inner.is_null() {
            *inner = Value::Object(Map::new());
        }
        place = inner;
    }
    place.as_object_mut()
}

#[cfg(test)]
mod tests;
