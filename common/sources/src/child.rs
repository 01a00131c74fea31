//! Runs other programs (git, ssh, helm, kubectl, kustomize) as child processes: with a reduced environment,
//! and with limits for time, output and memory. Their own children end with them.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::platform;

/// The variables that configure access to the network.
const NETWORK: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Clears the environment of a program, except for the variables that every program needs. The program gets
/// no settings and no credentials of this machine.
pub fn clear(command: &mut Command) {
    command.env_clear();
    pass(command, &platform::PASSED);
}

/// The variables that name a proxy, by scheme.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
/// A proxy that does not exist: the port of the `discard` protocol, on which no server listens.
const NOWHERE: &str = "http://127.0.0.1:9";

/// Like [`clear`], and also points all proxies to a closed port, for a program that needs no network.
pub fn offline(command: &mut Command) {
    clear(command);
    command.envs(PROXIES.map(|name| (name, NOWHERE)));
}

/// Clears the environment of a program, except for the variables that every program needs and those for
/// proxies and certificate authorities.
pub fn isolate(command: &mut Command) {
    clear(command);
    pass(command, &NETWORK);
}

fn pass(command: &mut Command, names: &[&str]) {
    for name in names {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
}

/// The limits for one run of a program.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// The maximum duration.
    pub time: Duration,
    /// The maximum size of stdout in bytes. A program that prints more is stopped.
    pub stdout: usize,
    /// The number of bytes of stderr to keep. The rest is read and dropped.
    pub stderr: usize,
    /// The maximum memory in bytes of the program and of each program that it starts. `None`: no limit. Only
    /// enforced on Linux.
    pub memory: Option<u64>,
}

/// The result of a program that ended by itself.
#[derive(Debug)]
pub struct FinishedRun {
    /// The exit status.
    pub status: ExitStatus,
    /// The whole stdout.
    pub stdout: Vec<u8>,
    /// The beginning of stderr.
    pub stderr: Vec<u8>,
}

/// Why a program did not end by itself.
#[derive(Debug)]
pub enum RunFailure {
    /// Reading from or writing to the program failed.
    Io(std::io::Error),
    /// The program took longer than [`RunLimits::time`].
    TimedOut,
    /// The program printed more than [`RunLimits::stdout`].
    TooMuch,
}

/// A running program. Dropping this value kills the program and its children.
#[derive(Debug)]
pub struct RunningProgram(Child);

/// The stdin, stdout and stderr of a program.
pub type Pipes = (ChildStdin, ChildStdout, ChildStderr);

impl RunningProgram {
    /// Starts a program in its own process group.
    ///
    /// # Errors
    /// The program does not exist or cannot be run.
    pub fn start(command: &mut Command) -> std::io::Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        platform::use_own_group(command);
        command.spawn().map(Self)
    }

    /// Takes the pipes of the program.
    ///
    /// # Errors
    /// The pipes were already taken.
    pub fn pipes(&mut self) -> std::io::Result<Pipes> {
        match (
            self.0.stdin.take(),
            self.0.stdout.take(),
            self.0.stderr.take(),
        ) {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((stdin, stdout, stderr)),
            _ => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Writes `input` to the program and waits until it ends. After an error the program keeps running until
    /// this value is dropped.
    ///
    /// # Errors
    /// [`RunFailure`].
    pub async fn finish(
        &mut self,
        input: &[u8],
        limits: RunLimits,
    ) -> Result<FinishedRun, RunFailure> {
        if let Some(bytes) = limits.memory {
            platform::limit_memory(&self.0, bytes).map_err(RunFailure::Io)?;
        }
        let (mut stdin, stdout, stderr) = self.pipes().map_err(RunFailure::Io)?;
        let feed = async {
            // If the program does not read its input, its exit status says why.
            let _ = stdin.write_all(input).await;
            drop(stdin);
            Ok(())
        };
        let stdout = async {
            let stdout = read_whole(stdout, limits.stdout)
                .await
                .map_err(RunFailure::Io)?;
            stdout.ok_or(RunFailure::TooMuch)
        };
        let stderr = async {
            read_beginning(stderr, limits.stderr)
                .await
                .map_err(RunFailure::Io)
        };
        let ended = timeout(limits.time, async {
            let ((), stdout, stderr) = tokio::try_join!(feed, stdout, stderr)?;
            let status = self.0.wait().await.map_err(RunFailure::Io)?;
            Ok(FinishedRun {
                status,
                stdout,
                stderr,
            })
        });
        ended.await.unwrap_or(Err(RunFailure::TimedOut))
    }

    /// Asks the program to terminate and waits for its end, at most `grace`.
    pub async fn terminate(&mut self, grace: Duration) {
        platform::terminate_group(&self.0);
        let _ = timeout(grace, self.0.wait()).await;
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        platform::kill_group(&self.0);
    }
}

/// Reads a pipe to its end. Returns `None` if it has more than `limit` bytes.
async fn read_whole(
    pipe: impl AsyncRead + Unpin,
    limit: usize,
) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    pipe.take(limit as u64 + 1).read_to_end(&mut bytes).await?;
    Ok((bytes.len() <= limit).then_some(bytes))
}

/// Reads a pipe to its end and returns the first `limit` bytes. The rest is read too, because a full pipe
/// would block the program.
///
/// # Errors
/// Errors of the pipe.
pub async fn read_beginning(
    mut pipe: impl AsyncRead + Unpin,
    limit: usize,
) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&mut pipe)
        .take(limit as u64)
        .read_to_end(&mut bytes)
        .await?;
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok(bytes)
}
