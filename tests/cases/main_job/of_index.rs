//! What was installed from an index is found by its name, by every command.

use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Result, ensure};
use serde_json::json;

#[tokio::test]
async fn an_installation_from_an_index_is_found_by_its_name() -> Result<()> {
    let stage = Stage::new("of-index").await?;
    let image = &deployment("db", 1, None);
    let index = stage.index("index.yaml", &[("db", "1.0.0", image)])?;
    stage
        .run(&format!("install db --channel {index} --yes"))
        .await?
        .done()?;
    let web =
        json!({"version": "1.0.0", "source": {"inline": {"manifest": config_map("web", "1")}}});
    let web = stage.catalogue("web", &web)?;
    stage
        .run(&format!("catalogue add {}", web.display()))
        .await?
        .done()?;
    for (line, words) in [
        ("show db", "which it is installed from"),
        ("images db web", "example.test/db:1"),
        (
            "images db --registry mirror.example.org/site",
            "mirror.example.org/site/",
        ),
        ("render db", "kind: Deployment"),
    ] {
        let said = stage.run(line).await?.done()?;
        let text = said.stdout + &said.stderr;
        ensure!(text.contains(words), "{line}: {text}");
    }

    // One of a catalogue, and one that is there already.
    stage.index("index.yaml", &[("db", "1.1.0", image)])?;
    let said = stage.run("list --outdated").await?.done()?;
    ensure!(
        said.stdout.contains("1.1.0"),
        "{} {}",
        said.stdout,
        said.stderr
    );
    stage.run("install db web --yes").await?.done()?;
    ensure!(stage.has("configmap", "web").await?);
    let record = stage.record("db").await?;
    let installed = &record["status"]["installed"];
    ensure!(installed["version"] == "1.1.0", "{installed}");
    let said = stage.run("list --outdated").await?.done()?;
    ensure!(
        said.stderr.contains("everything is up to date"),
        "{}",
        said.stderr
    );

    // What cannot be compared is not up to date.
    std::fs::remove_file(&index)?;
    let said = stage.run("list --outdated").await?.ended(1)?;
    ensure!(
        said.stderr
            .contains(&format!("not checked: {}/db: ", stage.namespace))
            && !said.stderr.contains("up to date"),
        "{}",
        said.stderr
    );
    let said = stage.run("upgrade db --yes").await?.ended(1)?;
    ensure!(!said.stderr.contains("uninstall"), "{}", said.stderr);
    Ok(())
}
