//! Fields that never change: named with the way out, and recreated only where that is declared.

use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use addons_tests::stage::{Stage, deployment};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

/// A ConfigMap that says of itself that it never changes.
fn fixed(value: &str, annotation: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: fixed, annotations: {{{annotation}}}}}\nimmutable: true\ndata: {{key: {value:?}}}\n---\n"
    )
}

/// Installs version 1; the line that brings version 2.
async fn installed(stage: &Stage, one: &str, two: &str) -> Result<String> {
    let index = stage.index("1.yaml", &[("fixed", "1.0.0", one)])?;
    stage
        .run(&format!("install fixed --channel {index} --yes"))
        .await?
        .done()?;
    let index = stage.index("2.yaml", &[("fixed", "2.0.0", two)])?;
    Ok(format!(
        "upgrade fixed -n {} --channel {index} --yes",
        stage.namespace
    ))
}

async fn uid(stage: &Stage, kind: &str, name: &str) -> Result<String> {
    let object = stage.must(kind, name).await?;
    let uid = object["metadata"]["uid"].as_str();
    Ok(uid.context("no uid")?.to_owned())
}

#[tokio::test]
async fn a_selector_is_refused_with_the_way_out() -> Result<()> {
    let stage = Stage::new("immutable-selector").await?;
    let two = deployment("web", 1, None).replace("app: web", "app: web, tier: front");
    let line = installed(&stage, &deployment("web", 1, None), &two).await?;
    let before = uid(&stage, "deployment", "web").await?;
    let refused = stage.run(&line).await?.ended(4)?;
    let accept = format!("accept: kubectl addons {line} ");
    let flag = " --recreate Deployment/web\n";
    for words in ["spec.selector: field is immutable", "look: ", &accept, flag] {
        ensure!(
            refused.stderr.contains(words),
            "no {words}: {}",
            refused.stderr
        );
    }
    ensure!(
        uid(&stage, "deployment", "web").await? == before,
        "it was recreated"
    );

    for (typed, words) in [
        ("Deployment/wbe", "did you mean Deployment/web?"),
        ("web", "KIND/NAME"),
    ] {
        let usage = stage
            .run(&format!("{line} --recreate {typed}"))
            .await?
            .ended(2)?;
        ensure!(usage.stderr.contains(words), "no {words}: {}", usage.stderr);
    }
    let plan = line.replace("upgrade", "plan").replace(" --yes", "");
    for (flags, shown) in [
        ("", "\"recreated\":"),
        (
            " --recreate Deployment/web",
            "\"recreated\": \"spec.selector: field is immutable",
        ),
    ] {
        let plan = stage.run(&format!("{plan}{flags} -o json")).await?;
        let is_refused = flags.is_empty();
        let plan = plan.ended(i32::from(is_refused))?.stdout;
        ensure!(plan.contains(shown) != is_refused, "{plan}");
    }
    let output = stage
        .run(&format!("{line} --recreate Deployment/web"))
        .await?
        .done()?;
    for words in ["1 recreated", "recreated "] {
        ensure!(
            output.stderr.contains(words),
            "no {words}: {}",
            output.stderr
        );
    }
    ensure!(
        uid(&stage, "deployment", "web").await? != before,
        "it was not recreated"
    );
    let again = stage.run(&line).await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    ours_until_the_end(&stage, "deployment", "web").await
}

/// The inventory holds the new object: it goes with the add-on.
async fn ours_until_the_end(stage: &Stage, kind: &str, name: &str) -> Result<()> {
    let line = format!("uninstall fixed -n {} --yes", stage.namespace);
    stage.run(&line).await?.done()?;
    let left = stage.get(kind, name).await?;
    ensure!(
        left.is_none_or(|left| left["metadata"]["deletionTimestamp"].is_string()),
        "{kind} {name} leaks"
    );
    Ok(())
}

#[tokio::test]
async fn pods_of_a_stateful_set_survive() -> Result<()> {
    let stage = Stage::new("immutable-pods").await?;
    let manifest = |service: &str| {
        format!(
            "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: db, annotations: {{kubectl-addons.dev/recreate: 'true'}}}}\n\
             spec: {{serviceName: {service}, replicas: 2, selector: {{matchLabels: {{app: db}}}}, template: {{metadata: {{labels: {{app: db}}}}, \
             spec: {{containers: [{{name: main, image: 'example.test/db:1'}}]}}}}}}\n---\n"
        )
    };
    let line = installed(&stage, &manifest("a"), &manifest("b")).await?;
    let before = (
        uid(&stage, "pod", "db-0").await?,
        uid(&stage, "pod", "db-1").await?,
    );
    let set = uid(&stage, "statefulset", "db").await?;
    let output = stage.run(&line).await?.done()?;
    ensure!(output.stderr.contains("1 recreated"), "{}", output.stderr);
    let object = stage.must("statefulset", "db").await?;
    ensure!(object["spec"]["serviceName"] == "b", "{object:#}");
    ensure!(
        uid(&stage, "statefulset", "db").await? != set,
        "it was not recreated"
    );
    let after = (
        uid(&stage, "pod", "db-0").await?,
        uid(&stage, "pod", "db-1").await?,
    );
    ensure!(before == after, "the pods were recreated");
    Ok(())
}

