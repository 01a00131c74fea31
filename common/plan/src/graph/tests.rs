//! Manifests in, edges out.

mod annotated;
mod implied;
mod weak;

use std::fmt::Write as _;

use super::*;
use crate::desired::DesiredContext;
use common::api::names::InstallationName;
use common::manifest::key::Gvk;
use common::manifest::kinds::{KindInfo, KindTable};
use common::manifest::parse::{ManifestOptions, parse};
use common::values::mask::SecretMask;

/// Wanted objects of a manifest. A kind is namespaced where the manifest gives one of its objects a namespace.
pub(crate) fn desired(yaml: &str) -> Desired {
    let parsed = parse(yaml.as_bytes(), "m.yaml", &ManifestOptions::default()).unwrap();
    let mut kinds = KindTable::default();
    for manifest in &parsed.manifests {
        let gvk = Gvk::of(&manifest.object).unwrap();
        let info = KindInfo {
            plural: format!("{}s", gvk.kind.to_lowercase()),
            singular: gvk.kind.to_lowercase(),
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
            mask: &SecretMask::default(),
        },
    )
    .unwrap()
}

/// One add-on called `web`.
fn graph(yaml: &str) -> Result<Graph, Cycle> {
    Graph::new(&[GraphPart {
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

#[test]
fn parts_before_another_are_listed_with_reasons() {
    let definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: tills.shop.example}, \
         spec: {group: shop.example, names: {kind: Till, plural: tills}, versions: [{name: v1, served: true}]}}";
    let till = format!(
        "{definition}\n---\n{{apiVersion: shop.example/v1, kind: Till, metadata: {{name: a, namespace: web}}}}"
    );
    let mut with_till = desired(&till);
    with_till.objects.retain(|key, _| key.kind == "Till");
    let config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: web}}";
    let parts = [desired(definition), with_till, desired(config)];
    let requires: [&[usize]; 3] = [&[], &[], &[1]];
    let parts: Vec<GraphPart<'_>> = parts
        .iter()
        .zip(requires)
        .zip(["one", "two", "three"])
        .map(|((desired, requires), name)| GraphPart {
            name,
            desired,
            requires,
        })
        .collect();
    let graph = Graph::new(&parts).unwrap();
    let before = |part| -> Vec<(usize, Vec<EdgeReason>)> {
        let before = graph.parts_before(part).into_iter();
        before
            .map(|(other, reasons)| (other, reasons.into_iter().collect()))
            .collect()
    };
    assert_eq!(before(0), []);
    assert_eq!(before(1), [(0, vec![EdgeReason::Definition])]);
    assert_eq!(before(2), [(1, vec![EdgeReason::Requires])]);
}
