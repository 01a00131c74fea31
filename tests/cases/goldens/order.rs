//! The order of real add-ons: no set of the corpus has a cycle, and what is known of some of them is kept.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a corpus that cannot be read fails them"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use addons_plan::desired::{Desired, DesiredContext};
use addons_plan::graph::draw::{to_dot, to_mermaid};
use addons_plan::graph::{Graph, GraphPart};
use addons_tests::shared;
use addons_tests::tally::Tally;
use common::api::names::InstallationName;
use common::manifest::Manifest;
use common::manifest::key::Gvk;
use common::manifest::kinds::{KindInfo, KindTable};
use common::manifest::parse::{ManifestOptions, parse};
use common::values::mask::SecretMask;

/// A kind is namespaced where an object of it, in any set, has a namespace; its plural is guessed. Real discovery knows it
/// better, and nothing here depends on it but rules of webhooks, which all name plurals of the simple form.
fn desired(manifests: Vec<Manifest>) -> Desired {
    let mut kinds = KindTable::default();
    let namespaced: BTreeSet<Gvk> = manifests
        .iter()
        .filter(|manifest| manifest.object.pointer("/metadata/namespace").is_some())
        .filter_map(|manifest| Gvk::of(&manifest.object))
        .collect();
    for manifest in &manifests {
        let gvk = Gvk::of(&manifest.object).unwrap();
        let info = KindInfo {
            plural: format!("{}s", gvk.kind.to_lowercase()),
            singular: gvk.kind.to_lowercase(),
            namespaced: namespaced.contains(&gvk),
            writable: true,
            has_status: false,
        };
        kinds.insert(&gvk, info);
    }
    let installation = InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "web".to_owned(),
    };
    let context = DesiredContext {
        installation: &installation,
        target_namespace: "kube-system",
        kinds: &kinds,
        mask: &SecretMask::default(),
    };
    Desired::new(manifests, &context).unwrap()
}

fn graph(parts: &[(String, Desired)]) -> Graph {
    let parts: Vec<GraphPart<'_>> = parts
        .iter()
        .map(|(name, desired)| GraphPart {
            name,
            desired,
            requires: &[],
        })
        .collect();
    Graph::new(&parts).unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|end| end == "yaml" || end == "yml")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Each file is an add-on of one command: in a kops cluster, each folder has one file, the version for that cluster. The index
/// itself is no manifest.
fn parts(corpus: &Path, set: &str) -> Vec<(String, Desired)> {
    let files = files(&corpus.join(set));
    let files = files
        .iter()
        .filter(|file| !file.ends_with("bootstrap-channel.yaml"));
    let part = |file: &PathBuf| {
        let name = file.strip_prefix(corpus).unwrap().display().to_string();
        let bytes = std::fs::read(file).unwrap();
        let parsed = parse(&bytes, &name, &ManifestOptions::default()).unwrap();
        (name, desired(parsed.manifests))
    };
    files.map(part).collect()
}

/// `FROM -> TO: REASON` of every edge.
fn lines(graph: &Graph) -> BTreeSet<String> {
    let line = |edge: &addons_plan::graph::Edge| {
        let (from, to) = (&graph.nodes[edge.from], &graph.nodes[edge.to]);
        format!("{from} -> {to}: {}", edge.reason)
    };
    graph.edges.iter().map(line).collect()
}

#[test]
fn no_set_of_the_corpus_has_a_cycle() {
    let mut tally = Tally::new("goldens::order no cycle");
    let Some(corpus) = shared::path("corpus") else {
        return tally.left_out("../shared/corpus is not beside the checkout");
    };
    let mut sets = vec![
        "upstream/metallb/v0.13.7".to_owned(),
        "upstream/metallb/v0.16.1".to_owned(),
        "upstream/calico/v3.30.0".to_owned(),
        "upstream/calico/v3.31.0".to_owned(),
        "upstream/ingress-nginx/v1.12.0".to_owned(),
        "upstream/ingress-nginx/v1.15.1".to_owned(),
        "upstream/prometheus-operator/v0.80.0".to_owned(),
        "upstream/cert-manager-crds/v1.21.1".to_owned(),
        "upstream/metrics-server/v0.9.0".to_owned(),
    ];
    for entry in std::fs::read_dir(corpus.join("kops")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("legacy") {
            sets.push(format!(
                "kops/{}",
                path.file_name().unwrap().to_string_lossy()
            ));
        }
    }
    sets.sort();
    for set in sets {
        let parts = parts(&corpus, &set);
        let graph = graph(&parts);
        let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
        assert!(to_dot(&graph, &names).ends_with("}\n"), "{set}");
        assert!(
            to_mermaid(&graph, &names).starts_with("flowchart LR\n"),
            "{set}"
        );
        let objects: usize = parts.iter().map(|(_, desired)| desired.objects.len()).sum();
        assert!(graph.nodes.len() >= objects, "{set}");
        tally.ran();
    }
}

