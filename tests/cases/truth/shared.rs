//! What several installations share has one owner, and what is counted was done (semantics 5, 7 and 13).

use std::collections::BTreeSet;

use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use common::api::names::{LABEL_OWNER, owner_hash};
use common::manifest::kinds::traits::{is_built_in, is_cluster_scoped};
use serde_json::Value;

fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\n")
}

/// A ConfigMap in another namespace than that of the stage.
fn inside(namespace: &str, name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{key: {value:?}}}\n---\n"
    )
}

/// Whose an object is.
async fn owner(stage: &Stage, kind: &str, name: &str) -> Result<Option<String>> {
    let found = stage.must(kind, name).await?;
    let label = found["metadata"]["labels"][LABEL_OWNER].as_str();
    Ok(label.map(str::to_owned))
}

/// The state that an installation has recorded of its Namespace.
async fn recorded(stage: &Stage, name: &str) -> Result<Value> {
    let record = stage.record(name).await?;
    let groups = record["status"]["inventory"].as_array();
    let mut groups = groups.into_iter().flatten();
    let found = groups.find(|group| group["kind"] == "Namespace");
    let found = found.with_context(|| format!("no Namespace: {}", record["status"]))?;
    Ok(found["objects"][0]["state"].clone())
}

async fn list_says_ready(stage: &Stage) -> Result<()> {
    let list = format!("list -n {} -o json", stage.namespace);
    let said: Value = serde_json::from_str(&stage.run(&list).await?.done()?.stdout)?;
    let items = said["items"].as_array().context("no items")?;
    ensure!(items.iter().all(|one| one["phase"] == "Ready"), "{said}");
    Ok(())
}

#[tokio::test]
async fn n08_a_namespace_of_another_installation_is_recorded_also_the_second_time() -> Result<()> {
    let stage = Stage::new("shared-namespace").await?;
    let (own, shop) = (&stage.namespace, format!("{}-shop", stage.namespace));
    let a = |value: &str| [namespace(&shop), config_map("a", value)].concat();
    let b = inside(&shop, "b", "1");
    let index = stage.index("index.yaml", &[("b", "1.0.0", &b), ("a", "1.0.0", &a("1"))])?;
    for line in [format!("b --target-namespace {shop}"), "a".to_owned()] {
        let line = format!("install {line} --channel {index} --yes");
        stage.run(&line).await?.done()?;
    }
    let next = stage.index("next.yaml", &[("a", "2.0.0", &a("2"))])?;
    for line in [
        format!("upgrade a -n {own} --channel {next} --yes"),
        format!("upgrade a -n {own} --repair --yes"),
    ] {
        let said = stage.run(&line).await?.done()?.stderr;
        ensure!(!said.contains("moves"), "{said}");
        let found = owner(&stage, "namespace", &shop).await?;
        ensure!(found == Some(owner_hash(own, "b")), "{found:?}");
        ensure!(recorded(&stage, "a").await? == "preexisting");
    }
    list_says_ready(&stage).await?;
    // Whoever created it deletes it, once nothing of others is in it.
    stage
        .run(&format!("uninstall a -n {own} --delete-namespaces --yes"))
        .await?
        .done()?;
    ensure!(stage.has("namespace", &shop).await?);
    stage
        .run(&format!("uninstall b -n {own} --yes"))
        .await?
        .done()?;
    is_gone(&stage, &shop).await
}

async fn is_gone(stage: &Stage, namespace: &str) -> Result<()> {
    until("the namespace is gone", async || {
        let found = stage.get("namespace", namespace).await?;
        let is_gone = found.is_none_or(|it| it["metadata"]["deletionTimestamp"].is_string());
        Ok(is_gone.then_some(()).ok_or_else(|| namespace.to_owned()))
    })
    .await
}

#[tokio::test]
async fn n08_two_add_ons_of_one_command_want_the_same_namespace() -> Result<()> {
    let stage = Stage::new("shared-command").await?;
    let (own, shop) = (&stage.namespace, format!("{}-shop", stage.namespace));
    let manifest = |name: &str| [namespace(&shop), inside(&shop, name, "1")].concat();
    let (a, b) = (manifest("a"), manifest("b"));
    let index = stage.index("index.yaml", &[("a", "1.0.0", &a), ("b", "1.0.0", &b)])?;
    let install = format!("install a b --channel {index} --yes");
    stage.run(&install).await?.done()?;
    list_says_ready(&stage).await?;
    let owner = owner(&stage, "namespace", &shop)
        .await?
        .context("no owner")?;
    let states = [recorded(&stage, "a").await?, recorded(&stage, "b").await?];
    let is_of_a = owner == owner_hash(own, "a");
    ensure!(is_of_a || owner == owner_hash(own, "b"), "{owner}");
    let (first, second) = if is_of_a { (0, 1) } else { (1, 0) };
    ensure!(
        states[first].is_null() && states[second] == "preexisting",
        "{owner}: {states:?}"
    );
    // The same again changes nothing, and both go with one command.
    for line in [
        format!("upgrade a b -n {own} --repair --yes"),
        format!("uninstall a b -n {own} --delete-namespaces --yes"),
    ] {
        stage.run(&line).await?.done()?;
    }
    is_gone(&stage, &shop).await
}

