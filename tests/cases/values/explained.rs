//! `values NAME`: what a layer cannot tell is said, and the others are shown.

use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

#[tokio::test]
async fn values_are_explained_as_far_as_they_can_be_read() -> Result<()> {
    let mut tally = Tally::new("values::explained");
    let stage = Stage::new("explained").await?;
    stage.run("init").await?.done()?;
    let name = stage.namespace.clone();
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1",
        "kind": "AddonCatalogue",
        "metadata": {"name": "shop"},
        "spec": {"addons": [{"name": name, "versions": [{
            "version": "1.0.0",
            "defaultNamespace": name,
            "values": {"image": {"registry": "mirror"}, "gone": 1},
            "template": {"method": "go-template", "formSpec": [
                {"internalName": "spec.replicas", "type": "number", "enum": [1, 3], "default": 1},
            ]},
            "source": {"inline": {"manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"}},
        }]}]},
    });
    let file = stage.write("catalogue.json", &catalogue.to_string())?;
    let file = file.to_string_lossy();
    let install = [
        "install",
        &name,
        "--channel",
        &file,
        "--yes",
        "--set",
        "spec.replicas=3",
        "--set",
        "gone=null",
    ];
    stage.plugin.run(&install).await?.done()?;

    let said = stage.run(&format!("values {name}")).await?.done()?;
    ensure!(
        said.stdout == "image:\n  registry: mirror\nspec:\n  replicas: 3\n"
            && said.stderr.is_empty(),
        "{}{}",
        said.stdout,
        said.stderr
    );
    every_layer_is_named(&stage, &name, &file).await?;
    tally.ran();

    what_is_missing_is_left_out(&stage, &name, &mut tally).await?;

    let said = stage.run("values nobody").await?.ended(1)?;
    ensure!(
        said.stderr.contains("no installation named nobody"),
        "{}",
        said.stderr
    );
    tally.ran();
    Ok(())
}

/// Each value with the layer that it comes from.
async fn every_layer_is_named(stage: &Stage, name: &str, file: &str) -> Result<()> {
    let said = stage
        .run(&format!("values {name} --explain"))
        .await?
        .done()?;
    let at = format!("index file://{file}, spec.addons[0].versions[0].values");
    let lines: Vec<Vec<&str>> = said
        .stdout
        .lines()
        .map(|line| {
            line.split("   ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();
    ensure!(
        lines
            == [
                vec!["PATH", "VALUE", "LAYER", "FROM", "OVERRIDES"],
                vec!["gone", "(deleted)", "spec", "spec.values", "catalogue"],
                vec!["image.registry", "\"mirror\"", "catalogue", &at, "–"],
                vec!["spec.replicas", "3", "spec", "spec.values", "form"],
            ],
        "{}",
        said.stdout
    );
    let said = stage
        .run(&format!("values {name} --explain -o wide"))
        .await?
        .done()?;
    let forms: Vec<&str> = said.stdout.lines().filter_map(last_cell).collect();
    ensure!(
        forms == ["FORM", "–", "–", "number, one of 1, 3"],
        "{}",
        said.stdout
    );
    let said = stage
        .run(&format!("values {name} --explain -o json"))
        .await?
        .done()?;
    let items: Value = serde_json::from_str(&said.stdout)?;
    let leaf = &items["items"][2];
    ensure!(
        leaf["path"] == "spec.replicas" && leaf["form"]["enum"] == json!([1, 3]),
        "{items}"
    );
    let said = stage
        .run(&format!("values {name} --explain -o name"))
        .await?
        .done()?;
    ensure!(
        said.stdout == "gone\nimage.registry\nspec.replicas\n",
        "{}",
        said.stdout
    );
    Ok(())
}

fn last_cell(line: &str) -> Option<&str> {
    line.split("   ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .last()
}

/// A Secret that is missing, and then a catalogue: the rest is shown, and the exit code says that it is not all.
async fn what_is_missing_is_left_out(stage: &Stage, name: &str, tally: &mut Tally) -> Result<()> {
    let patch =
        json!({"spec": {"valuesFrom": [{"secretKeyRef": {"name": "nowhere", "key": "values"}}]}})
            .to_string();
    let patch = [
        "patch",
        "ainst",
        name,
        "-n",
        name,
        "--type=merge",
        "-p",
        &patch,
    ];
    stage.plugin.kubectl(&patch).await?.done()?;
    let said = stage.run(&format!("values {name}")).await?.ended(1)?;
    let missing =
        format!("{name}/{name} takes values from Secret {name}/nowhere, which does not exist");
    ensure!(
        said.stdout.contains("replicas: 3") && said.stderr.contains(&missing),
        "{}{}",
        said.stdout,
        said.stderr
    );
    let upgrade = stage
        .run(&format!("upgrade {name} --yes"))
        .await?
        .ended(1)?;
    ensure!(upgrade.stderr.contains(&missing), "{}", upgrade.stderr);
    tally.ran();
    std::fs::remove_file(stage.plugin.home().join("catalogue.json"))?;
    let said = stage
        .run(&format!("values {name} --explain"))
        .await?
        .ended(1)?;
    ensure!(
        said.stdout.contains("spec.replicas")
            && said.stderr.contains("catalogue and form are left out"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    tally.ran();
    Ok(())
}