/// What somebody who reads the manifests would say.
#[test]
fn known_orders_are_kept() {
    let mut tally = Tally::new("goldens::order known");
    let rows: [(&str, &[&str]); 6] = [
        (
            "upstream/metallb/v0.16.1",
            &[
                // The configuration calls metallb-webhook-service, behind which stands the controller.
                "metallb-system/Deployment controller -> ValidatingWebhookConfiguration metallb-webhook-configuration: backend",
                "metallb-system/Service metallb-webhook-service -> ValidatingWebhookConfiguration metallb-webhook-configuration: backend",
                "metallb-system/Secret metallb-webhook-cert -> metallb-system/Deployment controller: reference",
                "ClusterRoleBinding metallb-system:speaker -> metallb-system/DaemonSet speaker: rights",
                "Namespace metallb-system -> metallb-system/DaemonSet speaker: namespace",
            ],
        ),
        (
            "upstream/ingress-nginx/v1.15.1",
            &[
                "ingress-nginx/Deployment ingress-nginx-controller -> ValidatingWebhookConfiguration ingress-nginx-admission: backend",
                "ingress-nginx/ServiceAccount ingress-nginx-admission -> ingress-nginx/Job ingress-nginx-admission-create: reference",
                "ClusterRole ingress-nginx -> ClusterRoleBinding ingress-nginx: rights",
            ],
        ),
        (
            "upstream/metrics-server/v0.9.0",
            &[
                "kube-system/Deployment metrics-server -> APIService v1beta1.metrics.k8s.io: backend",
                "kube-system/Service metrics-server -> APIService v1beta1.metrics.k8s.io: backend",
            ],
        ),
        (
            "upstream/calico/v3.31.0",
            &[
                "kube-system/ConfigMap calico-config -> kube-system/DaemonSet calico-node: reference",
                "kube-system/ServiceAccount calico-node -> kube-system/DaemonSet calico-node: reference",
            ],
        ),
        (
            "upstream/prometheus-operator/v0.80.0",
            &[
                "ClusterRoleBinding prometheus-operator -> default/Deployment prometheus-operator: rights",
            ],
        ),
        (
            // The load balancer's webhook needs a certificate that cert-manager makes when its own webhook answers.
            "kops/many-addons",
            &[
                "CustomResourceDefinition certificates.cert-manager.io -> kube-system/Certificate aws-load-balancer-serving-cert: definition",
                "ValidatingWebhookConfiguration cert-manager-webhook -> kube-system/Certificate aws-load-balancer-serving-cert: judge",
                "kube-system/Deployment cert-manager-webhook -> ValidatingWebhookConfiguration cert-manager-webhook: backend",
                "kube-system/Certificate aws-load-balancer-serving-cert -> MutatingWebhookConfiguration aws-load-balancer-webhook: backend",
                "kube-system/Deployment aws-load-balancer-controller -> MutatingWebhookConfiguration aws-load-balancer-webhook: backend",
            ],
        ),
    ];
    for (file, expect) in rows {
        let Some(corpus) = shared::path("corpus") else {
            tally.left_out(format!(
                "{file}: ../shared/corpus is not beside the checkout"
            ));
            continue;
        };
        let lines = lines(&graph(&parts(&corpus, file)));
        for line in expect {
            assert!(
                lines.contains(*line),
                "{file}: {line} is not among {lines:#?}"
            );
            tally.ran();
        }
    }
}
