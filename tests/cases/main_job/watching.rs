//! `status --watch`: what changes is shown when it changes, by watches, until the process is ended.

use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::Value;

fn printed(process: &Running) -> Result<String> {
    Ok(std::fs::read_to_string(
        process.plugin.home().join("stdout"),
    )?)
}

/// Waits until a process has printed these lines.
async fn prints(process: &Running, lines: &[&str]) -> Result<()> {
    until(&format!("{lines:?} are printed"), async || {
        let text = printed(process)?;
        let all = lines.iter().all(|line| text.lines().any(|it| it == *line));
        Ok(all.then_some(()).ok_or(text))
    })
    .await
}

/// The documents that were printed so far.
fn documents(process: &Running) -> Result<Vec<Value>> {
    let text = printed(process)?;
    let documents = serde_json::Deserializer::from_str(&text).into_iter();
    // The last one may not be whole.
    Ok(documents.map_while(Result::ok).collect())
}

#[tokio::test]
async fn each_change_is_a_line_or_a_document() -> Result<()> {
    let stage = Stage::new("status-watch").await?;
    let namespace = &stage.namespace;
    let manifest = [config_map("a", "1"), deployment("web", 1, None)].concat();
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest)])?;
    let install = format!("install web --channel {index} --yes");
    stage.run(&install).await?.done()?;

    let mut lines = Running::start(&stage, &["status", "web", "--watch"])?;
    // With one request in flight at most, as with many kinds: neither looks nor watches wait for each other for ever.
    let judge = ["status", "web", "-w", "--exit-code", "--concurrency", "1"];
    let mut judge = Running::start(&stage, &judge)?;
    let json = Running::start(&stage, &["status", "web", "-w", "-o", "json"])?;
    let web = format!("web  {namespace}/Deployment web  1/1 ready");
    for process in [&lines, &judge] {
        prints(process, &[&web, "web  Ready"]).await?;
    }
    // Each of them has seen the beginning: what is slow to start would begin with a later state.
    until("there is a document", async || {
        let text = printed(&json)?;
        Ok((!documents(&json)?.is_empty()).then_some(()).ok_or(text))
    })
    .await?;
    stage
        .kubectl(&["scale", "deployment/web", "--replicas=2"])
        .await?;
    let web = format!("web  {namespace}/Deployment web  2/2 ready");
    prints(&lines, &[&web]).await?;
    stage.delete("configmap", "a").await?;
    let gone = format!("web  {namespace}/ConfigMap a  is gone");
    for process in [&lines, &judge] {
        prints(process, &[&gone, "web  Degraded: ConfigMap a is gone"]).await?;
    }
    until("the documents follow", async || {
        let all = documents(&json)?;
        let last = all
            .last()
            .map(|last| last["status"].clone())
            .unwrap_or_default();
        let is_last = last == "Degraded: ConfigMap a is gone";
        Ok((is_last && all.len() > 1)
            .then_some(())
            .ok_or(format!("{all:?}")))
    })
    .await?;
    let all = documents(&json)?;
    ensure!(
        all[0]["status"] == "Ready" && all[0]["name"] == "web",
        "{all:?}"
    );
    ensure!(
        all.windows(2).all(|pair| pair[0] != pair[1]),
        "shown twice: {all:?}"
    );

    // Not what another installation does.
    let other = stage.index(
        "other.yaml",
        &[("other", "1.0.0", &config_map("other", "1"))],
    )?;
    let install = format!("install other --channel {other} --yes");
    stage.run(&install).await?.done()?;
    for (process, code) in [(&mut lines, 130), (&mut judge, 1)] {
        process.ends(code)?;
        ensure!(
            !printed(process)?.contains("other"),
            "{}",
            printed(process)?
        );
    }
    stage.run("uninstall web --yes").await?.done()?;
    json.says("error: ").await?;
    Ok(())
}
