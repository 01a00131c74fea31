//! Indexes of kops: entries keep the name and the place that they have.

use common::catalogue::channel::parse;

const TOKENS: &[&str] = &[
    "kind: Addons\n",
    "metadata:\n",
    "  name: ",
    "spec:\n",
    "  addons:\n",
    "  - ",
    "version: ",
    "manifest: ",
    "manifestHash: ",
    "id: ",
    "kubernetesVersion: ",
    "selector:\n",
    "needsRollingUpdate: ",
    "prune:\n",
    "kinds:\n",
    ">=1.30.0 <1.37.0",
    "null",
    "[]",
    "{}",
    "1.10",
    "---\n",
];

const SEED: &str = "kind: Addons
metadata:
  name: test
spec:
  addons:
  - name: dns
    version: 1.2.0
    id: k8s-1.6
    kubernetesVersion: '>=1.6.0 <1.30.0'
    manifest: dns/v1.yaml
    manifestHash: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    selector: {k8s-addon: dns}
    needsRollingUpdate: all
    prune:
      kinds:
      - kind: ConfigMap
        labelSelector: k8s-addon=dns
        namespaces: [kube-system]
";

#[test]
fn index() {
    let listed = include_bytes!("../../data/cli/index.yaml");
    let seeds = vec![SEED.into(), listed.to_vec()];
    super::mutant::run("fuzz::index", seeds, TOKENS, |bytes| {
        if let Ok(channel) = parse(bytes, "https://example.test/index.yaml") {
            let addons = channel.spec.addons;
            assert!(addons.iter().all(|addon| !addon.versions.is_empty()));
            let mut names: Vec<&str> = addons.iter().map(|addon| addon.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(
                names.len(),
                addons.len(),
                "entries of one name stand together"
            );
        }
    });
}