/// Whichever of them created it, and whichever is uninstalled first.
#[tokio::test]
async fn n08_a_created_namespace_goes_with_the_last_of_its_users() -> Result<()> {
    let stage = Stage::new("shared-created").await?;
    for (creator, user) in [("a", "b"), ("b", "a")] {
        let shop = format!("{}-of-{creator}", stage.namespace);
        let objects = [config_map("a", "1"), config_map("b", "1")];
        let entries = [("a", "1.0.0", &*objects[0]), ("b", "1.0.0", &*objects[1])];
        let index = stage.index("index.yaml", &entries)?;
        for name in [creator, user] {
            let line = format!("install {name} --channel {index} --target-namespace {shop} --yes");
            stage.run(&line).await?.done()?;
        }
        let line = format!("uninstall a b -n {} --yes", stage.namespace);
        let said = stage.run(&line).await?.done()?.stderr;
        ensure!(!said.contains("stays"), "{said}");
        is_gone(&stage, &shop).await?;
    }
    Ok(())
}

#[tokio::test]
async fn n08_an_object_of_the_cluster_is_one_with_and_without_a_namespace() -> Result<()> {
    let stage = Stage::new("shared-scope").await?;
    stage.run("init").await?.done()?;
    let role = |more: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {}-role, {more}\
             labels: {{addonmanager.kubernetes.io/mode: Reconcile}}}}\nrules: []\n",
            stage.namespace
        )
    };
    stage.write("addons/a.yaml", &role(""))?;
    let path = stage.write("addons/b.yaml", &role("namespace: shop, "))?;
    let folder = path.parent().context("no folder")?;
    let said = stage
        .run(&format!("sync {} --yes", folder.display()))
        .await?
        .ended(1)?
        .stderr;
    ensure!(said.contains("is defined at"), "{said}");
    let role = format!("{}-role", stage.namespace);
    ensure!(!stage.has("clusterrole", &role).await?, "{said}");
    Ok(())
}

/// The table is that of the API server: of the kinds of Kubernetes, which of them are in no namespace.
#[tokio::test]
async fn n08_kinds_of_the_cluster_are_those_of_the_server() -> Result<()> {
    let stage = Stage::new("shared-kinds").await?;
    for (namespaced, expected) in [("true", false), ("false", true)] {
        let flag = format!("--namespaced={namespaced}");
        let args = [
            "api-resources",
            &flag,
            "--verbs=create,delete",
            "--no-headers",
        ];
        let listed = stage.plugin.kubectl(&args).await?.done()?.stdout;
        let mut wrong = BTreeSet::new();
        for line in listed.lines() {
            // NAME, perhaps SHORTNAMES, APIVERSION, NAMESPACED, KIND.
            let words: Vec<&str> = line.split_whitespace().collect();
            let [.., api_version, _, kind] = words.as_slice() else {
                continue;
            };
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            if is_built_in(group) && is_cluster_scoped(group, kind) != expected {
                wrong.insert(format!("{group} {kind}"));
            }
        }
        ensure!(wrong.is_empty(), "namespaced {namespaced}: {wrong:?}");
    }
    Ok(())
}

/// A Secret has no digest, and is sent each time: whether it changed, the answer says.
#[tokio::test]
async fn n08_what_an_apply_leaves_as_it_is_was_not_changed() -> Result<()> {
    let stage = Stage::new("shared-counts").await?;
    let own = &stage.namespace;
    let secret = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: key}}\nstringData: {{key: {value}}}\n---\n"
        )
    };
    let index = |file: &str, version: &str, secret: &str, value: &str| {
        let manifest = [secret, &config_map("map", value)].concat();
        stage.index(file, &[("web", version, &manifest)])
    };
    let first = index("1.yaml", "1.0.0", &secret("one"), "1")?;
    let install = format!("install web --channel {first} --yes");
    stage.run(&install).await?.done()?;
    for (version, key, value, expected) in [
        ("2.0.0", "one", "2", "1 changed, 1 unchanged"),
        ("3.0.0", "two", "2", "1 changed, 1 unchanged"),
        ("4.0.0", "two", "2", "2 unchanged"),
    ] {
        let next = index(&format!("{version}.yaml"), version, &secret(key), value)?;
        let line = format!("upgrade web -n {own} --channel {next} --yes");
        let said = stage.run(&line).await?.done()?.stderr;
        ensure!(said.contains(expected), "{version}: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn n08_an_interrupted_upgrade_is_part_of_the_history() -> Result<()> {
    let stage = Stage::new("shared-history").await?;
    let own = &stage.namespace;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("map", "1"))])?;
    let install = format!("install web --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let history = async || {
        let line = format!("history web -n {own} -o json");
        let said: Value = serde_json::from_str(&stage.run(&line).await?.done()?.stdout)?;
        let items = said["items"].as_array().context("no items")?;
        let words = items.iter().map(|one| {
            let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("verb"), text("outcome"))
        });
        // The client that was interrupted was silent since before the installation.
        let mut words: Vec<String> = words.collect();
        words.sort();
        Ok::<_, anyhow::Error>(words)
    };
    let holder = "ann@desk (kubectl-addons, pid 1)";
    stage.lock("web", holder, 0).await?;
    ensure!(history().await? == ["install done", "upgrade in progress"]);
    stage.lock("web", holder, 60).await?;
    ensure!(history().await? == ["install done", "upgrade interrupted"]);
    let next = stage.index("next.yaml", &[("web", "2.0.0", &config_map("map", "2"))])?;
    let upgrade = format!("upgrade web -n {own} --channel {next} --yes");
    stage.run(&upgrade).await?.done()?;
    let all = history().await?;
    ensure!(
        all == ["install done", "upgrade done", "upgrade interrupted"],
        "{all:?}"
    );
    Ok(())
}