#[tokio::test]
async fn a_claim_is_never_recreated() -> Result<()> {
    let stage = Stage::new("immutable-claim").await?;
    let claim = |class: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data, annotations: {{kubectl-addons.dev/recreate: 'true'}}}}\n\
             spec: {{accessModes: [ReadWriteOnce], storageClassName: {class}, resources: {{requests: {{storage: 1Gi}}}}}}\n---\n"
        )
    };
    let index = stage.index("1.yaml", &[("fixed", "1.0.0", &claim("a"))])?;
    stage
        .run(&format!(
            "install fixed --channel {index} --yes --wait=false"
        ))
        .await?
        .done()?;
    let before = uid(&stage, "persistentvolumeclaim", "data").await?;
    let index = stage.index("2.yaml", &[("fixed", "2.0.0", &claim("b"))])?;
    let line = format!(
        "upgrade fixed -n {} --channel {index} --yes --wait=false",
        stage.namespace
    );
    let refused = stage.run(&line).await?.ended(1)?;
    let words = "spec.storageClassName: spec is immutable after creation";
    ensure!(refused.stderr.contains(words), "{}", refused.stderr);
    for (flags, code) in [("", 1), (" --recreate PersistentVolumeClaim/data", 2)] {
        let refused = stage.run(&format!("{line}{flags}")).await?.ended(code)?;
        ensure!(
            refused
                .stderr
                .contains("is never recreated: the data in it would be lost"),
            "{}",
            refused.stderr
        );
    }
    ensure!(uid(&stage, "persistentvolumeclaim", "data").await? == before);
    Ok(())
}

/// What is wrong besides is found before anything is deleted.
#[tokio::test]
async fn nothing_is_deleted_that_cannot_be_created_again() -> Result<()> {
    let stage = Stage::new("immutable-wrong").await?;
    let selector_only =
        deployment("web", 1, None).replace("matchLabels: {app: web}", "matchLabels: {app: other}");
    let line = installed(&stage, &deployment("web", 1, None), &selector_only).await?;
    let before = uid(&stage, "deployment", "web").await?;
    let refused = stage
        .run(&format!("{line} --recreate Deployment/web"))
        .await?
        .ended(1)?;
    ensure!(
        refused.stderr.contains("does not match template"),
        "{}",
        refused.stderr
    );
    ensure!(
        uid(&stage, "deployment", "web").await? == before,
        "it was deleted"
    );
    Ok(())
}

#[tokio::test]
async fn a_finalizer_that_holds_it_is_named() -> Result<()> {
    let stage = Stage::new("immutable-held").await?;
    let mark = "kubectl-addons.dev/recreate: 'true'";
    let line = installed(&stage, &fixed("1", mark), &fixed("2", mark)).await?;
    let hold = json!({"metadata": {"finalizers": ["example.test/hold"]}});
    stage.patch("configmap", "fixed", &hold).await?;
    let held = stage.run(&format!("{line} --timeout 4s")).await?.ended(4)?;
    ensure!(
        held.stderr.contains("held by finalizer example.test/hold"),
        "{}",
        held.stderr
    );
    let release = json!({"metadata": {"finalizers": null}});
    stage.patch("configmap", "fixed", &release).await?;
    stage.run(&line).await?.done()?;
    let object = stage.must("configmap", "fixed").await?;
    ensure!(object["data"]["key"] == "2", "{object:#}");
    ours_until_the_end(&stage, "configmap", "fixed").await
}

/// Cut off at the deletion and at the creation that follows, each before and behind it.
#[tokio::test]
async fn a_crash_in_between_is_repaired() -> Result<()> {
    for (method, number, delivered, is_there) in [
        ("DELETE", 1, false, true),
        ("DELETE", 1, true, false),
        ("PATCH", 2, false, false),
        ("PATCH", 2, true, true),
    ] {
        let case = format!("{method} {number}, delivered: {delivered}");
        let rig = Rig::new("immutable-crash").await?;
        let stage = &rig.stage;
        let line = installed(stage, &fixed("1", ""), &fixed("2", "")).await?;
        let with_flag = format!("{line} --recreate ConfigMap/fixed");
        let stop = Fault::at(number, Action::Stop { delivered });
        let stop = stop.method(method).path("/configmaps/fixed").writes();
        ensure!(
            rig.run_until(&with_flag, stop).await?,
            "{case}: not stopped"
        );
        ensure!(
            stage.has("configmap", "fixed").await? == is_there,
            "{case}: stopped elsewhere"
        );
        stage
            .run(&format!("{with_flag} --steal-lock"))
            .await?
            .done()
            .context(case.clone())?;
        let object = stage.must("configmap", "fixed").await?;
        ensure!(object["data"]["key"] == "2", "{case}: {object:#}");
        ensure!(
            stage.record("fixed").await?["status"]["phase"] == "Ready",
            "{case}"
        );
        ours_until_the_end(stage, "configmap", "fixed")
            .await
            .context(case)?;
    }
    Ok(())
}
