//! `cargo demo`: says what comes, builds what is missing (cargo and Go at the same time), and hands over to `walkthrough`.

use std::env;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::mpsc;
use std::thread;

use addons_control_plane::flags::{Flags, USAGE};
use addons_control_plane::{guard, programs};
use anyhow::{Context as _, Result, bail};

/// The same features as for the tests, so that nothing is compiled twice by those who run both.
const BUILD: [&str; 6] = ["build", "--workspace", "--bin=walkthrough", "--bin=measured", "--bin=tested-plugin", "--bin=tested-webhook"];
/// About how long cargo takes for them on 2 cores where nothing is compiled, in minutes.
const MINUTES: u32 = 4;

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
    build()?;
    Err(walkthrough(folder, &flags).into())
}

/// What has to be built, and about how long that takes.
fn announce(missing: &[&str], folder: &Path) -> Result<()> {
    let is_compiled = folder.join("walkthrough").is_file();
    let (cargo, go) = (MINUTES, programs::minutes());
    let mut text =
        "The demo: a control plane on this machine, the plugin and the webhook.\n".to_owned();
    if !is_compiled {
        text.push_str(&format!(
            "  cargo compiles the plugin and the webhook, about {cargo} min on 2 cores\n"
        ));
    }
    if !missing.is_empty() {
        text.push_str(&format!(
            "  Go builds {}, about {go} min on 2 cores\n",
            missing.join(", ")
        ));
    }
    if !is_compiled && !missing.is_empty() {
        text.push_str(&format!(
            "  Both at the same time: about {} min in all; the next demo starts at once.\n",
            cargo + go
        ));
    }
    Ok(std::io::stderr().write_all(text.as_bytes())?)
}

/// Both at the same time; the first one that fails ends the other.
fn build() -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    let go = sender.clone();
    thread::spawn(move || go.send(programs::locate().map(|_| ())));
    thread::spawn(move || sender.send(cargo()));
    // When the receiver returns early, the process ends, and with it what `guard` started.
    receiver.iter().collect()
}

fn cargo() -> Result<()> {
    let cargo = env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut command = guard::command(&cargo);
    command
        .args(BUILD)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let status = guard::spawn(&mut command, b"")
        .context("cannot start cargo build")?
        .wait()?;
    if !status.success() {
        bail!("cargo build failed; its messages are above");
    }
    Ok(())
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
