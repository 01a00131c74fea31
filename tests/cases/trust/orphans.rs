//! An installation whose origin is gone stays as it is, and stops no other.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::Value;

/// A catalogue of one add-on with one version.
fn catalogue(stage: &Stage, name: &str, addon: &str, version: &str) -> String {
    let manifest = config_map(&format!("orphan-{addon}"), version).replace('\n', "\n            ");
    format!(
        "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonCatalogue\nmetadata: {{name: {name}}}\nspec:\n  addons:\n  \
         - name: {addon}\n    versions:\n    - version: {version}\n      defaultNamespace: {}\n      source:\n        \
         inline:\n          manifest: |\n            {manifest}\n",
        stage.namespace
    )
}

/// trust 18.
#[tokio::test]
async fn t18_one_orphan_does_not_stop_the_others() -> Result<()> {
    let stage = Stage::new("orphans").await?;
    stage.write("team.yaml", &catalogue(&stage, "team", "g2", "1.0.0"))?;
    stage.write("rest.yaml", &catalogue(&stage, "rest", "web", "1.0.0"))?;
    let gone = stage.index(
        "gone.yaml",
        &[("idx", "1.0.0", &config_map("orphan-idx", "1"))],
    )?;
    stage
        .run("catalogue add team.yaml rest.yaml")
        .await?
        .done()?;
    stage.run("install g2 web --yes").await?.done()?;
    stage
        .run(&format!("install idx --channel {gone} --yes"))
        .await?
        .done()?;
    stage.run("catalogue remove team --yes").await?.done()?;
    std::fs::remove_file(&gone)?;
    stage.write("rest.yaml", &catalogue(&stage, "rest", "web", "1.1.0"))?;
    stage.run("catalogue add rest.yaml").await?.done()?;

    let namespace = &stage.namespace;
    let missing = format!("error: {namespace}/g2: its catalogue team no longer exists\n");
    for (line, code) in [
        ("diff", 2),
        ("plan", 1),
        ("upgrade --dry-run=server", 1),
        ("upgrade --yes", 1),
    ] {
        let said = stage.run(line).await?.ended(code)?;
        for words in [
            missing.as_str(),
            "fix:    kubectl addons catalogue add FILE --name team",
            &format!("fix:    kubectl addons uninstall g2 -n {namespace}"),
            &format!(
                "error: {namespace}/idx: the index or folder that it comes from cannot be read: "
            ),
            &format!("fix:    kubectl addons upgrade idx -n {namespace} --channel INDEX"),
        ] {
            ensure!(said.stderr.contains(words), "{line}: {}", said.stderr);
        }
    }
    let map = stage.must("configmap", "orphan-web").await?;
    ensure!(map["data"]["key"] == "1.1.0", "{map}");

    let said = stage.run("list").await?.done()?;
    ensure!(
        said.stdout
            .contains("Orphaned: catalogue team no longer exists"),
        "{}",
        said.stdout
    );
    let said = stage.run("list -o json").await?.done()?;
    let listed: Value = serde_json::from_str(&said.stdout)?;
    let items = listed["items"].as_array().cloned().unwrap_or_default();
    let orphan = items.iter().find(|item| item["name"] == "g2");
    ensure!(
        orphan.is_some_and(|item| item["phase"] == "Orphaned"
            && item["message"] == "catalogue team no longer exists"),
        "{listed}"
    );
    let said = stage.run("status g2 --exit-code").await?.ended(1)?;
    ensure!(
        said.stdout
            .contains("   Orphaned: catalogue team no longer exists\n"),
        "{}",
        said.stdout
    );
    stage.run("uninstall g2 idx --yes").await?.done()?;
    stage.run("upgrade").await?.done()?;
    Ok(())
}
