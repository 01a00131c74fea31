//! What others changed in the objects of a release that helm installs.

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, deployment};
use anyhow::{Result, ensure};
use serde_json::json;

/// trust 22.
#[tokio::test]
async fn t22_a_repair_of_a_release_follows_the_policy_of_conflicts() -> Result<()> {
    let stage = Stage::new("taken-back").await?;
    let name = stage.namespace.as_str();
    let shelf = Shelf::new()?;
    let chart = shelf.chart(
        "web",
        "1.0.0",
        &[("templates/web.yaml", &deployment("web", 2, None))],
    )?;
    std::fs::copy(&chart, stage.plugin.home().join("web.tgz"))?;
    let catalogue = json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": name},
        "spec": {"addons": [{"name": name, "versions": [{"version": "1.0.0", "defaultNamespace": name,
            "template": {"method": "helm", "helm": {"mode": "release"}},
            "source": {"url": {"manifest": stage.plugin.home().join("web.tgz")}}}]}]}});
    let file = stage.write("catalogue.json", &catalogue.to_string())?;
    let flags = format!(
        "--helm-bin {} --yes --wait=false",
        binaries::helm()?.display()
    );
    let line = format!("install {name} --channel {} {flags}", file.display());
    stage.run(&line).await?.done()?;
    let replicas = async || -> Result<String> {
        Ok(stage.must("deployment", "web").await?["spec"]["replicas"].to_string())
    };
    let scale = ["scale", "deployment", "web", "--replicas=5"];

    stage.kubectl(&scale).await?;
    for policy in ["fail", "yield"] {
        let line = format!("upgrade {name} --repair --conflicts {policy} {flags}");
        // A conflict, as without helm.
        let said = stage.run(&line).await?.ended(4)?.stderr;
        let words = format!(
            "spec.conflicts is {}",
            if policy == "fail" { "Fail" } else { "Yield" }
        );
        ensure!(said.contains(&words) && said.contains("replicas"), "{said}");
        ensure!(replicas().await? == "5", "{policy}: taken back");
    }
    let line = format!("upgrade {name} --repair --conflicts take {flags}");
    stage.run(&line).await?.done()?;
    ensure!(replicas().await? == "2", "not taken back");
    // The policy is kept in the installation.
    stage.kubectl(&scale).await?;
    stage
        .run(&format!("upgrade {name} --repair {flags}"))
        .await?
        .done()?;
    ensure!(replicas().await? == "2", "not taken back again");
    Ok(())
}
