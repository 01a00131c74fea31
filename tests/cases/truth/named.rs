//! Only what was named is changed.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// A user with a catalogue of `held` and `free`, in versions 1.0.0 and 1.1.0.
async fn stage(what: &str) -> Result<Stage> {
    let stage = Stage::new(what).await?;
    stage.run("init").await?.done()?;
    let namespace = &stage.namespace;
    let addon = |name: &str| {
        let version = |version: &str| {
            json!({"version": version, "defaultNamespace": namespace,
                "source": {"inline": {"manifest": config_map(name, version)}}})
        };
        json!({"name": name, "versions": [version("1.0.0"), version("1.1.0")]})
    };
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "team"},
        "spec": {"addons": [addon("held"), addon("free")]},
    });
    let file = stage.write("team.json", &catalogue.to_string())?;
    let add = format!("catalogue add {}", file.display());
    stage.run(&add).await?.done()?;
    Ok(stage)
}

async fn version(stage: &Stage, name: &str) -> Result<Value> {
    Ok(stage.must("configmap", name).await?["data"]["key"].clone())
}

/// semantics 12: without names, pinned installations stay; named, they move, and follow new versions again on demand.
#[tokio::test]
async fn n23_pins_hold_where_nobody_names_them() -> Result<()> {
    let stage = stage("pins").await?;
    stage.run("install held@1.0.0 --yes").await?.done()?;
    stage.run("install free@1.0.0 --yes").await?.done()?;
    stage.run("upgrade free --unpin --yes").await?.done()?;
    ensure!(version(&stage, "free").await? == "1.1.0");
    let free = stage.record("free").await?;
    ensure!(free["spec"]["addonRef"]["version"].is_null(), "{free}");

    let said = stage.run("upgrade --yes").await?.done()?;
    let told =
        "held is pinned to 1.0.0 and stays; to upgrade it to 1.1.0: kubectl addons upgrade held -n";
    ensure!(said.stderr.contains(told), "{}", said.stderr);
    ensure!(!said.stderr.contains("free is pinned"), "{}", said.stderr);
    ensure!(version(&stage, "held").await? == "1.0.0");

    let listed = stage.run("list -o json").await?.done()?;
    let listed: Value = serde_json::from_str(&listed.stdout)?;
    let items = listed["items"].as_array().into_iter().flatten();
    let pinned: Vec<_> = items.map(|item| (&item["name"], &item["pinned"])).collect();
    let expected = [
        (&json!("free"), &json!(false)),
        (&json!("held"), &json!(true)),
    ];
    ensure!(pinned == expected, "{pinned:?}");
    let table = stage.run("list").await?.done()?;
    ensure!(table.stdout.contains("1.0.0 (pinned)"), "{}", table.stdout);

    stage
        .run("upgrade held@1.1.0 --unpin --yes")
        .await?
        .ended(2)?;
    stage.run("upgrade --unpin --yes").await?.ended(2)?;
    stage.run("upgrade held --unpin --yes").await?.done()?;
    ensure!(version(&stage, "held").await? == "1.1.0");
    let held = stage.record("held").await?;
    ensure!(held["spec"]["addonRef"]["version"].is_null(), "{held}");
    Ok(())
}

/// A forgotten name does not give all installations the same values.
#[tokio::test]
async fn n23_values_are_for_what_is_named() -> Result<()> {
    let stage = stage("forgotten").await?;
    stage.run("install held free --yes").await?.done()?;
    for line in [
        "upgrade --set replicas=3 --yes",
        "upgrade --values-from defaults --yes",
        "diff --set replicas=3",
        "plan --set replicas=3",
    ] {
        let said = stage.run(line).await?.ended(2)?;
        ensure!(
            said.stderr.contains("name those that they are for"),
            "{line}: {}",
            said.stderr
        );
    }
    for name in ["held", "free"] {
        let record = stage.record(name).await?;
        ensure!(record["spec"]["values"].is_null(), "{record}");
    }
    Ok(())
}

/// A catalogue that installations are from goes only where that was agreed to.
#[tokio::test]
async fn n23_a_catalogue_in_use_is_asked_about() -> Result<()> {
    let stage = stage("in-use").await?;
    stage.run("install held --yes").await?.done()?;
    let said = stage.run("catalogue remove team").await?.ended(1)?;
    ensure!(said.stderr.contains("--yes"), "{}", said.stderr);
    ensure!(
        stage.has("addoncatalogue", "team").await?,
        "{}",
        said.stderr
    );
    stage.run("catalogue remove team --yes").await?.done()?;
    ensure!(!stage.has("addoncatalogue", "team").await?);
    ensure!(version(&stage, "held").await? == "1.1.0");
    Ok(())
}
