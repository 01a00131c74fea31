//! Selects the rendered objects that an installation or upgrade applies. `helm template` prints hooks for other occasions as well, and
//! people save its output as a manifest, so the rules are the same for charts, templates and plain manifests.
//!
//! | annotation | in its own tool | here |
//! |---|---|---|
//! | `config.kubernetes.io/local-config`, but for `"false"` | kustomize and kpt leave it out | left out with a warning |
//! | `argocd.argoproj.io/hook` without `PreSync`, `Sync` or `PostSync`: `PreDelete`, `PostDelete`, `SyncFail`, `Skip` | Argo CD applies it
//! on that occasion, or never | left out with a warning |
//! | `helm.sh/hook` | runs at its occasion | see below |
//!
//! The second table shows what the policies of Helm's hooks mean for objects in an inventory. `addons_plan::graph` determines their order
//! from `helm.sh/hook` and `helm.sh/hook-weight`: before or after everything else, by weight, each waited for.
//!
//! | `helm.sh/hook` | in Helm | here |
//! |---|---|---|
//! | `test` | run by `helm test` | left out, with a warning unless it is in a chart |
//! | `pre-delete`, `post-delete`, `pre-rollback`, `post-rollback` | run on that occasion | left out with a warning: for a chart,
//! `template.helm.mode: release` runs them |
//! | an unknown hook | left out | left out with a warning |
//! | `pre-upgrade`, `post-upgrade` alone | do not run at an installation | left out of the first one, and of repairs |
//! | `pre-install`, `post-install` alone | do not run at an upgrade; objects that they created stay for ever | left out of upgrades: Jobs
//! and Pods, which have run, are pruned; everything else is created once and stays |
//! | both | run each time | applied; run again when changed |
//! | one of these alone, if only edits are repaired | – | neither an installation nor an upgrade: nothing runs, and objects that have run
//! stay |
//! | `before-hook-creation` (the default) | recreated each time | a Job or Pod is recreated if it changed; other objects are updated in
//! place, and recreated if a field cannot change |
//! | `hook-succeeded` | deleted at once | a Job is deleted ten minutes after its end, and created again only if it changed; other kinds
//! stay until the add-on is uninstalled, or upgraded to a version without them |
//! | `hook-failed` | deleted at once | stays, so that the cause can be examined |
//! | `helm.sh/resource-policy: keep` | stays | stays (`addons_plan::prune::keep`) |
//! | `crd-install` (Helm 2) | not a hook | not a hook |

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use common::api::catalogue::Method;
use common::api::names::{
    ANNOTATION_APPLY, ANNOTATION_HOOK, ANNOTATION_RECREATE, APPLY_CREATE_ONLY,
};
use common::manifest::digest::digest;
use common::manifest::key::ObjectKey;
use common::manifest::{FilePosition, Manifest};

const HOOK: &str = "helm.sh/hook";
const ARGO_HOOK: &str = "argocd.argoproj.io/hook";
/// Hooks of Argo CD that are part of each synchronisation.
const SYNC: [&str; 3] = ["PreSync", "Sync", "PostSync"];
/// Hooks of Argo CD that are not part of a synchronisation.
const NO_SYNC: [&str; 4] = ["PreDelete", "PostDelete", "SyncFail", "Skip"];
const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";
const DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
/// Seconds for which a Job stays that its chart deletes after success: enough to read its logs.
const STAYS: u64 = 600;

/// The occasion for which objects are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Occasion {
    /// An installation: nothing was installed before.
    Install,
    /// An upgrade: another version was installed before.
    Upgrade,
    /// A repair: only objects that others edited or deleted are restored. No hook of an installation or upgrade runs.
    Repair,
}

/// The result of selecting objects for an occasion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookSelection {
    /// The selected objects, in the order of the input.
    pub manifests: Vec<Manifest>,
    /// Omitted objects that users may miss.
    pub left_out: Vec<OmittedObject>,
    /// Hooks of installations or upgrades that a repair leaves out. Those that have run stay.
    pub resting: Vec<ObjectKey>,
}

