//! `cargo bench --bench engine`: what an install, an upgrade without a change, one with one changed
//! object and one that prunes 65 objects take, beside `kubectl apply --server-side` and Helm; and beside another build of the
//! plugin, where the variable `KUBECTL_ADDONS_BASELINE` has its path.

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
use std::path::PathBuf;
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
    addons_tests::bench::run(run()).await
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
    let plugin = addons_tests::binaries::plugin()?;
    let baseline = std::env::var_os("KUBECTL_ADDONS_BASELINE").map(PathBuf::from);
    let mut ours = Tool::new("kubectl addons");
    let mut before = Tool::new("kubectl addons, baseline");
    let mut kubectl = Tool::new("kubectl apply --server-side");
    let mut helm_tool = Tool::new("helm");
    for program in [Some(&plugin), baseline.as_ref(), helm.as_ref().ok()] {
        program.map_or(Ok(()), |program| bench::warm(program))?;
    }
    for run in 1..=RUNS {
        say(&format!("run {run} of {RUNS} …\n"));
        ours::measure(&plugin, &set, &mut ours).await?;
        if let Some(baseline) = &baseline {
            ours::measure(baseline, &set, &mut before).await?;
        }
        kubectl::measure(&set, &mut kubectl).await?;
        if let Ok(helm) = &helm {
            helm::measure(helm, &set, &mut helm_tool).await?;
        }
    }
    let before = baseline.map(|_| before);
    let table = report::table(&set, RUNS, &ours, before.as_ref(), &[kubectl, helm_tool]);
    let _ = std::io::stdout().write_all(table.as_bytes());
    Ok(())
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
