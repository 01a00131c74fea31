//! `cargo bench --bench engine`: what an install, an upgrade without a change, one with one changed
//! object and one that prunes 65 objects take, beside `kubectl apply --server-side` and Helm.

#[path = "engine/bench.rs"]
mod bench;
#[path = "engine/helm.rs"]
mod helm;
#[path = "engine/kubectl.rs"]
mod kubectl;
#[path = "engine/ours.rs"]
mod ours;
#[path = "engine/report.rs"]
mod report;
#[path = "engine/set.rs"]
mod set;

use std::io::Write as _;
use std::process::ExitCode;

use addons_tests::control_plane::binaries;
use addons_tests::shared;
use anyhow::{Result, bail};

use bench::Tool;
use set::Set;

/// How often the whole sequence runs, each tool on a fresh control plane each time.
const RUNS: usize = 3;

#[tokio::main]
async fn main() -> ExitCode {
    // `cargo test --all-targets` runs benchmarks too, without this flag: nothing is timed there.
    if !std::env::args().any(|arg| arg == "--bench") {
        return ExitCode::SUCCESS;
    }
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::stderr().write_all(format!("error: {error:#}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let Some(corpus) = shared::path("corpus/kops/many-addons") else {
        bail!("the corpus is not beside the checkout (../shared/corpus/kops/many-addons)");
    };
    let set = Set::read(&corpus)?;
    let helm = binaries::helm();
    if let Err(error) = &helm {
        say(&format!("the peer helm is left out: {error:#}\n"));
    }
    let mut ours = Tool::new("kubectl addons");
    let mut kubectl = Tool::new("kubectl apply --server-side");
    let mut helm_tool = Tool::new("helm");
    for run in 1..=RUNS {
        say(&format!("run {run} of {RUNS} …\n"));
        ours::measure(&set, &mut ours).await?;
        kubectl::measure(&set, &mut kubectl).await?;
        if let Ok(helm) = &helm {
            helm::measure(helm, &set, &mut helm_tool).await?;
        }
    }
    let table = report::table(&set, RUNS, &ours, &[kubectl, helm_tool]);
    let _ = std::io::stdout().write_all(table.as_bytes());
    Ok(())
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
