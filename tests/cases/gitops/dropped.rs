//! A value that Git sets and then no longer sets leaves the record, and a default takes its place (semantics 10).

use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{WAYS, Way, apply, catalogue, minimal, webhook};

#[tokio::test]
async fn what_git_no_longer_sets_leaves_the_record() -> Result<()> {
    let stage = Stage::alone("dropped").await?;
    let mut tally = Tally::new("gitops::dropped");
    apply(&stage, &catalogue(&stage), &[]).await?;
    for judged in [false, true] {
        let _webhook = match judged {
            true => Some(webhook(&stage).await?),
            false => None,
        };
        for way in WAYS {
            dropped(&stage, &format!("{}-{judged}", way.name), way)
                .await
                .with_context(|| format!("{} with webhook: {judged}", way.name))?;
            tally.ran();
        }
    }
    Ok(())
}

async fn dropped(stage: &Stage, name: &str, way: Way) -> Result<()> {
    let mut object = minimal(name);
    object["spec"]["values"] =
        json!({"name": name, "host": "a", "own": {"deep": "b"}, "level": "mine"});
    let upgrade = format!("upgrade {name} --yes");
    apply(stage, &object, way.flags).await?;
    stage.run(&upgrade).await?.done()?;
    let stored = values(stage, name).await?;
    ensure!(
        stored["level"] == "mine" && stored["spec"]["replicas"] == 1,
        "{stored}"
    );

    object["spec"]["values"] = json!({"name": name, "host": "a"});
    apply(stage, &object, way.flags).await?;
    stage.run(&upgrade).await?.done()?;
    let stored = values(stage, name).await?;
    let defaults = json!({"image": {"registry": "registry.example.test"}, "level": "high", "spec": {"replicas": 1}});
    let mut wanted = json!({"name": name, "host": "a"});
    merge(&mut wanted, defaults);
    ensure!(stored == wanted, "{stored}");
    let map = stage.must("configmap", name).await?;
    ensure!(map["data"]["level"] == "high", "{map}");
    owners(stage, name, way).await
}

async fn values(stage: &Stage, name: &str) -> Result<Value> {
    Ok(stage.record(name).await?["spec"]["values"].clone())
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

/// Git owns what it sets, and nothing that was filled in; we own nothing that Git sets.
async fn owners(stage: &Stage, name: &str, way: Way) -> Result<()> {
    let args = [
        "get",
        "addoninstallation",
        name,
        "-o",
        "json",
        "--show-managed-fields",
    ];
    let record: Value = serde_json::from_str(&stage.kubectl(&args).await?.stdout)?;
    let manager = way
        .flags
        .iter()
        .find_map(|flag| flag.strip_prefix("--field-manager="));
    let manager = manager.unwrap_or("kubectl-client-side-apply");
    let entries = record["metadata"]["managedFields"].as_array();
    let entries = entries.context("no managedFields")?;
    for entry in entries {
        let values = &entry["fieldsV1"]["f:spec"]["f:values"];
        let sets = |field: &str| !values[field].is_null();
        let is_git = entry["manager"] == manager;
        ensure!(
            sets("f:host") == is_git && !(is_git && sets("f:level")),
            "{}: {values}",
            entry["manager"]
        );
    }
    Ok(())
}
