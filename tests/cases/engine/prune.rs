//! What is deleted, and what never is (semantics 7 and 13).

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};

fn definition(group: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{plural: things, singular: thing, kind: Thing}}\n  versions:\n  - \
         name: v1\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object}}}}\n---\n"
    )
}

fn namespace(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {{ours: wanted}}}}\n---\n"
    )
}

async fn install(stage: &Stage, version: &str, manifest: &str) -> Result<()> {
    let index = stage.index("index.yaml", &[("some", version, manifest)])?;
    let verb = match version {
        "1.0.0" => "install some".to_owned(),
        _ => format!("upgrade some -n {}", stage.namespace),
    };
    let line = format!("{verb} --channel {index} --yes");
    stage.run(&line).await?.done().map(drop)
}

async fn uninstall(stage: &Stage) -> Result<String> {
    let line = format!("uninstall some -n {} --yes", stage.namespace);
    Ok(stage.run(&line).await?.done()?.stderr)
}

#[tokio::test]
async fn an_object_that_another_client_recreated_stays() -> Result<()> {
    let stage = Stage::new("recreated").await?;
    let manifest = [config_map("kept", "1"), config_map("again", "1")].concat();
    install(&stage, "1.0.0", &manifest).await?;
    stage.delete("configmap", "again").await?;
    stage.apply(&config_map("again", "theirs")).await?;
    let before = stage.must("configmap", "again").await?;
    install(&stage, "2.0.0", &config_map("kept", "2")).await?;
    let after = stage.must("configmap", "again").await?;
    ensure!(before == after, "{after:#}");
    uninstall(&stage).await?;
    ensure!(stage.has("configmap", "again").await?, "deleted");
    ensure!(!stage.has("configmap", "kept").await?, "not deleted");
    Ok(())
}

#[tokio::test]
async fn a_namespace_that_was_there_is_recorded_and_never_deleted() -> Result<()> {
    let stage = Stage::new("preexisting").await?;
    let theirs = format!("{}-theirs", stage.namespace);
    stage.kubectl(&["create", "namespace", &theirs]).await?;
    let manifest = [namespace(&theirs), config_map("kept", "1")].concat();
    install(&stage, "1.0.0", &manifest).await?;
    let record = stage.record("some").await?;
    let groups = record["status"]["inventory"].as_array();
    let group = groups
        .into_iter()
        .flatten()
        .find(|group| group["kind"] == "Namespace");
    ensure!(
        group.is_some_and(|group| group["objects"][0]["state"] == "preexisting"),
        "{record:#}"
    );
    let live = stage.must("namespace", &theirs).await?;
    ensure!(
        live["metadata"]["labels"]["ours"].is_null(),
        "fields of a namespace that is not ours were set: {live:#}"
    );
    install(&stage, "2.0.0", &config_map("kept", "2")).await?;
    ensure!(stage.has("namespace", &theirs).await?, "deleted on upgrade");
    install(&stage, "3.0.0", &manifest).await?;
    uninstall(&stage).await?;
    let live = stage.must("namespace", &theirs).await?;
    ensure!(live["metadata"]["deletionTimestamp"].is_null(), "{live:#}");
    Ok(())
}

#[tokio::test]
async fn a_definition_stays_when_it_is_dropped_and_when_the_addon_is_uninstalled() -> Result<()> {
    let stage = Stage::new("retained").await?;
    let group = format!("{}.example.test", stage.namespace);
    let name = format!("things.{group}");
    let manifest = [definition(&group), config_map("kept", "1")].concat();
    install(&stage, "1.0.0", &manifest).await?;
    install(&stage, "2.0.0", &config_map("kept", "2")).await?;
    ensure!(stage.has("crd", &name).await?, "deleted on upgrade");
    let record = stage.record("some").await?;
    ensure!(
        record["status"]["inventory"]
            .to_string()
            .contains("\"retained\""),
        "{record:#}"
    );
    let said = uninstall(&stage).await?;
    ensure!(said.contains(&name), "not announced: {said}");
    ensure!(stage.has("crd", &name).await?, "deleted on uninstall");
    ensure!(!stage.has("configmap", "kept").await?, "not deleted");
    Ok(())
}

/// Installs into a namespace of its own, which the add-on creates, and returns its name.
async fn with_namespace(stage: &Stage) -> Result<String> {
    let target = format!("{}-target", stage.namespace);
    let manifest = config_map("kept", "1");
    let index = stage.index("index.yaml", &[("some", "1.0.0", &manifest)])?;
    stage
        .run(&format!(
            "install some --target-namespace {target} --channel {index} --yes"
        ))
        .await?
        .done()?;
    let record = stage.record("some").await?;
    ensure!(
        record["status"]["createdNamespace"]["name"] == *target
            && record["status"]["createdNamespace"]["uid"].is_string(),
        "{record:#}"
    );
    Ok(target)
}

#[tokio::test]
async fn the_namespace_that_we_created_is_deleted() -> Result<()> {
    let stage = Stage::new("created").await?;
    let target = with_namespace(&stage).await?;
    uninstall(&stage).await?;
    let left = stage.get("namespace", &target).await?;
    ensure!(
        left.is_none_or(|left| left["metadata"]["deletionTimestamp"].is_string()),
        "it stays"
    );
    Ok(())
}

#[tokio::test]
async fn the_namespace_that_we_created_stays_with_what_is_not_ours() -> Result<()> {
    let stage = Stage::new("occupied").await?;
    let target = with_namespace(&stage).await?;
    let args = ["create", "secret", "generic", "theirs", "-n", &target];
    stage.plugin.kubectl(&args).await?.done()?;
    let said = uninstall(&stage).await?;
    ensure!(
        said.contains(&target) && said.contains("theirs"),
        "not told why it stays: {said}"
    );
    let left = stage.must("namespace", &target).await?;
    ensure!(left["metadata"]["deletionTimestamp"].is_null(), "{left:#}");
    ensure!(
        !stage.has("addoninstallation", "some").await?,
        "the record stays"
    );
    Ok(())
}
