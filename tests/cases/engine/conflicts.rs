//! Fields of our objects that others took: `conflicts` of the record decides (semantics 12).

use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// Version 1 is installed and its ConfigMap edited by `kubectl-patch`; the line that brings version 2, for these conflicts.
async fn edited(stage: &Stage, conflicts: &str) -> Result<String> {
    let index = stage.index(
        "index.yaml",
        &[("fields", "1.0.0", &config_map("edited", "1"))],
    )?;
    stage
        .run(&format!("install fields --channel {index} --yes"))
        .await?
        .done()?;
    let spec = json!({"spec": {"conflicts": conflicts}});
    stage.patch("addoninstallation", "fields", &spec).await?;
    let edit = json!({"data": {"key": "theirs"}});
    stage.patch("configmap", "edited", &edit).await?;
    let index = stage.index(
        "index.yaml",
        &[("fields", "2.0.0", &config_map("edited", "2"))],
    )?;
    let namespace = &stage.namespace;
    Ok(format!(
        "upgrade fields -n {namespace} --channel {index} --yes"
    ))
}

#[tokio::test]
async fn fail_names_field_and_manager() -> Result<()> {
    let stage = Stage::new("conflicts-fail").await?;
    let line = edited(&stage, "Fail").await?;
    let refused = stage.run(&line).await?.ended(4)?;
    for word in ["ConfigMap edited", "data.key", "kubectl-patch"] {
        ensure!(
            refused.stderr.contains(word),
            "no {word}: {}",
            refused.stderr
        );
    }
    let object = stage.must("configmap", "edited").await?;
    ensure!(object["data"]["key"] == "theirs", "{object:#}");
    // It is known before the first write.
    let record = stage.record("fields").await?;
    ensure!(
        record["status"]["installed"]["version"] == "1.0.0" && record["status"]["phase"] == "Ready",
        "{}",
        record["status"]
    );
    // The way out that the message names: the same command, with a flag.
    let mut lines = refused.stderr.lines();
    let accept = lines.find_map(|line| line.trim_start().strip_prefix("accept: kubectl addons "));
    let accept = accept.with_context(|| refused.stderr.clone())?;
    let (accept, rest) = accept.split_once("    (").context("no remark")?;
    ensure!(accept.starts_with(&line), "{accept}");
    ensure!(accept.ends_with(" --conflicts take"), "{accept}");
    ensure!(rest.starts_with("or yield"), "{rest}");
    let words: Vec<&str> = ["addons"].into_iter().chain(accept.split(' ')).collect();
    stage.plugin.kubectl(&words).await?.done()?;
    let object = stage.must("configmap", "edited").await?;
    ensure!(object["data"]["key"] == "2", "{object:#}");
    Ok(())
}

#[tokio::test]
async fn take_takes_the_field_and_says_so() -> Result<()> {
    let stage = Stage::new("conflicts-take").await?;
    let line = edited(&stage, "Take").await?;
    let output = stage.run(&line).await?.done()?;
    let object = stage.must("configmap", "edited").await?;
    ensure!(object["data"]["key"] == "2", "{object:#}");
    let taken = format!(
        "taken     {}/ConfigMap edited data.key: \"theirs\" (kubectl-patch, ",
        stage.namespace
    );
    ensure!(
        output.stderr.contains(&taken) && output.stderr.contains(" ago) → \"2\""),
        "{}",
        output.stderr
    );
    Ok(())
}

/// What is left is not ours any more, and no reason to apply the object again and again.
#[tokio::test]
async fn yield_leaves_the_field() -> Result<()> {
    let stage = Stage::new("conflicts-yield").await?;
    let line = edited(&stage, "Yield").await?;
    let output = stage.run(&line).await?.done()?;
    ensure!(output.stderr.contains("left "), "{}", output.stderr);
    let object = stage.must("configmap", "edited").await?;
    ensure!(object["data"]["key"] == "theirs", "{object:#}");
    ensure!(
        !fields(&stage, "configmap", "edited", "kubectl-addons.")
            .await?
            .contains("f:key"),
        "the field is still ours"
    );
    for flags in ["", " --repair"] {
        let again = stage.run(&format!("{line}{flags}")).await?.done()?;
        ensure!(
            !again.stderr.contains("left ") && !again.stderr.contains("1 changed"),
            "{flags}: {}",
            again.stderr
        );
    }
    // The flag writes the policy into the installation, and with it the field is due.
    stage
        .run(&format!("{line} --conflicts take"))
        .await?
        .done()?;
    ensure!(stage.record("fields").await?["spec"]["conflicts"] == "Take");
    Ok(())
}

