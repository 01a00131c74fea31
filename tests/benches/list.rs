//! `cargo bench --bench list`: what `list` takes with 1,000 installations, beside `kubectl get addoninstallations`.

#[path = "list/report.rs"]
mod report;
#[path = "list/world.rs"]
mod world;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

use report::Tool;
use world::World;

/// How often each command runs.
const RUNS: usize = 7;

#[tokio::main]
async fn main() -> ExitCode {
    addons_tests::bench::run(run()).await
}

async fn run() -> Result<()> {
    let mut world = World::start().await?;
    let mut tables = String::new();
    for content in world::CONTENTS {
        world.install(content).await?;
        let mut ours = Tool::new("kubectl addons list");
        let mut peer = Tool::new("kubectl get addoninstallations");
        for _ in 0..RUNS {
            ours.rows.push(world.measure(world.list()).await?);
            peer.rows.push(world.measure(world.get()).await?);
        }
        tables += &report::table(content, &ours, &peer);
    }
    let _ = std::io::stdout().write_all((report::head() + &tables).as_bytes());
    Ok(())
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
