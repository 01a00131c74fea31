//! Random objects that name each other, shared out between two add-ons.

use anyhow::{Result, anyhow};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

/// Objects, in two add-ons.
#[derive(Clone, Debug)]
pub struct Set {
    /// All.
    pub objects: Vec<Value>,
    /// The same in the order of their files.
    pub addons: [Vec<Value>; 2],
}

/// A workload.
#[derive(Clone, Debug)]
struct Workload {
    /// In the Namespace of the set, else at home.
    away: bool,
    account: usize,
    mounts: Vec<usize>,
    /// Whether a webhook configuration calls it.
    called: bool,
}

/// Rights of an account.
#[derive(Clone, Debug)]
struct Binding {
    away: bool,
    /// Whether the account is in the other namespace.
    across: bool,
    account: usize,
    role: usize,
}

impl Set {
    /// Set `number`: the same in every run.
    pub fn random(number: usize, home: &str) -> Result<Self> {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let tree = set(home.to_owned()).new_tree(&mut runner);
        Ok(tree.map_err(|reason| anyhow!("{reason}"))?.current())
    }
}

fn set(home: String) -> impl Strategy<Value = Set> {
    let workload = (
        any::<bool>(),
        0..2usize,
        subsequence(vec![0, 1, 2, 3], 0..4),
        any::<bool>(),
    );
    let workload = workload.prop_map(|(away, account, mounts, called)| Workload {
        away,
        account,
        mounts,
        called,
    });
    let binding = (any::<bool>(), any::<bool>(), 0..2usize, 0..2usize);
    let binding = binding.prop_map(|(away, across, account, role)| Binding {
        away,
        across,
        account,
        role,
    });
    let named = (vec(workload, 2..5), vec(binding, 1..5));
    named
        .prop_flat_map(move |(workloads, bindings)| {
            let objects = objects(&home, &workloads, &bindings);
            let shares = vec(any::<bool>(), objects.len());
            (Just(objects).prop_shuffle(), shares)
        })
        .prop_map(|(objects, shares)| {
            let of = |share: bool| {
                let shared = objects.iter().zip(&shares);
                let own = shared.filter(|(_, to)| **to == share);
                own.map(|(object, _)| object.clone()).collect()
            };
            let addons = [of(true), of(false)];
            Set { objects, addons }
        })
}

fn objects(home: &str, workloads: &[Workload], bindings: &[Binding]) -> Vec<Value> {
    let other = format!("{home}-away");
    let space = |away: bool| if away { other.as_str() } else { home };
    let group = format!("{home}.example.test");
    let mut all = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}),
        definition(&group),
    ];
    for away in [false, true] {
        let member = |api: &str, kind: &str, name: String, rest: Value| {
            let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": space(away)}});
            for (field, value) in rest.as_object().into_iter().flatten() {
                object[field] = value.clone();
            }
            object
        };
        let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
        for i in 0..2 {
            all.extend([
                member("v1", "ServiceAccount", format!("account-{i}"), json!({})),
                member("v1", "ConfigMap", format!("config-{i}"), json!({})),
                member("v1", "Secret", format!("secret-{i}"), json!({})),
                member(
                    "rbac.authorization.k8s.io/v1",
                    "Role",
                    format!("role-{i}"),
                    json!({"rules": [rule]}),
                ),
            ]);
        }
        let api = format!("{group}/v1");
        all.push(member(&api, "Till", "till".to_owned(), json!({})));
    }
    for (i, binding) in bindings.iter().enumerate() {
        all.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": format!("binding-{i}"), "namespace": space(binding.away)},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": format!("role-{}", binding.role)},
            "subjects": [{"kind": "ServiceAccount", "name": format!("account-{}", binding.account),
                "namespace": space(binding.away != binding.across)}],
        }));
    }
    for (i, workload) in workloads.iter().enumerate() {
        let name = format!("work-{i}");
        let namespace = space(workload.away);
        all.push(deployment(&name, namespace, workload));
        if workload.called {
            all.push(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
                "spec": {"selector": {"app": name}, "ports": [{"port": 443}]}}));
            all.push(webhook(&format!("{home}-{i}"), &name, namespace));
        }
    }
    all
}

/// A kind `Till`.
fn definition(group: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("tills.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "tills", "singular": "till", "kind": "Till"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    })
}

fn deployment(name: &str, namespace: &str, workload: &Workload) -> Value {
    let volumes = workload.mounts.iter().map(|mount| match mount / 2 {
        0 => json!({"name": format!("v{mount}"), "configMap": {"name": format!("config-{}", mount % 2)}}),
        _ => json!({"name": format!("v{mount}"), "secret": {"secretName": format!("secret-{}", mount % 2)}}),
    });
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace}, "spec": {
        "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": {
            "serviceAccountName": format!("account-{}", workload.account),
            "containers": [{"name": "main", "image": "example.test/app:1"}],
            "volumes": volumes.collect::<Vec<_>>()}}}})
}

/// A configuration whose rules match nothing: nobody answers for the pods of this cluster.
fn webhook(name: &str, service: &str, namespace: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name},
        "webhooks": [{"name": "guard.example.test", "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"apiGroups": ["nothing.example.test"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]}],
            "clientConfig": {"caBundle": "Zm9v", "service": {"namespace": namespace, "name": service}}}]})
}
