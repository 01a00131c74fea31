//! A field that was left to another manager is drift: it is remembered, shown, and taken back by who wants it.

use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Result, ensure};
use serde_json::json;

/// trust 16.
#[tokio::test]
async fn t16_a_yielded_field_is_remembered_shown_and_taken_back() -> Result<()> {
    let stage = Stage::new("drift").await?;
    let set = format!(
        "{}{}",
        config_map("settings", "wanted"),
        deployment("web", 1, None)
    );
    let index = stage.index("index.yaml", &[("set", "1.0.0", &set)])?;
    stage
        .run(&format!("install set --channel {index} --yes"))
        .await?
        .done()?;
    stage
        .patch(
            "configmap",
            "settings",
            &json!({"data": {"key": "by hand"}}),
        )
        .await?;
    stage
        .kubectl(&["scale", "deployment", "web", "--replicas=2"])
        .await?;

    let yielded = stage
        .run("upgrade set --repair --conflicts yield --yes")
        .await?
        .done()?;
    ensure!(
        yielded.stderr.matches("  left ").count() == 2,
        "{}",
        yielded.stderr
    );
    let key = async || -> Result<String> {
        let map = stage.must("configmap", "settings").await?;
        Ok(map["data"]["key"].as_str().unwrap_or_default().to_owned())
    };
    ensure!(
        key().await? == "by hand",
        "the other manager lost its field"
    );

    // Drift, which nothing counts as changed.
    let differs = stage.run("diff set").await?.done()?;
    for part in ["data.key", "spec.replicas", "yielded", "0 changed"] {
        ensure!(differs.stdout.contains(part), "{part}: {}", differs.stdout);
    }
    let status = stage.run("status set").await?.done()?;
    for part in [
        "ConfigMap settings  data.key",
        "Deployment web  spec.replicas",
        "--conflicts take",
    ] {
        ensure!(status.stdout.contains(part), "{part}: {}", status.stdout);
    }
    let mark = stage.cluster.audit().mark()?;
    let nothing = stage.run("upgrade set --yes").await?.done()?;
    ensure!(
        nothing.stderr.contains("nothing to do"),
        "{}",
        nothing.stderr
    );
    ensure!(
        stage.requests(mark)?.writes("kubectl-addons") == 0,
        "it wrote something"
    );

    let taken = stage
        .run("upgrade set --conflicts take --yes")
        .await?
        .done()?;
    ensure!(taken.stderr.contains("2 changed"), "{}", taken.stderr);
    ensure!(key().await? == "wanted", "the field was not taken back");
    let web = stage.must("deployment", "web").await?;
    ensure!(web["spec"]["replicas"] == 1, "{}", web["spec"]);
    let differs = stage.run("diff set").await?.done()?;
    ensure!(!differs.stdout.contains("yielded"), "{}", differs.stdout);
    let record = stage.record("set").await?["status"].to_string();
    ensure!(!record.contains("yielded"), "{record}");
    Ok(())
}
