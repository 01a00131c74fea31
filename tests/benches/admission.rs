//! `cargo bench --bench admission`: what admission costs whoever writes records, at the API server: without it, with the policies, and with
//! the webhook, which knows 10,000 entries of catalogues; and how much memory the webhook takes.

#[path = "loop/process.rs"]
mod process;
#[path = "admission/report.rs"]
mod report;
#[path = "admission/world.rs"]
mod world;
#[path = "admission/writes.rs"]
mod writes;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

use world::World;

#[tokio::main]
async fn main() -> ExitCode {
    addons_tests::bench::run(run()).await
}

async fn run() -> Result<()> {
    let mut worlds = Vec::new();
    for layer in world::Layer::ALL {
        worlds.push(World::start(layer).await?);
    }
    let measured = writes::run(&worlds).await?;
    let mut taken = None;
    for world in &mut worlds {
        taken = taken.or(world.taken()?);
    }
    let text = report::table(&measured, taken);
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
