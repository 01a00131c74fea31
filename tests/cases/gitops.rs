//! Installations and catalogues that live in Git: Argo CD and Flux apply them, we install them, and neither undoes what the other wrote
//! (semantics 10, 12).

mod atomic;
mod dropped;
mod page;
mod refused;
mod unchanged;

use addons_tests::stage::Stage;
use addons_tests::webhook::Webhook;
use anyhow::Result;
use serde_json::{Value, json};

/// A way in which a tool applies what lies in Git.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    flags: &'static [&'static str],
}

/// Argo CD applies by client-side apply unless it is told otherwise; Flux by server-side apply; people by both.
const WAYS: [Way; 4] = [
    Way {
        name: "argocd",
        flags: &["--field-manager=argocd-controller"],
    },
    Way {
        name: "argocd-server-side",
        flags: &["--server-side", "--field-manager=argocd-controller"],
    },
    Way {
        name: "flux",
        flags: &["--server-side", "--field-manager=kustomize-controller"],
    },
    Way {
        name: "kubectl",
        flags: &[],
    },
];

/// The webhook, for the catalogues and installations of the stage.
async fn webhook(stage: &Stage) -> Result<Webhook> {
    let system = format!("--system-namespace={}", stage.namespace);
    Webhook::start(&stage.cluster, &[&system]).await
}

/// What Git holds of it is applied, again and again.
async fn apply(stage: &Stage, object: &Value, flags: &[&str]) -> Result<()> {
    let args = [&["apply", "-f", "-", "-n", &stage.namespace][..], flags].concat();
    let applied = stage
        .plugin
        .kubectl_with_input(&args, &object.to_string())
        .await?;
    applied.done().map(drop)
}

/// The Secret that [`full`] reads values from.
async fn secret(stage: &Stage) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"},
        "stringData": {"values": "extra: []"},
    });
    stage.apply(&secret.to_string()).await
}

/// A catalogue with an add-on of one ConfigMap, whose form and values have defaults.
fn catalogue(stage: &Stage) -> Value {
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Variables.name }}\n\
        data:\n  host: \"{{ .Variables.host }}\"\n  replicas: \"{{ .Variables.spec.replicas }}\"\n  level: \"{{ .Variables.level }}\"\n";
    let version = |version: &str, level: &str| {
        json!({
            "version": version, "id": format!("id-{version}"), "defaultNamespace": stage.namespace,
            "values": {"level": level, "image": {"registry": "registry.example.test"}},
            "template": {"method": "go-template", "formSpec": [
                {"internalName": "spec.replicas", "type": "number", "default": 1},
                {"internalName": "host", "type": "text"},
            ]},
            "source": {"inline": {"manifest": manifest}},
        })
    };
    json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "team", "labels": {"app.kubernetes.io/part-of": "platform"}},
        "spec": {"class": "Custom", "addons": [{
            "name": "web", "description": "A web server", "support": "Optional",
            "versions": [version("1.0.0", "low"), version("1.1.0", "high")],
        }]},
    })
}

/// An installation of the add-on, with what people write at least.
fn minimal(name: &str) -> Value {
    json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": name},
        "spec": {"addonRef": {"name": "web"}, "values": {"name": name, "host": "a.example.test"}},
    })
}

/// The same with what a template spells out: empty lists, and fields at their defaults.
fn spelled(name: &str) -> Value {
    let mut object = minimal(name);
    object["spec"]["valuesFrom"] = json!([]);
    object["spec"]["reconcile"] = json!("Once");
    object["spec"]["values"]["spec"] = json!({"replicas": 1});
    object
}

/// The same with every field that there is for it.
fn full(stage: &Stage, name: &str) -> Value {
    json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/part-of": "platform"},
            "annotations": {"example.test/owner": "team"},
        },
        "spec": {
            // As a person spells it.
            "addonRef": {"name": "web", "version": "v1.1", "catalogue": "team"},
            "coreAddon": false,
            "targetNamespace": stage.namespace,
            "createNamespace": false,
            "values": {"name": name, "host": "b.example.test", "spec": {"replicas": 3}, "extra": [{"deep": [1, "two"]}]},
            "valuesFrom": [{"secretKeyRef": {"name": "web", "key": "values", "optional": false}}],
            "registry": "mirror.example.test/addons",
            "reconcile": "Ensure",
            "conflicts": "Fail",
            "deletionPolicy": "Delete",
            "suspend": false,
        },
    })
}
