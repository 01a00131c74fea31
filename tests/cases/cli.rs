//! What the program says, without a cluster: `cargo test -p addons-tests --test offline cli::`.
//!
//! A case is a command line in `tests/data/cli` and the file `cases/cli/NAME.txt` with everything that it says. With
//! `UPDATE_EXPECT=1` the files are written again; read the difference before you commit it.

mod cases;
mod credentials;
mod export;
mod http;
mod shell;
mod tls;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use addons_tests::binaries;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// A user who has no cluster.
struct User {
    home: TempDir,
}

impl User {
    fn new() -> Result<Self> {
        let home = tempfile::tempdir()?;
        let plugin = binaries::plugin()?;
        symlink(&plugin, home.path().join("kubectl-addons"))?;
        symlink(
            "kubectl-addons",
            home.path().join("kubectl_complete-addons"),
        )?;
        symlink(&plugin, home.path().join("other-name"))?;
        Ok(Self { home })
    }

    /// Runs `PROGRAM ARGS` in `tests/data/cli`; `VAR=VALUE` words before the program are its environment.
    fn run(&self, line: &str) -> Result<(i32, String, String)> {
        let mut words = words(line).into_iter().peekable();
        let mut command = Command::new("env");
        command
            .env_clear()
            .env("PATH", self.home.path())
            .env("HOME", self.home.path());
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            command.env(name, value);
            words.next();
        }
        let program = words.next().context("a case without a program")?;
        let program = self.home.path().join(program);
        let mut command = with_program(&command, &program);
        let output = command
            .args(words)
            .current_dir(data())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let text = |bytes: Vec<u8>| -> Result<String> {
            let text = String::from_utf8(bytes).context("the output is no UTF-8")?;
            Ok(text.replace(&data().to_string_lossy().into_owned(), "[DATA]"))
        };
        let code = output.status.code().context("killed by a signal")?;
        Ok((code, text(output.stdout)?, text(output.stderr)?))
    }
}

/// The same environment with another program.
fn with_program(environment: &Command, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    for (name, value) in environment.get_envs() {
        command.env(name, value.unwrap_or(OsStr::new("")));
    }
    command
}

/// Blanks separate words; `''` is an empty one.
fn words(line: &str) -> Vec<String> {
    let words = line.split_whitespace();
    words
        .map(|word| {
            if word == "''" {
                String::new()
            } else {
                word.to_owned()
            }
        })
        .collect()
}

fn data() -> PathBuf {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/data/cli");
    fs::canonicalize(data).unwrap_or_else(|_| data.into())
}

fn snapshot(line: &str, code: i32, stdout: &str, stderr: &str) -> String {
    format!("$ {line}\nexit code {code}\n--- stdout\n{stdout}--- stderr\n{stderr}")
}

#[test]
fn says_what_it_said() -> Result<()> {
    let mut tally = Tally::new("cli::says_what_it_said");
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/cases/cli"));
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let user = User::new()?;
    let mut differ = Vec::new();
    for (name, line) in cases::CASES {
        let (code, stdout, stderr) = user.run(line)?;
        let said = snapshot(line, code, &stdout, &stderr);
        let file = folder.join(format!("{name}.txt"));
        if update {
            fs::write(&file, &said)?;
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if said != expected {
            differ.push(format!("--- expected {name}\n{expected}\n--- said\n{said}"));
        }
        tally.ran();
    }
    ensure!(
        differ.is_empty(),
        "{} of {} differ (UPDATE_EXPECT=1 writes them again)\n{}",
        differ.len(),
        cases::CASES.len(),
        differ.join("\n")
    );
    Ok(())
}

#[test]
fn every_snapshot_has_its_case() -> Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cases/cli");
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("txt")) {
            let name = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
            ensure!(
                cases::CASES.iter().any(|(case, _)| *case == name),
                "{name}.txt belongs to no case"
            );
        }
    }
    Ok(())
}

#[test]
fn a_closed_pipe_ends_it_quietly() -> Result<()> {
    let user = User::new()?;
    let program = user.home.path().join("kubectl-addons");
    let mut child = Command::new(program)
        .args(["completion", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // Nobody reads: the pipe breaks at the first write.
    drop(child.stdout.take());
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", output.status);
    ensure!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
