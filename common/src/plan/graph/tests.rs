//! Manifests in, edges out.

mod annotated;
mod implied;
mod weak;

use std::fmt::Write as _;

use super::*;
use crate::manifest::key::Gvk;
use crate::manifest::kinds::{KindInfo, KindTable};
use crate::manifest::parse::{Limits, parse};
use crate::plan::InstallationName;
use crate::plan::desired::DesiredContext;

/// Wanted objects of a manifest. A kind is namespaced where the manifest gives one of its objects a namespace.
pub(super) fn desired(yaml: &str) -> Desired {
    let parsed = parse(yaml.as_bytes(), "m.yaml", &Limits::default()).unwrap();
    let mut kinds = KindTable::default();
    for manifest in &parsed.manifests {
        let gvk = Gvk::of(&manifest.object).unwrap();
        let info = KindInfo {
            plural: format!("{}s", gvk.kind.to_lowercase()),
            namespaced: manifest.object.pointer("/metadata/namespace").is_some(),
            writable: true,
            has_status: false,
        };
        kinds.insert(&gvk, info);
    }
    let installation = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "web".to_owned(),
    };
    Desired::new(
        parsed.manifests,
        &DesiredContext {
            installation: &installation,
            target_namespace: "web",
            kinds: &kinds,
        },
    )
    .unwrap()
}

/// One add-on called `web`.
fn graph(yaml: &str) -> Result<Graph, Cycle> {
    Graph::new(&[Part {
        name: "web",
        desired: &desired(yaml),
        requires: &[],
    }])
}

/// The edges as text, sorted.
fn lines(graph: &Graph) -> Vec<String> {
    let mut lines: Vec<String> = graph
        .edges
        .iter()
        .map(|edge| {
            let mut line = String::new();
            let (from, to) = (&graph.nodes[edge.from], &graph.nodes[edge.to]);
            let _ = write!(line, "{from} -> {to}: {} {:?}", edge.reason, edge.until);
            line
        })
        .collect();
    lines.sort();
    lines
}

#[track_caller]
fn check(yaml: &str, expect: &[&str]) {
    let graph = graph(yaml).unwrap();
    let mut expect = expect.to_vec();
    expect.sort_unstable();
    assert_eq!(lines(&graph), expect);
}

/// An object with annotations, all in namespace n.
fn annotated(kind: &str, name: &str, annotations: &[(&str, &str)]) -> String {
    let api_version = match kind {
        "Job" => "batch/v1",
        "Deployment" => "apps/v1",
        _ => "v1",
    };
    let mut text = format!(
        "---\napiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {name}\n  namespace: ns\n  annotations:\n    x: z\n"
    );
    for (annotation, value) in annotations {
        let _ = writeln!(text, "    {annotation}: {value:?}");
    }
    text
}
