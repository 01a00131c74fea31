//! `cargo demo`: says what comes, builds what is missing (cargo and Go at the same time), and hands over to `walkthrough`.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;

use addons_control_plane::flags::{Flags, USAGE};
use addons_control_plane::{guard, programs};
use anyhow::{Context as _, Result, bail};

/// The same features as for the tests, so that nothing is compiled twice by those who run both.
const BUILD: [&str; 6] = [
    "build",
    "--workspace",
    "--bin=walkthrough",
    "--bin=measured",
    "--bin=tested-plugin",
    "--bin=tested-webhook",
];
/// How many crates cargo compiles in a minute on one core.
const CRATES_PER_MINUTE: f64 = 45.0;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::stderr().write_all(format!("error: {error:#}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let Some(flags) = Flags::parse(env::args_os().skip(1))? else {
        std::io::stdout().write_all(USAGE.as_bytes())?;
        return Ok(());
    };
    let executable = env::current_exe()?;
    let folder = executable.parent().context("the demo lies in no folder")?;
    let missing = programs::missing()?;
    announce(&missing, folder)?;
    build(folder)?;
    Err(walkthrough(folder, &flags).into())
}

/// What has to be built. How long that takes is said as soon as it is counted, for which Go and cargo download the sources.
fn announce(missing: &[&str], folder: &Path) -> Result<()> {
    let mut text =
        "The demo: a control plane on this machine, the plugin and the webhook.\n".to_owned();
    if !folder.join("walkthrough").is_file() {
        text.push_str("  cargo compiles the plugin and the webhook\n");
    }
    if !missing.is_empty() {
        text.push_str(&format!("  Go builds {}\n", missing.join(", ")));
        text.push_str(
            "  Both share the cores, so their times add up; the next demo starts at once.\n",
        );
    }
    Ok(std::io::stderr().write_all(text.as_bytes())?)
}

/// Both at the same time; the first one that fails ends the other.
fn build(folder: &Path) -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    let (go, folder) = (sender.clone(), folder.to_owned());
    thread::spawn(move || go.send(programs::locate().map(|_| ())));
    thread::spawn(move || sender.send(cargo(&folder)));
    // When the receiver returns early, the process ends, and with it what `guard` started.
    receiver.iter().collect()
}

fn cargo(folder: &Path) -> Result<()> {
    let crates = uncompiled(folder)?;
    if crates > 0 {
        let left = programs::about(crates, CRATES_PER_MINUTE);
        let line = format!("cargo: {crates} crates to compile, {left}\n");
        std::io::stderr().write_all(line.as_bytes())?;
    }
    let status = guard::spawn(&mut cargo_command(&BUILD), b"")
        .context("cannot start cargo build")?
        .wait()?;
    if !status.success() {
        bail!("cargo build failed; its messages are above");
    }
    Ok(())
}

fn cargo_command(args: &[&str]) -> Command {
    let cargo = env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut command = guard::command(&cargo);
    command
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command
}

/// How many crates cargo has compiled nothing of in `folder`; downloads those that are missing.
fn uncompiled(folder: &Path) -> Result<usize> {
    let mut command = cargo_command(&["tree", "--workspace", "--prefix=none", "--format={p}"]);
    command
        .args(["--edges=normal,build"])
        .stdout(Stdio::piped());
    let mut tree = guard::spawn(&mut command, b"").context("cannot start cargo tree")?;
    let lines = tree.stdout().map(|stdout| BufReader::new(stdout).lines());
    let lines: Vec<_> = lines.into_iter().flatten().map_while(Result::ok).collect();
    if !tree.wait()?.success() {
        bail!("cargo tree failed; its messages are above");
    }
    // A crate is `NAME vVERSION …`, and what cargo keeps of it is in `NAME-HASH`.
    let mut crates: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !name.is_empty())
        .collect();
    for entry in fs::read_dir(folder.join(".fingerprint"))
        .into_iter()
        .flatten()
    {
        let file = entry?.file_name();
        if let Some((name, _)) = file.to_string_lossy().rsplit_once('-') {
            crates.remove(name);
        }
    }
    Ok(crates.len())
}

/// Becomes the demo itself; returns only where that is impossible.
fn walkthrough(folder: &Path, flags: &Flags) -> std::io::Error {
    let mut command = Command::new(folder.join("walkthrough"));
    command.arg("--clusters").arg(flags.clusters.to_string());
    if flags.keep {
        command.arg("--keep");
    }
    if let Some(index) = &flags.index {
        command.arg("--index").arg(index);
    }
    command.exec()
}
