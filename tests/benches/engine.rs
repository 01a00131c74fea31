//! `cargo bench -p addons-tests --bench engine`: what an install, an upgrade without a change, one with one changed
//! object and one that prunes 65 objects take, beside `kubectl apply --server-side`.

#[path = "engine/set.rs"]
mod set;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::plugin::{Output, Plugin};
use addons_tests::shared;
use anyhow::{Result, bail};

use set::Set;

/// How often the whole sequence runs, each time on a fresh control plane; the row with the median wall time is printed.
const RUNS: usize = 3;

/// One step of one tool.
struct Row {
    output: Output,
    requests: BTreeMap<String, usize>,
}

/// The rows of one tool: step → one row a run.
type Rows = BTreeMap<&'static str, Vec<Row>>;

const INSTALL: &str = "1 install";
const NOTHING: &str = "2 nothing changed";
const ONE: &str = "3 one object changed";
const PRUNE: &str = "4 65 objects pruned";

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
    let (mut ours, mut theirs) = (Rows::new(), Rows::new());
    let mut kubectl = String::new();
    for run in 1..=RUNS {
        say(&format!("run {run} of {RUNS} …\n"), true);
        measure_ours(&set, &mut ours).await?;
        kubectl = measure_kubectl(&set, &mut theirs).await?;
    }
    say(&report(&set, &kubectl, &ours, &theirs), false);
    Ok(())
}

async fn measure_ours(set: &Set, rows: &mut Rows) -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    let user = cluster.user("bench", &["system:masters"])?;
    let plugin = Plugin::new(&cluster, &user.kubeconfig)?;
    plugin.run(&["init"]).await?.done()?;
    warm_up(&plugin, set).await?;
    let index = plugin.home().join("index.yaml");
    let channel = format!("file://{}", index.display());
    let install = [
        "install",
        "bench",
        "--channel",
        &channel,
        "--yes",
        "--wait=false",
    ];
    let upgrade = ["upgrade", "bench", "--yes", "--wait=false"];
    let steps = [
        (INSTALL, &install[..], set.all(), "1.0.0"),
        (NOTHING, &upgrade[..], set.all(), "1.0.0"),
        (ONE, &upgrade[..], set.one_changed(), "1.0.1"),
        (PRUNE, &upgrade[..], set.pruned(), "1.0.2"),
    ];
    for (step, args, manifest, version) in steps {
        set::write_index(plugin.home(), version, &manifest)?;
        let mark = cluster.audit().mark()?;
        let output = plugin.run(args).await?.done()?;
        let requests = cluster.audit().since(mark)?.by("bench").by_verb("");
        rows.entry(step).or_default().push(Row { output, requests });
    }
    Ok(())
}

/// Asks the API server about every object without writing one: the first server-side apply of a kind after its start costs
/// seconds of its time, which would be measured as the client's.
async fn warm_up(plugin: &Plugin, set: &Set) -> Result<()> {
    let file = plugin.home().join("warm-up.yaml");
    std::fs::write(&file, set.all())?;
    let file = file.to_string_lossy();
    let args = [
        "apply",
        "--server-side",
        "--dry-run=server",
        "--filename",
        &file,
    ];
    plugin.kubectl(&args).await?.done()?;
    Ok(())
}

async fn measure_kubectl(set: &Set, rows: &mut Rows) -> Result<String> {
    let cluster = ControlPlane::start(Options::default()).await?;
    let user = cluster.user("bench", &["system:masters"])?;
    let plugin = Plugin::new(&cluster, &user.kubeconfig)?;
    warm_up(&plugin, set).await?;
    let file = plugin.home().join("set.yaml");
    let apply = [
        "apply",
        "--server-side",
        "--filename",
        &file.to_string_lossy(),
    ];
    for (step, manifest) in [
        (INSTALL, set.all()),
        (NOTHING, set.all()),
        (ONE, set.one_changed()),
    ] {
        std::fs::write(&file, manifest)?;
        let mark = cluster.audit().mark()?;
        let output = plugin.kubectl(&apply).await?.done()?;
        let requests = cluster.audit().since(mark)?.by("bench").by_verb("");
        rows.entry(step).or_default().push(Row { output, requests });
    }
    let version = plugin.kubectl(&["version", "--client"]).await?.done()?;
    Ok(version.stdout.lines().next().unwrap_or_default().to_owned())
}

fn report(set: &Set, kubectl: &str, ours: &Rows, theirs: &Rows) -> String {
    let mut text = format!(
        "\nOne add-on of {} objects, {:.1} MB, from the kops index many-addons without webhook configurations, APIService and\n\
         custom resources; no waiting for readiness. Each tool has a fresh kube-apiserver with etcd on this machine ({} cores),\n\
         {RUNS} runs; printed is the run with the median wall time. Wall, CPU (user and system) and peak memory are those of the\n\
         process by wait4, requests those of its user in the audit log. The plugin's CRDs were installed before, and kubectl had asked for a\n\
         server-side dry run of the set, so that no tool pays for the start of the API server. Peer found: kubectl ({kubectl}).\n\n",
        set.objects(),
        set.all().len() as f64 / 1e6,
        std::thread::available_parallelism().map_or(1, usize::from),
    );
    text += &format!(
        "{:<21}  {:<26}  {:>7}  {:>7}  {:>6}  requests\n",
        "step", "tool", "wall s", "CPU s", "MiB"
    );
    for step in [INSTALL, NOTHING, ONE, PRUNE] {
        for (tool, rows) in [
            ("kubectl addons", ours),
            ("kubectl apply --server-side", theirs),
        ] {
            text += &match rows.get(step).and_then(|rows| median(rows)) {
                Some(row) => line(step, tool, row),
                None => format!("{step:<21}  {tool:<26}  (does not)\n"),
            };
        }
    }
    text
}

fn line(step: &str, tool: &str, row: &Row) -> String {
    let verbs: Vec<_> = row
        .requests
        .iter()
        .map(|(verb, count)| format!("{verb} {count}"))
        .collect();
    format!(
        "{step:<21}  {tool:<26}  {:>7.3}  {:>7.3}  {:>6.1}  {} ({})\n",
        row.output.elapsed.as_secs_f64(),
        row.output.cpu.as_secs_f64(),
        row.output.max_rss as f64 / f64::from(1 << 20),
        row.requests.values().sum::<usize>(),
        verbs.join(", ")
    )
}

fn median(rows: &[Row]) -> Option<&Row> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by_key(|row| row.output.elapsed);
    rows.get(rows.len() / 2).copied()
}

fn say(text: &str, progress: bool) {
    let _ = if progress {
        std::io::stderr().write_all(text.as_bytes())
    } else {
        std::io::stdout().write_all(text.as_bytes())
    };
}