/// The manifest's annotation stands before the installation's policy.
#[tokio::test]
async fn a_field_has_a_policy_of_its_own() -> Result<()> {
    let stage = Stage::new("conflicts-field").await?;
    let manifest = |value: &str, rule: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: edited\n  annotations: {{kubectl-addons.dev/conflicts: {rule:?}}}\ndata: {{mine.yaml: {value:?}, theirs.yaml: {value:?}}}\n"
        )
    };
    let rule = "data.theirs.yaml=Yield";
    let index = stage.index("1.yaml", &[("fields", "1.0.0", &manifest("1", rule))])?;
    stage
        .run(&format!("install fields --channel {index} --yes"))
        .await?
        .done()?;
    let edit = json!({"data": {"mine.yaml": "edited", "theirs.yaml": "edited"}});
    stage.patch("configmap", "edited", &edit).await?;
    let index = stage.index("2.yaml", &[("fields", "2.0.0", &manifest("2", rule))])?;
    // The comparison shows what is taken, and not what is left.
    let diff = format!("diff fields -n {} --channel {index}", stage.namespace);
    let shown = stage.run(&diff).await?.ended(1)?.stdout;
    ensure!(
        shown.contains("mine.yaml") && !shown.contains("theirs.yaml"),
        "{shown}"
    );
    let upgrade = format!("upgrade fields -n {} --yes --channel", stage.namespace);
    let output = stage.run(&format!("{upgrade} {index}")).await?.done()?;
    let data = stage.must("configmap", "edited").await?["data"].clone();
    ensure!(
        data == json!({"mine.yaml": "2", "theirs.yaml": "edited"}),
        "{data}"
    );
    for word in ["taken", "left", "data.mine.yaml", "data.theirs.yaml"] {
        ensure!(output.stderr.contains(word), "no {word}: {}", output.stderr);
    }
    let index = stage.index(
        "3.yaml",
        &[("fields", "3.0.0", &manifest("3", "data=Maybe"))],
    )?;
    let refused = stage.run(&format!("{upgrade} {index}")).await?.ended(1)?;
    for word in ["fields-3.0.0-0.yaml:1", "data=Maybe", "FIELD=Take"] {
        ensure!(
            refused.stderr.contains(word),
            "no {word}: {}",
            refused.stderr
        );
    }
    Ok(())
}