/// An object that is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OmittedObject {
    /// The position where it was read.
    pub place: FilePosition,
    /// Kind, namespace and name.
    pub key: String,
    /// Why it is not applied.
    pub why: String,
}

impl fmt::Display for OmittedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, key, why } = self;
        write!(f, "{place}: {key} is left out: {why}")
    }
}

/// The event at which a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HookEvent {
    /// Installation; `before` distinguishes `pre-` from `post-`.
    Install {
        before: bool,
    },
    Upgrade {
        before: bool,
    },
    /// An event that is neither an installation nor an upgrade, by name.
    Other(&'static str),
    Test,
}

/// Leaves out objects that an installation or upgrade does not apply, and translates the policies of hooks to our annotations.
#[must_use]
pub fn select_for_occasion(
    manifests: Vec<Manifest>,
    occasion: Occasion,
    method: Method,
) -> HookSelection {
    let mut kept = HookSelection::default();
    for mut manifest in manifests {
        if let Some(why) = reason_never_applied(&manifest.object) {
            kept.omit(manifest, why);
            continue;
        }
        let Some(hooks) = hook_names(&manifest.object) else {
            kept.manifests.push(manifest);
            continue;
        };
        match parse_events(&hooks) {
            Err(unknown) => {
                let why = format!("{unknown:?} is not a hook of Helm, which ignores it, too");
                kept.omit(manifest, why);
            }
            Ok(events) if is_applied(&events, occasion) => {
                add_annotations(Arc::make_mut(&mut manifest.object), &events, occasion);
                kept.manifests.push(manifest);
            }
            Ok(events) => {
                if let Some(why) = reason_other_event(&events, method) {
                    kept.omit(manifest, why);
                } else if occasion == Occasion::Repair {
                    kept.resting
                        .extend(ObjectKey::from_object(&manifest.object));
                }
            }
        }
    }
    kept
}

/// Returns whether a hook is applied. A repair applies only hooks of both installations and upgrades.
fn is_applied(events: &[HookEvent], occasion: Occasion) -> bool {
    let is_of = |occasion| events.iter().any(|event| event.runs_at(occasion));
    match occasion {
        Occasion::Repair => is_of(Occasion::Install) && is_of(Occasion::Upgrade),
        occasion => is_of(occasion),
    }
}

/// Returns why no installation or upgrade applies an object, according to annotations of tools other than Helm.
fn reason_never_applied(object: &Value) -> Option<String> {
    if annotation(object, LOCAL_CONFIG).is_some_and(|value| value != "false") {
        return Some(format!("{LOCAL_CONFIG} says that it is not for a cluster"));
    }
    let text = annotation(object, ARGO_HOOK)?;
    let words = || text.split(',').map(str::trim);
    // Argo CD follows Helm's hooks if it knows none of the hooks in its own annotation.
    let is_known =
        words().any(|word| NO_SYNC.contains(&word)) || annotation(object, HOOK).is_none();
    let is_left_out = is_known
        && words().any(|word| !word.is_empty())
        && !words().any(|word| SYNC.contains(&word));
    is_left_out.then(|| format!("{ARGO_HOOK}: {text} is not applied by an installation or upgrade"))
}

/// Returns why a hook is left out that is only for other events than installations and upgrades, if users may miss it.
fn reason_other_event(events: &[HookEvent], method: Method) -> Option<String> {
    let mut names = events.iter().filter_map(|event| match event {
        HookEvent::Other(name) => Some(*name),
        HookEvent::Test if method != Method::Helm => Some(event.name()),
        _ => None,
    });
    let name = names.next()?;
    Some(match method {
        Method::Helm => {
            format!("it is a hook of {name}, which only runs with template.helm.mode: release")
        }
        Method::Manifest | Method::GoTemplate => {
            format!("it is a hook of {name}, not of an installation or upgrade")
        }
    })
}

impl HookSelection {
    fn omit(&mut self, manifest: Manifest, why: String) {
        let key = ObjectKey::from_object(&manifest.object);
        self.left_out.push(OmittedObject {
            place: manifest.place,
            key: key.map_or_else(String::new, |key| key.to_string()),
            why,
        });
    }
}

