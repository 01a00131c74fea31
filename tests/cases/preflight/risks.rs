//! What is in the way of an upgrade besides the versions of add-ons: found in a real cluster, and mended by the commands that are
//! printed.

use std::path::Path;

use addons_tests::stage::Stage;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use common::api::names::{LABEL_OWNER, owner_hash};
use serde_json::{Value, json};

use super::TO;

/// A webhook for evictions of pods: nothing else of the test cluster is judged by it.
fn webhook(name: &str, service: &str, seconds: u64, labels: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "labels": labels},
        "webhooks": [{
            "name": format!("{name}.example.test"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": seconds,
            "clientConfig": {"service": {"namespace": "default", "name": service}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}],
        }],
    })
}

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
        "spec": {"ports": [{"port": 443}]}})
}

fn slice(service: &str) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": service, "namespace": "default", "labels": {"kubernetes.io/service-name": service}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}], "ports": [{"port": 443}]})
}

/// A definition with these versions; objects are stored in the last one.
fn definition(plural: &str, kind: &str, versions: &[&str]) -> Value {
    let last = versions.last();
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let versions = versions.iter().map(
        |version| json!({"name": version, "served": true, "storage": Some(version) == last, "schema": schema}),
    );
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.preflight.test")},
        "spec": {"group": "preflight.test", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": versions.collect::<Vec<_>>()},
    })
}

/// What is found: of everything, or of one installation.
async fn report(stage: &Stage, names: &str) -> Result<Value> {
    let said = stage
        .run(&format!("preflight {names} --to {TO} -o json"))
        .await?;
    ensure!([0, 5].contains(&said.code), "{}", said.stderr);
    Ok(serde_json::from_str(&said.stdout)?)
}

/// Reason, whether it blocks, and the owner, of the risks of an object.
fn of(report: &Value, name: &str) -> Vec<(String, bool, String)> {
    let risks = report["risks"].as_array().into_iter().flatten();
    let risks = risks.filter(|risk| risk["name"] == name);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = risks.map(|risk| {
        let blocks = risk["blocks"] == true;
        (text(&risk["reason"]), blocks, text(&risk["owner"]["name"]))
    });
    found.collect()
}

/// Everything that is in the way of the cluster, with an installation `fits`.
pub async fn found(stage: &Stage) -> Result<()> {
    let ours = json!({LABEL_OWNER: owner_hash(&stage.namespace, "fits")});
    let nothing = json!({});
    for object in [
        webhook("gone", "gone", 10, &nothing),
        service("dead"),
        webhook("dead", "dead", 10, &nothing),
        service("alone"),
        slice("alone"),
        webhook("alone", "alone", 30, &ours),
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1.dead.preflight.test"},
            "spec": {"group": "dead.preflight.test", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 1,
                "service": {"namespace": "default", "name": "dead"}}}),
    ] {
        let (args, object) = (["apply", "-f", "-"], object.to_string());
        let applied = stage.plugin.kubectl_with_input(&args, &object).await?;
        applied.done()?;
    }
    let all = report(stage, "").await?;
    for (name, expected) in [
        ("gone", vec![("noService", true, "")]),
        ("dead", vec![("noEndpoint", true, "")]),
        (
            "alone",
            vec![("oneEndpoint", false, "fits"), ("slow", false, "fits")],
        ),
        ("v1.dead.preflight.test", vec![("unavailable", true, "")]),
    ] {
        let found = of(&all, name);
        let found: Vec<_> = found.iter().map(|(a, b, c)| (&**a, *b, &**c)).collect();
        ensure!(found == expected, "{name}: {found:?}: {all}");
    }
    // Of the installation alone: warnings, which do not count.
    let said = stage
        .run(&format!("preflight fits --to {TO}"))
        .await?
        .done()?;
    for text in [
        "ValidatingWebhookConfiguration alone",
        "while that node is drained, every write of pods in kube-system is refused",
        &format!("kubectl addons status fits -n {}", stage.namespace),
    ] {
        ensure!(
            said.stdout.contains(text),
            "{text:?} is missing in\n{}",
            said.stdout
        );
    }
    ensure!(!said.stdout.contains("default/gone"), "{}", said.stdout);
    let said = stage
        .run(&format!("preflight --to {TO} -o markdown"))
        .await?;
    let page = said.ended(5)?.stdout;
    for text in [
        "### In the way of the upgrade",
        "| blocks | ValidatingWebhookConfiguration gone |",
    ] {
        ensure!(page.contains(text), "{text:?} is missing in\n{page}");
    }
    let args = ["delete", "apiservice", "v1.dead.preflight.test"];
    stage.plugin.kubectl(&args).await?.done()?;
    Ok(())
}

