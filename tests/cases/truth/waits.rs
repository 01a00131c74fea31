//! What is waited for comes, and what failed before says nothing of now.

use std::path::PathBuf;

use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// Writes a catalogue of add-ons in one version each: name, manifest, and what else their version says.
fn catalogue(stage: &Stage, addons: &[(&str, &str, Value)]) -> Result<PathBuf> {
    let addons = addons.iter().map(|(name, manifest, more)| {
        let mut version = json!({"version": "1.0.0", "defaultNamespace": stage.namespace,
            "source": {"inline": {"manifest": manifest}}});
        for (field, value) in more.as_object().into_iter().flatten() {
            version[field] = value.clone();
        }
        json!({"name": name, "versions": [version]})
    });
    let addons: Vec<Value> = addons.collect();
    let catalogue = json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "test"}, "spec": {"addons": addons}});
    stage.write("catalogue.json", &catalogue.to_string())
}

/// A webhook configuration of the namespace's name.
fn webhooks(stage: &Stage, webhook: &Value) -> Value {
    let mut webhook = webhook.clone();
    webhook["name"] = json!(format!("judge.{}.example.test", stage.namespace));
    webhook["admissionReviewVersions"] = json!(["v1"]);
    webhook["sideEffects"] = json!("None");
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": format!("{}-judge", stage.namespace),
            "annotations": {"argocd.argoproj.io/sync-wave": "1"}},
        "webhooks": [webhook]})
}

/// A validating webhook whose backend is part of a later add-on, and whose failures are ignored until then.
#[tokio::test]
async fn n21_a_webhook_that_stops_nothing_is_not_waited_for() -> Result<()> {
    let stage = Stage::new("ignored").await?;
    stage.run("init").await?.done()?;
    let namespace = &stage.namespace;
    let base = format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n\
         metadata: {{name: {namespace}-validator}}\nwebhooks:\n- name: validate.{namespace}.example.test\n  \
         admissionReviewVersions: [v1]\n  sideEffects: None\n  failurePolicy: Ignore\n  \
         clientConfig: {{service: {{name: control, namespace: {namespace}}}}}\n  \
         rules: [{{apiGroups: [{namespace}.example.test], apiVersions: ['*'], operations: ['*'], resources: ['*']}}]\n"
    );
    let entries = [
        ("base", "1.0.0", base.as_str()),
        ("control", "1.0.0", &config_map("control", "1")),
    ];
    let index = stage.index("index.yaml", &entries)?;
    let install = format!("install base control --channel {index} --yes --timeout 30s");
    stage.run(&install).await?.done()?;
    let status = stage.run("status base -o json").await?.done()?;
    ensure!(
        status
            .stdout
            .contains("has no caBundle yet, which is ignored"),
        "{}",
        status.stdout
    );
    Ok(())
}

/// Pods could not be created for want of a ServiceAccount, which is there now.
#[tokio::test]
async fn n21_what_was_mended_does_not_fail_the_next_try() -> Result<()> {
    let stage = Stage::new("mended").await?;
    stage.run("init").await?.done()?;
    let pods = "serviceAccountName: missing, containers: ";
    let manifest = deployment("web", 1, None).replace("containers: ", pods);
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest)])?;
    let install = format!("install web --channel {index} --yes --timeout 60s");
    let failed = stage.run(&install).await?.ended(1)?;
    ensure!(failed.stderr.contains("missing"), "{}", failed.stderr);
    stage
        .kubectl(&["create", "serviceaccount", "missing"])
        .await?;
    stage
        .run("upgrade web --yes --timeout 100s")
        .await?
        .done()?;
    Ok(())
}

/// Its failures are not ignored, and its Service comes with the add-on that requires this one.
#[tokio::test]
async fn n21_a_webhook_whose_service_comes_later_is_not_waited_for() -> Result<()> {
    for together in [false, true] {
        let stage = Stage::new("later-service").await?;
        stage.run("init").await?.done()?;
        let namespace = &stage.namespace;
        let base = webhooks(
            &stage,
            &json!({"failurePolicy": "Fail",
            "clientConfig": {"service": {"name": "control", "namespace": namespace}},
            "rules": [{"apiGroups": [format!("{namespace}.example.test")], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]}),
        );
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "control"},
            "spec": {"selector": {"app": "control"}, "ports": [{"port": 443}]}});
        let file = catalogue(
            &stage,
            &[
                ("base", &base.to_string(), json!({})),
                (
                    "control",
                    &service.to_string(),
                    json!({"requires": [{"name": "base", "version": ">=1.0.0"}]}),
                ),
            ],
        )?;
        let install = |names: &str| {
            let at = file.display();
            format!("install {names} --channel {at} --yes --timeout 30s")
        };
        if together {
            stage.run(&install("base control")).await?.done()?;
        } else {
            stage.run(&install("base")).await?.done()?;
            let status = stage.run("status base -o json").await?.done()?.stdout;
            let why = format!("calls {namespace}/Service control, which does not exist");
            ensure!(status.contains(&why), "{status}");
            stage.run(&install("control")).await?.done()?;
        }
        ensure!(stage.has("service", "control").await?, "it is missing");
        let configuration = format!("{namespace}-judge");
        stage
            .kubectl(&["delete", "validatingwebhookconfiguration", &configuration])
            .await?;
    }
    Ok(())
}

