//! What a change would do, field by field: old and new value, and whose the field is.

use addons_tests::small;
use addons_tests::stage::Stage;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// A label that only names a version is counted, and an edit of it is restored as any other.
#[tokio::test]
async fn an_edited_version_label_is_relabelled_and_can_be_restored() -> Result<()> {
    let stage = Stage::new("diff-label").await?;
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {app.kubernetes.io/version: '1'}}\n";
    let index = stage.index("index.yaml", &[("label", "1.0.0", manifest)])?;
    let line = format!("install label --channel {index} --yes");
    stage.run(&line).await?.done()?;
    let edit = json!({"metadata": {"labels": {"app.kubernetes.io/version": "2"}}});
    stage.patch("configmap", "a", &edit).await?;
    let line = format!("diff label --channel {index}");
    let shown = stage.run(&line).await?.ended(1)?;
    ensure!(
        shown
            .stdout
            .ends_with("0 changed, 0 added, 0 pruned, 1 relabelled, 0 unchanged\n")
            && shown
                .stderr
                .contains("restore: kubectl addons upgrade label"),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
    Ok(())
}

#[tokio::test]
async fn fields_with_their_owners_and_the_counts() -> Result<()> {
    let stage = Stage::new("diff").await?;
    let namespace = stage.namespace.clone();
    let first = small::index(&stage, "1.0.0", &small::first())?;
    let line = format!("install small --channel {first} --yes");
    stage.run(&line).await?.done()?;
    let same = stage
        .run(&format!("diff small -n {namespace} --channel {first}"))
        .await?
        .done()?;
    ensure!(
        same.stdout == "0 changed, 0 added, 0 pruned, 9 unchanged\n",
        "{}",
        same.stdout
    );

    let edit = json!({"data": {"key": "edited"}});
    stage.patch("configmap", "kept", &edit).await?;
    let second = small::index(&stage, "2.0.0", &small::second())?;
    let line = format!("diff small -n {namespace} --channel {second}");
    let shown = stage.run(&line).await?.ended(1)?;
    for said in [
        format!("~ {namespace}/ConfigMap kept\n"),
        "edited → two   now owned by kubectl-patch (".to_owned(),
        format!("+ {namespace}/ConfigMap added\n"),
        format!("- {namespace}/ConfigMap dropped-a\n"),
    ] {
        ensure!(
            shown.stdout.contains(&said),
            "{said:?} is not in\n{}",
            shown.stdout
        );
    }
    ensure!(
        shown
            .stdout
            .ends_with("1 changed, 1 added, 3 pruned, 5 unchanged\n"),
        "{}",
        shown.stdout
    );

    let shown = stage.run(&format!("{line} -o json")).await?.ended(1)?;
    let items: Value = serde_json::from_str(&shown.stdout)?;
    let item = &items["items"][0];
    let counts = json!({"changed": 1, "relabelled": 0, "added": 1, "pruned": 3, "released": 0, "retained": 0, "unchanged": 5, "recreated": 0, "refused": 0});
    ensure!(item["summary"] == counts, "{item:#}");
    let objects = item["objects"].as_array().context("no objects")?;
    let kept = objects
        .iter()
        .find(|object| object["key"]["name"] == "kept")
        .context("kept is not in it")?;
    let field = &kept["fields"][0];
    ensure!(
        kept["change"] == "changed"
            && field["path"] == "data.key"
            && field["old"] == "edited"
            && field["new"] == "two"
            && field["owners"][0]["manager"] == "kubectl-patch"
            && field["owners"][0]["since"].is_string(),
        "{kept:#}"
    );
    Ok(())
}
