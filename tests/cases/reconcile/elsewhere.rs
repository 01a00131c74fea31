//! What only a command of a person can read is left to that command, and is not a failure (semantics 20).

use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

fn status<'a>(record: &'a Value, condition: &str) -> &'a Value {
    let all = record["status"]["conditions"].as_array();
    let found = all.into_iter().flatten();
    let mut found = found.filter(|one| one["type"] == condition);
    found.next().map_or(&Value::Null, |one| &one["status"])
}

#[tokio::test]
async fn an_index_on_another_machine_is_left_to_whoever_has_it() -> Result<()> {
    // Records of other tests would be looked at, too.
    let stage = Stage::alone("elsewhere").await?;
    let web = stage.index("web.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    let install = format!("install web --channel {web} --yes");
    stage.run(&install).await?.done()?;
    let away = format!("{web}.away");
    std::fs::rename(&web, &away)?;

    let said = stage.run("reconcile web").await?.done()?;
    ensure!(
        said.stderr.contains("web  is managed elsewhere: "),
        "{}",
        said.stderr
    );
    let condition = stage.condition("web", "ManagedElsewhere").await?;
    let message = condition["message"].as_str().unwrap_or_default();
    let (_, fix) = message
        .split_once("; fix: kubectl addons ")
        .with_context(|| message.to_owned())?;
    let (fix, _) = fix
        .split_once(", where")
        .with_context(|| message.to_owned())?;
    let record = stage.record("web").await?;
    ensure!(
        status(&record, "Ready") == "True" && status(&record, "Stalled") != "True",
        "{record}"
    );

    let mark = stage.cluster.audit().mark()?;
    stage.run("reconcile web").await?.done()?;
    ensure!(
        stage.requests(mark)?.writes("kubectl-addons") == 0,
        "it was written again"
    );
    let listed = stage.run("list").await?.done()?;
    ensure!(!listed.stdout.contains("Stalled"), "{}", listed.stdout);

    // Where the index is, the command does it, and the condition goes.
    std::fs::rename(&away, &web)?;
    stage.index("web.yaml", &[("web", "1.1.0", &config_map("web", "2"))])?;
    stage.run(&format!("{fix} --yes")).await?.done()?;
    let record = stage.record("web").await?;
    ensure!(
        record["status"]["installed"]["version"] == "1.1.0",
        "{record}"
    );
    ensure!(status(&record, "ManagedElsewhere") == "False", "{record}");

    // The loop finishes a deletion all the same: it needs no index.
    std::fs::rename(&web, &away)?;
    let process = Running::reconcile(&stage, &["--interval", "1s"])?;
    process.says("leads").await?;
    stage.condition("web", "ManagedElsewhere").await?;
    stage
        .kubectl(&["delete", "addoninstallation", "web", "--wait=false"])
        .await?;
    until("its objects are gone", async || {
        let is_there = stage.has("configmap", "web").await?;
        Ok((!is_there).then_some(()).ok_or_else(|| process.said()))
    })
    .await
}