impl HookEvent {
    fn runs_at(self, occasion: Occasion) -> bool {
        matches!(
            (self, occasion),
            (Self::Install { .. }, Occasion::Install)
                | (Self::Upgrade { .. }, Occasion::Upgrade | Occasion::Repair)
        )
    }

    /// Returns whether the hook runs before all objects that are not hooks; `None` for events other than installations and upgrades.
    fn is_before(self) -> Option<bool> {
        match self {
            Self::Install { before } | Self::Upgrade { before } => Some(before),
            Self::Other(_) | Self::Test => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Install { before: true } => "pre-install",
            Self::Install { before: false } => "post-install",
            Self::Upgrade { before: true } => "pre-upgrade",
            Self::Upgrade { before: false } => "post-upgrade",
            Self::Other(name) => name,
            Self::Test => "test",
        }
    }
}

/// Returns the value of `helm.sh/hook`, or `None` if the object is not a hook.
fn hook_names(object: &Value) -> Option<String> {
    let hooks = annotation(object, HOOK)?.trim().to_ascii_lowercase();
    (hooks != "crd-install").then_some(hooks)
}

/// Parses the events, or returns the first word that is not an event.
fn parse_events(hooks: &str) -> Result<Vec<HookEvent>, String> {
    let event = |word: &str| {
        Ok(match word {
            "pre-install" => HookEvent::Install { before: true },
            "post-install" => HookEvent::Install { before: false },
            "pre-upgrade" => HookEvent::Upgrade { before: true },
            "post-upgrade" => HookEvent::Upgrade { before: false },
            "pre-delete" => HookEvent::Other("pre-delete"),
            "post-delete" => HookEvent::Other("post-delete"),
            "pre-rollback" => HookEvent::Other("pre-rollback"),
            "post-rollback" => HookEvent::Other("post-rollback"),
            "test" | "test-success" | "test-failure" => HookEvent::Test,
            word => return Err(word.to_owned()),
        })
    };
    hooks.split(',').map(|word| event(word.trim())).collect()
}

/// Adds our annotations for the policies of the hook.
fn add_annotations(object: &mut Value, events: &[HookEvent], occasion: Occasion) {
    let is_job = is_kind(object, "batch", "Job");
    let runs = is_job || is_kind(object, "", "Pod");
    let digest = digest(object);
    let removed = annotation(object, DELETE_POLICY).is_some_and(|policies| {
        policies
            .split(',')
            .any(|policy| policy.trim().eq_ignore_ascii_case("hook-succeeded"))
    });
    let upgrades = events.iter().any(|event| event.runs_at(Occasion::Upgrade));
    let phase = |event: &&HookEvent| event.runs_at(occasion) && event.is_before() == Some(true);
    let before_now = events.iter().any(|event| phase(&event));
    let before_ever = events.iter().any(|event| event.is_before() == Some(true));
    let Some(annotations) = annotations(object) else {
        return;
    };
    // The order follows from the first event named, so other occasions are removed if they would change it.
    if before_now != before_ever {
        let now = events.iter().filter(|event| event.runs_at(occasion));
        let names: Vec<&str> = now.map(|event| event.name()).collect();
        annotations.insert(HOOK.to_owned(), names.join(",").into());
    }
    // Helm deletes objects with `hook-succeeded` at once, so nothing relies on them afterwards.
    if runs || upgrades || removed {
        annotations
            .entry(ANNOTATION_RECREATE)
            .or_insert_with(|| "true".into());
    } else {
        annotations
            .entry(ANNOTATION_APPLY)
            .or_insert_with(|| APPLY_CREATE_ONLY.into());
    }
    if is_job {
        adapt_job(object, digest, removed);
    }
}

/// A changed Job has to be recreated, because it has run. One with `hook-succeeded` is deleted by its time to live.
fn adapt_job(object: &mut Value, digest: String, removed: bool) {
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

fn is_kind(object: &Value, group: &str, kind: &str) -> bool {
    ObjectKey::from_object(object).is_some_and(|key| key.group == group && key.kind == kind)
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(name)?
        .as_str()
}

/// Returns the annotations, created if missing, or `None` if they are not a map.
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
