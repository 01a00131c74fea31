//! Phases and waves: `argocd.argoproj.io/sync-wave` and `…/hook` as Argo CD v3.5 reads them (gitops-engine/pkg/sync), and `helm.sh/hook`
//! with `helm.sh/hook-weight`, which Argo CD reads in the same way.

use serde_json::{Map, Value};

use super::text;

const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
const SYNC_HOOK: &str = "argocd.argoproj.io/hook";
const HELM_HOOK: &str = "helm.sh/hook";
const HELM_WEIGHT: &str = "helm.sh/hook-weight";

/// The stage of an add-on in which an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) struct ApplyStage {
    /// The phase relative to the objects that are not hooks.
    pub phase: HookPhase,
    /// The wave, or the hook weight.
    pub wave: i64,
    /// The tool that defines the annotation.
    pub tool: StageTool,
}

/// A phase relative to the objects that are not hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::graph) enum HookPhase {
    /// Definitions from `crds/` of a chart. Helm applies them before any hook; no annotation requests this phase.
    Definitions,
    /// Before them: `PreSync`, `pre-install`, `pre-upgrade`.
    Before,
    /// With them: not a hook, or `Sync`.
    With,
    /// After them: `PostSync`, `post-install`, `post-upgrade`.
    After,
}

/// The tool that defines an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum StageTool {
    /// Argo CD.
    Argo,
    /// Helm.
    Helm,
}

/// Reads the stage of an object and collects warnings. Returns `None` if no annotation sets a stage.
pub(super) fn read(
    annotations: &Map<String, Value>,
    warnings: &mut Vec<String>,
) -> Option<ApplyStage> {
    let argo = text(annotations, SYNC_HOOK).and_then(|hooks| {
        parse_phase(hooks, |hook| match hook {
            "PreSync" => Some(HookPhase::Before),
            "Sync" => Some(HookPhase::With),
            "PostSync" => Some(HookPhase::After),
            _ => None,
        })
    });
    // Helm 2 marked CRDs as crd-install. They are not hooks, and Argo CD ignores the value as well.
    let hooks = text(annotations, HELM_HOOK).filter(|hooks| *hooks != "crd-install");
    let helm = hooks.filter(|_| argo.is_none()).and_then(|hooks| {
        parse_phase(hooks, |hook| match hook {
            "pre-install" | "pre-upgrade" => Some(HookPhase::Before),
            "post-install" | "post-upgrade" => Some(HookPhase::After),
            _ => None,
        })
    });
    let wave = parse_number(annotations, SYNC_WAVE, warnings);
    let weight = hooks.and_then(|_| parse_number(annotations, HELM_WEIGHT, warnings));
    let said = argo.is_some() || wave.is_some();
    let phase = argo.or(helm);
    if phase.is_none() && wave.is_none() {
        return None;
    }
    Some(ApplyStage {
        phase: phase.unwrap_or(HookPhase::With),
        wave: wave.or(weight).unwrap_or_default(),
        tool: if said {
            StageTool::Argo
        } else {
            StageTool::Helm
        },
    })
}

/// Returns the first phase of a list of hooks, because an object is applied only once. Hooks for other occasions than install and upgrade
/// were left out when the object was rendered (`addons_render::hooks`).
fn parse_phase(hooks: &str, known: impl Fn(&str) -> Option<HookPhase>) -> Option<HookPhase> {
    hooks.split(',').map(str::trim).filter_map(known).min()
}

/// Reads a whole number as Go's strconv.Atoi does. Both tools take 0 for anything else.
fn parse_number(
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
