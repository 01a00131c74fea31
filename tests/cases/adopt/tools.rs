//! The real helm and kapp, as their users call them.

use std::path::PathBuf;

use addons_tests::control_plane::binaries;
use addons_tests::plugin::Output;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Result, ensure};

use super::ready;

/// The objects of the add-on `web`; the old version has a field more, and all of them have a name of their own.
pub fn manifest(dropped: bool) -> String {
    let dropped = if dropped { ", dropped: 'yes'" } else { "" };
    let settings = config_map("settings", "1").replace("\"1\"", &format!("'1'{dropped}"));
    [deployment("web", 2, None), settings].concat()
}

/// Runs helm in the namespace of the user.
pub async fn helm(stage: &Stage, args: &[&str]) -> Result<Output> {
    let kubeconfig = stage.plugin.kubeconfig().to_string_lossy().into_owned();
    let flags = ["--namespace", &stage.namespace, "--kubeconfig", &kubeconfig];
    let args = [args, &flags].concat();
    stage.plugin.program(&binaries::helm()?, &args).await
}

/// A chart of these objects.
pub fn chart(shelf: &Shelf, version: &str, text: &str) -> Result<PathBuf> {
    shelf.chart("web", version, &[("templates/all.yaml", text)])
}

/// The release `web` of helm, ready.
pub async fn release(stage: &Stage, text: &str) -> Result<()> {
    let shelf = Shelf::new()?;
    let chart = chart(&shelf, "1.0.0", text)?;
    let chart = chart.to_string_lossy();
    helm(stage, &["install", "web", &chart]).await?.done()?;
    // A second revision, so that there are two records.
    helm(stage, &["upgrade", "web", &chart]).await?.done()?;
    ready(stage).await
}

/// Names of the releases that helm finds.
pub async fn releases(stage: &Stage) -> Result<String> {
    let listed = helm(stage, &["list", "--short"]).await?.done()?;
    Ok(listed.stdout.trim().to_owned())
}

/// Runs kapp in the namespace of the user.
pub async fn kapp(stage: &Stage, args: &[&str]) -> Result<Output> {
    let kubeconfig = stage.plugin.kubeconfig().to_string_lossy().into_owned();
    let flags = ["--namespace", &stage.namespace, "--kubeconfig", &kubeconfig];
    let args = [args, &flags].concat();
    stage.plugin.program(&binaries::kapp()?, &args).await
}

/// Deploys a manifest as the application `web` of kapp.
pub async fn deploy(stage: &Stage, text: &str) -> Result<()> {
    let file = stage.write("kapp.yaml", text)?;
    let file = file.to_string_lossy();
    let args = ["deploy", "--app", "web", "--file", &file, "--yes"];
    kapp(stage, &args).await?.done()?;
    ready(stage).await
}

/// Names of the applications that kapp finds.
pub async fn applications(stage: &Stage) -> Result<Vec<String>> {
    let listed = kapp(stage, &["list", "--json"]).await?.done()?;
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout)?;
    let rows = listed["Tables"][0]["Rows"].as_array().cloned();
    let rows = rows.unwrap_or_default().into_iter();
    Ok(rows
        .filter_map(|row| row["name"].as_str().map(str::to_owned))
        .collect())
}

/// That a command was refused because its release or application was not found.
pub fn finds_nothing(said: &Output, words: &str) -> Result<()> {
    let text = format!("{}{}", said.stdout, said.stderr);
    ensure!(said.code != 0 && text.contains(words), "{words}: {text}");
    Ok(())
}
