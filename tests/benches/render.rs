//! `cargo bench --bench render`: what rendering all add-ons of KKP for one provider takes, in one process and in one process
//! each, beside a program over Go's text/template and sprig.
//!
//! Every program prints the sha256 of what it rendered, and no row counts whose sums are not those of `golden/kkp`.

#[path = "render/addons.rs"]
mod addons;
#[path = "render/child.rs"]
mod child;
#[path = "render/measure.rs"]
mod measure;

use std::io::Write as _;
use std::process::ExitCode;

use addons_tests::binaries;
use anyhow::{Context as _, Result};

use addons::Addons;
use measure::Taken;

/// How often each program runs; the median counts.
const RUNS: usize = 5;
/// How often the add-ons are rendered in one process: once as a command does, and often to see the engine alone.
const TIMES: [usize; 2] = [1, 50];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((first, rest)) if first == child::NAME => child::run(rest),
        // `cargo test --all-targets` runs benchmarks too, without this flag: nothing is timed there.
        _ if arguments.iter().any(|argument| argument == "--bench") => run(),
        _ => Ok(()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}\n"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let addons = Addons::find()?;
    let mut table = format!(
        "{} add-ons of KKP for {}, each row the median of {RUNS} runs\n\n\
         | program | renderings | wall ms | CPU ms | peak MiB |\n|---|---|---|---|---|\n",
        addons.folders.len(),
        addons::VARIANT,
    );
    let ours = std::env::current_exe()?;
    let peer = measure::peer();
    if let Err(error) = &peer {
        say(&format!("the peer in Go is left out: {error:#}\n"));
    }
    for times in TIMES {
        let mut first = vec![child::NAME.to_owned()];
        first.extend(addons.arguments(times));
        let row = median(|| {
            let taken = measure::run(&ours, &first)?;
            addons.verify(&taken.stdout).map(|()| taken)
        })?;
        table.push_str(&line("ours, in process", times, &row));
        if let Ok(peer) = &peer {
            let row = median(|| {
                let taken = measure::run(peer.path(), &addons.arguments(times))?;
                addons.verify(&taken.stdout).map(|()| taken)
            })?;
            table.push_str(&line("text/template and sprig, in process", times, &row));
        }
    }
    let plugin = binaries::plugin()?;
    let help = ["render", "--help"].map(str::to_owned);
    if measure::run(&plugin, &help).is_ok() {
        let row = median(|| addons.by_command(&plugin))?;
        let program = format!("kubectl addons render, {} processes", addons.folders.len());
        table.push_str(&line(&program, 1, &row));
    } else {
        say("kubectl addons render is left out: there is no such command\n");
    }
    let _ = std::io::stdout().write_all(table.as_bytes());
    Ok(())
}

/// The run with the median wall time.
fn median(mut run: impl FnMut() -> Result<Taken>) -> Result<Taken> {
    let mut rows = (0..RUNS).map(|_| run()).collect::<Result<Vec<_>>>()?;
    rows.sort_by_key(|row| row.wall);
    rows.into_iter().nth(RUNS / 2).context("no run")
}

fn line(program: &str, times: usize, taken: &Taken) -> String {
    let ms = |duration: std::time::Duration| duration.as_secs_f64() * 1000.0;
    let mib = taken.peak_bytes as f64 / f64::from(1 << 20);
    let (wall, cpu) = (ms(taken.wall), ms(taken.cpu));
    format!("| {program} | {times} | {wall:.1} | {cpu:.1} | {mib:.1} |\n")
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
