//! Runs the program git with fixed settings, and checks its version.
//!
//! Git gets no variables and no settings of the machine or the user. Its settings are passed in the
//! environment, where they override those of a repository. It runs no hooks and no helpers, speaks at most
//! one protocol, and never prompts.

use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::OnceCell;

use super::{GitProblem, MAX_OBJECT};
use crate::child::{self, FinishedRun, RunFailure, RunLimits, RunningProgram};
use crate::http::bound::TIME;

/// The oldest supported version, which is the first that reads settings from the environment
/// (`GIT_CONFIG_COUNT`).
pub const OLDEST: (u32, u32) = (2, 31);
/// The number of bytes of stderr to keep.
pub(super) const MAX_WORDS: usize = 4 << 10;
/// How long git may take to print its version.
const PATIENCE: Duration = Duration::from_secs(20);
/// An empty file. Git supports this name on Windows too.
const NOTHING: &str = "/dev/null";
/// The value of `GIT_ALLOW_PROTOCOL` that allows no protocol.
const NO_PROTOCOL: &str = "none";
/// The settings of every run.
const SETTINGS: [(&str, &str); 5] = [
    ("core.hooksPath", NOTHING),
    ("core.fsmonitor", "false"),
    ("credential.helper", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Set after git was found and its version was checked, once per process.
static VERSION: OnceCell<()> = OnceCell::const_new();

/// The program git for one repository.
#[derive(Debug)]
pub struct Git<'a> {
    /// An empty folder, the home and working directory of git.
    home: &'a Path,
    /// The repository.
    repository: PathBuf,
    /// The only protocol that git may use.
    protocol: &'static str,
    settings: Vec<(&'static str, String)>,
}

impl<'a> Git<'a> {
    /// Sets up git for a repository. It can reach no other repository.
    ///
    /// # Errors
    /// Git is not installed or too old.
    pub async fn new(home: &'a Path, repository: PathBuf) -> Result<Self, GitProblem> {
        VERSION
            .get_or_try_init(|| check_version(bare_command(home)))
            .await?;
        Ok(Self {
            home,
            repository,
            protocol: NO_PROTOCOL,
            settings: Vec::new(),
        })
    }

    /// Allows a protocol and adds settings.
    #[must_use]
    pub fn with_protocol(
        mut self,
        protocol: &'static str,
        settings: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Self {
        self.protocol = protocol;
        self.settings.extend(settings);
        self
    }

    /// Returns the command, not started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bare_command(self.home);
        command
            .args(arguments)
            .env("GIT_DIR", &self.repository)
            .env("GIT_ALLOW_PROTOCOL", self.protocol)
            // A repository must not replace the content of a commit.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", NOTHING)
            .env("GIT_ALLOC_LIMIT", MAX_OBJECT.to_string());
        if self.protocol == NO_PROTOCOL {
            // A local repository could name a server or a program to fetch missing objects from.
            command.env("GIT_NO_LAZY_FETCH", "1");
        }
        let fixed = SETTINGS.map(|(key, value)| (key, value.to_owned()));
        let settings = fixed.iter().chain(&self.settings);
        let mut count = 0;
        for (key, value) in settings {
            command
                .env(format!("GIT_CONFIG_KEY_{count}"), key)
                .env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        command.env("GIT_CONFIG_COUNT", count.to_string());
        command
    }

    /// Runs git until it ends and returns its stdout.
    ///
    /// # Errors
    /// Git fails, or prints more than `limit` bytes.
    pub async fn run(
        &self,
        arguments: &[&str],
        input: &[u8],
        limit: usize,
    ) -> Result<Vec<u8>, GitProblem> {
        let ended = run(self.command(arguments), input, limit, TIME).await?;
        if ended.status.success() {
            return Ok(ended.stdout);
        }
        let words = String::from_utf8_lossy(&ended.stderr);
        // The message of git when an object exceeds GIT_ALLOC_LIMIT.
        if words.contains("over limit") {
            return Err(GitProblem::LargeObject);
        }
        let source =
            last_line(&words).unwrap_or_else(|| format!("git ended with {}", ended.status));
        Err(GitProblem::Protocol {
            source: source.into(),
        })
    }
}

/// Returns the last line of the messages of a program.
pub fn last_line(words: &str) -> Option<String> {
    let mut lines = words.lines().map(str::trim).rev();
    let last = lines.find(|line| !line.is_empty())?;
    Some(last.replace(|c: char| c.is_control(), " "))
}

async fn check_version(mut command: Command) -> Result<(), GitProblem> {
    command.arg("--version");
    let ended = run(command, &[], MAX_WORDS, PATIENCE).await?;
    let text = String::from_utf8_lossy(&ended.stdout);
    let version = text.trim().trim_start_matches("git version ");
    if parse_version(version).is_some_and(|version| version >= OLDEST) {
        return Ok(());
    }
    let found = version.chars().filter(|c| !c.is_control()).take(40);
    Err(GitProblem::TooOld {
        version: found.collect(),
    })
}

/// Parses the major and minor version of, for example, `2.39.5 (Apple Git-154)` or `2.45.1.windows.1`.
fn parse_version(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn bare_command(home: &Path) -> Command {
    let mut command = Command::new("git");
    child::clear(&mut command);
    command
        .current_dir(home)
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", NOTHING)
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0");
    command
}

async fn run(
    mut command: Command,
    input: &[u8],
    output: usize,
    time: Duration,
) -> Result<FinishedRun, GitProblem> {
    let mut running =
        RunningProgram::start(&mut command).map_err(|source| not_started("git", source))?;
    let limits = RunLimits {
        time,
        stdout: output,
        stderr: MAX_WORDS,
        memory: None,
    };
    let ended = running.finish(input, limits).await;
    ended.map_err(|failure| match failure {
        RunFailure::Io(source) => GitProblem::Connection {
            source: source.into(),
        },
        RunFailure::TimedOut => GitProblem::Timeout,
        RunFailure::TooMuch => GitProblem::TooLarge,
    })
}

/// The error for a program that does not start.
pub fn not_started(program: &'static str, source: std::io::Error) -> GitProblem {
    match source.kind() {
        ErrorKind::NotFound => GitProblem::NoProgram { program },
        _ => GitProblem::Program { program, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs scripts instead of git.
    #[cfg(unix)]
    #[tokio::test]
    async fn missing_and_old_versions_of_git_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let check = async || {
            let mut command = bare_command(folder.path());
            command.env("PATH", folder.path());
            check_version(command).await
        };
        let error = check().await.unwrap_err();
        assert_eq!(error.to_string(), "git: not found in PATH");
        let program = folder.path().join("git");
        for (version, want) in [
            ("git version 2.25.1", Some("git 2.25.1 is too old")),
            ("busybox", Some("git busybox is too old")),
            ("git version 2.31.0", None),
        ] {
            std::fs::write(&program, format!("#!/bin/sh\necho {version}\n")).unwrap();
            let mode = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(&program, mode).unwrap();
            let error = check().await.err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), want, "{version}");
        }
    }

    #[test]
    fn versions() {
        for (text, want) in [
            ("2.39.5", Some((2, 39))),
            ("2.39.5 (Apple Git-154)", Some((2, 39))),
            ("2.45.1.windows.1", Some((2, 45))),
            ("2.50.0-rc1", Some((2, 50))),
            ("3.0", Some((3, 0))),
            ("usage: git", None),
            ("", None),
        ] {
            assert_eq!(parse_version(text), want, "{text}");
        }
    }
}
