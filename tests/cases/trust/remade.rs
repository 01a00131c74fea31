//! An object that somebody else made again after ours was deleted is theirs: nothing of it is lost by us.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::Value;

fn map(name: &str, data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{{data}}}\n---\n")
}

/// An add-on of two objects that others have deleted and made again, with a field of ours and one of their own.
async fn remade() -> Result<Stage> {
    let stage = Stage::new("remade").await?;
    let set = |value: &str| {
        let ours = format!("key: {value:?}, ours: {value:?}");
        [
            config_map("kept", value),
            map("applied", &ours),
            map("created", &ours),
        ]
        .concat()
    };
    let first = stage.index("first.yaml", &[("set", "1.0.0", &set("1"))])?;
    stage.index("second.yaml", &[("set", "2.0.0", &set("2"))])?;
    stage
        .run(&format!("install set --channel {first} --yes"))
        .await?
        .done()?;
    for name in ["applied", "created"] {
        stage.delete("configmap", name).await?;
    }
    let theirs = "key: theirs, own: theirs";
    stage.apply(&map("applied", theirs)).await?;
    let create = ["create", "-n", &stage.namespace, "-f", "-"];
    let created = map("created", theirs);
    stage
        .plugin
        .kubectl_with_input(&create, &created)
        .await?
        .done()?;
    Ok(stage)
}

/// Their objects, which have kept this field of their own and one that we want, too.
async fn theirs(stage: &Stage, when: &str, key: &str) -> Result<()> {
    for name in ["applied", "created"] {
        let live = stage.must("configmap", name).await?;
        let data = &live["data"];
        ensure!(
            data["own"] == "theirs",
            "{when}: {name} lost a field: {live:#}"
        );
        ensure!(data["key"] == key, "{when}: {name}: {live:#}");
    }
    Ok(())
}

/// trust 12.
#[tokio::test]
async fn t12_what_others_made_again_keeps_their_fields() -> Result<()> {
    let stage = remade().await?;
    let upgrade = "upgrade set --channel second.yaml --yes";
    let said = stage.run(upgrade).await?.done()?;
    ensure!(
        said.stderr.contains("created again by another client"),
        "{}",
        said.stderr
    );
    // It is reconciled, and nothing else of it changes.
    theirs(&stage, "after the upgrade", "2").await?;
    for name in ["applied", "created"] {
        let live = stage.must("configmap", name).await?;
        ensure!(live["data"]["ours"] == "2", "{name}: {live:#}");
    }
    let again = stage.run(upgrade).await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);

    stage.run("uninstall set --yes").await?.done()?;
    theirs(&stage, "after the uninstallation", "2").await?;
    for name in ["applied", "created"] {
        let live = stage.must("configmap", name).await?;
        ensure!(
            live["data"]["ours"] == Value::Null,
            "{name} keeps ours: {live:#}"
        );
        let labels = live["metadata"]["labels"].to_string();
        ensure!(!labels.contains("kubectl-addons"), "{name}: {live:#}");
    }
    ensure!(!stage.has("configmap", "kept").await?, "ours stays");
    Ok(())
}

/// trust 12: without an upgrade in between.
#[tokio::test]
async fn t12_an_uninstallation_leaves_alone_what_others_made_again() -> Result<()> {
    let stage = remade().await?;
    stage.run("uninstall set --yes").await?.done()?;
    theirs(&stage, "after the uninstallation", "theirs").await
}
