//! Operations without the plugin: the example of `addons-operation` installs an add-on.

use addons_tests::binaries;
use anyhow::{Result, ensure};

use addons_tests::stage::{Stage, config_map};

#[tokio::test]
async fn an_example_of_sixty_lines_installs() -> Result<()> {
    let source = include_str!("../../../common/operation/examples/install.rs");
    ensure!(source.lines().count() <= 60, "the example grew");
    let stage = Stage::new("library").await?;
    let index = stage.index("index.yaml", &[("set", "1.0.0", &config_map("one", "a"))])?;
    let example = binaries::example()?;
    let run = || {
        tokio::process::Command::new(&example)
            .args([index.as_str(), "set"])
            .env("KUBECONFIG", stage.plugin.kubeconfig())
            .output()
    };
    let first = run().await?;
    let (said, errors) = (
        String::from_utf8_lossy(&first.stdout),
        String::from_utf8_lossy(&first.stderr),
    );
    ensure!(first.status.success(), "{said}{errors}");
    ensure!(said.contains("set: 1 objects"), "{said}");
    ensure!(said.contains("1 created, 0 changed"), "{said}");
    stage
        .run("status set --system-namespace kubectl-addons")
        .await?
        .done()?;

    let again = run().await?;
    let said = String::from_utf8_lossy(&again.stdout);
    ensure!(said.contains("up to date: 1"), "{said}");
    Ok(())
}