/// The upgrade that the next version needs is printed with its flag, and works.
pub async fn dropped(stage: &Stage) -> Result<()> {
    let version = |version: &str, stored: &str| {
        let manifest = definition("policies", "Policy", &[stored]).to_string();
        json!({"version": version, "defaultNamespace": stage.namespace, "source": {"inline": {"manifest": manifest}}})
    };
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "typed"},
        "spec": {"addons": [{"name": "typed", "versions": [version("1.0.0", "v1beta1"), version("2.0.0", "v1")]}]},
    });
    stage.write("typed.json", &catalogue.to_string())?;
    let file = stage.plugin.home().join("typed.json");
    let add = ["catalogue", "add", &file.display().to_string()];
    stage.plugin.run(&add).await?.done()?;
    stage.run("install typed@1.0.0 --yes").await?.done()?;
    let upgrade = format!(
        "kubectl addons upgrade typed@2.0.0 -n {} --migrate-stored-versions",
        stage.namespace
    );
    let before = report(stage, "typed").await?;
    let risk = &before["risks"][0];
    ensure!(
        risk["type"] == "storedVersions"
            && risk["droppedBy"] == "2.0.0"
            && risk["versions"] == json!(["v1beta1"])
            && risk["commands"] == json!([upgrade]),
        "{before}"
    );
    let line = upgrade.trim_start_matches("kubectl addons ");
    stage.run(&format!("{line} --yes")).await?.done()?;
    let after = report(stage, "typed").await?;
    ensure!(after["risks"] == json!([]), "{after}");
    Ok(())
}

/// Objects of a definition that no installation owns are stored again by the two commands that are printed.
pub async fn stored(stage: &Stage) -> Result<()> {
    let name = "things.preflight.test";
    let apply = ["apply", "-f", "-"];
    let old = definition("things", "Thing", &["v1beta1"]).to_string();
    stage
        .plugin
        .kubectl_with_input(&apply, &old)
        .await?
        .done()?;
    let thing = "apiVersion: preflight.test/v1beta1\nkind: Thing\nmetadata: {name: one}\n";
    until("the definition", async || {
        let applied = stage.plugin.kubectl_with_input(&apply, thing).await?;
        Ok((applied.code == 0).then_some(()).ok_or(applied.stderr))
    })
    .await?;
    let new = definition("things", "Thing", &["v1beta1", "v1"]).to_string();
    stage
        .plugin
        .kubectl_with_input(&apply, &new)
        .await?
        .done()?;
    let before = report(stage, "").await?;
    let risks = before["risks"].as_array().context("no risks")?;
    let risk = risks.iter().find(|risk| risk["name"] == name);
    let risk = risk.context(before.to_string())?;
    ensure!(
        risk["versions"] == json!(["v1beta1"]) && risk["blocks"] == false,
        "{risk}"
    );
    let commands = risk["commands"].as_array().context("no commands")?;
    for command in commands.iter().filter_map(Value::as_str) {
        let said = stage
            .plugin
            .program(Path::new("sh"), &["-c", command])
            .await?;
        said.done().with_context(|| command.to_owned())?;
    }
    let after = report(stage, "").await?;
    ensure!(of(&after, name).is_empty(), "{after}");
    Ok(())
}
