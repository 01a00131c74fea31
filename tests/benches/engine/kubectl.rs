//! `kubectl apply --server-side`, which prunes nothing by itself.

use anyhow::Result;

use super::bench::{Bench, Step, Tool};
use super::set::Set;

pub(crate) async fn measure(set: &Set, tool: &mut Tool) -> Result<()> {
    let bench = Bench::start(set).await?;
    let plugin = &bench.plugin;
    let file = plugin.home().join("set.yaml");
    let path = file.to_string_lossy();
    for step in [Step::Install, Step::Nothing, Step::One] {
        std::fs::write(&file, step.manifest(set))?;
        let args = ["apply", "--server-side", "--filename", &path];
        tool.add(step, bench.measure(plugin.kubectl(&args)).await?);
    }
    let version = plugin.kubectl(&["version", "--client"]).await?.done()?;
    let version = version.stdout.lines().next().unwrap_or_default();
    tool.version = version.trim_start_matches("Client Version: ").to_owned();
    Ok(())
}
