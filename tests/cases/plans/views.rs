//! `diff`, `plan`, `list` and `upgrade` are views of one plan: what one of them says, no other denies.

use addons_tests::stage::Stage;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::sets::{installation, set};

fn says(text: &str, parts: &[&str]) -> Result<()> {
    for part in parts {
        ensure!(text.contains(part), "{part:?} is not in\n{text}");
    }
    Ok(())
}

/// One add-on of one template, in these versions.
async fn offer(stage: &Stage, versions: &[&str]) -> Result<()> {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: till}\ndata: {a: fixed}\n---\n\
        apiVersion: v1\nkind: Service\nmetadata: {name: till}\nspec: {ports: [{port: 80}]}\n";
    let version = |version: &&str| {
        json!({"version": version, "defaultNamespace": stage.namespace,
            "template": {"method": "go-template"}, "source": {"inline": {"manifest": template}}})
    };
    let versions: Vec<Value> = versions.iter().map(version).collect();
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "till"}, "spec": {"addons": [{"name": "till", "versions": versions}]},
    });
    let file = stage.write("till.json", &catalogue.to_string())?;
    let add = format!("catalogue add {}", file.display());
    stage.run(&add).await?.done().map(drop)
}

#[tokio::test]
async fn what_others_add_is_not_restored_and_what_they_edit_is_told_apart() -> Result<()> {
    let stage = Stage::new("views-edits").await?;
    offer(&stage, &["1.0.0"]).await?;
    stage.run("install till --yes").await?.done()?;
    // A label of theirs: nothing of ours differs.
    let label = json!({"metadata": {"labels": {"foo": "bar"}}});
    stage.patch("service", "till", &label).await?;
    stage.run("diff till").await?.done()?;
    let said = stage.run("upgrade till --repair --dry-run").await?.done()?;
    ensure!(!said.stderr.contains("restore"), "{}", said.stderr);
    let said = stage.run("upgrade till --repair --yes").await?.done()?;
    ensure!(!said.stderr.contains("1 changed"), "{}", said.stderr);
    // A field of ours: the comparison shows it, and says which command restores it.
    let edit = json!({"data": {"a": "edited"}});
    stage.patch("configmap", "till", &edit).await?;
    let said = stage.run("diff till").await?.ended(1)?;
    says(&said.stdout, &["edited → fixed"])?;
    says(&said.stderr, &["upgrade till", "--repair"])?;
    stage.run("plan till --exit-code").await?.done()?;
    let plan = stage
        .run("plan till --repair --exit-code")
        .await?
        .ended(1)?;
    says(&plan.stdout, &["restore   1 object    ConfigMap"])?;
    Ok(())
}

#[tokio::test]
async fn a_plan_of_the_record_alone_says_what_it_records() -> Result<()> {
    let stage = Stage::new("views-record").await?;
    offer(&stage, &["1.0.0"]).await?;
    stage.run("install till --yes").await?.done()?;
    let line = "upgrade till --set ingress.password=hunter2 --dry-run";
    let said = stage.run(line).await?.done()?;
    says(
        &said.stderr,
        &["record    values changed: ingress.password"],
    )?;
    ensure!(!said.stderr.contains("hunter2"), "{}", said.stderr);
    let pinned = json!({"addonRef": {"name": "till", "version": "1.0.0"}, "values": {"b": 1}});
    let file = stage.write("set.yaml", &set(&[installation("till", pinned)]))?;
    let file = file.display();
    for line in [
        format!("diff -f {file}"),
        format!("plan -f {file} --exit-code"),
    ] {
        let said = stage.run(&line).await?.ended(1)?;
        let pinned = "pinned to version 1.0.0";
        says(&said.stdout, &["values changed: b", pinned])?;
    }
    stage.run(&format!("apply -f {file} --yes")).await?.done()?;
    let diff = format!("diff -f {file}");
    stage.run(&diff).await?.done()?;
    // What is deleted differs, and only the printed command restores it.
    stage.delete("configmap", "till").await?;
    stage.run(&format!("apply -f {file} --yes")).await?.done()?;
    let said = stage.run(&diff).await?.ended(1)?.stderr;
    let mut lines = said.lines();
    let restore = lines.find_map(|line| line.trim().strip_prefix("restore: kubectl addons "));
    let restore = restore.with_context(|| said.clone())?;
    stage.run(&format!("{restore} --yes")).await?.done()?;
    stage.run(&diff).await?.done()?;
    let said = stage.run("rollback till --dry-run").await?.done()?;
    says(&said.stderr, &["values changed: b"])?;
    Ok(())
}

#[tokio::test]
async fn a_lower_version_is_shown_and_installed_only_if_it_is_accepted() -> Result<()> {
    let stage = Stage::new("views-lower").await?;
    offer(&stage, &["1.0.0", "1.1.0"]).await?;
    stage.run("install till --yes").await?.done()?;
    offer(&stage, &["1.0.0"]).await?;
    let said = stage.run("list --outdated").await?.done()?;
    ensure!(!said.stdout.contains("1.0.0"), "{}", said.stdout);
    let said = stage.run("upgrade till --yes").await?.done()?;
    says(&said.stderr, &["till  1.1.0  nothing to do"])?;
    stage.run("diff till").await?.done()?;
    stage.run("plan till --exit-code").await?.done()?;
    let lower = json!({"addonRef": {"name": "till", "version": "1.0.0"}});
    let file = stage.write("set.yaml", &set(&[installation("till", lower)]))?;
    let file = file.display();
    let accept = format!("apply -f {file}");
    for (line, code) in [
        (format!("diff -f {file}"), 2),
        (format!("plan -f {file}"), 1),
        (format!("apply -f {file} --yes"), 1),
    ] {
        let said = stage.run(&line).await?.ended(code)?;
        says(
            &said.stderr,
            &["1.0.0 is lower", &accept, "--allow-downgrade"],
        )?;
    }
    let allowed = format!("-f {file} --allow-downgrade");
    let said = stage.run(&format!("diff {allowed}")).await?.ended(1)?;
    says(&said.stdout, &["version   1.1.0 → 1.0.0"])?;
    let said = stage.run(&format!("plan {allowed}")).await?.done()?;
    says(&said.stdout, &["till  1.1.0 → 1.0.0"])?;
    let said = stage.run(&format!("apply {allowed} --yes")).await?.done()?;
    says(&said.stderr, &["till 1.0.0"])?;
    Ok(())
}