/// Semantics 12: also with `Take`. They are written as the autoscaler does it, through the subresource.
#[tokio::test]
async fn replicas_under_an_autoscaler_yield() -> Result<()> {
    let stage = Stage::new("conflicts-hpa").await?;
    let autoscaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec: {minReplicas: 4, maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n---\n";
    let manifest = |replicas| format!("{}{autoscaler}", deployment("web", replicas, None));
    let index = stage.index("1.yaml", &[("scaled", "1.0.0", &manifest(2))])?;
    stage
        .run(&format!("install scaled --channel {index} --yes"))
        .await?
        .done()?;
    let scale = [
        "patch",
        "deployment",
        "web",
        "--subresource=scale",
        "--type=merge",
    ];
    let scale = [
        &scale[..],
        &[
            "--field-manager=kube-controller-manager",
            "-p",
            r#"{"spec":{"replicas":4}}"#,
        ],
    ]
    .concat();
    stage.kubectl(&scale).await?;
    let index = stage.index("2.yaml", &[("scaled", "2.0.0", &manifest(3))])?;
    let upgrade = format!(
        "upgrade scaled -n {} --channel {index} --yes",
        stage.namespace
    );
    // The decision is part of the plan: a dry run says what the upgrade does.
    let diff = format!("diff scaled -n {} --channel {index}", stage.namespace);
    let diff = stage.run(&diff).await?;
    ensure!(
        diff.stdout
            .contains("0 changed, 0 added, 0 pruned, 2 unchanged"),
        "{}{}",
        diff.stdout,
        diff.stderr
    );
    let output = stage.run(&upgrade).await?.done()?;
    let object = stage.must("deployment", "web").await?;
    ensure!(object["spec"]["replicas"] == 4, "{object:#}");
    ensure!(
        output
            .stderr
            .contains("HorizontalPodAutoscaler web sets it"),
        "{}",
        output.stderr
    );
    // Without the autoscaler, what it once wrote is a field as any other.
    stage.delete("horizontalpodautoscaler", "web").await?;
    let index = stage.index(
        "3.yaml",
        &[("scaled", "3.0.0", &deployment("web", 1, None))],
    )?;
    let upgrade = format!(
        "upgrade scaled -n {} --channel {index} --yes",
        stage.namespace
    );
    stage.run(&upgrade).await?.done()?;
    let object = stage.must("deployment", "web").await?;
    ensure!(object["spec"]["replicas"] == 1, "{object:#}");
    Ok(())
}

/// What somebody applied with `kubectl apply` to an object of ours is ours with the next version, and what only that
/// set goes (kubernetes#99003).
#[tokio::test]
async fn client_side_apply_is_taken_over() -> Result<()> {
    let stage = Stage::new("conflicts-client-side").await?;
    let index = stage.index(
        "1.yaml",
        &[("fields", "1.0.0", &config_map("applied", "1"))],
    )?;
    stage
        .run(&format!("install fields --channel {index} --yes"))
        .await?
        .done()?;
    let theirs = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {key: theirs, more: theirs}\n";
    stage.apply(theirs).await?;
    let client_side = "kubectl-client-side-apply";
    ensure!(
        fields(&stage, "configmap", "applied", client_side)
            .await?
            .contains("f:more")
    );
    let index = stage.index(
        "2.yaml",
        &[("fields", "2.0.0", &config_map("applied", "2"))],
    )?;
    let line = format!(
        "upgrade fields -n {} --channel {index} --yes",
        stage.namespace
    );
    let output = stage.run(&line).await?.done()?;
    ensure!(
        output
            .stderr
            .contains("what client-side apply owned in it is ours now"),
        "{}",
        output.stderr
    );
    let object = stage.must("configmap", "applied").await?;
    ensure!(object["data"] == json!({"key": "2"}), "{object:#}");
    let last =
        &object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    ensure!(last.is_null(), "{object:#}");
    ensure!(
        fields(&stage, "configmap", "applied", client_side)
            .await?
            .is_empty()
    );
    let again = stage.run(&format!("{line} --repair")).await?.done()?;
    ensure!(!again.stderr.contains("1 changed"), "{}", again.stderr);
    Ok(())
}

/// An object with fields of a version that its definition no longer has refuses every apply (fluxcd/pkg#1131).
#[tokio::test]
async fn an_object_survives_the_removal_of_its_version() -> Result<()> {
    let stage = Stage::new("conflicts-version").await?;
    let group = format!("{}.example", stage.namespace);
    let definition = |versions: &[&str]| {
        let versions: Vec<_> = versions
            .iter()
            .map(|version| {
                json!({"name": version, "served": true, "storage": *version == "v1", "schema": {"openAPIV3Schema":
                    {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}})
            })
            .collect();
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("gadgets.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"}, "versions": versions}})
        .to_string()
    };
    let gadget = |version: &str, size: u32| {
        format!(
            "apiVersion: {group}/{version}\nkind: Gadget\nmetadata: {{name: one}}\nspec: {{size: {size}}}\n"
        )
    };
    let kind = format!("gadgets.{group}");
    stage.apply(&definition(&["v1alpha1", "v1"])).await?;
    let crd = format!("crd/{kind}");
    stage
        .kubectl(&["wait", "--for=condition=Established", &crd])
        .await?;
    let index = stage.index("1.yaml", &[("versions", "1.0.0", &gadget("v1alpha1", 1))])?;
    let install = format!("install versions --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let other = format!(
        "apiVersion: {group}/v1alpha1\nkind: Gadget\nmetadata: {{name: one}}\nspec: {{colour: red}}\n"
    );
    let args = [
        "apply",
        "--server-side",
        "--field-manager=other",
        "-n",
        &stage.namespace,
        "-f",
        "-",
    ];
    stage
        .plugin
        .kubectl_with_input(&args, &other)
        .await?
        .done()?;
    stage.apply(&definition(&["v1"])).await?;
    let index = stage.index("2.yaml", &[("versions", "2.0.0", &gadget("v1", 2))])?;
    let line = format!(
        "upgrade versions -n {} --channel {index} --yes",
        stage.namespace
    );
    stage.run(&line).await?.done()?;
    let object = stage.must(&kind, "one").await?;
    ensure!(
        object["spec"] == json!({"size": 2, "colour": "red"}),
        "{object:#}"
    );
    ensure!(
        fields(&stage, &kind, "one", "other")
            .await?
            .contains("f:colour")
    );
    Ok(())
}

/// What a manager owns of an object, as text.
async fn fields(stage: &Stage, kind: &str, name: &str, manager: &str) -> Result<String> {
    let args = ["get", kind, name, "-o", "json", "--show-managed-fields"];
    let object: Value = serde_json::from_str(&stage.kubectl(&args).await?.stdout)?;
    let entries = object["metadata"]["managedFields"].as_array().cloned();
    let entries = entries.unwrap_or_default().into_iter().filter(|entry| {
        let name = entry["manager"].as_str();
        name.is_some_and(|name| name.starts_with(manager))
    });
    Ok(entries.map(|entry| entry["fieldsV1"].to_string()).collect())
}
