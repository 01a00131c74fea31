//! How an installation stands is one question: `status`, `list`, `upgrade`, `diff`, `plan` and waves give one answer (semantics 13).

use std::time::{Duration, Instant};

use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::ways_out::{follow, printed};
use crate::trust::stored;

/// What `list` and `status` say of an installation; they have to agree.
async fn stands(stage: &Stage, name: &str) -> Result<String> {
    let namespace = &stage.namespace;
    let read = async |line: String| {
        let said = stage.run(&line).await?.done()?.stdout;
        Ok::<Value, anyhow::Error>(serde_json::from_str(&said)?)
    };
    let list = read(format!("list -n {namespace} -o json")).await?;
    let mut rows = list["items"].as_array().into_iter().flatten();
    let listed = rows.find(|row| row["name"] == name).context("not listed")?;
    let status = read(format!("status {name} -n {namespace} -o json")).await?;
    for field in ["phase", "message", "wayOn"] {
        ensure!(listed[field] == status[field], "{field}: {listed} {status}");
    }
    let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    Ok(format!("{}: {}", text("phase"), text("message")))
}

/// A Namespace and an object that is only created carry no label of ours where they were there before; case H05.
#[tokio::test]
async fn n07_what_is_only_recorded_is_not_gone() -> Result<()> {
    let stage = Stage::new("standing-recorded").await?;
    let own = format!("{}-own", stage.namespace);
    let before = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {own}, labels: {{team: shop}}}}\n"
    );
    stage.apply(&before).await?;
    let once = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: once}\ndata: {key: theirs}\n";
    stage.apply(once).await?;
    let enforce = "pod-security.kubernetes.io/enforce";
    let manifest = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {own}, labels: {{{enforce}: privileged, team: bakery}}}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: once, annotations: {{kubectl-addons.dev/apply: create-only}}}}\n\
         data: {{key: ours}}\n---\n{}",
        config_map("plain", "1")
    );
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest)])?;
    let install = format!("install web --channel {index} --yes");
    let said = stage.run(&install).await?.done()?.stderr;
    let told = format!(
        "Namespace {own} exists and keeps its labels; missing: {enforce}=privileged, team=bakery (it is shop); to set them: \
         kubectl label namespace {own} {enforce}=privileged team=bakery --overwrite"
    );
    ensure!(said.contains(&told), "{said}");
    ensure!(stands(&stage, "web").await? == "Ready: ");
    let status = format!("status web -n {} --exit-code", stage.namespace);
    let status = stage.run(&status).await?.done()?.stdout;
    ensure!(
        !status.contains("gone") && !status.contains("edited"),
        "{status}"
    );
    // What is really gone is missed.
    stage.delete("configmap", "once").await?;
    let now = stands(&stage, "web").await?;
    ensure!(now == "Degraded: ConfigMap once is gone", "{now}");
    Ok(())
}

#[tokio::test]
async fn n07_an_upgrade_without_a_change_says_what_is_degraded() -> Result<()> {
    let stage = Stage::new("standing-degraded").await?;
    let namespace = &stage.namespace;
    let manifest = [config_map("map", "1"), deployment("web", 1, None)].concat();
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest)])?;
    let install = format!("install web --channel {index} --yes --timeout 100s");
    stage.run(&install).await?.done()?;
    ensure!(stands(&stage, "web").await? == "Ready: ");
    let upgrade = format!("upgrade web -n {namespace} --yes");
    let quiet = stage.run(&upgrade).await?.done()?.stderr;
    ensure!(!quiet.contains("warning"), "{quiet}");
    stage.delete("configmap", "map").await?;
    stage.delete("deployment", "web").await?;
    let now = stands(&stage, "web").await?;
    ensure!(now == "Degraded: ConfigMap map is gone and 1 more", "{now}");
    let said = stage.run(&upgrade).await?.done()?.stderr;
    ensure!(
        said.contains("nothing to do") && said.contains(&format!("web is {now}")),
        "{said}"
    );
    let restore = format!("{} --timeout 100s", printed(&said, "fix:")?);
    follow(&stage, &restore).await?;
    ensure!(stands(&stage, "web").await? == "Ready: ");
    // The label that says whose an object is was taken away: it exists, and was edited.
    let unlabelled = json!({"metadata": {"labels": {"kubectl-addons.dev/owner": null}}});
    stage.patch("configmap", "map", &unlabelled).await?;
    ensure!(stands(&stage, "web").await? == "Ready: ");
    let status = format!("status web -n {namespace}");
    let status = stage.run(&status).await?.done()?.stdout;
    ensure!(status.contains("edited since our last apply"), "{status}");
    Ok(())
}

#[tokio::test]
async fn n07_a_spec_that_is_not_applied_is_pending() -> Result<()> {
    let stage = Stage::new("standing-pending").await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("map", "1"))])?;
    let install = format!("install web --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let spec = json!({"spec": {"conflicts": "Yield"}});
    stage.patch("addoninstallation", "web", &spec).await?;
    let now = stands(&stage, "web").await?;
    ensure!(
        now == "Pending: its spec was changed and is not applied",
        "{now}"
    );
    let status = format!("status web -n {} --exit-code", stage.namespace);
    let said = stage.run(&status).await?.ended(1)?.stdout;
    follow(&stage, &printed(&said, "to continue:")?).await?;
    ensure!(stands(&stage, "web").await? == "Ready: ");
    Ok(())
}

