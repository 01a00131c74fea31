//! Phases and waves: `argocd.argoproj.io/sync-wave` and `…/hook` as Argo CD v3.5 reads them (gitops-engine/pkg/sync), and
//! `helm.sh/hook` with `helm.sh/hook-weight`, which Argo CD reads too, and in the same way.

use serde_json::{Map, Value};

use super::text;

const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
const SYNC_HOOK: &str = "argocd.argoproj.io/hook";
const HELM_HOOK: &str = "helm.sh/hook";
const HELM_WEIGHT: &str = "helm.sh/hook-weight";

/// When in its add-on an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) struct Stage {
    /// Before, with, or after all that is not a hook.
    pub phase: Phase,
    /// The wave, or the weight of a hook.
    pub wave: i64,
    /// The tool of the annotation.
    pub tool: Tool,
}

/// Before, with, or after all that is not a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::graph) enum Phase {
    /// `crds/` of a chart, which helm applies before any hook: no annotation says it.
    Definitions,
    /// `PreSync`, `pre-install`, `pre-upgrade`.
    Before,
    /// No hook.
    With,
    /// `PostSync`, `post-install`, `post-upgrade`.
    After,
}

/// Whose annotation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Tool {
    /// Argo CD.
    Argo,
    /// Helm.
    Helm,
}

/// The stage of an object that has one, and warnings.
pub(super) fn read(annotations: &Map<String, Value>, warnings: &mut Vec<String>) -> Option<Stage> {
    let argo = text(annotations, SYNC_HOOK).and_then(|hooks| {
        phase(hooks, |hook| match hook {
            "PreSync" => Some(Phase::Before),
            "Sync" => Some(Phase::With),
            "PostSync" => Some(Phase::After),
            _ => None,
        })
    });
    // Helm 2 called definitions crd-install: they were not hooks, and Argo CD ignores them, too.
    let hooks = text(annotations, HELM_HOOK).filter(|hooks| *hooks != "crd-install");
    let helm = hooks.filter(|_| argo.is_none()).and_then(|hooks| {
        phase(hooks, |hook| match hook {
            "pre-install" | "pre-upgrade" => Some(Phase::Before),
            "post-install" | "post-upgrade" => Some(Phase::After),
            _ => None,
        })
    });
    let wave = number(annotations, SYNC_WAVE, warnings);
    let weight = hooks.and_then(|_| number(annotations, HELM_WEIGHT, warnings));
    let said = argo.is_some() || wave.is_some();
    let phase = argo.or(helm);
    if phase.is_none() && wave.is_none() {
        return None;
    }
    Some(Stage {
        phase: phase.unwrap_or(Phase::With),
        wave: wave.or(weight).unwrap_or_default(),
        tool: if said { Tool::Argo } else { Tool::Helm },
    })
}

/// The first phase of a list of hooks: an object is applied once. Hooks of other occasions than install and upgrade were left out
/// when the object was rendered (`addons_render::hooks`).
fn phase(hooks: &str, known: impl Fn(&str) -> Option<Phase>) -> Option<Phase> {
    hooks.split(',').map(str::trim).filter_map(known).min()
}

/// A whole number, as Go's strconv.Atoi reads it; for anything else both tools take 0.
fn number(
    annotations: &Map<String, Value>,
    annotation: &str,
    warnings: &mut Vec<String>,
) -> Option<i64> {
    let text = text(annotations, annotation)?;
    Some(text.parse().unwrap_or_else(|_| {
        warnings.push(format!(
            "annotation {annotation}: {text:?} is not a whole number and counts as 0"
        ));
        0
    }))
}
