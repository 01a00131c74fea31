//! The page about adoption: its commands do what it says, in its order.

use addons_tests::page::blocks;
use addons_tests::stage::{Stage, deployment};
use anyhow::{Context as _, Result, ensure};

use super::{TOOLS, installed, is_ours, manifest, pods};

/// Until then everything is ours.
const RELEASE: &str = "adopt web --release";
const PAGE: &str = include_str!("../../../kubectl-addons/docs/adopt.md");

/// The lines of its blocks that run the plugin, except for those about Flux, which the cluster does not have.
fn commands() -> Vec<&'static str> {
    let blocks = blocks(PAGE).filter(|(_, text)| !text.contains("kustomization"));
    let lines = blocks.flat_map(|(_, text)| text.lines());
    lines
        .filter_map(|line| line.strip_prefix("kubectl addons "))
        .collect()
}

#[tokio::test]
async fn the_commands_of_the_page_take_over() -> Result<()> {
    let stage = Stage::new("adopt-page").await?;
    installed(&stage, TOOLS[0]).await?;
    let shop = deployment("shop", 1, None);
    stage.apply(&shop).await?;
    let before = pods(&stage).await?;
    let entries = [
        ("web", "1.0.0", manifest(None)),
        ("shop", "1.0.0", shop.clone()),
    ];
    let entries = entries.each_ref();
    let entries = entries.map(|(name, version, text)| (*name, *version, text.as_str()));
    stage.index("index.yaml", &entries)?;
    let commands = commands();
    ensure!(commands.contains(&RELEASE), "{commands:?}");
    for line in commands {
        if line == RELEASE {
            is_ours(&stage, &before).await?;
        }
        let args: Vec<&str> = line.split_whitespace().collect();
        let said = stage.plugin.run_on_terminal(&args, "y\n").await?;
        // `diff` ends with 1 where something differs.
        let most = i32::from(line.starts_with("diff"));
        ensure!(said.code <= most, "{line}: {}", said.stdout);
        if line.starts_with("diff") {
            ensure!(said.stdout.contains("data.dropped"), "{}", said.stdout);
        }
    }
    ensure!(before == pods(&stage).await?, "other pods");
    let map = stage.must("configmap", "settings").await?;
    let owner = &map["metadata"]["labels"]["kubectl-addons.dev/owner"];
    ensure!(owner.is_null(), "{map}");
    let shop = stage.must("deployment", "shop").await?;
    let owner = &shop["metadata"]["annotations"]["kubectl-addons.dev/installation"];
    let owner = owner.as_str().context("it is not ours")?;
    ensure!(owner.ends_with("/shop"), "{owner}");
    Ok(())
}
