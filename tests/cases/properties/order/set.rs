//! Random add-ons whose objects ask for many orders, also for ones that contradict each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_plan::Target;
use addons_plan::desired::{Desired, DesiredObject};
use common::manifest::FilePosition;
use common::manifest::key::{Gvk, ObjectKey};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// What a random object is made of.
#[derive(Clone, Debug)]
pub struct Spec {
    part: usize,
    kind: &'static str,
    name: &'static str,
    namespace: &'static str,
    wave: Option<i64>,
    after: Option<(&'static str, &'static str)>,
    group: Option<&'static str>,
    rule: Option<(&'static str, &'static str)>,
}

/// Names of the add-ons.
pub const PARTS: [&str; 3] = ["one", "two", "three"];

fn spec() -> impl Strategy<Value = Spec> {
    let kinds = vec![
        "Namespace",
        "ConfigMap",
        "ServiceAccount",
        "Deployment",
        "Service",
        "LimitRange",
        "Till",
        "CustomResourceDefinition",
        "ValidatingWebhookConfiguration",
        "RoleBinding",
    ];
    let names = || select(vec!["a", "b"]);
    (
        0..3usize,
        select(kinds),
        names(),
        select(vec!["a", "b"]),
        weighted(0.2, -1..2i64),
        weighted(
            0.15,
            (select(vec!["ConfigMap", "Deployment", "Till"]), names()),
        ),
        weighted(0.2, select(vec!["g", "h"])),
        weighted(
            0.15,
            (select(vec!["before", "after"]), select(vec!["g", "h"])),
        ),
    )
        .prop_map(
            |(part, kind, name, namespace, wave, after, group, rule)| Spec {
                part,
                kind,
                name,
                namespace,
                wave,
                after,
                group,
                rule,
            },
        )
}

/// Objects, and which part requires which.
pub fn sets() -> impl Strategy<Value = (Vec<Spec>, Vec<Vec<usize>>)> {
    let requires = select(vec![
        vec![vec![], vec![], vec![]],
        vec![vec![1], vec![], vec![]],
        vec![vec![1, 2], vec![], vec![1]],
        vec![vec![1], vec![2], vec![0]],
    ]);
    (vec(spec(), 0..24), requires)
}

impl Spec {
    fn object(&self) -> Value {
        let (api_version, namespaced, spec) = match self.kind {
            "Namespace" => ("v1", false, json!({})),
            "Deployment" => (
                "apps/v1",
                true,
                json!({"template": {
                "metadata": {"labels": {"app": self.name}},
                "spec": {"serviceAccountName": "a", "volumes": [{"configMap": {"name": self.name}}]}}}),
            ),
            "Service" => ("v1", true, json!({"selector": {"app": self.name}})),
            "Till" => ("e.test/v1", true, json!({})),
            "CustomResourceDefinition" => (
                "apiextensions.k8s.io/v1",
                false,
                json!({"group": "e.test", "names": {"kind": "Till"}}),
            ),
            "ValidatingWebhookConfiguration" => {
                ("admissionregistration.k8s.io/v1", false, json!({}))
            }
            "RoleBinding" => ("rbac.authorization.k8s.io/v1", true, json!({})),
            _ => ("v1", true, json!({})),
        };
        let mut annotations = BTreeMap::new();
        if let Some(wave) = self.wave {
            annotations.insert("argocd.argoproj.io/sync-wave", wave.to_string());
        }
        if let Some((kind, name)) = self.after {
            let group = match kind {
                "Deployment" => "apps",
                "Till" => "e.test",
                _ => "",
            };
            annotations.insert(
                "config.kubernetes.io/depends-on",
                format!("{group}/namespaces/a/{kind}/{name}"),
            );
        }
        if let Some(group) = self.group {
            annotations.insert("kapp.k14s.io/change-group", group.to_owned());
        }
        if let Some((order, group)) = self.rule {
            annotations.insert(
                "kapp.k14s.io/change-rule",
                format!("upsert {order} upserting {group}"),
            );
        }
        let mut object = json!({"apiVersion": api_version, "kind": self.kind,
            "metadata": {"name": self.name, "annotations": annotations}, "spec": spec,
            "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": self.namespace}],
            "webhooks": [{"clientConfig": {"service": {"name": "a", "namespace": "a"}},
                "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]}]});
        if namespaced {
            object["metadata"]["namespace"] = json!(self.namespace);
        }
        object
    }
}

/// The parts; a key that another part has already is left out, but for Namespaces.
pub fn desired(specs: &[Spec]) -> Vec<Desired> {
    let mut parts = vec![Desired::default(); PARTS.len()];
    let mut seen = BTreeSet::new();
    for (spec, line) in specs.iter().zip(1..) {
        let object = spec.object();
        let key = ObjectKey::from_object(&object).unwrap_or_default();
        if key.kind != "Namespace" && !seen.insert(key.clone()) {
            continue;
        }
        let gvk = Gvk::of(&object).unwrap_or_default();
        let desired = DesiredObject {
            target: Target {
                key: key.clone(),
                version: gvk.version,
                plural: format!("{}s", gvk.kind.to_lowercase()),
            },
            object: Arc::new(object),
            digest: String::new(),
            is_shared: false,
            create_only: false,
            place: FilePosition {
                file: "m.yaml".to_owned(),
                line,
                column: 0,
            },
        };
        parts[spec.part].objects.entry(key).or_insert(desired);
    }
    parts
}
