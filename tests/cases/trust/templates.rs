//! Templates of others: whatever they do, the program ends in time.

use std::time::Duration;

use addons_tests::stage::Stage;
use addons_tests::until::until;
use anyhow::{Result, ensure};

/// Below every limit, and yet slow.
const SLOW: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: slow}\n\
    data: {key: '{{ $s := repeat 16777216 \"a\" }}{{ range 250 }}{{ $_ := sha512sum $s }}{{ end }}'}\n";

async fn slow(stage: &Stage) -> Result<String> {
    let template = serde_json::Value::from(SLOW);
    let name = &stage.namespace;
    let catalogue = format!(
        "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonCatalogue\nmetadata: {{name: {name}}}\nspec:\n  addons:\n  \
         - name: slow\n    versions:\n    - version: 1.0.0\n      template: {{method: go-template}}\n      \
         source: {{inline: {{manifest: {template}}}}}\n"
    );
    stage.run("init").await?.done()?;
    let file = stage.write("catalogue.yaml", &catalogue)?;
    Ok(file.display().to_string())
}

/// trust 5.
#[tokio::test]
async fn t05_a_rendering_ends_within_the_timeout_and_with_ctrl_c() -> Result<()> {
    let stage = Stage::new("slow").await?;
    let file = slow(&stage).await?;
    let line = format!("install slow --channel {file} --yes --timeout 2s");
    let said = stage.run(&line).await?.ended(1)?;
    let words = "its templates were not rendered after 2.0s and were stopped";
    ensure!(said.stderr.contains(words), "{}", said.stderr);
    ensure!(said.elapsed < Duration::from_secs(10), "{:?}", said.elapsed);

    let line = format!("install slow --channel {file} --yes");
    let mut process = stage.plugin.start(&line.split(' ').collect::<Vec<_>>())?;
    let id = process.id();
    until("the rendering runs", async || {
        let tasks = std::fs::read_dir(format!("/proc/{id}/task"))?;
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        let names: Vec<String> = names.collect();
        let is_rendering = names.iter().any(|name| name.trim() == "templates");
        Ok(if is_rendering {
            Ok(())
        } else {
            Err(names.join(""))
        })
    })
    .await?;
    let begun = std::time::Instant::now();
    let sent = std::process::Command::new("kill")
        .args(["-INT", "--", &id.to_string()])
        .status()?;
    ensure!(sent.success(), "kill failed");
    tokio::task::spawn_blocking(move || process.wait()).await??;
    let took = begun.elapsed();
    ensure!(took < Duration::from_secs(5), "{took:?}");
    Ok(())
}
