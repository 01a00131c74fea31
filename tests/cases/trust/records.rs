//! What a record says is followed to the object itself, and nobody writes a record that another client has locked.

use std::time::Duration;

use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::json;

fn ingress(class: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web}}\nspec:\n  ingressClassName: {class}\n  \
         defaultBackend: {{service: {{name: web, port: {{number: 80}}}}}}\n---\n"
    )
}

/// Makes the record what it was when the Ingress was installed into a cluster that served it in another group.
async fn as_of_old(stage: &Stage) -> Result<()> {
    let record = stage.record("set").await?;
    let mut inventory = record["status"]["inventory"].clone();
    for group in inventory.as_array_mut().into_iter().flatten() {
        if group["kind"] == "Ingress" {
            group["group"] = json!("extensions");
            group["version"] = json!("v1beta1");
        }
    }
    let status = json!({"inventory": inventory});
    stage
        .patch_status("addoninstallation", "set", &status)
        .await
}

/// The groups in which Ingresses are recorded.
async fn groups(stage: &Stage) -> Result<Vec<String>> {
    let record = stage.record("set").await?;
    let groups = record["status"]["inventory"].as_array().cloned();
    let groups = groups.unwrap_or_default().into_iter();
    let groups = groups.filter(|group| group["kind"] == "Ingress");
    let names = groups.filter_map(|group| group["group"].as_str().map(str::to_owned));
    Ok(names.collect())
}

/// trust 14.
#[tokio::test]
async fn t14_an_object_is_found_in_the_group_that_its_kind_moved_to() -> Result<()> {
    let stage = Stage::new("moved-group").await?;
    let first = stage.index("first.yaml", &[("set", "1.0.0", &ingress("a"))])?;
    let second = stage.index("second.yaml", &[("set", "2.0.0", &ingress("b"))])?;
    let without = stage.index(
        "without.yaml",
        &[("set", "3.0.0", &config_map("settings", "1"))],
    )?;
    let install = format!("install set --channel {first} --yes");
    stage.run(&install).await?.done()?;
    as_of_old(&stage).await?;
    stage
        .run(&format!("upgrade set --channel {second} --yes"))
        .await?
        .done()?;
    ensure!(
        groups(&stage).await? == ["networking.k8s.io"],
        "{:?}",
        groups(&stage).await?
    );
    let live = stage.must("ingress", "web").await?;
    ensure!(live["spec"]["ingressClassName"] == "b", "{live:#}");

    as_of_old(&stage).await?;
    let line = format!("upgrade set --channel {without} --allow-prune 100% --yes");
    stage.run(&line).await?.done()?;
    ensure!(!stage.has("ingress", "web").await?, "it was not pruned");
    ensure!(groups(&stage).await?.is_empty(), "it is still recorded");

    stage.run("uninstall set --yes").await?.done()?;
    stage.run(&install).await?.done()?;
    as_of_old(&stage).await?;
    stage.run("uninstall set --yes").await?.done()?;
    ensure!(!stage.has("ingress", "web").await?, "it was left behind");
    ensure!(
        !stage.has("addoninstallation", "set").await?,
        "the record stays"
    );
    Ok(())
}

/// trust 14.
#[tokio::test]
async fn t14_a_record_that_another_client_has_locked_is_not_deleted() -> Result<()> {
    let rig = Rig::new("locked-again").await?;
    let stage = &rig.stage;
    let index = stage.index(
        "index.yaml",
        &[("set", "1.0.0", &config_map("settings", "1"))],
    )?;
    stage
        .run(&format!("install set --channel {index} --yes"))
        .await?
        .done()?;
    // The first deletion of the record asks for permission, the second one is meant.
    let late = Fault::at(2, Action::Delay(Duration::from_secs(5)));
    rig.proxy
        .fault(late.method("DELETE").path("/addoninstallations/"));
    let thief = async {
        until("the record is about to be deleted", async || {
            Ok(if rig.proxy.hits() > 0 {
                Ok(())
            } else {
                Err("not yet".to_owned())
            })
        })
        .await?;
        stage.lock("set", "jane@laptop (test)", 0).await
    };
    let (ended, locked) = tokio::join!(rig.run("uninstall set --yes"), thief);
    locked?;
    let ended = ended?.ended(4)?;
    ensure!(
        ended.stderr.contains("jane@laptop (test)"),
        "{}",
        ended.stderr
    );
    let record = stage.record("set").await?;
    let holder = &record["status"]["operation"]["holder"];
    ensure!(holder == "jane@laptop (test)", "{record:#}");
    Ok(())
}
