//! One add-on with a definition, its custom resource, RBAC and a Deployment, from install to uninstall.

use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

fn widget(namespace: &str) -> String {
    let group = format!("{namespace}.example.test");
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{plural: widgets, singular: widget, kind: Widget}}\n  versions:\n  \
         - name: v1\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object, \
         x-kubernetes-preserve-unknown-fields: true}}}}\n---\napiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: one}}\n\
         spec: {{size: 1}}\n---\n"
    )
}

fn rbac(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}}}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: {name}}}\nrules: [{{apiGroups: [''], \
         resources: [pods], verbs: [get]}}]\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: {name}}}\nroleRef: {{apiGroup: \
         rbac.authorization.k8s.io, kind: Role, name: {name}}}\nsubjects: [{{kind: ServiceAccount, name: {name}}}]\n---\n"
    )
}

fn inventory(record: &Value) -> Vec<String> {
    let groups = record["status"]["inventory"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut names: Vec<String> = groups
        .iter()
        .flat_map(|group| {
            let kind = group["kind"].as_str().unwrap_or_default().to_owned();
            let objects = group["objects"].as_array().cloned().unwrap_or_default();
            objects.into_iter().map(move |object| {
                format!("{kind} {}", object["name"].as_str().unwrap_or_default())
            })
        })
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn install_upgrade_prune_uninstall() -> Result<()> {
    let stage = Stage::new("lifecycle").await?;
    let namespace = stage.namespace.clone();
    // The manifest stands in the wrong order on purpose: the custom resource's definition comes last.
    let (definition, resource) = {
        let both = widget(&namespace);
        let (definition, resource) = both.split_once("---\n").context("two documents")?;
        (format!("{definition}---\n"), resource.to_owned())
    };
    let first = [
        resource.as_str(),
        &deployment("web", 2, None),
        &rbac("web"),
        &config_map("kept", "one"),
        &config_map("dropped-a", "1"),
        &config_map("dropped-b", "1"),
        &definition,
    ]
    .concat();
    let second = [
        definition.as_str(),
        &resource,
        &deployment("web", 2, None),
        &rbac("web"),
        &config_map("kept", "two"),
    ]
    .concat();
    let index = stage.index("index.yaml", &[("web", "1.0.0", &first)])?;

    let installed = stage
        .run(&format!("install web --channel {index} --yes"))
        .await?
        .done()?;
    ensure!(
        installed.stderr.contains("web 1.0.0 installed: 9 created"),
        "{}",
        installed.stderr
    );
    installed_and_recorded(&stage).await?;
    let foreign = config_map("foreign", "mine");
    stage
        .plugin
        .kubectl_with_input(&["apply", "-n", &namespace, "-f", "-"], &foreign)
        .await?
        .done()?;

    // Again: nothing to do, nothing written.
    nothing_is_written_again(&stage, &index).await?;

    // One object changes, two are gone from the manifest.
    stage.index("index.yaml", &[("web", "1.1.0", &second)])?;
    upgraded(&stage, &index).await?;

    let listed = stage.run("list -o json").await?.done()?;
    let listed: Value = serde_json::from_str(&listed.stdout)?;
    let items = listed["items"].as_array().context("items")?;
    let row = items
        .iter()
        .find(|row| row["namespace"] == *namespace && row["name"] == "web")
        .context("web is not listed")?;
    ensure!(row["version"] == "1.1.0", "{row}");
    let status = stage
        .run(&format!("status web -n {namespace}"))
        .await?
        .done()?;
    ensure!(
        status.stdout.contains("Deployment web") && status.stdout.contains("2/2 ready"),
        "{}",
        status.stdout
    );

    uninstalled(&stage).await
}

/// The same line again.
async fn nothing_is_written_again(stage: &Stage, index: &str) -> Result<()> {
    let mark = stage.cluster.audit().mark()?;
    let again = stage
        .run(&format!(
            "install web --channel {index} --yes -n {}",
            stage.namespace
        ))
        .await?
        .done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    let requests = stage.requests(mark)?;
    ensure!(
        requests.writes("kubectl-addons") == 0,
        "{:?}",
        requests.by_verb("kubectl-addons")
    );
    // Whether it is well is looked at, too: a LIST for each of its kinds, and their discovery.
    ensure!(
        requests.total("kubectl-addons") <= 3 + 12,
        "{:?}",
        requests.by_verb("kubectl-addons")
    );
    Ok(())
}

/// The record, and a Deployment that was waited for.
async fn installed_and_recorded(stage: &Stage) -> Result<()> {
    let record = stage.record("web").await?;
    ensure!(inventory(&record).len() == 9, "{:?}", inventory(&record));
    ensure!(
        record["status"]["operation"].is_null(),
        "the lock is still there: {}",
        record["status"]["operation"]
    );
    ensure!(record["status"]["phase"] == "Ready", "{}", record["status"]);
    ensure!(
        record["status"]["installed"]["version"] == "1.0.0",
        "{}",
        record["status"]["installed"]
    );
    let live = stage
        .get("deployment", "web")
        .await?
        .context("the Deployment")?;
    ensure!(
        live["status"]["readyReplicas"] == 2,
        "install did not wait: {}",
        live["status"]
    );
    let label = &live["metadata"]["labels"]["kubectl-addons.dev/owner"];
    ensure!(
        label.as_str().is_some_and(|label| label.len() == 32),
        "{label}"
    );
    Ok(())
}

/// What is shown before, and what is there after.
async fn upgraded(stage: &Stage, index: &str) -> Result<()> {
    let namespace = &stage.namespace;
    let shown = stage
        .run(&format!("diff web -n {namespace} --channel {index}"))
        .await?
        .ended(1)?;
    ensure!(
        shown.stdout.contains("1 changed") && shown.stdout.contains("2 pruned"),
        "{}",
        shown.stdout
    );
    let upgraded = stage
        .run(&format!(
            "upgrade web -n {namespace} --channel {index} --yes"
        ))
        .await?
        .done()?;
    ensure!(
        upgraded.stderr.contains("1 changed, 2 pruned"),
        "{}",
        upgraded.stderr
    );
    ensure!(
        stage.get("configmap", "dropped-a").await?.is_none(),
        "dropped-a is still there"
    );
    ensure!(
        stage.get("configmap", "dropped-b").await?.is_none(),
        "dropped-b is still there"
    );
    ensure!(
        stage.get("configmap", "foreign").await?.is_some(),
        "a foreign object was deleted"
    );
    let kept = stage.get("configmap", "kept").await?.context("kept")?;
    ensure!(kept["data"]["key"] == "two", "{}", kept["data"]);
    Ok(())
}

/// Everything is deleted but the foreign object and the definition.
async fn uninstalled(stage: &Stage) -> Result<()> {
    let namespace = &stage.namespace;
    let gone = stage
        .run(&format!("uninstall web -n {namespace} --yes"))
        .await?
        .done()?;
    ensure!(gone.stderr.contains("uninstalled"), "{}", gone.stderr);
    ensure!(
        stage.get("deployment", "web").await?.is_none(),
        "the Deployment is still there"
    );
    ensure!(
        stage.get("addoninstallation", "web").await?.is_none(),
        "the record is still there"
    );
    ensure!(
        stage.get("configmap", "foreign").await?.is_some(),
        "a foreign object was deleted"
    );
    let crd = format!("widgets.{namespace}.example.test");
    ensure!(
        stage.get("crd", &crd).await?.is_some(),
        "a definition was deleted without being asked for"
    );
    Ok(())
}

#[tokio::test]
async fn an_edit_stays_until_the_next_version_and_repair_takes_it_back() -> Result<()> {
    let stage = Stage::new("edits").await?;
    let namespace = stage.namespace.clone();
    let manifest = [config_map("edited", "ours"), config_map("deleted", "ours")].concat();
    let index = stage.index("index.yaml", &[("edits", "1.0.0", &manifest)])?;
    stage
        .run(&format!("install edits --channel {index} --yes"))
        .await?
        .done()?;
    let patch = r#"{"data":{"key":"theirs"}}"#;
    stage
        .plugin
        .kubectl(&[
            "patch",
            "configmap",
            "edited",
            "-n",
            &namespace,
            "-p",
            patch,
        ])
        .await?
        .done()?;
    stage
        .plugin
        .kubectl(&["delete", "configmap", "deleted", "-n", &namespace])
        .await?
        .done()?;

    stage
        .run(&format!("upgrade edits -n {namespace} --yes"))
        .await?
        .done()?;
    let edited = stage.get("configmap", "edited").await?.context("edited")?;
    ensure!(
        edited["data"]["key"] == "theirs",
        "an edit was taken back without a new version"
    );

    stage
        .run(&format!("upgrade edits -n {namespace} --repair --yes"))
        .await?
        .done()?;
    let edited = stage.get("configmap", "edited").await?.context("edited")?;
    ensure!(edited["data"]["key"] == "ours", "{}", edited["data"]);
    ensure!(
        stage.get("configmap", "deleted").await?.is_some(),
        "a deleted object was not restored"
    );
    Ok(())
}

#[tokio::test]
async fn an_object_that_is_not_ours_is_refused_before_the_first_write() -> Result<()> {
    let stage = Stage::new("foreign").await?;
    let namespace = stage.namespace.clone();
    stage
        .plugin
        .kubectl(&["create", "configmap", "second", "-n", &namespace])
        .await?
        .done()?;
    let manifest = [config_map("first", "1"), config_map("second", "1")].concat();
    let index = stage.index("index.yaml", &[("foreign", "1.0.0", &manifest)])?;
    let refused = stage
        .run(&format!("install foreign --channel {index} --yes"))
        .await?
        .ended(4)?;
    ensure!(
        refused.stderr.contains("ConfigMap second"),
        "{}",
        refused.stderr
    );
    ensure!(
        stage.get("configmap", "first").await?.is_none(),
        "something was written"
    );
    ensure!(
        stage.get("addoninstallation", "foreign").await?.is_none(),
        "a record was written"
    );
    Ok(())
}
