//! Controllers outlive what they control, and who holds what is going is named.

use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{crd, definition, install, manifest, till, uninstall};

const FINALIZER: &str = "tills.example/cleanup";

fn spec() -> Value {
    json!({"type": "object", "properties": {"color": {"type": "string"}}})
}

fn held(stage: &Stage, name: &str) -> Value {
    let mut till = till(stage, name, &json!({"color": "red"}));
    till["metadata"]["finalizers"] = json!([FINALIZER]);
    till
}

/// Takes the finalizer off, as a controller does.
async fn let_go(stage: &Stage, name: &str) -> Result<()> {
    let patch = json!({"metadata": {"finalizers": null}});
    stage.patch(&crd(stage), name, &patch).await
}

#[tokio::test]
async fn a_finalizer_that_is_not_removed_is_named_with_its_likely_owner() -> Result<()> {
    let stage = Stage::new("held").await?;
    // Its controller is part of the add-on, and has no pods.
    let controller = deployment("till-controller", 0, None);
    let objects = [
        definition(&stage, &spec()),
        till(&stage, "front", &json!({"color": "red"})),
    ];
    let addon = format!("{}{controller}", manifest(&objects));
    install(&stage, "1.0.0", &addon).await?;
    let patch = json!({"metadata": {"finalizers": [FINALIZER]}}).to_string();
    let kind = crd(&stage);
    let args = ["patch", &kind, "front", "--type=merge", "-p", &patch];
    stage
        .kubectl(&[&args[..], &["--field-manager", "till-controller"]].concat())
        .await?;

    let line = uninstall(&stage);
    let said = stage.run(&format!("{line} --timeout 5s")).await?;
    let said = said.ended(3)?.stderr;
    let namespace = &stage.namespace;
    let told = format!(
        "{namespace}/Till front: held by finalizer {FINALIZER}, set by till-controller; Deployment {namespace}/till-controller, \
         which likely removes it, has no ready pods: start it, then run this again"
    );
    ensure!(said.contains(&told), "not said: {told}\n{said}");
    // What it needs is still there, and so is the record.
    for (kind, name) in [
        ("deployment", "till-controller"),
        ("addoninstallation", "some"),
    ] {
        let object = stage.must(kind, name).await?;
        ensure!(
            object["metadata"]["deletionTimestamp"].is_null(),
            "{object:#}"
        );
    }
    let_go(&stage, "front").await?;
    stage.run(&line).await?.done()?;
    ensure!(!stage.has("deployment", "till-controller").await?, "left");
    ensure!(!stage.has("addoninstallation", "some").await?, "left");
    Ok(())
}

#[tokio::test]
async fn a_definition_with_objects_of_users_is_deleted_while_their_controller_runs() -> Result<()> {
    let stage = Stage::new("inhabited").await?;
    let objects = [definition(&stage, &spec())];
    let addon = format!(
        "{}{}",
        manifest(&objects),
        deployment("controller", 1, None)
    );
    install(&stage, "1.0.0", &addon).await?;
    stage.apply(&held(&stage, "theirs").to_string()).await?;

    let line = format!("{} --delete-crds", uninstall(&stage));
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut process = stage.plugin.start(&words)?;
    let leash = process.leash();
    let ended = tokio::task::spawn_blocking(move || process.wait());
    until("the deletion of the user's object", async || {
        let till = stage.must(&crd(&stage), "theirs").await?;
        let is_going = till["metadata"]["deletionTimestamp"].is_string();
        Ok(is_going.then_some(()).ok_or_else(|| till.to_string()))
    })
    .await?;
    let controller = stage.must("deployment", "controller").await?;
    ensure!(
        controller["metadata"]["deletionTimestamp"].is_null(),
        "{controller:#}"
    );
    let_go(&stage, "theirs").await?;
    let status = ended.await??;
    drop(leash);
    let said = std::fs::read_to_string(stage.plugin.home().join("stderr"))?;
    ensure!(status.success(), "{said}");
    let told = format!(
        "CustomResourceDefinition {}: deleting it also deletes 1 live Till ({}/theirs)",
        crd(&stage),
        stage.namespace
    );
    ensure!(said.contains(&told), "not said: {told}\n{said}");
    ensure!(!stage.has("crd", &crd(&stage)).await?, "left");
    ensure!(!stage.has("deployment", "controller").await?, "left");
    Ok(())
}

#[tokio::test]
async fn a_definition_without_other_objects_is_deleted_last() -> Result<()> {
    let stage = Stage::new("empty").await?;
    let objects = [
        definition(&stage, &spec()),
        till(&stage, "ours", &json!({"color": "red"})),
    ];
    let addon = format!(
        "{}{}",
        manifest(&objects),
        deployment("controller", 1, None)
    );
    install(&stage, "1.0.0", &addon).await?;
    let mark = stage.cluster.audit().mark()?;
    let line = format!("{} --delete-crds", uninstall(&stage));
    let said = stage.run(&line).await?.done()?.stderr;
    ensure!(!said.contains("its deletion takes"), "{said}");
    let requests = stage.requests(mark)?;
    let deleted: Vec<&str> = requests
        .of("kubectl-addons")
        .filter(|request| request.verb == "delete")
        .map(|request| request.object.resource.as_str())
        .filter(|resource| *resource != "addoninstallations")
        .collect();
    let expected = [
        "tills",
        "deployments",
        "configmaps",
        "customresourcedefinitions",
    ];
    ensure!(deleted == expected, "{deleted:?}");
    Ok(())
}

#[tokio::test]
async fn what_keeps_a_namespace_is_listed_whatever_its_kind() -> Result<()> {
    let stage = Stage::new("guests").await?;
    // Somebody else's kind.
    stage
        .apply(&definition(&stage, &spec()).to_string())
        .await?;
    let name = crd(&stage);
    let args = ["wait", "--for=condition=Established", "crd", &name];
    stage.kubectl(&args).await?;
    let target = format!("{}-target", stage.namespace);
    let index = stage.index("index.yaml", &[("some", "1.0.0", &config_map("ours", "1"))])?;
    let line = format!("install some --target-namespace {target} --channel {index} --yes");
    stage.run(&line).await?.done()?;
    for object in [
        till(&stage, "guest", &json!({"color": "red"})).to_string(),
        config_map("guest", "1"),
    ] {
        let args = ["apply", "-n", &target, "-f", "-"];
        let applied = stage.plugin.kubectl_with_input(&args, &object).await?;
        applied.done()?;
    }
    let said = stage.run(&uninstall(&stage)).await?.done()?.stderr;
    let told =
        format!("the namespace stays: {target}/ConfigMap guest, {target}/Till guest are in it");
    ensure!(said.contains(&told), "not said: {told}\n{said}");
    let namespace = stage.get("namespace", &target).await?;
    let namespace = namespace.context("the namespace is gone")?;
    ensure!(
        namespace["metadata"]["deletionTimestamp"].is_null(),
        "{namespace:#}"
    );
    Ok(())
}