/// A Job that ran at the installation has run, and one for upgrades runs with one.
#[tokio::test]
async fn n07_hooks_that_have_run_are_no_difference() -> Result<()> {
    let stage = Stage::new("standing-hooks").await?;
    let namespace = &stage.namespace;
    let job = |name: &str, hook: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, annotations: {{helm.sh/hook: {hook}}}}}\nspec:\n  \
             template:\n    spec: {{restartPolicy: Never, containers: [{{name: main, image: 'example.test/job:1'}}]}}\n---\n"
        )
    };
    let manifest = [
        job("check", "post-install"),
        job("migrate", "pre-upgrade"),
        config_map("map", "1"),
    ]
    .concat();
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest)])?;
    let install = format!("install web --channel {index} --yes --timeout 100s");
    stage.run(&install).await?.done()?;
    let uid = stage.must("job", "check").await?["metadata"]["uid"].clone();
    for line in ["diff web", "plan web --exit-code", "upgrade web --yes"] {
        let line = format!("{line} -n {namespace}");
        let said = stage.run(&line).await?.done()?;
        let said = said.stdout + &said.stderr;
        ensure!(
            !said.contains("1 pruned") && !said.contains("Job"),
            "{said}"
        );
    }
    // An edit is a difference, with the command that takes it back.
    let edit = json!({"data": {"key": "2"}});
    stage.patch("configmap", "map", &edit).await?;
    let said = stage.run(&format!("diff web -n {namespace}")).await?;
    let said = said.ended(1)?;
    follow(&stage, &printed(&said.stderr, "restore:")?).await?;
    stage
        .run(&format!("diff web -n {namespace}"))
        .await?
        .done()?;
    ensure!(stage.must("job", "check").await?["metadata"]["uid"] == uid);
    ensure!(
        !stage.has("job", "migrate").await?,
        "a repair is no upgrade"
    );
    // The next version is one.
    let next = [manifest, config_map("more", "1")].concat();
    let index = stage.index("next.yaml", &[("web", "2.0.0", &next)])?;
    let upgrade = format!("upgrade web -n {namespace} --channel {index} --yes --timeout 100s");
    stage.run(&upgrade).await?.done()?;
    ensure!(stage.has("job", "migrate").await? && !stage.has("job", "check").await?);
    Ok(())
}

/// The API server keeps the condition after the name was free again (kube-apiserver 1.36), and serves the definition all the same.
#[tokio::test]
async fn n07_a_definition_that_is_served_is_ready_whatever_its_other_names() -> Result<()> {
    let stage = Stage::new("standing-names").await?;
    let group = format!("{}.example.test", stage.namespace);
    let definition = |plural: &str, kind: &str, singular: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.{group}}}\n\
             spec: {{group: {group}, scope: Namespaced, names: {{kind: {kind}, plural: {plural}, singular: {singular}}}, \
             versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}]}}\n---\n"
        )
    };
    let one = definition("pools", "Pool", "pool");
    let index = stage.index(
        "index.yaml",
        &[(
            "web",
            "1.0.0",
            &[&one[..], &definition("basins", "Basin", "basin")].concat(),
        )],
    )?;
    let install = format!("install web --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let other = [&one[..], &definition("basins", "Basin", "pool")].concat();
    let index = stage.index("next.yaml", &[("web", "2.0.0", &other)])?;
    let upgrade = format!("upgrade web -n {} --channel {index} --yes", stage.namespace);
    stage.run(&upgrade).await?.done()?;
    let name = format!("basins.{group}");
    until("the name is not accepted", async || {
        let found = stage.must("crd", &name).await?;
        let is_refused = found.to_string().contains("SingularConflict");
        Ok(is_refused.then_some(()).ok_or_else(|| found.to_string()))
    })
    .await?;
    ensure!(stands(&stage, "web").await? == "Ready: ");
    Ok(())
}

#[tokio::test]
async fn n07_diff_compares_the_wanted_definition_and_not_the_way_there() -> Result<()> {
    let stage = Stage::new("standing-stored").await?;
    stored::brought(&stage, &[&["v1alpha1"], &["v1alpha1", "v1"]]).await?;
    let line = stored::line(&stage, "3.0.0", &["v1"])?.replace("upgrade", "diff");
    let said = stage.run(&line).await?.ended(1)?.stdout;
    ensure!(said.contains("spec.versions[v1alpha1]"), "{said}");
    ensure!(!said.contains("migrating-stored-versions"), "{said}");
    Ok(())
}

#[tokio::test]
async fn n07_what_is_deleted_while_it_is_waited_for_fails_at_once() -> Result<()> {
    let stage = Stage::new("standing-deleted").await?;
    stage.run("init").await?.done()?;
    let manifest = deployment("web", 1, Some("no-such-zone"));
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest)])?;
    let install = format!("install web --channel {index} --yes --timeout 280s");
    let deleting = async {
        until("it is waited for", async || {
            let found = stage.get("deployment", "web").await?;
            let is_seen = |found: &Value| found["status"]["observedGeneration"].is_number();
            let found = found.filter(is_seen);
            Ok(found.map(drop).ok_or_else(|| "not there".to_owned()))
        })
        .await?;
        stage.delete("deployment", "web").await?;
        Ok::<_, anyhow::Error>(Instant::now())
    };
    let (said, deleted) = futures::future::join(stage.run(&install), deleting).await;
    let (said, deleted) = (said?.ended(1)?.stderr, deleted?);
    ensure!(
        said.contains("was deleted while it was waited for"),
        "{said}"
    );
    ensure!(deleted.elapsed() < Duration::from_secs(120), "{said}");
    Ok(())
}
