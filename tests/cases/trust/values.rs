//! Values of an operation that failed do not outlive it: a record holds what is applied, or what was before.

use addons_tests::denial::{When, allow, deny};
use addons_tests::stage::Stage;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// A Deployment whose number of replicas is a value, and a ConfigMap where `extra` has a default of the catalogue.
fn catalogue(stage: &Stage) -> Result<()> {
    let manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: {{ .Variables.replicas }}\n  \
                    selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    \
                    spec: {containers: [{name: web, image: web}]}\n---\n\
                    apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: extra\n  labels: {extra: {{ .Variables.extra | default \"none\" | quote }}}\ndata:\n  extra: {{ .Variables.extra | default \"none\" | quote }}\n";
    let version = json!({
        "version": "1.0.0",
        "values": {"replicas": 1, "extra": "on"},
        "template": {"method": "go-template"},
        "source": {"inline": {"manifest": manifest}},
    });
    stage.catalogue("web", &version).map(drop)
}

fn values(record: &Value) -> &Value {
    &record["spec"]["values"]
}

/// trust 19: an upgrade of which the server refuses everything leaves the values that were there.
#[tokio::test]
async fn t19_values_that_the_server_refuses_do_not_stay() -> Result<()> {
    let stage = Stage::new("refused-values").await?;
    catalogue(&stage)?;
    let line = "install web --channel web.json --yes --timeout 20s";
    stage
        .run(&format!("{line} --set replicas=2"))
        .await?
        .done()?;
    let before = stage.record("web").await?;
    let refused = async |code: i32, replicas: &str, words: &str| -> Result<()> {
        let line = format!("upgrade web --channel web.json --set replicas={replicas} --yes");
        let failed = stage.run(&line).await?.ended(code)?;
        ensure!(failed.stderr.contains(words), "{}", failed.stderr);
        let after = stage.record("web").await?;
        ensure!(
            after["spec"] == before["spec"],
            "{} became {}",
            before["spec"],
            after["spec"]
        );
        Ok(())
    };
    // What the plan knows, and what it cannot know.
    refused(1, "-3", "nothing was changed").await?;
    deny(&stage, When::Executed, &["UPDATE"], "web", "not today").await?;
    refused(6, "3", "nothing was applied").await?;
    allow(&stage).await?;
    stage
        .run("upgrade web --channel web.json --yes")
        .await?
        .done()?;
    let live = stage.must("deployment", "web").await?;
    ensure!(live["spec"]["replicas"] == 2, "{live}");
    Ok(())
}

/// trust 19: a first installation that the server refuses keeps none of the values, so the next one begins without them.
#[tokio::test]
async fn t19_the_values_of_a_refused_installation_do_not_stay() -> Result<()> {
    let stage = Stage::new("refused-install").await?;
    catalogue(&stage)?;
    // Both objects are refused: that is not a label, and replicas are not negative.
    stage.write("values.yaml", "replicas: -3\nextra: no label!\n")?;
    let failed = stage
        .run("install web --channel web.json -f values.yaml --yes")
        .await?;
    let failed = failed.ended(1)?;
    ensure!(
        failed.stderr.contains("nothing was changed"),
        "{}",
        failed.stderr
    );
    ensure!(!stage.has("addoninstallation", "web").await?);
    // What the plan cannot know.
    deny(&stage, When::Executed, &["CREATE"], "", "not today").await?;
    let line = "install web --channel web.json --set replicas=3 --yes";
    let failed = stage.run(line).await?.ended(6)?;
    ensure!(
        failed.stderr.contains("nothing was applied"),
        "{}",
        failed.stderr
    );
    let record = stage.record("web").await?;
    ensure!(values(&record).get("replicas").is_none(), "{record}");
    allow(&stage).await?;
    stage
        .run("install web --channel web.json --yes")
        .await?
        .done()?;
    let live = stage.must("deployment", "web").await?;
    ensure!(live["spec"]["replicas"] == 1, "{live}");
    Ok(())
}

/// trust 19: where something was applied, the record tells what with.
#[tokio::test]
async fn t19_values_that_were_applied_in_part_stay() -> Result<()> {
    let stage = Stage::new("half-values").await?;
    catalogue(&stage)?;
    stage
        .run("install web --channel web.json --yes")
        .await?
        .done()?;
    deny(&stage, When::Executed, &["UPDATE"], "web", "not today").await?;
    stage
        .run("upgrade web --channel web.json --set replicas=2 --set extra=later --yes")
        .await?
        .ended(6)?;
    let record = stage.record("web").await?;
    let map = stage.must("configmap", "extra").await?;
    ensure!(map["data"]["extra"] == "later", "{map}");
    ensure!(values(&record)["extra"] == "later", "{record}");
    allow(&stage).await?;
    stage
        .run("upgrade web --channel web.json --set replicas=3 --yes")
        .await?
        .done()?;
    Ok(())
}

/// trust 19: `key=null` takes the default of the catalogue away, and keeps it away.
#[tokio::test]
async fn t19_null_takes_a_default_away_for_good() -> Result<()> {
    let stage = Stage::new("null-values").await?;
    catalogue(&stage)?;
    stage
        .run("install web --channel web.json --yes")
        .await?
        .done()?;
    let extra = async || -> Result<Value> {
        Ok(stage.must("configmap", "extra").await?["data"]["extra"].clone())
    };
    ensure!(extra().await? == "on");
    stage
        .run("upgrade web --channel web.json --set extra=null --yes")
        .await?
        .done()?;
    ensure!(extra().await? == "none", "{}", extra().await?);
    let again = stage
        .run("upgrade web --channel web.json --set replicas=2 --yes")
        .await?;
    again.done()?;
    ensure!(extra().await? == "none", "{}", extra().await?);
    Ok(())
}
