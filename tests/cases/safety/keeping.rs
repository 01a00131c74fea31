//! Objects that somebody keeps, and sets that lose more than anybody expects.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{install, line, manifest, uninstall};

#[tokio::test]
async fn marks_and_controllers_keep_objects() -> Result<()> {
    let stage = Stage::new("kept").await?;
    let names = ["marked", "controlled", "plain"];
    let all: String = names.iter().map(|name| config_map(name, "1")).collect();
    install(&stage, "1.0.0", &format!("{}{all}", manifest(&[]))).await?;
    let mark = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
    stage.patch("configmap", "marked", &mark).await?;
    stage.apply(&config_map("front", "1")).await?;
    let front = stage.must("configmap", "front").await?;
    let owner = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "front", "uid": front["metadata"]["uid"], "controller": true,
    }]}});
    stage.patch("configmap", "controlled", &owner).await?;

    let said = install(&stage, "2.0.0", &manifest(&[])).await?;
    let namespace = &stage.namespace;
    for told in [
        format!(
            "{namespace}/ConfigMap marked is retained: it carries helm.sh/resource-policy: keep"
        ),
        format!("{namespace}/ConfigMap controlled is retained: its controller is ConfigMap front"),
    ] {
        ensure!(said.contains(&told), "not said: {told}\n{said}");
    }
    for (name, stays) in [("marked", true), ("controlled", true), ("plain", false)] {
        ensure!(stage.has("configmap", name).await? == stays, "{name}");
    }
    // Without the mark it goes, and was ours all along.
    let unmark = json!({"metadata": {"annotations": {"helm.sh/resource-policy": null}}});
    stage.patch("configmap", "marked", &unmark).await?;
    stage.run(&uninstall(&stage)).await?.done()?;
    ensure!(
        !stage.has("configmap", "marked").await?,
        "it stays for ever"
    );
    ensure!(stage.has("configmap", "controlled").await?, "deleted");
    Ok(())
}

#[tokio::test]
async fn most_of_a_set_is_pruned_only_up_to_a_named_share() -> Result<()> {
    let stage = Stage::new("share").await?;
    let set = |count: usize| -> String {
        let maps = (0..count).map(|i| config_map(&format!("map-{i:02}"), "1"));
        maps.collect()
    };
    install(&stage, "1.0.0", &set(12)).await?;
    let upgrade = line(&stage, "2.0.0", &set(3))?;
    let said = stage.run(&upgrade).await?.ended(1)?.stderr;
    ensure!(
        said.contains(
            "9 of 12 objects would be pruned, and the limit is 50%; the new version has 3"
        ),
        "{said}"
    );
    let accept = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("accept: kubectl addons "))
        .context("nothing accepts it")?;
    ensure!(accept.ends_with("--allow-prune 75%"), "{accept}");
    let less = stage.run(&format!("{upgrade} --allow-prune 74%")).await?;
    less.ended(1)?;
    stage
        .run(&format!("{upgrade} --allow-prune 75%"))
        .await?
        .done()?;
    ensure!(stage.has("configmap", "map-02").await?, "too much");
    ensure!(!stage.has("configmap", "map-03").await?, "not pruned");
    Ok(())
}

#[tokio::test]
async fn volumes_are_deleted_only_by_their_flag() -> Result<()> {
    let stage = Stage::new("volumes").await?;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}});
    let index = manifest(&[claim]);
    let line = line(&stage, "1.0.0", &index)?;
    stage.run(&format!("{line} --wait=false")).await?.done()?;
    let said = install(&stage, "2.0.0", &manifest(&[])).await?;
    ensure!(said.contains("PersistentVolumeClaim data"), "{said}");
    ensure!(stage.has("pvc", "data").await?, "data is lost");
    let line = format!("{} --delete-volumes", uninstall(&stage));
    stage.run(&line).await?.done()?;
    let left = stage.get("pvc", "data").await?;
    ensure!(
        left.is_none_or(|left| left["metadata"]["deletionTimestamp"].is_string()),
        "it stays"
    );
    Ok(())
}