/// What is applied and waits for the add-on that requires it is no dead end.
#[tokio::test]
async fn n21_what_did_not_get_ready_meets_requirements() -> Result<()> {
    let stage = Stage::new("unready").await?;
    stage.run("init").await?.done()?;
    let file = catalogue(
        &stage,
        &[
            ("base", &deployment("base", 1, Some("none")), json!({})),
            (
                "control",
                &config_map("control", "1"),
                json!({"requires": [{"name": "base", "version": ">=1.0.0"}]}),
            ),
        ],
    )?;
    let install = |name: &str| {
        let at = file.display();
        format!("install {name} --channel {at} --yes --timeout 8s")
    };
    stage.run(&install("base")).await?.ended(3)?;
    let said = stage.run(&install("control")).await?.done()?.stderr;
    let warning = format!(
        "control requires base: {}/base is installed, but not ready",
        stage.namespace
    );
    ensure!(said.contains(&warning), "{said}");
    ensure!(stage.has("configmap", "control").await?, "it is missing");
    Ok(())
}

/// An operator that defines its kinds itself, once it runs.
#[tokio::test]
async fn n21_types_that_the_command_brings_are_waited_for_while_it_runs() -> Result<()> {
    let stage = Stage::new("brought").await?;
    stage.run("init").await?.done()?;
    let group = format!("{}.example.test", stage.namespace);
    let types =
        json!({"requiredResourceTypes": [{"group": group, "version": "v1", "kind": "Till"}]});
    let file = catalogue(
        &stage,
        &[
            (
                "monitors",
                &config_map("monitors", "1"),
                json!({"template": types}),
            ),
            ("operator", &config_map("operator", "1"), json!({})),
        ],
    )?;
    let install = |timeout: &str| {
        let at = file.display();
        format!("install monitors operator --channel {at} --yes --timeout {timeout}")
    };
    let said = stage.run(&install("8s")).await?.ended(3)?.stderr;
    let why = format!("it requires {group}/v1 Till, which the cluster does not serve");
    ensure!(said.contains(&why), "{said}");
    ensure!(stage.has("configmap", "operator").await?, "{said}");
    ensure!(!stage.has("configmap", "monitors").await?, "{said}");
    ensure!(!stage.has("addoninstallation", "monitors").await?, "{said}");
    stage.run("uninstall operator --yes").await?.done()?;

    let operating = async {
        until("the operator", async || {
            let is_there = stage.has("configmap", "operator").await?;
            Ok(is_there.then_some(()).ok_or_else(String::new))
        })
        .await?;
        ensure!(
            !stage.has("configmap", "monitors").await?,
            "it is too early"
        );
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("tills.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "tills", "singular": "till", "kind": "Till"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]},
        });
        stage.apply(&definition.to_string()).await
    };
    let line = install("100s");
    let (said, operated) = tokio::join!(stage.run(&line), operating);
    operated?;
    let said = said?.done()?.stderr;
    ensure!(stage.has("configmap", "monitors").await?, "{said}");
    Ok(())
}

/// The backend of a webhook is gone for good, and the webhook refuses what would bring it back.
#[tokio::test]
async fn n21_a_dead_webhook_of_the_installation_is_named_with_the_way_out() -> Result<()> {
    let stage = Stage::new("dead-judge").await?;
    stage.run("init").await?.done()?;
    let namespace = &stage.namespace;
    let configuration = webhooks(
        &stage,
        &json!({"failurePolicy": "Fail", "timeoutSeconds": 1,
        "clientConfig": {"url": "https://127.0.0.1:1/judge"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]}),
    );
    let manifest = format!("{}{configuration}\n", config_map("backend", "1"));
    let index = stage.index("index.yaml", &[("judge", "1.0.0", &manifest)])?;
    stage
        .run(&format!("install judge --channel {index} --yes"))
        .await?
        .done()?;
    stage.delete("configmap", "backend").await?;
    let repair = "upgrade judge --repair --yes --timeout 60s";
    let said = stage.run(repair).await?.ended(1)?.stderr;
    let why = format!(
        "webhook judge.{namespace}.example.test of ValidatingWebhookConfiguration {namespace}-judge, which is part of this \
         installation, does not answer"
    );
    ensure!(said.contains(&why), "{said}");
    let delete = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("fix:    kubectl delete "))
        .context("no way out")?;
    // At once, and again where it failed.
    ensure!(said.matches(delete).count() >= 2, "{said}");
    let (delete, then) = delete.split_once("    (").context("no end")?;
    ensure!(then == "then run the command again)", "{said}");
    let words: Vec<&str> = delete.split_whitespace().collect();
    stage.kubectl(&[&["delete"], &words[..]].concat()).await?;
    stage.run(repair).await?.done()?;
    ensure!(stage.has("configmap", "backend").await?, "it is missing");
    let name = format!("{namespace}-judge");
    let kind = "validatingwebhookconfiguration";
    ensure!(stage.has(kind, &name).await?, "it was not created again");
    stage.kubectl(&["delete", kind, &name]).await.map(drop)
}
