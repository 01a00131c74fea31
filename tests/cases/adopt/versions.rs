//! What is adopted is recorded as the version that is there, and its preview is what `diff` shows afterwards (semantics 12).

use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::tools::{chart, deploy, helm, manifest, release, releases};

/// Two versions of `web`, the older one first.
fn offer(stage: &Stage, old: &str) -> Result<String> {
    let new = old.replace("key: \"1\"", "key: \"2\"");
    stage.index(
        "index.yaml",
        &[("web", "1.0.0", old), ("web", "1.1.0", &new)],
    )
}

/// A release `web` of the chart 1.0.0, whose object says so.
async fn labelled(stage: &Stage) -> Result<()> {
    let labelled = config_map("web", "1").replace(
        "metadata: {",
        "metadata: {labels: {helm.sh/chart: web-1.0.0}, ",
    );
    let shelf = Shelf::new()?;
    let packed = chart(&shelf, "1.0.0", &labelled)?.display().to_string();
    helm(stage, &["install", "web", &packed]).await?.done()?;
    Ok(())
}

async fn version(stage: &Stage) -> Result<Value> {
    let record = stage.record("web").await?;
    Ok(record["status"]["installed"]["version"].clone())
}

#[tokio::test]
async fn a_release_is_recorded_in_the_version_of_its_chart() -> Result<()> {
    let stage = Stage::new("adopt-version").await?;
    labelled(&stage).await?;
    let index = offer(&stage, &config_map("web", "1"))?;
    let listed = stage
        .run(&format!("adopt --channel {index}"))
        .await?
        .done()?;
    let at = &stage.namespace;
    let command =
        format!("kubectl addons adopt web@1.0.0 --channel {index} --target-namespace {at}");
    ensure!(listed.stdout.contains(&command), "{}", listed.stdout);
    let said = stage
        .run(&format!("adopt web --channel {index} --yes"))
        .await?
        .done()?;
    ensure!(!said.stderr.contains("is not known"), "{}", said.stderr);
    ensure!(version(&stage).await? == "1.0.0");
    Ok(())
}

#[tokio::test]
async fn a_version_that_is_not_known_is_warned_of() -> Result<()> {
    // What another namespace has of this name tells nothing.
    labelled(&Stage::new("adopt-elsewhere").await?).await?;
    let stage = Stage::new("adopt-unknown").await?;
    stage.apply(&config_map("web", "1")).await?;
    let index = offer(&stage, &config_map("web", "1"))?;
    let told = "warning: web: the installed version is not known, and the newest one is recorded; \
                to record another one: kubectl addons adopt NAME@VERSION";
    let said = stage
        .run(&format!("adopt web --channel {index} --dry-run"))
        .await?
        .done()?;
    ensure!(said.stderr.contains(told), "{}", said.stderr);
    let said = stage
        .run(&format!("adopt web@1.0.0 --channel {index} --yes"))
        .await?
        .done()?;
    ensure!(!said.stderr.contains(told), "{}", said.stderr);
    ensure!(version(&stage).await? == "1.0.0");
    // Nor does a rollback find another version than the one that an upgrade has just applied.
    stage.run("upgrade web@1.0.0 --yes").await?.done()?;
    let said = stage.run("rollback web --yes").await?;
    let told = "no earlier revision succeeded with another version or other values";
    ensure!(
        said.code != 0 && said.stderr.contains(told),
        "{}",
        said.stderr
    );
    Ok(())
}

/// The line with the counts of a comparison.
fn counts(text: &str) -> Result<String> {
    let mut lines = text.lines();
    let line = lines.find(|line| line.contains(" changed, "));
    Ok(line.with_context(|| text.to_owned())?.trim().to_owned())
}

#[tokio::test]
async fn the_preview_is_the_diff_after_the_adoption() -> Result<()> {
    let stage = Stage::new("adopt-preview").await?;
    let env = "image: registry.k8s.io/pause:3.10, env: [{name: A, value: b}]";
    let there = manifest(true);
    ensure!(there.contains("image: "), "{there}");
    stage.apply(&there).await?;
    let args = [
        "set",
        "env",
        "deployment/web",
        "A=b",
        "--field-manager=kubectl-create",
    ];
    stage.kubectl(&args).await?;
    let wanted = [manifest(false), config_map("missing", "1")].concat();
    let index = stage.index("index.yaml", &[("web", "1.0.0", &wanted)])?;
    let said = stage
        .run(&format!("adopt web --channel {index} --dry-run"))
        .await?
        .done()?;
    let preview = said.stderr;
    ensure!(!preview.contains("kubectl-addons.dev/owner"), "{preview}");
    ensure!(preview.contains("dropped"), "{preview} {env}");
    ensure!(
        counts(&preview)? == "2 changed, 1 added, 0 pruned, 0 unchanged",
        "{preview}"
    );
    stage
        .run(&format!("adopt web --channel {index} --yes"))
        .await?
        .done()?;
    let diff = stage.run("diff web").await?.ended(1)?.stdout;
    ensure!(counts(&preview)? == counts(&diff)?, "{preview}\n{diff}");
    Ok(())
}

/// The advice for what is taken over in part works once the rest is gone.
#[tokio::test]
async fn what_is_adopted_in_part_is_completed_as_the_warning_says() -> Result<()> {
    let stage = Stage::new("adopt-part").await?;
    let at = stage.namespace.as_str();
    let rest = config_map("rest", "1");
    release(&stage, &[manifest(false), rest].concat()).await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(false))])?;
    let said = stage
        .run(&format!("adopt web --channel {index} --yes"))
        .await?
        .done()?;
    let advice = format!("kubectl addons adopt web -n {at} ");
    ensure!(
        said.stderr.contains(&advice) && said.stderr.contains(" sets them aside"),
        "{}",
        said.stderr
    );
    stage.delete("configmap", "rest").await?;
    let line = format!("adopt web -n {at} --yes");
    stage.run(&line).await?.done()?;
    ensure!(releases(&stage).await?.is_empty(), "helm finds it");
    Ok(())
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: needs kapp")]
async fn an_application_of_kapp_is_listed_by_its_name() -> Result<()> {
    let stage = Stage::new("adopt-kapp-name").await?;
    let at = stage.namespace.as_str();
    deploy(&stage, &manifest(false)).await?;
    let index = offer(&stage, &manifest(false))?;
    let said = stage
        .run(&format!("adopt --channel {index} -o json"))
        .await?
        .done()?;
    let listed: Value = serde_json::from_str(&said.stdout)?;
    let items = listed["items"].as_array().context("no items")?;
    let mut of_kapp = items.iter().filter(|item| item["foundBy"] == "kapp");
    let row = of_kapp.find(|item| item["namespace"] == at);
    let row = row.with_context(|| said.stdout.clone())?;
    let command = format!("kubectl addons adopt web --channel {index}");
    ensure!(row["name"] == "web" && row["adopt"] == command, "{row}");
    Ok(())
}
