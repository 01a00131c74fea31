//! `kubectl addons install` and `upgrade` from an index beside them.

use std::path::Path;

use anyhow::Result;

use super::bench::{Bench, Step, Tool};
use super::set::{self, Set};

/// Measures one build of the plugin.
pub(crate) async fn measure(program: &Path, set: &Set, tool: &mut Tool) -> Result<()> {
    let bench = Bench::start(set).await?;
    let plugin = &bench.plugin;
    let index = plugin.home().join("index.yaml");
    let channel = format!("file://{}", index.display());
    for step in Step::ALL {
        set::write_index(plugin.home(), step.version(), &step.manifest(set))?;
        let verb = match step {
            Step::Install => &["install", "bench", "--channel", &channel][..],
            _ => &["upgrade", "bench"],
        };
        let args = [verb, &["--yes", "--wait=false"]].concat();
        tool.add(step, bench.measure(plugin.program(program, &args)).await?);
    }
    let version = plugin.program(program, &["--version"]).await?.done()?;
    tool.version = version.stdout.trim().to_owned();
    Ok(())
}
