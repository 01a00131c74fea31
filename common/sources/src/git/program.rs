//! The program git: which version it must have, what it may do, and one run of it.
//!
//! It gets no settings and no variables of this machine, and no settings of a user. Ours are given in its environment, where they win
//! over those in a repository. It runs no hook and no helper, speaks one protocol or none, and asks for nothing.

use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::OnceCell;

use super::{MAX_OBJECT, Problem};
use crate::child::{self, Ended, Failure, Limits, Running};
use crate::http::bound::TIME;

/// The first version that takes settings from its environment (`GIT_CONFIG_COUNT`).
pub const OLDEST: (u32, u32) = (2, 31);
/// Bytes of its messages.
pub(super) const MAX_WORDS: usize = 4 << 10;
/// How long it may take to print its version.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where there is no file; git knows this name on Windows, too.
const NOTHING: &str = "/dev/null";
/// No name of a protocol.
const NO_PROTOCOL: &str = "none";
/// Settings of every run.
const SETTINGS: [(&str, &str); 5] = [
    ("core.hooksPath", NOTHING),
    ("core.fsmonitor", "false"),
    ("credential.helper", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Asks once whether git is there and new enough.
static VERSION: OnceCell<()> = OnceCell::const_new();

/// git, for one repository.
#[derive(Debug)]
pub struct Git<'a> {
    /// An empty folder of ours: its home and working directory.
    home: &'a Path,
    /// The repository.
    repository: PathBuf,
    /// The protocol that it may speak.
    protocol: &'static str,
    settings: Vec<(&'static str, String)>,
}

impl<'a> Git<'a> {
    /// git for a repository. It reaches no other one.
    ///
    /// # Errors
    /// There is no git, or an old one.
    pub async fn new(home: &'a Path, repository: PathBuf) -> Result<Self, Problem> {
        VERSION.get_or_try_init(|| check(bare(home))).await?;
        Ok(Self {
            home,
            repository,
            protocol: NO_PROTOCOL,
            settings: Vec::new(),
        })
    }

    /// Lets it speak a protocol, with these settings.
    #[must_use]
    pub fn speaking(
        mut self,
        protocol: &'static str,
        settings: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Self {
        self.protocol = protocol;
        self.settings.extend(settings);
        self
    }

    /// The command, not started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bare(self.home);
        command
            .args(arguments)
            .env("GIT_DIR", &self.repository)
            .env("GIT_ALLOW_PROTOCOL", self.protocol)
            // A repository may not replace the content of a commit by another one.
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", NOTHING)
            .env("GIT_ALLOC_LIMIT", MAX_OBJECT.to_string());
        if self.protocol == NO_PROTOCOL {
            // A repository of this machine could name a server, or a program, for objects that it lacks.
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

    /// Runs it to its end.
    ///
    /// # Errors
    /// It fails, or prints more than `limit` bytes.
    pub async fn run(
        &self,
        arguments: &[&str],
        input: &[u8],
        limit: usize,
    ) -> Result<Vec<u8>, Problem> {
        let ended = run(self.command(arguments), input, limit, TIME).await?;
        if ended.status.success() {
            return Ok(ended.output);
        }
        let words = String::from_utf8_lossy(&ended.words);
        // GIT_ALLOC_LIMIT
        if words.contains("over limit") {
            return Err(Problem::LargeObject);
        }
        let source =
            last_line(&words).unwrap_or_else(|| format!("git ended with {}", ended.status));
        Err(Problem::Protocol {
            source: source.into(),
        })
    }
}

/// The last line of a program's messages.
pub fn last_line(words: &str) -> Option<String> {
    let mut lines = words.lines().map(str::trim).rev();
    let last = lines.find(|line| !line.is_empty())?;
    Some(last.replace(|c: char| c.is_control(), " "))
}

async fn check(mut command: Command) -> Result<(), Problem> {
    command.arg("--version");
    let ended = run(command, &[], MAX_WORDS, PATIENCE).await?;
    let text = String::from_utf8_lossy(&ended.output);
    let version = text.trim().trim_start_matches("git version ");
    if number(version).is_some_and(|version| version >= OLDEST) {
        return Ok(());
    }
    let found = version.chars().filter(|c| !c.is_control()).take(40);
    Err(Problem::TooOld {
        version: found.collect(),
    })
}

/// Major and minor of `2.39.5 (Apple Git-154)`, `2.45.1.windows.1`.
fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn bare(home: &Path) -> Command {
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
) -> Result<Ended, Problem> {
    let mut running = Running::start(&mut command).map_err(|source| not_started("git", source))?;
    let limits = Limits {
        time,
        output,
        words: MAX_WORDS,
        memory: None,
    };
    let ended = running.end(input, limits).await;
    ended.map_err(|failure| match failure {
        Failure::Io(source) => Problem::Connection {
            source: source.into(),
        },
        Failure::TimedOut => Problem::Timeout,
        Failure::TooMuch => Problem::TooLarge,
    })
}

/// The error of a program that does not start.
pub fn not_started(program: &'static str, source: std::io::Error) -> Problem {
    match source.kind() {
        ErrorKind::NotFound => Problem::NoProgram { program },
        _ => Problem::Program { program, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scripts in the place of git.
    #[cfg(unix)]
    #[tokio::test]
    async fn a_git_that_cannot_be_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let check = async || {
            let mut command = bare(folder.path());
            command.env("PATH", folder.path());
            check(command).await
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
            assert_eq!(number(text), want, "{text}");
        }
    }
}
